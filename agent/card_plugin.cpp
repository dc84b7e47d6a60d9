#include "agent/card_plugin.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "agent/agent.hpp"
#include "agent/allocation/offer.hpp"
#include "agent/settle.hpp"
#include "api/node_words.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "controller/teardown.hpp"
#include "quota/limits.hpp"
#include "text/list.hpp"
#include "text/messages.hpp"

namespace agent {
namespace {

namespace log = controller::log;

constexpr controller::milliseconds look_period{1'000}, mps_period{2'000}, mps_deadline{2'000}, hold_deadline{9'000},
    end_period{500};
/// A program has its pod's time to end by itself. Before the kubelet kills it there is still this.
constexpr controller::milliseconds before_kill{2'000};
constexpr std::string_view visible_devices = "NVIDIA_VISIBLE_DEVICES", pipe_folder_inside = "/run/nvidia-mps",
                           isolation_annotation = "quartermaster.io/isolation";

/// NVIDIA's runtime reads it; what CDI sets is stronger than what the pod says.
allocation::container_edits visible_cards(const std::vector<api::placed_share>& shares) {
  std::vector<std::string> uuids;
  for (const auto& share : shares) uuids.push_back(share.card);
  allocation::container_edits out;
  out.environment[std::string(visible_devices)] = text::joined(uuids, ",");
  return out;
}

/// The runtime refuses a device without any edit, and the vocabulary's first key has brought all there is.
allocation::container_edits named_only(const std::string& resource) {
  allocation::container_edits out;
  out.environment["QUARTERMASTER_RESOURCE"] = resource;
  return out;
}

/// A client can lower these for itself; what it cannot pass are the ceilings of the server, and the driver's limit.
allocation::container_edits client_of(const mps::served_card& served, const api::placed_share& share) {
  auto out = visible_cards({share});
  out.environment["CUDA_MPS_PIPE_DIRECTORY"] = pipe_folder_inside;
  out.environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(allocation::compute_of(share));
  out.environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = "0=" + std::to_string(share.memory_mib) + "M";
  if (served.is_limited) {
    // NVIDIA's toolkit from 1.20.1 on limits the container's own cgroup by these before its first process; older ones
    // ignore them. What the pod says for itself does not count: without the kernel's controller the limit of a
    // container is not held to its pod's.
    out.environment["NVIDIA_GPU_MEMORY_REQUEST"] = "0";
    out.environment["NVIDIA_GPU_MEMORY_LIMIT"] = std::to_string(share.memory_mib);
  }
  out.mounts.emplace_back(served.pipe_folder, pipe_folder_inside);
  return out;
}

/// What all containers of the pod have of the card's memory.
std::int64_t memory_on(std::string_view card, const kube::running_pod& pod) {
  std::int64_t out = 0;
  const auto placement = api::placement_in(pod.annotations.value_or(api::placement_annotation, ""));
  if (!placement) return out;
  for (const auto& [container, shares] : placement->containers)
    for (const auto& share : shares)
      if (share.card == card) out += share.memory_mib;
  return out;
}

std::string endpoint_of(std::string_view part) {
  return "quartermaster-" + std::string(part) + std::to_string(::getpid()) + ".sock";
}

std::string_view part_name(allocation::device_unit unit) {
  using enum allocation::device_unit;
  return unit == card ? "" : unit == core ? "c-" : unit == memory ? "m-" : "s-";  // a percentage is never offered
}

}  // namespace

std::vector<allocation::offered_resource> card_plugin_options::resources() const {
  if (!lends()) return {{cards, allocation::device_unit::card}};
  std::vector<allocation::offered_resource> out;
  std::ranges::copy_if(shares, std::back_inserter(out), &allocation::offered_resource::is_offered);
  return out;
}

card_plugin::part::part(card_plugin& owner, allocation::offered_resource offered, bool is_first)
    : resource(std::move(offered)),
      starter(
          owner.loop_.executor(),
          {.resource = resource,
           .vocabulary = owner.options_.shares,
           .node = owner.options_.node,
           .plugin_folder = owner.options_.plugin_folder,
           .pod_resources = owner.options_.pod_resources,
           .cdi_folder = owner.options_.cdi_folder,
           // containerd 1.7 skips CDI names unless it is set up for them, and an image may ask for all cards.
           .without_cards = {{std::string(visible_devices), "void"}}},
          owner.pods_, [&owner] { return owner.cards(); },
          [&owner, is_first, name = resource.name](allocation::container_start start) -> edits {
            if (!is_first) co_return named_only(name);
            co_return co_await owner.edits_of(std::move(start));
          }),
      plugin(owner.loop_.executor(), starter,
             {.folder = owner.options_.plugin_folder,
              .endpoint = endpoint_of(part_name(resource.unit)),
              .resource = resource.name}) {}

card_plugin::card_plugin(card_plugin_options options, kube::cluster_config cluster)
    : options_(std::move(options)), boot_(boot_of_machine()), wire_(loop_.executor(), std::move(cluster)) {
  for (auto& resource : options_.resources()) parts_.emplace_back(*this, std::move(resource), parts_.empty());
  nodes_.observe([this](const auto*, const auto*) { offer(); });
  if (options_.lends()) pods_.observe([this](const auto*, const auto*) { is_to_limit_ = true; });
}

kube::task<grpc::reply> card_plugin::ask_mps(std::string_view method, std::string message,
                                             controller::milliseconds deadline) {
  return grpc::call(loop_.executor(),
                    {.socket = options_.mps_folder + "/" + std::string(mps::socket_name), .deadline = deadline},
                    std::string(method), std::move(message));
}

card_plugin::edits card_plugin::edits_of(allocation::container_start start) {
  if (!options_.lends()) co_return visible_cards(start.shares);
  const auto name = start.pod->key.to_string();
  if (start.shares.size() != 1)
    co_return std::unexpected(text::message("start.several_cards", text::language::en,
                                            {{"pod", name}, {"number", std::to_string(start.shares.size())}}));
  const auto share = start.shares.front();
  const auto served = served_.find(share.card);
  if (served == served_.end() || !served->second.problem.empty())
    co_return std::unexpected(
        text::message("start.card_not_served", text::language::en,
                      {{"pod", name},
                       {"card", share.card},
                       {"reason", served == served_.end() ? mps_trouble_ : served->second.problem}}));
  const auto edits = client_of(served->second, share);
  const bool is_limited = served->second.is_limited;
  const bool is_promised =
      start.pod->annotations.value_or(isolation_annotation, "") == quota::text_of(quota::isolation::driver);
  if (is_promised && !is_limited)
    co_return std::unexpected(
        text::message("start.limits_gone", text::language::en, {{"pod", name}, {"card", share.card}}));
  const mps::limited_pod limited{start.pod->id.to_string(), share.card, memory_on(share.card, *start.pod)};
  std::vector<const kube::running_pod*> pods;
  for (const auto& pod : pods_.all()) pods.push_back(&pod);
  const auto largest = allocation::largest_share(
      share.card, {.node = options_.node, .recorded = {}, .listed = {}, .pods = pods, .cards = {}});
  const mps::held_card wanted{share.card, {largest.cores, largest.memory_mib}};
  const auto answer = co_await ask_mps(mps::hold_method, mps::message_of(wanted), hold_deadline);
  if (!answer) co_return std::unexpected(answer.error().message);
  if (!answer->is.good()) co_return std::unexpected(answer->is.text);
  if (!is_limited) co_return edits;
  const auto limit = co_await ask_mps(mps::limit_method, mps::message_of(limited), hold_deadline);
  if (limit && limit->is.good()) co_return edits;
  co_return std::unexpected(
      text::message("start.memory_not_limited", text::language::en,
                    {{"pod", name}, {"card", share.card}, {"reason", limit ? limit->is.text : limit.error().message}}));
}

std::vector<quota::card> card_plugin::cards() const {
  std::vector<quota::card> out;
  const auto* node = nodes_.find({{}, options_.node});
  if (!node || node->boot != boot_) return out;
  // The runtime would pass CDI names over, and containers would start without what they asked for.
  if (node->mode.code.cause == api::no_cdi && node->mode.requested_mode == node->mode.actual_mode) return out;
  auto reported = node->cards;
  std::ranges::sort(reported, {}, &api::reported_card::index);
  for (const auto& card : reported) {
    const auto served = served_.find(card.uuid);
    const bool is_served = !options_.lends() || (served != served_.end() && served->second.problem.empty());
    out.push_back({.uuid = card.uuid,
                   .model = card.model,
                   .memory_mib = card.memory_mib,
                   .numa = card.numa,
                   .healthy = card.healthy() && is_served,
                   .mig = card.mig,
                   .minor = card.index});
  }
  return out;
}

void card_plugin::offer() {
  if (!pods_.synced()) return;
  auto known = cards();
  const bool all_well = std::ranges::all_of(known, &quota::card::usable);
  // Which devices there are depends on pods only while some are to be withdrawn.
  if (all_well && offered_ == known) return;
  std::vector<const kube::running_pod*> pods;
  for (const auto& pod : pods_.all()) pods.push_back(&pod);
  allocation::node_records records{.node = options_.node, .recorded = {}, .listed = {}, .pods = pods, .cards = known};
  // Which pod has which device matters only where some are to be withdrawn; the file is the kubelet's, and not small.
  std::expected<std::vector<kubelet::recorded_devices>, std::string> record;
  if (!all_well) record = parts_.front().starter.recorded();
  if (record) records.recorded = *record;
  for (auto& part : parts_) {
    std::int64_t worth = 0;
    for (const auto& card : known) worth += part.resource.worth(card);
    const auto devices = allocation::offered_devices(part.resource, records);
    const bool is_beyond = devices.empty() && worth > 0;
    if (is_beyond && !part.is_beyond)
      log::warn("a resource is not offered, because a kubelet takes no list of that length: use a larger unit",
                {{"resource", part.resource.name},
                 {"devices", std::to_string(worth)},
                 {"most", std::to_string(allocation::most_devices)}});
    part.is_beyond = is_beyond;
    part.plugin.offer(devices);
  }
  offered_.reset();
  if (all_well) offered_ = std::move(known);
}

boost::asio::awaitable<void> card_plugin::look_after() {
  for (;;) {
    for (auto& part : parts_) part.starter.clear_made();
    offer();
    for (auto& part : parts_) {
      if (part.plugin.trouble() == part.trouble) continue;
      part.trouble = part.plugin.trouble();
      if (!part.trouble.empty())
        log::warn("the kubelet does not take the device plugin",
                  {{"resource", part.resource.name}, {"error", part.trouble}});
    }
    const bool went_on = co_await controller::sleep_for(look_period);
    if (!went_on) co_return;
  }
}

boost::asio::awaitable<void> card_plugin::look_at_mps() {
  for (;;) {
    auto answer = co_await ask_mps(mps::cards_method, {}, mps_deadline);
    auto trouble = answer ? answer->is.text : answer.error().message;
    std::vector<mps::served_card> cards;
    if (answer && answer->is.good()) {
      auto list = mps::cards_in(answer->message);
      if (list)
        cards = std::move(*list);
      else
        trouble = list.error().message;
    }
    if (trouble != mps_trouble_) {
      mps_trouble_ = trouble;
      if (!trouble.empty()) log::warn("the program that keeps MPS does not answer", {{"error", trouble}});
    }
    for (const auto& card : cards) {
      const auto before = served_.find(card.uuid);
      if (!card.problem.empty() && (before == served_.end() || before->second.problem != card.problem))
        log::warn("a card is not offered", {{"card", card.uuid}, {"reason", card.problem}});
    }
    decltype(served_) now;
    for (auto& card : cards) now.emplace(card.uuid, std::move(card));
    is_to_limit_ = is_to_limit_ || now != served_;
    served_ = std::move(now);
    offer();
    const bool went_on = co_await controller::sleep_for(mps_period);
    if (!went_on) co_return;
  }
}

void card_plugin::note_ends(controller::milliseconds now) {
  std::map<std::string, ending, std::less<>> out;
  for (const auto& pod : pods_.all()) {
    if (!pod.deleting || pod.finished() || pod.annotations.value_or(api::placement_annotation, "").empty()) continue;
    auto uid = pod.id.to_string();
    const auto known = endings_.find(uid);
    // By this machine's clock, since it was seen: so does the kubelet.
    const auto grace = std::chrono::duration_cast<controller::milliseconds>(std::chrono::seconds(pod.grace_s));
    const auto made = known != endings_.end() ? known->second : ending{now + grace - before_kill, false};
    out.emplace(std::move(uid), made);
  }
  endings_ = std::move(out);
}

boost::asio::awaitable<void> card_plugin::end_clients() {
  for (;;) {
    const auto now = controller::boot_now();
    note_ends(now);
    std::vector<std::string> due;
    for (const auto& [uid, end] : endings_)
      if (!end.is_done && end.due <= now) due.push_back(uid);
    for (const auto& uid : due) {
      const auto answer = co_await ask_mps(mps::end_method, mps::message_of(mps::ending_pod{uid}), mps_deadline);
      const bool is_done = answer && answer->is.good();
      if (const auto match = endings_.find(uid); match != endings_.end()) match->second.is_done = is_done;
      if (!is_done)
        log::warn("clients of MPS were not ended before their pod",
                  {{"pod", uid}, {"error", answer ? answer->is.text : answer.error().message}});
    }
    const bool went_on = co_await controller::sleep_for(end_period);
    if (!went_on) co_return;
  }
}

std::vector<mps::limited_pod> card_plugin::containers_to_limit() {
  std::vector<mps::limited_pod> out;
  std::set<std::string, std::less<>> now;
  for (const auto& pod : pods_.all()) {
    const auto placement = api::placement_in(pod.annotations.value_or(api::placement_annotation, ""));
    if (!placement || pod.finished()) continue;
    for (const auto& [name, id] : pod.ids) {
      const auto shares = placement->containers.find(name);
      if (id.empty() || shares == placement->containers.end() || shares->second.size() != 1) continue;
      const auto& share = shares->second.front();
      const auto card = served_.find(share.card);
      if (card == served_.end() || !card->second.is_limited) continue;
      if (!seen_.contains(id)) out.push_back({pod.id.to_string(), share.card, share.memory_mib, id});
      now.insert(id);
    }
  }
  seen_ = std::move(now);
  return out;
}

boost::asio::awaitable<void> card_plugin::limit_containers() {
  for (;;) {
    std::vector<mps::limited_pod> due;
    if (std::exchange(is_to_limit_, false)) due = containers_to_limit();
    for (const auto& container : due) {
      const auto answer = co_await ask_mps(mps::limit_method, mps::message_of(container), mps_deadline);
      if (answer && answer->is.good()) continue;
      // It may have ended already. Its pod's limit holds it.
      log::info("a container has no limit of its own", {{"pod", container.uid},
                                                        {"container", container.container},
                                                        {"reason", answer ? answer->is.text : answer.error().message}});
    }
    const bool went_on = co_await controller::sleep_for(look_period);
    if (!went_on) co_return;
  }
}

/// The pod is ready while the kubelet listens to each resource, so nothing is placed on the node before that. An API
/// server that is silent is no reason: the kubelet goes on asking.
controller::http_response card_plugin::readiness() const {
  controller::http_response out{200, ""};
  for (const auto& part : parts_) {
    if (part.plugin.is_registered()) continue;
    const auto& trouble = part.plugin.trouble();
    out.status = 503;
    out.body += part.resource.name + ": " + (trouble.empty() ? "the kubelet does not listen yet" : trouble) + "\n";
  }
  if (out.status == 200) out.body = "ok\n";
  return out;
}

kube::result<void> card_plugin::answer_probes() {
  if (options_.health_port == 0) return {};
  controller::http_server_options options("health", ":" + std::to_string(options_.health_port));
  options.max_connections = 16;
  probes_.emplace(loop_, probe_metrics_, std::move(options));
  probes_->route("GET", "/readyz", [this](const controller::http_request&) { return readiness(); });
  return probes_->start();
}

kube::result<void> card_plugin::run() {
  for (auto& part : parts_)
    if (const auto done = part.starter.begin(); !done) return kube::config_error("agent plugin: " + done.error());
  if (auto done = answer_probes(); !done) return done;
  loop_.stop_on_signals([this] { loop_.quit(); });
  kube::watch_settings pods, own;
  pods.field_selector = "spec.nodeName=" + options_.node;
  own.field_selector = "metadata.name=" + options_.node;
  loop_.spawn_essential("pods", controller::reflect<kube::running_pod>(wire_, pods, pods_, reflector_metrics_));
  loop_.spawn_essential("acceleratornodes",
                        controller::reflect<api::accelerator_node>(wire_, own, nodes_, reflector_metrics_));
  loop_.spawn_essential("look_after", look_after());
  loop_.spawn("settle", settle());
  if (options_.lends()) loop_.spawn_essential("mps", look_at_mps());
  if (options_.lends()) loop_.spawn_essential("ends", end_clients());
  if (options_.lends()) loop_.spawn_essential("limits", limit_containers());
  for (auto& part : parts_) loop_.spawn_essential("plugin", part.plugin.run());
  log::info("starting",
            {{"version", QUARTERMASTER_VERSION}, {"node", options_.node}, {"resource", parts_.front().resource.name}});
  loop_.run();
  controller::destroy_waiting(loop_.context());
  log::flush();
  return {};
}

}  // namespace agent
