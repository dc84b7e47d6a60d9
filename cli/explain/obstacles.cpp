#include "cli/explain/obstacles.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>

#include "api/engine_words.hpp"
#include "cli/explain/explain_pod.hpp"
#include "cli/lint/unoffered.hpp"
#include "controller/clock.hpp"
#include "quota/resource_keys.hpp"
#include "reconcilers/cuda/errors.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using text::shown;

constexpr std::size_t longest = 1000;  // of a sentence by another program

/// "UnexpectedAdmissionError: Allocate failed"; empty: it says neither.
std::string reason_and_message(const kube::statement& status) {
  const auto reason = shown(status.reason, longest), message = shown(status.message, longest);
  return reason.empty() || message.empty() ? reason + message : reason + ": " + message;
}

/// What stands behind the words; empty: they are not there.
std::string_view behind(std::string_view text, std::string_view words) {
  const auto begin = text.find(words);
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin + words.size());
}

/// The sentence of a device plugin in what its kubelet says; empty: it says none.
std::string plugin_sentence(std::string_view text) {
  auto out = behind(text, "desc = ");
  constexpr std::string_view end = ", which is unexpected";  // the kubelet's own
  if (out.ends_with(end)) out.remove_suffix(end.size());
  return shown(out, longest);
}

/// The resource of which the kubelet had too little: "requested number of devices unavailable for K. Requested: 1,
/// ...".
std::string unavailable_key(std::string_view text) {
  const auto out = behind(text, "requested number of devices unavailable for ");
  return shown(out.substr(0, out.find(". ")), 320);
}

/// The kubelet refused a pod that was bound to its node, before any container started.
bool is_rejection(std::string_view reason) {
  return reason == "UnexpectedAdmissionError" || reason == "TopologyAffinityError" || reason.starts_with("OutOf");
}

std::vector<std::string> all_shown(const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const auto& name : names) out.push_back(shown(name));
  return out;
}

class finder {
 public:
  finder(const kube::described_pod& pod, const claim_states& claims, text::language locale)
      : pod_(pod), claims_(claims), locale_(locale) {}

  void add_ended() {
    if (pod_.phase == kube::pod_phase::succeeded) add("ended", words("ended_well"), true);
    if (pod_.phase != kube::pod_phase::failed) return;
    const auto cause = reason_and_message(pod_.status);
    auto text = cause.empty() ? words("failed") : words("failed_with", {{"cause", cause}});
    add("ended", std::move(text), true);
    if (is_rejection(pod_.status.reason)) add_rejected();
    add_ends();
  }

  void add_deleted() {
    if (pod_.deleted_at == 0) return;
    // The API server writes when the grace is over.
    const auto grace = pod_.grace_s > 0 ? words("grace", {{"seconds", std::to_string(pod_.grace_s)}}) : std::string();
    add("deleted",
        words(pod_.finalizers.empty() ? "deleted" : "deleted_with_finalizers",
              {{"time", controller::rfc3339_seconds(pod_.deleted_at - pod_.grace_s)},
               {"grace", grace},
               {"list", some_of(all_shown(pod_.finalizers), 3, locale_)}}),
        true);
  }

  void add_gated() {
    if (auto text = gates_of(pod_, locale_); !text.empty()) add("gated", std::move(text), true);
  }

  /// Cards by names that no node can have.
  void add_native() {
    for (const auto& key : pod_.native_limits) {
      const std::string card(card_of_native_domain(key));
      if (!card.empty())
        add("native_resource", words("native_resource", {{"key", shown(key, 320)}, {"hint", card}}), true);
    }
  }

  /// Devices of DRA: another program gives them out. Claims of which nothing is known stand in one line.
  void add_claims() {
    std::vector<std::string> unseen;
    for (const auto& claim : pod_.claims) {
      const auto match = claims_.find({pod_.key.ns, claim.object});
      if (claim.object.empty() && !claim.made_of.empty())
        add_claim("claim_not_made", claim.name, claim.made_of);
      else if (claim.object.empty() || match == claims_.end())
        unseen.push_back(shown(claim.name));
      else if (!match->second)
        add_claim("claim_missing", claim.object, {});
      else if (!match->second->is_allocated)
        add_claim("claim_waits", claim.object, some_of(match->second->classes, 3, locale_));
    }
    if (unseen.empty()) return;
    add("claims", words("claims", {{"list", some_of(unseen, 8, locale_)}, {"namespace", shown(pod_.key.ns)}}), true);
  }

