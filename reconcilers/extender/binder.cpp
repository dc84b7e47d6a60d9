#include "reconcilers/extender/binder.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "kube/projections/from_json.hpp"
#include "kube/status.hpp"
#include "reconcilers/dialects/dialect.hpp"
#include "reconcilers/extender/membership.hpp"

namespace reconcilers::extender {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr controller::milliseconds longest_binding = 3s,
                                   shortest = 300ms;  // of one Binding, which ends before the lease does
constexpr auto watch_patience = 30s;                  // for the watch to show what was bound
constexpr auto turn = 2s;                             // how long a call waits for another one to the same node
// On a node with a lock a call waits for it and writes it, and then binds: within the scheduler's httpTimeout of 5 s.
constexpr controller::milliseconds lock_turn = 1s, lock_write = 1s, look = 20ms;
constexpr auto unconfirmed = "not known yet whether an earlier Binding of this pod arrived; it is being found out";

/// The API server has answered, and it is no.
bool is_no(const kube::error& error) { return error.http >= 400 && error.http < 500; }

std::int64_t wall_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string bound_elsewhere(std::string_view node) { return "the pod is bound to " + std::string(node) + " already"; }

/// The annotation in a JSON patch.
std::string path_of(std::string_view annotation) {
  std::string out = "/metadata/annotations/";
  for (const char letter : annotation) {
    if (letter == '/')
      out += "~1";
    else
      out += letter;
  }
  return out;
}

}  // namespace

binder::binder(dependencies dependencies, controller::registry& metrics)
    : dependencies_(std::move(dependencies)),
      results_(metrics.counters("quartermaster_binds_total",
                                "Binding calls: bound, already, no_room, refused, unknown, not_ready.", {"result"})) {}

bool binder::ready() const {
  return dependencies_.book.synced() && dependencies_.earlier.closed() && dependencies_.lease_left() > shortest;
}

kube::task<kube::pod> binder::read(kube::object_key key) {
  auto request = kube::get_request(kube::resources::pods, key, kube::encoding::json);
  request.deadline = longest_binding;
  const auto answer = co_await dependencies_.api.used_transport().send(std::move(request));
  if (!answer) co_return std::unexpected(answer.error());
  if (answer->status != 200) co_return std::unexpected(kube::error_of("get pods " + key.to_string(), *answer));
  co_return kube::from_json<kube::pod>(answer->body);
}

kube::task<void> binder::send(kube::object_key pod, std::string uid, std::uint64_t version, const std::string& node,
                              const json& annotations) {
  kube::preconditions only_if;
  only_if.uid = std::move(uid);
  only_if.resource_version = std::to_string(version);
  auto request = kube::bind_request(pod, node, only_if, annotations);
  request.deadline = std::clamp<controller::milliseconds>(dependencies_.lease_left(), 1ms, longest_binding);
  const auto name = "bind pods " + pod.to_string() + " to " + node;
  const auto answer = co_await dependencies_.api.used_transport().send(std::move(request));
  if (!answer) co_return std::unexpected(answer.error());
  if (!kube::succeeded(answer->status)) co_return std::unexpected(kube::error_of(name, *answer));
  co_return kube::result<void>();
}

boost::asio::awaitable<std::string> binder::bind(bind_args args) {
  if (in_flight_.contains(args.uid)) co_return "this pod is being bound by another call";
  const membership here(in_flight_, args.uid);
  co_return co_await bind_once(args);
}

bool binder::counts_by_time(const std::string& node) const {
  const auto view = dependencies_.book.book().view(node);
  return view && dialects::finds_pods_by_time(view->inventory->serves);
}

boost::asio::awaitable<bool> binder::its_turn(const line& line, std::uint64_t ticket) {
  const auto until = controller::boot_now() + controller::milliseconds(turn);
  while (*line.begin() != ticket) {
    if (controller::boot_now() > until) co_return false;
    const bool slept = co_await controller::sleep_for(1ms);
    if (!slept) co_return false;
  }
  co_return true;
}

kube::task<void> binder::patch_node(std::string node, json patch) {
  auto request = kube::patch_request(kube::resources::nodes, {{}, node}, kube::patch_kind::json, patch);
  request.deadline = lock_write;
  const auto answer = co_await dependencies_.api.used_transport().send(std::move(request));
  if (!answer) co_return std::unexpected(answer.error());
  if (!kube::succeeded(answer->status)) co_return std::unexpected(kube::error_of("patch nodes " + node, *answer));
  co_return kube::result<void>();
}

