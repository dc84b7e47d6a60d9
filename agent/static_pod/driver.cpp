#include "agent/static_pod/driver.hpp"

#include <charconv>

#include "api/hash.hpp"
#include "api/names.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "scheduler_config/edit/control_plane.hpp"
#include "scheduler_config/edit/static_pod.hpp"
#include "text/phrase_code.hpp"

namespace agent::static_pod {
namespace {

namespace config = scheduler_config;
namespace log = controller::log;
namespace pods = agent::static_pod;
using controller::milliseconds;
using nlohmann::json;
using namespace std::chrono_literals;

constexpr auto config_annotation = api::names::scheduler_config_annotation;
constexpr milliseconds soon{500};

bool under_way(const std::optional<pods::record>& kept) {
  return kept && kept->stage != pods::phase::applied && kept->stage != pods::phase::reverted;
}

controller::event_settings events_as(const std::string& node) {
  controller::event_settings out;
  out.reporting_instance = node;
  return out;
}

controller::elector::options election(const static_pod::options& options) {
  controller::elector::options out;
  out.lease = {options.ns, static_pod_name};
  out.timing.identity = options.node + "_" + controller::make_identity();
  out.timing.duration = std::chrono::seconds(options.lease_seconds);
  out.timing.renew_deadline = std::chrono::seconds(options.renew_seconds);
  out.timing.retry = std::chrono::seconds(options.retry_seconds);
  return out;
}

std::expected<pods::texts, text::phrase> texts_of(std::expected<config::control_plane_files, text::phrase> files) {
  if (!files) return std::unexpected(std::move(files.error()));
  return pods::texts{std::move(files->config), std::move(files->manifest)};
}

}  // namespace

driver::driver(static_pod::options options, kube::cluster_config cluster)
    : options_(std::move(options)),
      wire_(loop_.executor(), std::move(cluster)),
      events_(api_, events_as(options_.node), metrics_),
      files_(options_.root),
      limits_{std::chrono::seconds(options_.patience_seconds), std::chrono::seconds(options_.settle_seconds),
              std::chrono::seconds(options_.look_seconds)} {}

void driver::run() {
  loop_.stop_on_signals([this] { stopping_ = true; });
  loop_.spawn_essential("static-pod", work());
  loop_.spawn_essential("events", events_.run());
  loop_.run();
  log::flush();
}

boost::asio::awaitable<void> driver::work() {
  log::info("starting", {{"version", QUARTERMASTER_VERSION}, {"node", options_.node}, {"folder", files_.root()}});
  // The pod that replaces ours needs a kube-scheduler to bind it, which may be the one that does not work. So we first
  // finish a change that has begun, or take it back. The grace period of the pod is as long as that.
  while (!stopping_ || under_way_) {
    const auto again = co_await advance();
    if (!again) {
      // Half of what there is to see decides nothing; what was seen without a break begins again.
      watched_since_.reset();
      uptime_ = {};
      if (again.error().message != trouble_) log::warn("waiting", {{"error", again.error().message}});
      trouble_ = again.error().message;
    }
    const auto period = again && !*again ? milliseconds(std::chrono::seconds(options_.period_seconds)) : soon;
    for (milliseconds slept{0}; slept < period && (!stopping_ || under_way_); slept += soon) {
      const bool went_on = co_await controller::sleep_for(soon);
      if (!went_on) co_return;
    }
  }
  // A process that is killed instead is taken up by the next one.
  co_await give_turn_back();
  co_await events_.flush();
  loop_.quit();
}

kube::task<bool> driver::advance() {
  const auto seen = files_.look();
  under_way_ = seen && under_way(seen->kept);
  const auto manifest = seen ? seen->now.manifest.value_or("") : std::string();
  const auto about = config::facts_of(manifest);
  const auto cluster = co_await look_at_cluster(api_, options_, about.name + "-" + options_.node);
  if (!cluster) co_return std::unexpected(cluster.error());
  lease_.see(cluster->renewed, controller::boot_now());
  if (!seen) {
    if (!cluster->asked_for && !cluster->rows.contains(options_.node)) co_return false;
    const pods::step cannot{.kind = pods::action::stop, .is = pods::state::stopped, .reason = seen.error()};
    const auto reported = co_await tell(cannot, manifest, *cluster, std::nullopt);
    if (!reported) co_return std::unexpected(reported.error());
    co_return false;
  }
  const auto facts = co_await observe(*seen, *cluster);
  if (!facts) co_return std::unexpected(facts.error());
  auto step = pods::next(*facts, limits_);

  const bool turn_wanted = under_way(seen->kept) || (step.is == pods::state::waiting && step.reason == facts->not_ours);
  if (turn_wanted) want_turn();
  const bool begins = step.kind == pods::action::keep && !under_way(seen->kept);
  if (turn_ && !turn_wanted && !begins && step.kind != pods::action::forget) co_await give_turn_back();

  // A node reports that it is between two files before it is: then the others wait for it, whatever becomes of us. That
  // nothing is left is reported by the next look, when it is so: its reader may then remove us.
  const auto kept = step.kind == pods::action::keep ? std::optional(step.kept) : seen->kept;
  if (step.kind != pods::action::forget) {
    const auto reported = co_await tell(step, manifest, *cluster, kept);
    if (!reported) co_return std::unexpected(reported.error());
  }
  if (const auto done = files_.take(step, seen->now); !done) {
    step = {.kind = pods::action::stop,
            .is = under_way(seen->kept) ? step.is : pods::state::stopped,
            .reason = done.error()};
    const auto reported = co_await tell(step, manifest, *cluster, kept);
    if (!reported) co_return std::unexpected(reported.error());
    co_return false;
  }
  if (step.kind == pods::action::keep) under_way_ = under_way(step.kept);
  const bool wrote =
      step.kind != pods::action::rest && step.kind != pods::action::wait && step.kind != pods::action::stop;
  co_return wrote || turn_wanted;
}

kube::task<pods::control_plane_facts> driver::observe(const pods::files::contents& seen,
                                                      const static_pod_cluster& cluster) {
  const auto now = controller::boot_now();
  if (!watched_since_) watched_since_ = now;
  pods::control_plane_facts out;
  out.now = seen.now;
  out.kept = seen.kept;
  out.asked_for = cluster.asked_for;
  out.foreign = config::facts_of(seen.now.manifest.value_or("")).checksum.empty();
  if (server_minor_ == 0) {
    const auto version = co_await api_.raw("/version");
    if (!version) co_return std::unexpected(version.error());
    const auto parsed = json::parse(version->body, nullptr, false);
    const auto minor = parsed.is_object() ? parsed.value("minor", "") : std::string();
    std::from_chars(minor.data(), minor.data() + minor.size(), server_minor_);
  }
  plan(out, seen, cluster);
  const bool tried =
      out.kept && out.kept->stage == pods::phase::reverted && out.wanted && out.kept->after == *out.wanted;
  const bool begins = !under_way(out.kept) && !tried && out.wanted && *out.wanted != out.now;
  if (begins) {
    // Said before it is anyone's turn, which a disk that is full must not hold.
    const auto can = files_.rehearse({.before = out.now, .after = *out.wanted});
    if (!can) out.wanted = std::unexpected(can.error());
  }

  const auto about = config::facts_of(seen.now.manifest.value_or(""), seen.now.config);
  // The configuration may be the same after a manifest that was written again: the generation is another.
  const auto generation = about.generation == 0 ? std::string() : std::to_string(about.generation);
  out.down = pods::trouble_of_pod(cluster.mirror, config_annotation, about.checksum);
  if (out.down.empty())
    out.down = pods::trouble_of_pod(cluster.mirror, api::names::scheduler_generation_annotation, generation);
  if (out.down.empty()) {
    const auto alive = co_await try_healthz(about.healthz);
    if (!alive) out.down = {"static_pod.healthz", {{"url", about.healthz}, {"error", alive.error().message}}};
  }
  const bool led = !about.elects || lease_.beats(now);
  if (out.down.empty() && !led) out.down = {"static_pod.no_renewal"};
  out.up_for = uptime_.see(out.down.empty(), pods::run_of(cluster.mirror, about.checksum + " " + generation), now);
  out.watched_for = now - *watched_since_;
  out.since_manifest = std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now() - seen.manifest_at);

