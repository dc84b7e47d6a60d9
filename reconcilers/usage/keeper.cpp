#include "reconcilers/usage/keeper.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
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

bool is_named_by_us(const api::accelerator_usage& usage) {
  return usage.key.name == api::usage_name(usage.month, usage.name_space);
}

/// No checkpoint goes beyond the end of its month.
bool ends_in_its_month(const api::accelerator_usage& usage) {
  const auto month = api::bounds_of(usage.month);
  return month && usage.until <= month->end;
}

/// Objects that cannot be read, and copies under another name, are someone else's: the operator writes its own whole.
std::vector<api::accelerator_usage> read(const std::vector<nlohmann::json>& objects) {
  std::vector<api::accelerator_usage> out;
  for (const auto& object : objects) {
    auto usage = api::accelerator_usage::decode(object.dump());
    if (usage && api::bounds_of(usage->month) && is_named_by_us(*usage)) {
      out.push_back(std::move(*usage));
      continue;
    }
    const std::string reason = !usage                         ? usage.error().message
                               : api::bounds_of(usage->month) ? "its name is not that of its month and namespace"
                                                              : "its month is no month";
    log::error("an AcceleratorUsage is not the operator's and is left alone",
               {{"object", usage ? usage->key.name : std::string()}, {"error", reason}});
  }
  return out;
}

bool says_the_same(const api::accelerator_usage& a, const api::accelerator_usage& b) {
  const auto numbers = [](const api::accelerator_usage& usage) {
    return std::tie(usage.month, usage.name_space, usage.since, usage.until, usage.rows, usage.before_through,
                    usage.before_rows, usage.models);
  };
  return numbers(a) == numbers(b);
}

/// So many checkpoints, and each object that does not change was written again. An hour, where no pod ends.
constexpr std::ptrdiff_t idle_rounds = 12;

/// A millisecond: that is not noticed by what waits for the loop.
constexpr std::size_t cards_per_step = 1000;

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
      // What lies in the future was written by no one who counts, and what is settled here cannot be taken back.
      const auto now = recorder_.now().value_or(0);
      quota::seconds until = 0;
      for (const auto& usage : usages.all())
        if (usage.name_space.empty() && is_named_by_us(usage) && ends_in_its_month(usage) && usage.until <= now)
          until = std::max(until, usage.until);
      recorder_.book().resume(until);
    }
    if (recorder_.begun() && recorder_.take_renamed()) co_await recorder_.look();
    const bool slept = co_await controller::sleep_for(settings_.tick);
    if (!slept) co_return kube::result<void>();
  }
}

kube::task<void> keeper::resume() {
  auto clusters = co_await api_.list(api::accelerator_usage::of(), labelled(cluster_label, ""));
  if (!clusters) co_return std::unexpected(clusters.error());
  auto all = read(*clusters);
  std::erase_if(all, [](const api::accelerator_usage& usage) { return !usage.name_space.empty(); });
  // What lies in the future stops the count until a person has seen it. What lies in the past would make its month
  // the current one, and the current one would begin again from nothing.
  const auto now = recorder_.now();
  std::erase_if(all, [&](const api::accelerator_usage& usage) {
    const bool is_edited = now && usage.until <= *now + 60 && !ends_in_its_month(usage);
    if (is_edited)
      log::error("`through` of an AcceleratorUsage is after its month: someone has edited it, and it does not count",
                 {{"object", usage.key.name}});
    return is_edited;
  });
  const auto last = std::ranges::max_element(all, {}, &api::accelerator_usage::until);
  const bool is_first = last == all.end();
  quota::seconds committed = is_first ? 0 : last->until;
  if (now && committed > *now + 60)
    log::warn(
        "the last checkpoint of the time of cards lies in the future: nothing is counted until then. If someone has "
        "edited usage.through, set it back and restart this replica (alert QuartermasterUsageAhead)",
        {{"object", last->key.name}});
  // A month that was begun and not committed has objects of namespaces only.
  auto month = api::month_of(is_first ? recorder_.start() : committed);
  auto done = co_await load(month, committed);
  if (!done) co_return done;
  if (!is_first && month != last->month && committed == last->until) {
    month = last->month;
    done = co_await load(month, committed);
    if (!done) co_return done;
  }
  settled_until_.set(static_cast<double>(committed));
  if (committed == 0) {
    log::info("the time of cards is counted from now on");
    recorder_.book().resume(recorder_.start());
    committed_ = recorder_.book().settled();
    begin_month(committed_);
    co_return kube::result<void>();
  }
  month_ = month;
  const bool has_models = !is_first && month == last->month;
  since_ = has_models ? last->since : committed;
  models_ = has_models ? last->models : quota::model_rows();
  committed_ = committed;
  recorder_.book().resume(committed_);
  co_return kube::result<void>();
}

