#include "reconcilers/own_scheduler/scheduler.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/hash.hpp"
#include "api/memory.hpp"
#include "api/names.hpp"
#include "kube/status.hpp"
#include "reconcilers/own_scheduler/objects.hpp"

namespace reconcilers::own_scheduler {
namespace {

using namespace std::chrono_literals;
using controller::action;
using nlohmann::json;

constexpr auto look_again = 250ms;
constexpr auto ask_version_every = 1min;

bool waits(const kube::pod* pod) {
  return pod && pod->scheduler_name == api::names::scheduler_name && pod->node_name.empty() && !pod->finished();
}

bool tainted(const kube::node& node) {
  return std::ranges::find(node.taints, api::names::accelerator_taint, &kube::taint::key) != node.taints.end();
}
bool free_node(const kube::node& node) { return !node.labels.contains(api::names::module_label); }

std::string version_in(const std::string& body) {
  const auto parsed = json::parse(body, nullptr, false);
  return parsed.is_object() ? release_of(parsed.value("gitVersion", std::string())) : std::string();
}

}  // namespace

kube::object_key scheduler::only() { return {{}, std::string(api::names::scheduler_objects)}; }

scheduler::scheduler(stores stores, kube::client& client, controller::recorder& events, controller::registry& metrics,
                     settings settings)
    : stores_(std::move(stores)),
      client_(client),
      settings_(std::move(settings)),
      applier_(stores_.objects, client, events,
               {.ns = settings_.ns, .declared = {}, .mark = api::names::part_label, .called = "the "}, settings_.now),
      ready_(metrics.make_gauge("quartermaster_scheduler_ready_replicas",
                                "Of the kube-scheduler that spec.scheduler.mode Dedicated runs.")),
      sending_(metrics.make_gauge("quartermaster_scheduler_switched_on",
                                  "1 while new pods that ask for accelerators are sent to it.")),
      waiting_count_(metrics.make_gauge("quartermaster_scheduler_pods",
                                        "Pods without a node that name the scheduler quartermaster.")) {
  for (const auto& node : stores_.nodes.all()) count(nullptr, &node);
  for (const auto& pod : stores_.pods.all()) count(nullptr, &pod);
  stores_.nodes.observe([this](const kube::node* before, const kube::node* after) { count(before, after); });
  stores_.pods.observe([this](const kube::pod* before, const kube::pod* after) { count(before, after); });
}

void scheduler::count(const kube::node* before, const kube::node* after) {
  for (const auto* entry : {before, after}) {
    if (!entry) continue;
    const int delta = entry == after ? 1 : -1;
    tainted_ += tainted(*entry) ? delta : 0;
    free_ += free_node(*entry) ? delta : 0;
  }
}

void scheduler::count(const kube::pod* before, const kube::pod* after) {
  if (waits(after))
    waiting_.insert(after->key);
  else if (waits(before))
    waiting_.erase(before->key);
  waiting_count_.set(static_cast<double>(waiting_.size()));
}

bool scheduler::synced() const {
  return stores_.policies.synced() && stores_.rules.synced() && stores_.nodes.synced() && stores_.pods.synced() &&
         (!settings_.extender || stores_.secrets.synced()) && applier_.synced();
}

const accelerator_policy* scheduler::policy() const {
  const auto* found = stores_.policies.find(policy_key);
  return found && !found->deleting ? found : nullptr;
}

const kube::deployment* scheduler::deployment() const {
  const auto* found = stores_.deployments.find({settings_.ns, std::string(api::names::scheduler_objects)});
  return found && applier_.is_ours(*found) ? found : nullptr;
}

std::string scheduler::version() const {
  const auto* is = deployment();
  const auto present =
      is ? std::string(api::remembered(is->annotations, api::names::server_version_annotation).value_or(""))
         : std::string();
  return version_to_run(present, answered_, answered_since_ ? settings_.now() - *answered_since_ : 0ms);
}

std::vector<std::string> scheduler::declared() const {
  const auto* found = stores_.rules.find(api::compiled_rules::only());
  return found ? found->keys() : std::vector<std::string>();
}

situation scheduler::look() {
  situation out;
  const auto* rules = policy();
  if (rules) {
    out.wanted = rules->scheduler.mode == "Dedicated" && !rules->removing;
    out.isolated = rules->scheduler.isolate_nodes;
  }
  out.extender = settings_.extender;
  const auto* secret = stores_.secrets.find({settings_.ns, std::string(api::names::extender_client_secret)});
  out.certificates = secret && !secret->authorities.empty() && !secret->leaf.certificate.empty();
  out.version = !version().empty();
  if (const auto* is = deployment()) {
    out.deployment =
        running{is->desired,
                is->ready,
                is->available,
                is->rolled_out(),
                std::string(api::remembered(is->annotations, api::names::server_version_annotation).value_or("")),
                is->problem};
    out.objects = true;
  }
  const auto* file = stores_.objects.config_maps.find({settings_.ns, std::string(api::names::scheduler_objects)});
  out.objects = out.objects || (file && applier_.is_ours(*file));
  const auto* sent = stores_.rules.find(api::compiled_rules::only());
  out.sent = sent && sent->sends_pods();
  out.tainted = tainted_;
  out.free = free_;
  out.problem = problem_;
  out.message = message_;
  out.waiting.assign(waiting_.begin(), waiting_.end());
  if (out.sent || !out.waiting.empty())
    quiet_since_.reset();
  else if (!quiet_since_)
    quiet_since_ = settings_.now();
  if (quiet_since_) out.quiet_for = settings_.now() - *quiet_since_;
  return out;
}

/// Once a minute, while there is or ought to be something of its version.
kube::task<void> scheduler::ask_version() {
  if (query_time_ && settings_.now() - *query_time_ < ask_version_every) co_return kube::result<void>();
  const std::string path = "/version";
  const auto answer = co_await client_.raw(path);
  if (!answer) co_return std::unexpected(answer.error());
  if (answer->status != 200) co_return std::unexpected(kube::error_of("ask the API server for its version", *answer));
  const auto server_version = version_in(answer->body);
  if (server_version != answered_) answered_since_ = settings_.now();
  answered_ = server_version;
  query_time_ = settings_.now();
  co_return kube::result<void>();
}

/// In their order: what runs must not be made before what it reads is ours.
kube::task<std::optional<controller::milliseconds>> scheduler::keep(scheduler_spec spec,
                                                                    controller::object_reference about) {
  const auto* secret = stores_.secrets.find({settings_.ns, std::string(api::names::extender_client_secret)});
  const auto objects = objects_of(spec, {settings_.ns, version(), secret ? api::hex(secret->content) : std::string(),
                                         declared(), settings_.image_registry});
  std::string problem;
  text::phrase message;
  std::optional<controller::milliseconds> again_in;
  for (const auto& object : objects) {
    auto done = co_await applier_.ensure(object, about);
    if (!done) co_return std::unexpected(done.error());
    if (done->again_in && (!again_in || *done->again_in < *again_in)) again_in = done->again_in;
    problem = done->problem;
    message = done->message;
    if (done->failed && problem.empty()) co_return std::unexpected(*done->failed);
    if (!done->settled) break;
  }
  problem_ = problem;
  message_ = message;
  co_return again_in;
}

kube::task<action> scheduler::reconcile(kube::object_key key) {
  if (key != only()) co_return action::await_change();
  if (!synced()) co_return action::again(look_again);
  auto is = look();
  if (is.wanted && is.extender) {
    const auto done = co_await ask_version();
    if (!done) co_return std::unexpected(done.error());
    is = look();
  } else {
    problem_.clear();
  }
  auto next = plan_of(is);
  decide(is, next);
  controller::object_reference about;
  const auto* rules = policy();
  if (rules) about = controller::object_reference(kube::resources::accelerator_policies, *rules);
  auto again_in = next.again_in;
  if (next.keep == plan::objects::as_wanted && rules) {
    const auto spec = rules->scheduler;
    const auto kept = co_await keep(spec, about);
    if (!kept) co_return std::unexpected(kept.error());
    again_in = *kept ? std::min<controller::milliseconds>(**kept, ask_version_every) : ask_version_every;
  } else if (next.keep == plan::objects::none) {
    const std::set<applier::identity> kept;
    const std::set<std::string> spared;
    const auto gone = co_await applier_.prune(kept, spared, about);
    if (!gone) co_return std::unexpected(gone.error());
    if (gone->failed) co_return std::unexpected(*gone->failed);
    again_in = gone->again_in;
  }
  is = look();
  next = plan_of(is);
  decide(is, next);
  if (next.again_in && (!again_in || *next.again_in < *again_in)) again_in = next.again_in;
  co_return action{again_in};
}

/// What others ask us, and what we report.
void scheduler::decide(const situation& is, const plan& next) {
  ready_.set(is.deployment ? is.deployment->ready : 0);
  sending_.set(is.sent ? 1 : 0);
  if (sends_ != next.send) {
    sends_ = next.send;
    settings_.on_sends();
  }
  if (isolates_ != next.isolate) {
    isolates_ = next.isolate;
    settings_.on_isolates();
  }
  std::vector<scheduler_row> rows;
  std::optional<controller::condition> state;
  if (next.visible) {
    scheduler_row row;
    row.name = api::names::scheduler_name;
    row.mode = "Dedicated";
    row.reason = next.reason;
    row.message = next.message;
    row.good = next.good;
    if (const auto* object = deployment()) {
      row.version = api::remembered(object->annotations, api::names::scheduler_version_annotation).value_or("");
      row.checksum = object->annotations.value_or(api::names::scheduler_config_annotation, "");
      row.desired = object->desired;
      row.ready = object->ready;
    }
    rows.push_back(std::move(row));
    controller::condition condition;
    condition.type = scheduler_ready;
    condition.status = next.good ? "True" : "False";
    condition.reason = next.reason;
    condition.message = next.message;
    if (const auto* rules = policy()) condition.generation = rules->generation;
    state = std::move(condition);
  }
  const bool same = rows_ == rows && state_ == state;
  rows_ = std::move(rows);
  state_ = std::move(state);
  if (!same) settings_.on_state();
}

std::vector<kube::object_key> scheduler::affected_by(const accelerator_policy* before,
                                                     const accelerator_policy* after) const {
  const auto& any = after ? *after : *before;
  const bool same = before && after && before->id == after->id && before->scheduler == after->scheduler &&
                    before->removing == after->removing && before->deleting == after->deleting;
  if (any.key != policy_key || same) return {};
  return {only()};
}

std::vector<kube::object_key> scheduler::affected_by(const api::compiled_rules*, const api::compiled_rules*) const {
  return {only()};
}

std::vector<kube::object_key> scheduler::affected_by(const kube::node* before, const kube::node* after) const {
  const bool same = before && after && tainted(*before) == tainted(*after) && free_node(*before) == free_node(*after);
  if (same || !rows_ || rows_->empty()) return {};
  return {only()};
}

std::vector<kube::object_key> scheduler::affected_by(const kube::pod* before, const kube::pod* after) const {
  const bool leaving = rows_ && !rows_->empty() && sends_ && !*sends_;
  if (waits(before) == waits(after) || !leaving) return {};
  return {only()};
}

std::vector<kube::object_key> scheduler::affected_by(const kube::object* before, const kube::object* after) const {
  const auto& any = after ? *after : *before;
  const bool one_of_its =
      any.key.name == api::names::scheduler_objects || any.key.name == api::names::extender_client_secret;
  if (!one_of_its || any.key.ns != settings_.ns) return {};
  return {only()};
}

}  // namespace reconcilers::own_scheduler
