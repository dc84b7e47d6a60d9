#include "reconcilers/extender/predicates.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <vector>

#include "api/engine_words.hpp"
#include "controller/log.hpp"
#include "kube/projections/from_json.hpp"
#include "kube/status.hpp"
#include "quota/filter.hpp"
#include "reconcilers/dialects/dialect.hpp"
#include "reconcilers/extender/membership.hpp"
#include "reconcilers/extender/reasons.hpp"

namespace reconcilers::extender {
namespace {

using namespace std::chrono_literals;
using controller::http_response;
using nlohmann::json;

constexpr auto binding_patience = 5min;  // from the answer to the scheduler's own Binding
constexpr std::string_view elsewhere = "placed on another node";

bool is_written_by_a_dialect(std::string_view annotation) {
  return std::ranges::any_of(dialects::all(),
                             [&](const dialects::dialect* product) { return product->writes(annotation); });
}

http_response answer(std::span<const node_verdict> verdicts, bool whole_nodes) {
  std::string out;
  append_filter_result(out, verdicts, whole_nodes);
  return {200, std::move(out), "application/json"};
}

/// The node that was decided, and no other.
http_response only(const filter_args& args, std::string_view node) {
  std::vector<node_verdict> all;
  for (const auto& name : args.nodes) all.push_back({name, name == node ? std::string_view() : elsewhere, false});
  return answer(all, args.whole_nodes);
}

std::int64_t wall_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

predicates::predicates(dependencies dependencies, controller::registry& metrics)
    : dependencies_(std::move(dependencies)),
      results_(metrics.counters("quartermaster_predicates_total",
                                "Decisions for callers that only filter: decided, same, no_room, not_ours, failed, "
                                "not_ready, malformed, expired.",
                                {"result"})) {}

void predicates::add_routes(controller::http_server& server) {
  server.route_async(
      "POST", std::string(predicates_path),
      [this](controller::http_request http_request) -> boost::asio::awaitable<http_response> {
        co_return co_await decide(std::move(http_request.body));
      },
      max_predicates_body);
}

kube::task<void> predicates::write(const kube::object_key& pod, const kube::uid& uid, json annotations) {
  const json patch{{"metadata", {{"uid", uid.to_string()}, {"annotations", std::move(annotations)}}}};
  const auto done = co_await dependencies_.api.patch(kube::resources::pods, pod, kube::patch_kind::merge, patch);
  if (!done) co_return std::unexpected(done.error());
  co_return kube::result<void>();
}

boost::asio::awaitable<http_response> predicates::decide(std::string body) {
  const auto finish = [&](std::string_view result, http_response out) {
    results_.with({result}).add();
    return out;
  };
  if (!dependencies_.leading() || !dependencies_.book.synced() || !dependencies_.earlier.closed())
    co_return finish("not_ready", {503, "not the leader, or not synced yet\n"});
  body_parser parser;
  filter_args args;
  if (const auto read = extender::read(parser, body, args); !read)
    co_return finish("malformed", {400, read.error() + "\n"});
  if (in_flight_.contains(args.uid))
    co_return finish("not_ready", {429, "this pod is being decided by another call\n"});
  const membership here(in_flight_, args.uid);

  std::optional<kube::pod> pod;
  if (const auto* known = dependencies_.pods.find(args.pod); known && known->id == args.uid) pod = *known;
  if (!pod) {
    auto request = kube::get_request(kube::resources::pods, args.pod, kube::encoding::json);
    request.deadline = 3s;
    const auto got = co_await dependencies_.api.used_transport().send(std::move(request));
    if (!got) co_return finish("failed", {503, got.error().message + "\n"});
    if (got->status != 200)
      co_return finish("failed", {404, kube::error_of("get pods " + args.pod.to_string(), *got).message + "\n"});
    auto read = kube::from_json<kube::pod>(got->body);
    if (!read || read->id != args.uid) co_return finish("failed", {404, "the pod was recreated; its uid is another\n"});
    pod = std::move(*read);
  }
  co_return co_await decide_for(args, *pod);
}

boost::asio::awaitable<http_response> predicates::decide_for(const filter_args& args, const kube::pod& pod) {
  const auto finish = [&](std::string_view result, http_response out) {
    results_.with({result}).add();
    return out;
  };
  const pod_request request(pod, dependencies_.book.keys());
  if (request.nothing()) {
    std::vector<node_verdict> all;
    for (const auto& name : args.nodes) all.push_back({name, {}, false});
    co_return finish("not_ours", answer(all, args.whole_nodes));
  }
  if (!pod.node_name.empty()) co_return finish("same", only(args, pod.node_name));
  if (const auto* earlier = dependencies_.book.book().find(pod.id.to_string())) {
    const auto view = dependencies_.book.book().view(earlier->held.node);
    const bool takes_it = !view || !view->inventory->changes_mode;
    if (takes_it && std::ranges::find(args.nodes, earlier->held.node) != args.nodes.end())
      co_return finish("same", only(args, earlier->held.node));
    dependencies_.book.release(pod.id);
  }

  std::vector<quota::node_view> views;
  std::vector<quota::shortfall> found(args.nodes.size());
  std::vector<std::uint8_t> scores(args.nodes.size());
  for (const auto& name : args.nodes)
    views.push_back(dependencies_.book.book().view(name).value_or(quota::node_view{}));
  quota::filter(request.containers(), views, found, request.only());
  quota::score(request.containers(), views, quota::policy::binpack, scores, request.only());
  std::vector<std::size_t> order(args.nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(-int{scores[i]}, i); });