/// The namespaces of a month, as they were at the last whole checkpoint. What an object says was `before` was
/// committed: where the whole cluster's object is older, or is not there, someone has edited or deleted it, and
/// `committed` grows.
kube::task<void> keeper::load(std::string month, quota::seconds& committed) {
  namespaces_.clear();
  auto objects = co_await api_.list(api::accelerator_usage::of(), labelled(month_label, month));
  if (!objects) co_return std::unexpected(objects.error());
  auto usages = read(*objects);
  std::erase_if(usages, [&](const auto& usage) { return usage.name_space.empty() || usage.month != month; });
  quota::seconds before = 0;
  const auto now = recorder_.now().value_or(0);
  for (const auto& usage : usages)
    if (usage.before_through <= now) before = std::max(before, usage.before_through);
  if (before > committed) {
    log::error(
        "the AcceleratorUsage of the whole cluster is older than those of namespaces, which are kept: someone has "
        "edited or deleted it, and the report of this month will not add up",
        {{"object", month}});
    committed = before;
  }
  for (const auto& usage : usages) {
    const auto* rows = usage.rows_at(committed);
    if (!rows) {
      if (usage.before_through > 0) continue;
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
  // The schema allows as many models as rows.
  for (const auto& [model, row] : sums.models)
    models_[models_.contains(model) || models_.size() + 1 < quota::max_usage_rows ? model : "other"] += row;
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
  const kube::object_key key{{}, api::usage_name(usage.month, usage.name_space)};
  const auto done = co_await api_.apply(api::accelerator_usage::of(), key, object, options);
  if (!done) co_return std::unexpected(done.error());
  const auto seen = api::accelerator_usage::decode(done->dump());
  if (!seen || says_the_same(*seen, usage)) co_return kube::result<void>();
  // Server-side apply leaves alone what others have added.
  log::warn("fields that someone added to an AcceleratorUsage are taken out", {{"object", key.name}});
  const auto patch =
      nlohmann::json::array({{{"op", "test"}, {"path", "/metadata/uid"}, {"value", seen->id.to_string()}},
                             {{"op", "replace"}, {"path", "/usage"}, {"value", object["usage"]}}});
  const auto cleaned = co_await api_.patch(api::accelerator_usage::of(), key, kube::patch_kind::json, patch);
  if (!cleaned) co_return std::unexpected(cleaned.error());
  co_return kube::result<void>();
}

/// Objects in which nothing changes any more: a few with each checkpoint, so that one that someone has deleted is back
/// within an hour. Where nothing was deleted, the API server writes nothing. What was committed is their `before`, too:
/// a new leader sees by it what is committed.
kube::task<void> keeper::write_idle() {
  const auto count = std::ssize(namespaces_) / idle_rounds + 1;
  std::vector<std::string> idle;
  for (int round = 0; round < 2 && std::ssize(idle) < count; ++round) {
    const auto end = round == 0 ? namespaces_.end() : namespaces_.upper_bound(last_idle_);
    auto position = round == 0 ? namespaces_.upper_bound(last_idle_) : namespaces_.begin();
    for (; position != end && std::ssize(idle) < count; ++position)
      if (position->second.committed_through > 0 && position->second.committed_through < committed_)
        idle.push_back(position->first);
  }
  for (const auto& name_space : idle) {
    const auto& account = namespaces_.at(name_space);
    api::accelerator_usage usage;
    usage.month = month_;
    usage.name_space = name_space;
    usage.since = account.since;
    usage.until = usage.before_through = account.committed_through;
    usage.rows = usage.before_rows = account.committed;
    auto done = co_await apply(usage);
    if (!done) co_return done;
    last_idle_ = name_space;
  }
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
  co_return co_await write_idle();
}

/// A checkpoint that was cancelled in the middle of its sums goes on here.
boost::asio::awaitable<void> keeper::sum_up() {
  auto& book = recorder_.book();
  while (book.settle_some(cards_per_step)) co_await controller::yield_to_others();
  auto done = book.take_settled();
  merge(done.amounts, done.begin);
}

kube::task<void> keeper::settle_up_to(quota::seconds time) {
  for (;;) {
    if (recorder_.book().is_settling()) co_await sum_up();
    if (changed()) {
      auto done = co_await write();
      if (!done) co_return done;
    }
    const auto begin = recorder_.book().settled();
    if (begin >= time) co_return kube::result<void>();
    if (api::month_of(begin) != month_) begin_month(begin);
    const auto month = api::bounds_of(month_);
    recorder_.book().begin_settling(std::min(time, month->end));
  }
}

kube::task<void> keeper::checkpoint(quota::seconds time) {
  if (busy_) co_return kube::result<void>();
  const busy_mark mark(busy_);
  co_await recorder_.look();
  auto done = co_await settle_up_to(time);
  if (done) first_end_ = last_end_ > time ? time + 1 : 0;
  (done ? done_ : failed_).add();
  co_return done;
}

/// A checkpoint is a write per namespace: pods that end every second make it no more often than one write a second.
bool keeper::due(quota::seconds time) {
  if (recorder_.take_ended()) {
    last_end_ = recorder_.now().value_or(0);
    if (first_end_ == 0) first_end_ = last_end_;
  }
  if (time <= committed_ || !recorder_.watching()) return false;
  if (!written_) return true;  // from the start there is something to read
  if (time - committed_ >= settings_.period.count() || api::month_of(time) != month_) return true;
  const auto pause = std::max<quota::seconds>(settings_.after_end.count(), std::ssize(namespaces_));
  return first_end_ > 0 && first_end_ <= time && time - committed_ >= pause;
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
    } else if (now && due(*now - settings_.lag.count())) {
      done = co_await checkpoint(*now - settings_.lag.count());
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
  for (int i = 0; i < 50 && busy_; ++i) {
    const bool slept = co_await controller::sleep_for(20ms);
    if (!slept) co_return kube::result<void>();
  }
  const auto now = recorder_.now();
  if (!leads_ || month_.empty() || !now || !recorder_.watching()) co_return kube::result<void>();
  co_return co_await checkpoint(*now);
}

}  // namespace reconcilers::usage
