#include "reconcilers/usage/keeper.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "api/names.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"

namespace reconcilers::usage {
namespace {

namespace log = controller::log;
using namespace std::chrono_literals;

kube::list_options labelled(std::string_view label, std::string_view value) {
  kube::list_options out;
  out.label_selector = std::string(label);
  if (!value.empty()) out.label_selector.append("=").append(value);
  return out;
}

/// Objects that cannot be read are someone else's: the operator writes them whole.
std::vector<api::accelerator_usage> read(const std::vector<nlohmann::json>& objects) {
  std::vector<api::accelerator_usage> out;
  for (const auto& object : objects) {
    auto usage = api::accelerator_usage::decode(object.dump());
    if (usage && api::bounds_of(usage->month))
      out.push_back(std::move(*usage));
    else
      log::error("an AcceleratorUsage cannot be read and is left alone",
                 {{"error", usage ? "its month is no month" : usage.error().message}});
  }
  return out;
}

/// A coroutine that is cancelled leaves by an exception.
class busy_mark {
 public:
  explicit busy_mark(bool& busy) : busy_(busy) { busy_ = true; }
  busy_mark(const busy_mark&) = delete;
  busy_mark& operator=(const busy_mark&) = delete;
  ~busy_mark() { busy_ = false; }

 private:
  bool& busy_;
};

}  // namespace

keeper::keeper(kube::client& api, recorder& recorder, controller::registry& metrics, settings settings)
    : api_(api),
      recorder_(recorder),
      settings_(settings),
      settled_until_(
          metrics.make_gauge("quartermaster_usage_through_timestamp_seconds",
                             "Up to when the time of cards is written to AcceleratorUsage objects, seconds since "
                             "1970. 0: this replica does not lead.")),
      done_(metrics.make_counter("quartermaster_usage_checkpoints_total", "Checkpoints of the time of cards.")),
      failed_(metrics.make_counter("quartermaster_usage_checkpoint_errors_total",
                                   "Checkpoints that could not be written whole; the next one makes up for them.")) {}

kube::task<void> keeper::watch(const controller::store<api::accelerator_usage>& usages) {
  for (;;) {
    if (!recorder_.begun()) recorder_.begin();
    if (recorder_.begun() && !leads_) {
      quota::seconds until = 0;
      for (const auto& usage : usages.all())
        if (usage.name_space.empty()) until = std::max(until, usage.until);
      recorder_.book().resume(until);
    }
    if (recorder_.begun() && recorder_.take_renamed()) recorder_.look();
    const bool slept = co_await controller::sleep_for(settings_.tick);
    if (!slept) co_return kube::result<void>();
  }
}

kube::task<void> keeper::resume() {
  auto clusters = co_await api_.list(api::accelerator_usage::of(), labelled(cluster_label, ""));
  if (!clusters) co_return std::unexpected(clusters.error());
  const auto all = read(*clusters);
  const auto last = std::ranges::max_element(all, {}, &api::accelerator_usage::until);
  if (last == all.end()) {
    log::info("the time of cards is counted from now on");
    // What a first checkpoint may have left that was not finished.
    auto done = co_await load(api::month_of(recorder_.start()), 0);
    if (!done) co_return done;
    recorder_.book().resume(recorder_.start());
    committed_ = recorder_.book().settled();
    begin_month(committed_);
    co_return kube::result<void>();
  }
  if (const auto now = recorder_.now(); now && last->until > *now + 60)
    log::warn("the last checkpoint of the time of cards lies in the future: nothing is counted until then",
              {{"object", last->key.name}});
  namespaces_.clear();
  // A month that was begun and not committed has objects of namespaces only.
  if (const auto next = api::month_of(last->until); next != last->month) {
    auto done = co_await load(next, last->until);
    if (!done) co_return done;
    namespaces_.clear();
  }
  auto done = co_await load(last->month, last->until);
  if (!done) co_return done;
  month_ = last->month;
  since_ = last->since;
  models_ = last->models;
  committed_ = last->until;
  recorder_.book().resume(committed_);
  co_return kube::result<void>();
}

/// The namespaces of a month, as they were at the last whole checkpoint.
kube::task<void> keeper::load(const std::string& month, quota::seconds committed) {
  auto objects = co_await api_.list(api::accelerator_usage::of(), labelled(month_label, month));
  if (!objects) co_return std::unexpected(objects.error());
  for (const auto& usage : read(*objects)) {
    if (usage.name_space.empty()) continue;
    const auto* rows = usage.rows_at(committed);
    if (!rows) {
      kube::preconditions same;
      same.uid = usage.id.to_string();
      auto gone = co_await api_.remove(api::accelerator_usage::of(), usage.key, same);
      if (!gone) co_return gone;
      continue;
    }
    auto& account = namespaces_[usage.name_space];
    account.since = usage.since;
    account.rows = account.committed = *rows;
    account.stale = usage.until > committed;
    account.committed_through = account.stale ? usage.before_through : usage.until;
  }
  co_return kube::result<void>();
}

/// Called where everything before is committed.
void keeper::begin_month(quota::seconds time) {
  month_ = api::month_of(time);
  since_ = time;
  models_.clear();
  namespaces_.clear();
}

void keeper::merge(const quota::usage_book::sums& sums, quota::seconds begin) {
  for (const auto& [name_space, rows] : sums.namespaces) {
    auto& account = namespaces_[name_space];
    if (account.since == 0) account.since = begin;
    for (const auto& [key, time] : rows) quota::add(account.rows, key, time);
  }
  for (const auto& [model, row] : sums.models) models_[model] += row;
}

kube::task<void> keeper::apply(const api::accelerator_usage& usage) {
  auto object = usage.encode();
  auto& labels = object["metadata"]["labels"];
  labels[std::string(api::names::managed_by_label)] = api::names::managed_by;
  labels[std::string(month_label)] = usage.month;
  if (usage.name_space.empty()) labels[std::string(cluster_label)] = "true";
  kube::write_options options;
  options.field_manager = api::names::field_owner;
  options.force = true;
  const auto done = co_await api_.apply(api::accelerator_usage::of(),
                                        {{}, api::usage_name(usage.month, usage.name_space)}, object, options);
  if (!done) co_return std::unexpected(done.error());
  co_return kube::result<void>();
}

/// What is settled and not committed.
kube::task<void> keeper::write() {
  const auto until = recorder_.book().settled();
  for (auto& [name_space, account] : namespaces_) {
    if (!account.changed() || account.written_through == until) continue;
    api::accelerator_usage usage;
    usage.month = month_;
    usage.name_space = name_space;
    usage.since = account.since;
    usage.until = until;
    usage.rows = account.rows;
    usage.before_through = account.committed_through;
    usage.before_rows = account.committed;
    auto done = co_await apply(usage);
    if (!done) co_return done;
    account.written_through = until;
  }
  api::accelerator_usage cluster;
  cluster.month = month_;
  cluster.since = since_;
  cluster.until = until;
  cluster.models = models_;
  auto done = co_await apply(cluster);
  if (!done) co_return done;
  for (auto& [name_space, account] : namespaces_) {
    if (!account.changed()) continue;
    account.stale = false;
    account.committed = account.rows;
    account.committed_through = until;
  }
  committed_ = until;
  written_ = true;
  settled_until_.set(static_cast<double>(until));
  co_return kube::result<void>();
}

kube::task<void> keeper::settle_up_to(quota::seconds time) {
  for (;;) {
    if (changed()) {
      auto done = co_await write();
      if (!done) co_return done;
    }
    const auto begin = recorder_.book().settled();
    if (begin >= time) co_return kube::result<void>();
    if (api::month_of(begin) != month_) begin_month(begin);
    const auto month = api::bounds_of(month_);
    merge(recorder_.book().settle(std::min(time, month->end)), begin);
  }
}

kube::task<void> keeper::checkpoint() {
  const auto now = recorder_.now();
  if (!now || busy_) co_return kube::result<void>();
  const busy_mark mark(busy_);
  recorder_.take_ended();
  ended_ = false;
  recorder_.look();
  auto done = co_await settle_up_to(*now);
  if (!done) ended_ = true;
  (done ? done_ : failed_).add();
  co_return done;
}

/// A checkpoint is a write per namespace: pods that end every second make it no more often than one write a second.
bool keeper::due(quota::seconds now) {
  if (recorder_.take_ended()) ended_ = true;
  if (!written_ && now > committed_) return true;  // from the start there is something to read
  if (now - committed_ >= settings_.period.count() || api::month_of(now) != month_) return true;
  const auto pause = std::max<quota::seconds>(settings_.after_end.count(), std::ssize(namespaces_));
  return ended_ && now - committed_ >= pause;
}

kube::task<void> keeper::lead() {
  leads_ = true;
  bool resumed = false;
  std::string trouble;
  for (;;) {
    const auto now = recorder_.begun() ? recorder_.now() : std::nullopt;
    kube::result<void> done;
    if (now && !resumed) {
      done = co_await resume();
      resumed = done.has_value();
    } else if (now && due(*now)) {
      done = co_await checkpoint();
    }
    if (!done && done.error().code == kube::errc::cancelled) co_return done;
    if (!done && done.error().message != trouble)
      log::warn("the time of cards cannot be written; nothing is lost while this replica runs",
                {{"error", done.error().message}});
    trouble = done ? std::string() : done.error().message;
    const bool slept = co_await controller::sleep_for(done ? settings_.tick : std::chrono::milliseconds(5s));
    if (!slept) co_return kube::result<void>();
  }
}

kube::task<void> keeper::flush() {
  for (int i = 0; i < 75 && busy_; ++i) {
    const bool slept = co_await controller::sleep_for(20ms);
    if (!slept) co_return kube::result<void>();
  }
  if (!leads_ || month_.empty()) co_return kube::result<void>();
  co_return co_await checkpoint();
}

}  // namespace reconcilers::usage