  if (!turn_ || !turn_->elector.held())
    out.not_ours = {"static_pod.turn", {{"namespace", options_.ns}, {"name", std::string(static_pod_name)}}};
  out.not_begun = pods::trouble_of_others(cluster.schedulers, about.name + "-" + options_.node);
  if (out.not_begun.empty() && !cluster.busy_node.empty())
    out.not_begun = {"static_pod.busy", {{"node", cluster.busy_node}}};
  if (out.not_begun.empty() && !cluster.has_rows)
    out.not_begun = {"static_pod.no_rows", {{"namespace", options_.ns}, {"name", std::string(static_pod_name)}}};
  if (out.not_begun.empty() && begins && out.asked_for && out.wanted->config)
    out.not_begun =
        pods::trouble_of_tried(cluster.rolled_back, options_.node, config::checksum_of(*out.wanted->config));
  if (out.not_begun.empty() && begins && out.asked_for && cluster.extender) {
    const auto answers = co_await try_extender(*cluster.extender);
    if (!answers)
      out.not_begun = {"static_pod.no_extender", {{"url", cluster.extender->url}, {"error", answers.error().message}}};
  }
  co_return out;
}

/// What the files are to be.
void driver::plan(pods::control_plane_facts& facts, const pods::files::contents& seen,
                  const static_pod_cluster& cluster) {
  if (!seen.now.manifest) return;
  const config::control_plane_files now{seen.now.config, *seen.now.manifest};
  const auto url = cluster.extender ? cluster.extender->url : options_.extender_url;
  const auto current = config::facts_of(now.manifest).generation;
  const auto last = seen.kept ? seen.kept->generation : current;
  facts.generation = last;
  if (!facts.asked_for) {
    facts.generation = last + 1;
    const bool alone = seen.kept && seen.kept->created && seen.now.config == seen.kept->after.config;
    facts.wanted = texts_of(without_extender(now, alone, url));
    return;
  }
  if (!cluster.extender) {
    facts.wanted = std::unexpected(cluster.extender.error());
    return;
  }
  // Right as it is, or known not to work: no new change. Otherwise one more.
  for (const auto generation : {last, last + 1}) {
    if (generation == 0) continue;
    facts.generation = generation;
    facts.wanted = texts_of(with_extender(now, *cluster.extender, generation, server_minor_));
    if (!facts.wanted || *facts.wanted == facts.now) return;
    if (seen.kept && seen.kept->stage == pods::phase::reverted && *facts.wanted == seen.kept->after) return;
  }
}

