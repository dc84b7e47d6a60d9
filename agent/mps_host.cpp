#include "agent/mps_host.hpp"

#include <algorithm>
#include <filesystem>

#include "agent/cards/process.hpp"
#include "agent/mps/memory_limit.hpp"
#include "agent/mps/mounts.hpp"
#include "agent/mps/state_file.hpp"
#include "agent/settle.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "controller/teardown.hpp"

namespace agent {
namespace {

namespace log = controller::log;
using grpc::status_code;

constexpr controller::milliseconds driver_retry{2'000}, leave_limit{25'000}, state_look{1'000};

}  // namespace

mps_host::mps_host(mps_options options)
    : options_(std::move(options)),
      driver_(options_.driver_root),
      server_(loop_.executor(), *this, {.socket = options_.folder + "/" + std::string(mps::socket_name)}) {}

boost::asio::awaitable<void> mps_host::begin() {
  std::string trouble;
  for (;;) {
    auto known = co_await driver_.cards();
    if (known) {
      co_await try_limits(*known);
      for (const auto& card : known->cards) {
        if (card.mig || !card.defect.empty()) {
          log::warn("a card is not lent by MPS", {{"card", card.uuid}, {"reason", card.mig ? "MIG" : card.defect}});
          continue;
        }
        mps::server_options out;
        out.control = {.program = options_.program, .folder = options_.folder + "/" + card.uuid, .card = card.uuid};
        out.whole.memory_mib = card.memory_mib;
        out.has_container = [pipes = "/" + card.uuid + "/pipe"] { return mps::is_mounted("/proc", pipes); };
        cards_.emplace_back(driver_, std::move(out));
        running_.push_back(loop_.spawn("mps", cards_.back().run()));
      }
      co_return;
    }
    if (known.error() != trouble) log::warn("the cards are not known yet", {{"error", trouble = known.error()}});
    const bool went_on = co_await controller::sleep_for(driver_retry);
    if (!went_on) co_return;
  }
}

/// Before a card is offered, so that no container starts by a weaker means than the next one. A driver that refuses is
/// not asked again until this program starts again.
boost::asio::awaitable<void> mps_host::try_limits(const cards::inventory& known) {
  const auto cgroup = mps::cgroup_for_trial(options_.cgroup_root, "/proc");
  for (const auto& card : known.cards) {
    if (card.mig || !card.defect.empty()) continue;
    std::string reason;
    if (cgroup) {
      const auto done = co_await driver_.try_memory_limit(card.uuid, *cgroup, card.memory_mib);
      if (!done) reason = done.error();
    } else {
      reason = cgroup.error();
    }
    if (reason.empty())
      limited_.insert(card.uuid), log::info("the driver limits the memory of pods", {{"card", card.uuid}});
    else
      log::info("the memory of pods is limited by MPS alone", {{"card", card.uuid}, {"reason", reason}});
  }
}

/// At each change, and often enough to be believed.
boost::asio::awaitable<void> mps_host::keep_state() {
  const auto path = options_.folder + "/" + std::string(mps::state_name);
  std::optional<mps::node_state> written;
  std::string trouble;
  auto last = controller::boot_now();
  for (;;) {
    mps::node_state now{{}, limited_};
    for (const auto& card : cards_)
      if (!card.failure().empty()) now.failed.emplace(card.card(), card.failure());
    if (now != written || controller::boot_now() - last > mps::state_period) {
      const auto done = mps::write_state(path, now);
      if (!done && done.error() != trouble) log::warn("the state is not written", {{"error", done.error()}});
      trouble = done ? std::string() : done.error();
      written = std::move(now), last = controller::boot_now();
    }
    const bool went_on = co_await controller::sleep_for(state_look);
    if (!went_on) co_return;
  }
}

void mps_host::serve(std::shared_ptr<grpc::served_call> call, std::string_view message) {
  if (call->method() == mps::cards_method) {
    std::vector<mps::served_card> out;
    for (const auto& card : cards_)
      out.push_back({card.card(), card.problem(), card.pipe_folder(), limited_.contains(card.card())});
    call->send(mps::message_of(out));
    return call->finish();
  }
  if (call->method() == mps::end_method) {
    auto pod = mps::ending_pod_in(message);
    if (!pod || pod->uid.empty()) return call->finish({status_code::invalid_argument, "no pod is named"});
    loop_.spawn("end", end(std::move(call), std::move(*pod)));
    return;
  }
  if (call->method() == mps::limit_method) {
    auto pod = mps::limited_pod_in(message);
    if (!pod) return call->finish({status_code::invalid_argument, pod.error().message});
    loop_.spawn("limit", limit(std::move(call), std::move(*pod)));
    return;
  }
  if (call->method() != mps::hold_method) return call->finish({status_code::unimplemented, "no such call"});
  auto wanted = mps::held_card_in(message);
  if (!wanted) return call->finish({status_code::invalid_argument, wanted.error().message});
  loop_.spawn("hold", hold(std::move(call), std::move(*wanted)));
}

boost::asio::awaitable<void> mps_host::hold(std::shared_ptr<grpc::served_call> call, mps::held_card wanted) {
  const auto card = std::ranges::find(cards_, wanted.uuid, &mps::card_server::card);
  if (card == cards_.end()) {
    call->finish({status_code::not_found, "card " + wanted.uuid + " is not served by MPS here"});
    co_return;
  }
  const auto done = co_await card->hold(wanted.limits);
  if (!done) {
    call->finish({status_code::failed_precondition, "card " + wanted.uuid + ": " + done.error()});
    co_return;
  }
  call->send({});
  call->finish();
}

boost::asio::awaitable<void> mps_host::limit(std::shared_ptr<grpc::served_call> call, mps::limited_pod pod) {
  const auto cgroup = pod.container.empty() ? mps::cgroup_of_pod(options_.cgroup_root, pod.uid)
                                            : mps::cgroup_of_container(options_.cgroup_root, pod.uid, pod.container);
  if (!cgroup) {
    call->finish({status_code::failed_precondition, cgroup.error()});
    co_return;
  }
  const auto done = co_await driver_.limit_memory(pod.card, *cgroup, pod.memory_mib);
  if (!done) {
    call->finish({status_code::failed_precondition, done.error()});
    co_return;
  }
  call->send({});
  call->finish();
}

/// A client is a process of the node, and its cgroup says whose it is.
boost::asio::awaitable<void> mps_host::end(std::shared_ptr<grpc::served_call> call, mps::ending_pod pod) {
  const auto is_of_pod = [uid = pod.uid](unsigned process) { return cards::owner_of("/proc", process).pod_uid == uid; };
  std::string problem;
  for (auto& card : cards_) {
    const auto ended = co_await card.end_clients(is_of_pod);
    if (!ended)
      problem = "card " + card.card() + ": " + ended.error();
    else if (*ended > 0)
      log::info("clients of MPS were ended before their pod",
                {{"card", card.card()}, {"pod", pod.uid}, {"clients", std::to_string(*ended)}});
  }
  if (!problem.empty()) {
    call->finish({status_code::unavailable, problem});
    co_return;
  }
  call->send({});
  call->finish();
}

boost::asio::awaitable<void> mps_host::leave() {
  for (const auto& card : running_) card.cancel();
  const auto goes_on = [this] { return std::ranges::any_of(running_, &controller::spawned::running); };
  while (goes_on()) (void)co_await controller::sleep_for(controller::milliseconds(10));
  running_.clear();
  for (auto& card : cards_) running_.push_back(loop_.spawn("leave", card.leave()));
  while (goes_on()) (void)co_await controller::sleep_for(controller::milliseconds(10));
  std::error_code ignored;
  std::filesystem::remove(options_.folder + "/" + std::string(mps::state_name), ignored);
  loop_.quit();
}

kube::result<void> mps_host::run() {
  std::error_code wrong;
  std::filesystem::create_directories(options_.folder, wrong);
  if (wrong) return kube::config_error("agent mps: cannot make the folder " + options_.folder + ": " + wrong.message());
  if (auto done = server_.listen(); !done) return done;
  loop_.stop_on_signals([this] { loop_.spawn("leave", leave()); }, leave_limit);
  loop_.spawn_essential("cards", begin());
  running_.push_back(loop_.spawn("state", keep_state()));
  loop_.spawn("settle", settle());
  log::info("starting", {{"version", QUARTERMASTER_VERSION}, {"folder", options_.folder}});
  loop_.run();
  controller::destroy_waiting(loop_.context());
  log::flush();
  return {};
}

}  // namespace agent