  std::vector<node_verdict> all;
  for (std::size_t i = 0; i < found.size(); ++i)
    all.push_back({args.nodes[i], api::words_of(found[i].code, text::language::en), false});
  for (const auto i : order) {
    if (!found[i].fits()) continue;
    const auto here = dependencies_.book.try_on(pod, request, args.nodes[i]);
    if (here.limit) all[i].reason = short_text_of(*here.limit);
    if (!here.held) continue;
    const auto& held = *here.held;
    if (const auto* lock = dialects::lock_of(views[i].inventory->serves); lock && !held.grants.empty()) {
      all[i].reason = lock->needs_our_binding;
      continue;
    }
    if (dependencies_.book.decide(pod, held, controller::boot_now()) != quota::booked::done) continue;
    const auto wrote = co_await write(
        pod.key, pod.id,
        annotations_of(held, request, pod, *dependencies_.book.book().view(held.node)->inventory, wall_ns()));
    if (!wrote) {
      // The scheduler got no answer, so it binds nowhere; should the write arrive late, the watch shows it.
      dependencies_.book.release(pod.id);
      co_return finish("failed", {503, wrote.error().message + "\n"});
    }
    decided_ = true;
    co_return finish("decided", only(args, held.node));
  }
  if (dependencies_.on_waiting) dependencies_.on_waiting(pod);
  for (auto& entry : all)
    if (entry.reason == api::words_of(quota::reason::fits, text::language::en)) entry.reason = elsewhere;
  co_return finish("no_room", answer(all, args.whole_nodes));
}

kube::task<void> predicates::look_after(controller::milliseconds now) {
  std::vector<std::pair<kube::object_key, kube::uid>> late;
  for (const auto& [uid, entry] : dependencies_.book.open())
    if (entry.at_filter && now - entry.since > binding_patience) late.emplace_back(entry.key, kube::uid::parse(uid));
  for (const auto& [key, uid] : late) {
    if (in_flight_.contains(uid)) continue;
    const membership here(in_flight_, uid);
    // First off the pod, then out of the book: bound in between, it counts as one that no one says anything of.
    const auto* pod = dependencies_.pods.find(key);
    if (pod && pod->id == uid && pod->node_name.empty()) {
      json none = json::object();
      for (const auto [name, value] : pod->annotations)
        if (name == placement_annotation || name == isolation_annotation || is_written_by_a_dialect(name))
          none[std::string(name)] = nullptr;
      const auto wrote = co_await write(key, uid, std::move(none));
      if (!wrote && wrote.error().code != kube::errc::not_found) continue;
    }
    const auto* now_there = dependencies_.pods.find(key);
    if (now_there && now_there->id == uid && !now_there->node_name.empty()) continue;
    results_.with({"expired"}).add();
    dependencies_.book.release(uid);
  }
  co_return kube::result<void>();
}

}  // namespace reconcilers::extender
