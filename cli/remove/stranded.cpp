#include "cli/remove/stranded.hpp"

#include <algorithm>
#include <array>
#include <ostream>
#include <tuple>
#include <utility>

#include "api/names.hpp"

namespace cli {
namespace {

namespace names = reconcilers::names;
constexpr const auto& pod_type = kube::resources::pods;
using nlohmann::json;

constexpr int most_tries = 5;  // its status may change between a look and the deletion
constexpr std::size_t most_owners = 4, named_at_most = 3;

constexpr kube::resource replica_sets{"apps", "v1", "replicasets", "ReplicaSet", true};
constexpr kube::resource stateful_sets{"apps", "v1", "statefulsets", "StatefulSet", true};
constexpr kube::resource replication_controllers{"", "v1", "replicationcontrollers", "ReplicationController", true};
constexpr kube::resource jobs{"batch", "v1", "jobs", "Job", true};
constexpr kube::resource cron_jobs{"batch", "v1", "cronjobs", "CronJob", true};
/// Kubernetes' own. What other types do about a pod that is gone is theirs: some fail.
constexpr std::array<const kube::resource*, 7> known_owners{&replica_sets,
                                                            &stateful_sets,
                                                            &replication_controllers,
                                                            &jobs,
                                                            &cron_jobs,
                                                            &kube::resources::deployments,
                                                            &kube::resources::daemon_sets};

std::string text_at(const json& object, const char* pointer) {
  const json::json_pointer location(pointer);
  return object.contains(location) && object[location].is_string() ? object[location].get<std::string>()
                                                                   : std::string();
}
std::int64_t number_at(const json& object, const char* pointer, std::int64_t otherwise) {
  const json::json_pointer location(pointer);
  return object.contains(location) && object[location].is_number_integer() ? object[location].get<std::int64_t>()
                                                                           : otherwise;
}

/// Null: it has none.
json controller_of(const json& object) {
  for (const auto& entry : object.value("/metadata/ownerReferences"_json_pointer, json::array()))
    if (entry.value("controller", false)) return entry;
  return {};
}

const kube::resource* type_of(const json& reference) {
  const auto version = text_at(reference, "/apiVersion");
  const auto group = version.contains('/') ? version.substr(0, version.find('/')) : std::string();
  const auto* match = std::ranges::find_if(known_owners, [&](const kube::resource* resource) {
    return resource->group == group && resource->kind == text_at(reference, "/kind");
  });
  return match == known_owners.end() ? nullptr : *match;
}

/// "Deployment lab/trainer".
std::string name_of(const json& object) {
  return text_at(object, "/kind") + " " + text_at(object, "/metadata/namespace") + "/" +
         text_at(object, "/metadata/name");
}

constexpr auto template_name = "/spec/template/spec/schedulerName";
constexpr auto cron_template_name = "/spec/jobTemplate/spec/template/spec/schedulerName";
bool names_ours(const json& owner) {
  return text_at(owner, template_name) == names::scheduler_name ||
         text_at(owner, cron_template_name) == names::scheduler_name;
}

/// A Job's template never changes, and that of a Deployment is what its ReplicaSets follow: the last that names it.
std::string edit(const std::vector<json>& owners) {
  const json* last = nullptr;
  for (const auto& owner : owners)
    if (names_ours(owner)) last = &owner;
  const auto kind = text_at(*last, "/kind");
  const auto says = "the template of " + name_of(*last) + " names the scheduler, and so would the next pod: ";
  if (kind == "Job") return says + "recreate the Job without spec.template.spec.schedulerName";
  return says + "take " + (kind == "CronJob" ? "spec.jobTemplate." : "") + "spec.template.spec.schedulerName out";
}

void add_reason(stranded_pod& stranded_pod, const json& pod, const std::vector<json>& owners,
                const std::string& unread) {
  const auto controller = controller_of(pod);
  if (controller.is_null()) {
    stranded_pod.stays = "nothing would recreate it: delete it, and make it again without schedulerName";
    return;
  }
  if (owners.empty()) {
    stranded_pod.stays = unread;
    return;
  }
  const auto& direct = owners.front();
  if (names_ours(direct)) {
    stranded_pod.stays = edit(owners);
  } else if (!text_at(direct, "/metadata/deletionTimestamp").empty()) {
    stranded_pod.stays = name_of(direct) + " is being deleted";
  } else if (text_at(direct, "/kind") == "Job") {
    stranded_pod.job = text_at(direct, "/metadata/uid");
    if (failures_left(direct) <= 0)
      stranded_pod.stays =
          "its deletion would count as a failure and end the Job (backoffLimit, podFailurePolicy): recreate the Job";
  }
}

}  // namespace

bool waits(const json& pod) {
  const auto phase = text_at(pod, "/status/phase");
  return text_at(pod, "/spec/schedulerName") == names::scheduler_name && text_at(pod, "/spec/nodeName").empty() &&
         phase != "Succeeded" && phase != "Failed" && text_at(pod, "/metadata/deletionTimestamp").empty();
}

std::int64_t failures_left(const json& job) {
  const bool may_end_at_one =
      job.contains("/spec/podFailurePolicy"_json_pointer) || job.contains("/spec/backoffLimitPerIndex"_json_pointer);
  if (may_end_at_one || text_at(job, "/spec/podReplacementPolicy") == "Failed") return 0;
  return number_at(job, "/spec/backoffLimit", 6) - number_at(job, "/status/failed", 0);
}

stranded_pod judge_stranded(const json& pod, const std::vector<json>& owners, const std::string& unread) {
  stranded_pod out;
  out.key = {text_at(pod, "/metadata/namespace"), text_at(pod, "/metadata/name")};
  out.uid = text_at(pod, "/metadata/uid");
  out.version = text_at(pod, "/metadata/resourceVersion");
  const auto controller = controller_of(pod);
  if (!owners.empty())
    out.owner = name_of(owners.back());
  else if (!controller.is_null())
    out.owner = text_at(controller, "/kind") + " " + out.key.ns + "/" + text_at(controller, "/name");
  add_reason(out, pod, owners, unread);
  return out;
}

kube::task<std::optional<json>> stranded::read(std::string ns, json reference, std::string& unread) {
  const auto uid = text_at(reference, "/uid"), kind = text_at(reference, "/kind");
  if (const auto match = read_.find(uid); match != read_.end()) co_return match->second;
  const auto* type = type_of(reference);
  if (!type) {
    unread = "whether a " + kind + " recreates it is not known here: delete it by hand if so";
    co_return std::nullopt;
  }
  const kube::object_key key{ns, text_at(reference, "/name")};
  auto found = co_await api_.get(*type, key);
  const bool gone = found ? text_at(*found, "/metadata/uid") != uid : found.error().code == kube::errc::not_found;
  if (gone) {
    unread = "its " + kind + " is gone, and it goes with it";
    co_return std::nullopt;
  }
  if (!found && found.error().code != kube::errc::forbidden) co_return std::unexpected(found.error());
  if (!found) {
    unread = "its " + kind + " cannot be read: " + found.error().message;
    co_return std::nullopt;
  }
  (*found)["kind"] = kind;
  read_[uid] = *found;
  co_return std::move(*found);
}

kube::task<std::vector<json>> stranded::owners_of(json pod, std::string& unread) {
  std::vector<json> out;
  const auto ns = text_at(pod, "/metadata/namespace");
  auto next = controller_of(pod);
  while (!next.is_null() && out.size() < most_owners) {
    const auto reference = next;
    std::string reason;
    auto owner = co_await read(ns, reference, reason);
    if (!owner) co_return std::unexpected(owner.error());
    if (out.empty()) unread = reason;
    if (!*owner) break;
    next = controller_of(**owner);
    out.push_back(std::move(**owner));
  }
  co_return out;
}

kube::task<void> stranded::look() {
  pods_.clear();
  read_.clear();
  kube::list_options options;
  options.field_selector =
      "spec.schedulerName=" + std::string(names::scheduler_name) + ",spec.nodeName=,status.phase=Pending";
  const auto found = co_await api_.list(pod_type, options);
  if (!found) co_return std::unexpected(found.error());
  for (const auto& pod : *found) {
    if (!waits(pod)) continue;
    std::string unread;
    const auto owners = co_await owners_of(pod, unread);
    if (!owners) co_return std::unexpected(owners.error());
    pods_.push_back(judge_stranded(pod, *owners, unread));
  }
  std::ranges::sort(pods_, {},
                    [](const stranded_pod& stranded_pod) { return std::tie(stranded_pod.owner, stranded_pod.key); });
  co_return kube::result<void>();
}

bool stranded::any_to_recreate() const {
  return std::ranges::any_of(pods_, [](const stranded_pod& stranded_pod) { return stranded_pod.stays.empty(); });
}

bool stranded::any_to_stay() const {
  return std::ranges::any_of(pods_, [](const stranded_pod& stranded_pod) { return !stranded_pod.stays.empty(); });
}

/// False: it stays.
kube::task<bool> stranded::remove(stranded_pod& stranded_pod) {
  for (int i = 0; i < most_tries; ++i) {
    kube::preconditions only_if;
    only_if.uid = stranded_pod.uid;
    only_if.resource_version = stranded_pod.version;
    const auto done = co_await api_.remove(pod_type, stranded_pod.key, only_if);
    if (done) co_return true;
    if (done.error().code == kube::errc::forbidden) {
      stranded_pod.stays = "it may not be deleted: " + done.error().message;
      co_return false;
    }
    if (done.error().code != kube::errc::conflict) co_return std::unexpected(done.error());
    const auto now = co_await api_.get(pod_type, stranded_pod.key);
    if (!now && now.error().code != kube::errc::not_found) co_return std::unexpected(now.error());
    if (!now || text_at(*now, "/metadata/uid") != stranded_pod.uid || !waits(*now)) {
      stranded_pod.stays = "it got a node meanwhile, or is gone";
      co_return false;
    }
    stranded_pod.version = text_at(*now, "/metadata/resourceVersion");
  }
  stranded_pod.stays = "it changes all the time: call again";
  co_return false;
}

kube::task<std::size_t> stranded::recreate() {
  std::size_t removed = 0;
  std::map<std::string, std::int64_t> left;  // of Jobs
  for (auto& pod : pods_) {
    if (!pod.stays.empty() || !tried_.insert(pod.uid).second) continue;
    if (!pod.job.empty() && left.try_emplace(pod.job, failures_left(read_.at(pod.job))).first->second-- <= 0) {
      pod.stays = "one more deletion would count as a failure too many for its Job: recreate the Job";
      continue;
    }
    const auto done = co_await remove(pod);
    if (!done) co_return std::unexpected(done.error());
    removed += *done ? 1 : 0;
  }
  co_return removed;
}

std::string recreated(std::size_t number) {
  return number == 1 ? "1 pod was deleted: its owner recreates it"
                     : std::to_string(number) + " pods were deleted: their owners recreate them";
}

void stranded::tell(std::ostream& out, std::string_view of_others) const {
  std::map<std::pair<std::string_view, std::string_view>, std::vector<std::string>> by_owner;
  for (const auto& pod : pods_) {
    const auto note = pod.stays.empty() ? of_others : std::string_view(pod.stays);
    if (!note.empty()) by_owner[{pod.owner, note}].push_back(pod.key.to_string());
  }
  for (const auto& [group, named] : by_owner) {
    out << "  " << (group.first.empty() ? "no owner" : group.first) << ": " << named.size()
        << (named.size() == 1 ? " pod (" : " pods (");
    for (std::size_t i = 0; i < std::min(named.size(), named_at_most); ++i) out << (i == 0 ? "" : ", ") << named[i];
    out << (named.size() > named_at_most ? ", ...)" : ")") << (named.size() == 1 ? ": " : ", each: ") << group.second
        << std::endl;
  }
}

}  // namespace cli