  /// Claims that have their devices: the pod does not wait for them.
  void add_allocated_claims() {
    for (const auto& claim : pod_.claims) {
      const auto match = claims_.find({pod_.key.ns, claim.object});
      if (match == claims_.end() || !match->second || !match->second->is_allocated) continue;
      const auto list = some_of(match->second->devices, 3, locale_);
      add("claims", words("claim_allocated", {{"claim", shown(claim.object, 400)}, {"list", list}}));
    }
  }

  void add_scheduler(std::optional<std::string_view> asking) {
    const auto name = pod_.scheduler_name.empty() ? std::string("default-scheduler") : shown(pod_.scheduler_name);
    const auto others = !asking           ? std::string()
                        : asking->empty() ? words("no_one_asks")
                                          : words("one_asks", {{"scheduler", std::string(*asking)}});
    if (!pod_.scheduled)
      return add("not_looked_at", words("not_looked_at", {{"scheduler", name}, {"others", others}}),
                 asking && name != *asking && name != "default-scheduler");
    if (asking && name != *asking)
      add("other_scheduler", words("other_scheduler", {{"scheduler", name}, {"others", others}}));
    if (const auto text = reason_and_message(*pod_.scheduled); !text.empty() && pod_.scheduled->name == "False")
      add("scheduler_says", words("scheduler_says", {{"scheduler", name}, {"text", text}}));
  }

  /// What its containers wait for on their node.
  void add_not_well() {
    if (const auto cause = reason_and_message(pod_.status); !cause.empty())
      add("not_well", words("node_says", {{"text", cause}}));
    for (const auto& container : pod_.waiting) {
      const auto& reason = container.reason;
      if (reason.empty() || reason == "PodInitializing" || reason == "ContainerCreating") continue;
      add("not_well",
          words("container_waits", {{"name", shown(container.name)}, {"text", reason_and_message(container)}}));
      for (const auto& match : reconcilers::cuda::errors_in(container.message))
        add("known_error",
            words("known_error", {{"title", match.error->in(locale_).title}, {"id", std::string(match.error->id)}}));
      // The kubelet keeps such a pod and asks the plugin again.
      if (const auto answer = behind(container.message, "PreStartContainer"); !answer.empty())
        add("start_refused", words("start_refused", {{"name", shown(container.name)},
                                                     {"node", shown(pod_.node_name)},
                                                     {"text", plugin_sentence(answer)}}));
    }
    add_ends();
  }

  std::vector<obstacle> found;

 private:
  /// How containers ended, or ended before they were started again. One that ended well keeps the pod from nothing.
  void add_ends() {
    for (const auto& end : pod_.ends) {
      if (end.exit_code == 0 && end.reason != "OOMKilled") continue;
      const auto time = end.ended_at > 0 ? controller::rfc3339_seconds(end.ended_at) : std::string("-");
      auto text = words(end.is_last ? "container_ended_before" : "container_ended",
                        {{"name", shown(end.name)},
                         {"reason", end.reason.empty() ? std::string("-") : shown(end.reason)},
                         {"code", std::to_string(end.exit_code)},
                         {"time", time},
                         {"restarts", std::to_string(end.restarts)}});
      if (end.reason == "OOMKilled") text += words("out_of_memory");
      add("container_ended", std::move(text));
    }
  }