/// Row, event and log line, where they say something new.
kube::task<void> driver::tell(const pods::step& step, const std::string& manifest, const static_pod_cluster& cluster,
                              const std::optional<pods::record>& kept) {
  const auto about = config::facts_of(manifest);
  const auto before = cluster.rows.contains(options_.node) ? cluster.rows.at(options_.node) : pods::status_row();
  pods::status_row now{.is = std::string(to_string(step.is)),
                       .generation = step.kind == pods::action::keep ? step.kept.generation : about.generation,
                       .checksum = about.checksum,
                       .version = about.version,
                       .since = before.since,
                       .reason = step.reason};
  // At rest what is wanted is in place, and that was made of what the cluster has now.
  if (step.kind == pods::action::rest && step.is == pods::state::applied && cluster.extender)
    now.certificates = api::certificates_of(cluster.extender->ca, cluster.extender->certificate);
  if (step.is == pods::state::rolled_back && kept && kept->after.config)
    now.tried = config::checksum_of(*kept->after.config);
  const bool other = now.is != before.is;
  if (other) now.since = controller::rfc3339_seconds(std::chrono::system_clock::now());
  if (now == before || (before.is.empty() && step.is == pods::state::disabled)) co_return kube::result<void>();
  const json patch = {{"data", {{options_.node, write(now)}}}};
  const kube::object_key rows{options_.ns, static_pod_name};
  const auto done = co_await api_.patch(kube::resources::config_maps, rows, kube::patch_kind::merge, patch);
  // Without the ConfigMap no one gets a report, and a change that has begun still comes to its end.
  if (!done && done.error().code != kube::errc::not_found) co_return std::unexpected(done.error());
  const auto reason = text::message_text(now.reason);
  const bool bad =
      step.is == pods::state::stopped || step.is == pods::state::rolled_back || step.is == pods::state::rolling_back;
  log::write(bad ? log::level::warn : log::level::info, "static pod of kube-scheduler",
             {{"state", now.is}, {"generation", now.generation}, {"reason", reason}});
  if (!other || step.is == pods::state::waiting) co_return kube::result<void>();
  controller::object_reference node;
  node.api_version = "v1";
  node.kind = "Node";
  node.key.name = node.uid = options_.node;  // as the kubelet's events on its node
  events_.record(node, bad ? controller::event_type::warning : controller::event_type::normal,
                 "SchedulerConfig" + now.is, "Configure",
                 "kube-scheduler of this node" + (reason.empty() ? std::string() : ": " + reason));
  co_return kube::result<void>();
}

void driver::want_turn() {
  if (turn_) return;
  turn_ = std::make_unique<turn>(wire_, election(options_));
  turn_->running = loop_.spawn("turn", turn_->elector.run());
}

boost::asio::awaitable<void> driver::give_turn_back() {
  if (!turn_) co_return;
  turn_->running.cancel();
  while (turn_->running.running()) co_await controller::sleep_for(milliseconds(10));
  const auto released = co_await turn_->elector.release();
  if (!released) log::debug("the turn was not given back", {{"error", released.error().message}});
  turn_.reset();
}

}  // namespace agent::static_pod