boost::asio::awaitable<std::string> binder::take_lock(const dialects::lock_words& words, kube::object_key pod,
                                                      kube::uid uid, std::string node) {
  const auto until = controller::boot_now() + lock_turn;
  const std::string product(words.product), annotation(words.annotation);
  for (std::string reason;;) {
    const auto* known = dependencies_.nodes.find({{}, node});
    if (!known) co_return "node " + node + " is gone";
    const std::string found(known->annotations.value_or(words.annotation, ""));
    const auto earlier = words.read(found);
    if (!found.empty() && !earlier)
      co_return "node " + node + ": " + product + "'s plugin cannot read " + annotation + "=" + found.substr(0, 80) +
          "; take it off: kubectl annotate node " + node + " " + annotation + "-";
    bool held = false;
    if (earlier && earlier->pod != pod) {
      std::optional<kube::pod> holder;
      if (const auto* match = dependencies_.pods.find(earlier->pod)) {
        holder = *match;
      } else if (!earlier->pod.name.empty()) {
        auto now = co_await read(earlier->pod);
        if (!now && now.error().code != kube::errc::not_found) co_return now.error().message;
        if (now) holder = std::move(*now);
      }
      const bool binding = holder && (in_flight_.contains(holder->id) || in_doubt_.contains(holder->id));
      held = words.holds(*earlier, node, holder ? &*holder : nullptr, binding, wall_ns() / 1'000'000'000);
    }
    if (held) {
      reason = "node " + node + " is giving " +
               (earlier->pod.name.empty() ? std::string("another pod") : "pod " + earlier->pod.to_string()) +
               " its cards, and " + product + "'s plugin serves one pod at a time; come again";
    } else {
      const auto value = words.text({wall_ns() / 1'000'000'000, pod});
      const json patch{
          {{"op", "test"}, {"path", path_of(words.annotation)}, {"value", found.empty() ? json() : json(found)}},
          {{"op", "add"}, {"path", path_of(words.annotation)}, {"value", value}}};
      const auto wrote = co_await patch_node(node, patch);
      if (wrote) {
        locked_[uid] = {node, value, &words};
        co_return std::string();
      }
      reason = wrote.error().message;
      if (wrote.error().code != kube::errc::invalid && wrote.error().code != kube::errc::conflict) co_return reason;
    }
    if (controller::boot_now() > until) co_return reason;
    const bool slept = co_await controller::sleep_for(look);
    if (!slept) co_return "stopping";
  }
}

/// Left on, it would keep the product's own scheduler away until that loses patience; the next one to bind here would
/// see that it holds nothing.
boost::asio::awaitable<void> binder::take_off(locked_node lock) {
  const auto path = path_of(lock.words->annotation);
  const json patch{{{"op", "test"}, {"path", path}, {"value", lock.value}}, {{"op", "remove"}, {"path", path}}};
  const auto wrote = co_await patch_node(lock.node, patch);
  if (!wrote)
    controller::log::info(
        "a node's lock was not taken off",
        {{"node", lock.node}, {"annotation", lock.words->annotation}, {"error", wrote.error().message}});
}

void binder::forget_lock(const kube::uid& uid, std::string_view bound_to) {
  const auto lock = locked_.extract(uid);
  if (lock && lock.mapped().node != bound_to) dependencies_.loop.spawn("node_lock", take_off(lock.mapped()));
}

void binder::release(const kube::uid& uid) {
  dependencies_.book.release(uid);
  forget_lock(uid, {});
}

boost::asio::awaitable<std::string> binder::bind_once(const bind_args& args) {
  const auto refuse = [&](std::string_view result, std::string reason) {
    results_.with({result}).add();
    return reason;
  };
  std::optional<kube::pod> pod;
  if (const auto* known = dependencies_.pods.find(args.pod); known && known->id == args.uid) pod = *known;
  if (!dependencies_.earlier.closed())
    co_return refuse("not_ready", "what earlier leaders bound is not all known here yet; come again");
  if (!pod) {
    auto now = co_await read(args.pod);
    if (!now) co_return refuse("refused", now.error().message);
    pod = std::move(*now);
  }
  const auto uid = pod->id.to_string();
  if (pod->id != args.uid)
    co_return refuse("refused",
                     "pod " + args.pod.to_string() + " has uid " + uid + " now, not " + args.uid.to_string());
  if (pod->node_name == args.node) co_return refuse("already", "");
  if (!pod->node_name.empty()) co_return refuse("refused", bound_elsewhere(pod->node_name));
  if (pod->deleting) co_return refuse("refused", "the pod is being deleted");
  if (in_doubt_.contains(args.uid)) co_return refuse("unknown", unconfirmed);

  if (const auto open = dependencies_.book.open().find(uid); open != dependencies_.book.open().end()) {
    // Decided at filter for a scheduler that binds by itself; here it is decided again. Otherwise the API server has
    // taken our Binding, and the watch has not shown it yet.
    if (open->second.at_filter)
      dependencies_.book.release(args.uid);
    else if (open->second.node == args.node)
      co_return refuse("already", "");
    else
      co_return refuse("refused", bound_elsewhere(open->second.node));
  }

  std::optional<membership<std::uint64_t>> place;
  if (counts_by_time(args.node)) {
    auto& all = lines_[args.node];
    const auto ticket = ++tickets_;
    place.emplace(all, ticket);
    const bool first = co_await its_turn(all, ticket);
    if (!first) co_return refuse("not_ready", "other pods are being bound to node " + args.node + "; come again");
  }

  const pod_request request(*pod, dependencies_.book.keys());
  auto here = dependencies_.book.try_on(*pod, request, args.node);
  if (!here.held) co_return refuse("no_room", here.limit ? here.reason() : "node " + args.node + ": " + here.reason());
  const auto& node = *dependencies_.book.book().view(args.node)->inventory;
  const auto* lock = dialects::lock_of(node.serves);
  const auto annotations = annotations_of(*here.held, request, *pod, node, wall_ns());
  const auto assumed = dependencies_.book.assume(*pod, *here.held, controller::boot_now());
  if (assumed != quota::booked::done)
    co_return refuse("no_room", assumed == quota::booked::elsewhere ? unconfirmed : "the cards went to another pod");

  if (lock) {
    auto no = co_await take_lock(*lock, args.pod, args.uid, args.node);
    if (!no.empty()) {
      dependencies_.book.release(args.uid);
      co_return refuse("not_ready", std::move(no));
    }
  }
  auto sent = co_await send(args.pod, uid, pod->resource_version, args.node, annotations);
  if (sent) {
    forget_lock(args.uid, args.node);
    co_return refuse("bound", "");
  }
  co_return co_await settle(args, std::move(sent.error()), std::move(*pod), annotations);
}

/// A Binding that did not simply succeed.
boost::asio::awaitable<std::string> binder::settle(const bind_args& args, kube::error error, kube::pod pod,
                                                   json annotations) {
  const auto finish = [&](std::string_view result, std::string text) {
    results_.with({result}).add();
    return text;
  };
  const auto version = pod.resource_version;
  if (error.code == kube::errc::conflict || error.code == kube::errc::already_exists) {
    // Someone wrote to the pod since we read it, or the transport sent our Binding twice.
    const auto now = co_await read(args.pod);
    if (now && now->id == args.uid && !now->node_name.empty()) {
      dependencies_.book.take(*now);
      const bool arrived =
          now->node_name == args.node && now->annotations.value_or(placement_annotation, "") ==
                                             annotations.value(std::string(placement_annotation), std::string());
      forget_lock(args.uid, now->node_name);
      if (arrived) co_return finish("bound", "");
      if (now->node_name != args.node) release(args.uid), dependencies_.book.take(*now);
      co_return finish("refused", "the pod was bound to " + now->node_name + " by someone else");
    }
    if (now && now->id == args.uid && now->resource_version != version && !now->deleting) {
      auto again = co_await send(args.pod, args.uid.to_string(), now->resource_version, args.node, annotations);
      if (again) {
        forget_lock(args.uid, args.node);
        co_return finish("bound", "");
      }
      error = std::move(again.error());
    } else if (!now && now.error().code != kube::errc::not_found) {
      error = now.error();
    }
  }
  if (is_no(error)) {
    if (error.message.contains("placements.quartermaster.io"))
      controller::log::error(
          "the API server lets only the operator's ServiceAccount write which cards a pod has, and this process is "
          "someone else: nothing can be bound until it runs as that account",
          {{"pod", args.pod.to_string()}, {"error", error.message}});
    release(args.uid);
    co_return finish("refused", error.message);
  }
  find_out_later(args.pod, args.uid);
  co_return finish("unknown", error.message);
}

void binder::find_out_later(const kube::object_key& key, const kube::uid& uid) {
  if (!in_doubt_.insert(uid).second) return;
  dependencies_.loop.spawn("bind_in_doubt", find_out(key, uid));
}

boost::asio::awaitable<void> binder::find_out(kube::object_key key, kube::uid uid) {
  const membership here(in_doubt_, uid);
  const auto text = uid.to_string();
  for (;;) {
    const auto* entry = dependencies_.book.book().find(text);
    if (!entry || entry->confirmed) {  // the watch has told
      forget_lock(uid, entry ? std::string_view(entry->held.node) : std::string_view());
      co_return;
    }
    auto sealed = co_await dependencies_.earlier.seal(key, text);
    const bool gone =
        !sealed && (sealed.error().code == kube::errc::not_found || sealed.error().code == kube::errc::conflict);
    if (gone) {
      release(uid);
      co_return;
    }
    if (sealed) {
      auto now = co_await read(key);
      const bool none = !now && now.error().code == kube::errc::not_found;
      if (none || (now && (now->id != uid || now->node_name.empty()))) {
        release(uid);
        controller::log::info("a Binding did not arrive and what it held is free", {{"pod", key.to_string()}});
        co_return;
      }
      if (now) {
        dependencies_.book.take(*now);
        forget_lock(uid, now->node_name);
        co_return;
      }
    }
    const bool slept = co_await controller::sleep_for(500ms);
    if (!slept) co_return;
  }
}

void binder::look_after(controller::milliseconds now) {
  std::vector<std::pair<kube::object_key, kube::uid>> late;
  for (const auto& [uid, entry] : dependencies_.book.open()) {
    const auto id = kube::uid::parse(uid);
    if (!entry.at_filter && now - entry.since > watch_patience && !in_flight_.contains(id))
      late.emplace_back(entry.key, id);
  }
  for (const auto& [key, id] : late) find_out_later(key, id);
}

}  // namespace reconcilers::extender