  /// What the kubelet found, that the pod never runs, and how there will be another.
  void add_rejected() {
    const auto node = shown(pod_.node_name);
    const auto& message = pod_.status.message;
    const auto key = unavailable_key(message), sentence = plugin_sentence(message);
    auto text = words("rejected.for_good", {{"node", node}});
    const auto add_line = [&](const std::string& line) { text += "\n" + line; };
    if (!key.empty())
      add_line(words("rejected.unavailable", {{"key", key}, {"node", node}}));
    else if (!sentence.empty())
      add_line(words("rejected.by_plugin", {{"text", sentence}, {"node", node}}));
    else if (!pod_.status.reason.starts_with("OutOf"))  // whose message says it
      add_line(words("rejected.look", {{"node", node}, {"reason", shown(pod_.status.reason)}}));
    const auto owner = std::ranges::find(pod_.owners, true, &kube::owner_ref::controller);
    add_line(words(owner == pod_.owners.end() ? "rejected.bare" : "rejected.owned",
                   {{"owner", owner == pod_.owners.end() ? "" : shown(owner->kind) + " " + shown(owner->name)},
                    {"namespace", shown(pod_.key.ns)},
                    {"name", shown(pod_.key.name)}}));
    add("rejected", std::move(text), true);
  }

  std::string words(const std::string& key, std::initializer_list<text::parameter> parameters = {}) const {
    return text::message("explain.obstacle." + key, locale_, parameters);
  }
  void add(const char* code, std::string text, bool decisive = false) {
    found.push_back({code, std::move(text), decisive});
  }
  void add_claim(const std::string& key, const std::string& claim, const std::string& other) {
    add("claims",
        words(key, {{"claim", shown(claim, 400)}, {"other", shown(other, 400)}, {"namespace", shown(pod_.key.ns)}}),
        true);
  }

  const kube::described_pod& pod_;
  const claim_states& claims_;
  text::language locale_;
};

}  // namespace

std::vector<obstacle> obstacles_of(const kube::described_pod& pod, std::optional<std::string_view> asking,
                                   text::language locale, const claim_states& claims) {
  finder finder(pod, claims, locale);
  finder.add_ended();
  if (!finder.found.empty()) return finder.found;
  finder.add_deleted();
  if (!pod.node_name.empty()) {
    finder.add_not_well();
  } else {
    finder.add_native();
    finder.add_gated();
    finder.add_claims();
    if (std::ranges::find(finder.found, "gated", &obstacle::code) == finder.found.end()) finder.add_scheduler(asking);
    finder.add_allocated_claims();
  }
  return finder.found;
}

std::vector<obstacle> fault_obstacles(std::span<const quota::pod_fault> faults,
                                      const reconcilers::extender::pod_request& request, text::language locale) {
  std::vector<obstacle> out;
  for (const auto& fault : faults)
    out.push_back({"amounts",
                   text::message("explain.obstacle.amounts", locale,
                                 {{"name", shown(request.names()[fault.no.container]->name)},
                                  {"text", api::words_of(fault, locale)}}),
                   true});
  return out;
}

std::vector<obstacle> mistyped_keys(const kube::pod& pod, text::language locale) {
  std::vector<std::string_view> known;
  for (const auto& row : quota::resource_keys) known.push_back(row.key);
  known.insert(known.end(), vendor_keys().begin(), vendor_keys().end());
  std::set<std::string> keys;
  for (const auto& container : pod.containers)
    for (const auto& [key, amount] : container.limits)
      if (amount > 0 && std::ranges::find(known, key) == known.end() && !is_vendor_key(key)) keys.insert(key);
  std::vector<obstacle> out;
  for (const auto& key : keys)
    if (const auto hint = nearest_key(key, known); !hint.empty())
      out.push_back({"unfamiliar_key", text::message("explain.obstacle.unfamiliar_key", locale,
                                                     {{"key", shown(key, 320)}, {"hint", hint}})});
  return out;
}

std::vector<std::string> classes_asked_by(const kube::described_pod& pod, const known_resources& known) {
  std::set<std::string> out;
  const auto add = [&](const std::string& key) {
    if (const auto name = known.class_of(key); !name.empty())
      out.insert("DeviceClass " + shown(name, 320) + " (" + shown(key, 320) + ")");
  };
  for (const auto& key : pod.native_limits) add(key);
  for (const auto& container : pod.containers)
    for (const auto& [key, amount] : container.limits)
      if (amount > 0) add(key);
  return {out.begin(), out.end()};
}

std::vector<obstacle> devices_of_classes(const kube::described_pod& pod, const known_resources& known,
                                         text::language locale) {
  const auto classes = classes_asked_by(pod, known);
  if (classes.empty() || !pod.node_name.empty() || pod.finished()) return {};
  return {{"device_class",
           text::message("explain.obstacle.device_class", locale, {{"list", some_of(classes, 3, locale)}}), true}};
}

/// Labels that programs set from what the node is: writing another value there makes no other card.
bool is_measured(std::string_view label) {
  constexpr std::array domains{"nvidia.com", "kubernetes.io", "k8s.io"};
  const auto domain = label.substr(0, label.find('/'));
  return domain.size() < label.size() &&
         std::ranges::any_of(
             domains,
             [&](std::string_view each) {
               return domain == each || (domain.ends_with(each) && domain[domain.size() - each.size() - 1] == '.');
             });
}

std::vector<obstacle> unmet_selectors(const kube::described_pod& pod, const picture& cluster, text::language locale,
                                      bool nodes_named) {
  std::vector<obstacle> out;
  const auto nodes = cluster.nodes.all();
  for (const auto& [label, wanted] : pod.rules.selector) {
    std::set<std::string> values;  // of that label, which nodes have
    for (const auto& node : nodes)
      if (const auto value = node.labels.find(label)) values.emplace(*value);
    if (nodes.empty() || values.contains(wanted)) continue;
    std::vector<std::string> near;
    for (const auto& value : values) near.push_back(shown(label + "=" + value, 400));
    const auto others = near.empty() || !nodes_named ? std::string()
                                                     : text::message("explain.obstacle.selector_others", locale,
                                                                     {{"list", some_of(near, 3, locale)}});
    out.push_back(
        {"selector",
         text::message(is_measured(label) ? "explain.obstacle.measured_selector" : "explain.obstacle.selector", locale,
                       {{"label", shown(label + "=" + wanted, 400)}, {"others", others}}),
         true});
  }
  return out;
}

std::vector<obstacle> missing_operator(const kube::pod& pod, const picture& cluster, text::language locale) {
  const auto asking = asking_scheduler(cluster);
  const auto scheduler = pod.scheduler_name.empty() ? std::string_view("default-scheduler") : pod.scheduler_name;
  const auto& [ns, lease, is_renewed] = cluster.leader;
  if (asking.empty() || scheduler != asking || !lease || is_renewed) return {};
  if (!cluster.reason_unseen(part::lease).empty()) return {};
  const std::string name(asking);
  if (lease->holder.empty())
    return {{"no_operator", text::message("explain.obstacle.no_operator", locale, {{"scheduler", name}}), true}};
  const auto renewed = std::chrono::system_clock::time_point(std::chrono::microseconds(lease->renewed_us));
  const auto age = std::chrono::floor<std::chrono::seconds>(cluster.taken - renewed);
  if (age <= std::chrono::seconds(lease->duration_seconds)) return {};
  return {{"no_operator",
           text::message(
               "explain.obstacle.silent_operator", locale,
               {{"scheduler", name}, {"holder", shown(lease->holder, 400)}, {"seconds", std::to_string(age.count())}}),
           true}};
}

std::string refused_key(const kube::described_pod& pod) {
  constexpr std::string_view lacks = "Insufficient ";
  if (!pod.scheduled || pod.scheduled->name != "False") return {};
  std::string_view text = pod.scheduled->message;
  for (auto place = text.find(lacks); place != text.npos; place = text.find(lacks)) {
    text.remove_prefix(place + lacks.size());
    auto key = text.substr(0, text.find_first_of(" ,"));
    while (key.ends_with('.')) key.remove_suffix(1);
    if (quota::resource_key_of(key)) return std::string(key);
  }
  return {};
}

std::string gates_of(const kube::described_pod& pod, text::language locale) {
  if (pod.gates.empty()) return {};
  return text::message(pod.gates.size() == 1 ? "explain.obstacle.gated.one" : "explain.obstacle.gated.many", locale,
                       {{"list", some_of(all_shown(pod.gates), 8, locale)}});
}

}  // namespace cli
