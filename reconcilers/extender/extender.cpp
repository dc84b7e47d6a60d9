#include "reconcilers/extender/extender.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "api/engine_words.hpp"
#include "controller/sleep.hpp"
#include "kube/json_text.hpp"
#include "kube/projections/from_json.hpp"
#include "quota/filter.hpp"
#include "reconcilers/extender/reasons.hpp"

namespace reconcilers::extender {
namespace {

using controller::http_request;
using controller::http_response;

const http_response not_now{503, "not the leader, or not synced yet\n"};

http_response json_answer(std::string body) { return {200, std::move(body), "application/json"}; }
http_response not_understood(const std::string& reason) { return {400, reason + "\n"}; }

bool unresolvable(quota::reason reason) {
  return reason == quota::reason::refused || reason == quota::reason::not_offered || reason == quota::reason::no_node ||
         reason == quota::reason::no_cards || reason == quota::reason::cut_cards ||
         reason == quota::reason::changes_mode;
}

/// Kept between requests, so that a usual one allocates nothing of its own.
struct scratch {
  body_parser parser;
  filter_args args;
  std::vector<quota::node_view> views;
  std::vector<quota::shortfall> found;
  std::vector<node_verdict> verdicts;
  std::vector<std::uint8_t> scores;
};

scratch& kept() {
  static thread_local scratch scratch;
  scratch.args.nodes.clear();
  scratch.args.pod = {};
  scratch.args.uid = {};
  scratch.args.pod_json = {};
  scratch.args.whole_nodes = false;
  return scratch;
}

constexpr std::string_view kept_for_another = "what is left is kept for a pod that is nominated to this node";

constexpr std::size_t most_offers = 64;
constexpr std::size_t most_departures = 16;  // asked about in one call

constexpr std::size_t large = 4u << 20;
/// One large request must not leave its memory behind.
void give_back(scratch& scratch, std::size_t body) {
  if (body > large) scratch = {};
}

void look_up(const quota::ledger& ledger, scratch& scratch) {
  scratch.views.clear();
  for (const auto& name : scratch.args.nodes) scratch.views.push_back(ledger.view(name).value_or(quota::node_view{}));
}

bool of_one_model(const quota::node_inventory& node) {
  return std::ranges::all_of(node.cards,
                             [&](const quota::card& card) { return card.model == node.cards.front().model; });
}

/// The limits of the pod's namespace, judged once for nodes that are charged alike. Which cards it would be given is
/// looked at only where they differ.
class gate {
 public:
  gate(const account& book, const kube::pod& pod, const pod_request& request)
      : book_(book), pod_(pod), request_(request), open_(!book.limited(pod.key.ns)) {}

  /// Constant; empty: no limit refuses.
  std::string_view refusal(const quota::node_inventory& node) {
    if (open_) return {};
    if (!of_one_model(node)) {
      const auto here = book_.try_on(pod_, request_, node.name);
      return here.limit ? short_text_of(*here.limit) : std::string_view();
    }
    const auto model = node.cards.empty() ? std::string_view() : std::string_view(node.cards.front().model);
    const auto memory = node.cards.empty() ? 0 : node.cards.front().memory_mib;
    for (const auto& entry : judged_)
      if (entry.model == model && entry.memory_mib == memory && entry.pool == node.pool && entry.serves == node.serves)
        return entry.refusal;
    judged_.push_back({model, node.pool, memory, node.serves, {}});
    if (const auto no = book_.over(pod_, request_, node)) judged_.back().refusal = short_text_of(*no);
    return judged_.back().refusal;
  }

 private:
  struct judgement {
    std::string_view model, pool;
    std::int64_t memory_mib;
    quota::service serves;
    std::string_view refusal;
  };
  const account& book_;
  const kube::pod& pod_;
  const pod_request& request_;
  bool open_;
  std::vector<judgement> judged_;
};

constexpr std::array edges{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0};

}  // namespace

request_handler::request_handler(dependencies dependencies, controller::registry& metrics, call_limits limits)
    : dependencies_(std::move(dependencies)),
      limits_(limits),
      seconds_(
          metrics.histograms("quartermaster_extender_seconds", "Answering the scheduler, by verb.", {"verb"}, edges)),
      nodes_(metrics.counters("quartermaster_extender_nodes_total", "Nodes judged for pods, by outcome.", {"outcome"})),
      fits_(nodes_.with({"fits"})),
      fails_(nodes_.with({"fails"})) {}

const kube::pod* request_handler::pod_of(const kube::object_key& key, const kube::uid& uid, std::string_view text,
                                         kube::pod& read) {
  const auto* known = dependencies_.pods.find(key);
  if (known && known->id == uid) return known;
  auto pod = kube::from_json<kube::pod>(text);
  if (!pod) return nullptr;
  read = std::move(*pod);
  return &read;
}

http_response request_handler::filter(const std::string& body) {
  in_the_way_.clear();
  if (!answering()) return not_now;
  contacted_ = true;
  auto& position = kept();
  if (const auto read = extender::read(position.parser, body, position.args); !read)
    return not_understood(read.error());
  kube::pod from_body;
  const auto* pod = pod_of(position.args.pod, position.args.uid, position.args.pod_json, from_body);
  if (!pod) return not_understood("Pod cannot be read");

  position.verdicts.clear();
  std::size_t fitting = 0;
  const pod_request request(*pod, dependencies_.book.keys());
  if (request.nothing()) {
    for (const auto& name : position.args.nodes) position.verdicts.push_back({name, {}, false});
    fitting = position.verdicts.size();
  } else {
    look_up(dependencies_.book.book(), position);
    position.found.resize(position.views.size());
    quota::filter(request.containers(), position.views, position.found, request.only());
    gate limits(dependencies_.book, *pod, request);
    for (std::size_t i = 0; i < position.found.size(); ++i) {
      const auto cause = position.found[i].code;
      const bool fits = cause == quota::reason::fits;
      auto reason = fits ? limits.refusal(*position.views[i].inventory) : api::words_of(cause, text::language::en);
      if (reason.empty() && dependencies_.book.goes_before(*pod, request, position.args.nodes[i]))
        reason = kept_for_another;
      fitting += reason.empty() ? 1 : 0;
      position.verdicts.push_back({position.args.nodes[i], reason, unresolvable(cause)});
    }
    fits_.add(static_cast<double>(fitting));
    fails_.add(static_cast<double>(position.found.size() - fitting));
    if (fitting == 0 && dependencies_.on_waiting) dependencies_.on_waiting(*pod);
    if (fitting == 0) in_the_way_ = in_the_way(*pod, position.args);
  }
  std::string out;
  out.reserve(256 + position.args.nodes.size() * 96);
  append_filter_result(out, position.verdicts, position.args.whole_nodes);
  give_back(position, body.size());
  return json_answer(std::move(out));
}

std::vector<kube::object> request_handler::in_the_way(const kube::pod& pod, const filter_args& args) const {
  std::vector<kube::object> out;
  if (!args.pod_json.contains("nominatedNodeName")) return out;
  const auto as_sent = kube::from_json<kube::pod>(args.pod_json);
  if (!as_sent || as_sent->nominated_node.empty()) return out;
  const auto& node = as_sent->nominated_node.front();
  if (std::ranges::find(args.nodes, node) == args.nodes.end()) return out;
  const auto offered = std::ranges::find(offers_, pod.id, &offer::pod);
  const auto was_to_leave = [&](const std::string& uid) {
    if (offered == offers_.end()) return false;
    const auto match = offered->leaving.find(node);
    return match != offered->leaving.end() && std::ranges::find(match->second, uid) != match->second.end();
  };
  std::vector<std::string> leaving;
  for (const auto& other : dependencies_.pods.all()) {
    if (!other.node_name.empty() && other.node_name != node) continue;
    auto uid = other.id.to_string();
    const auto* entry = dependencies_.book.book().find(uid);
    if (!entry || entry->held.node != node || (!other.deleting && !was_to_leave(uid))) continue;
    out.push_back(other);
    leaving.push_back(std::move(uid));
  }
  const bool helps =
      out.size() <= most_departures &&
      dependencies_.book.try_on(pod, pod_request(pod, dependencies_.book.keys()), node, leaving).held.has_value();
  if (!helps) out.clear();
  return out;
}

boost::asio::awaitable<void> request_handler::see_departures(std::vector<kube::object> leaving) const {
  for (const auto& pod : leaving) {
    const auto found = co_await dependencies_.api.get(kube::resources::pods, pod.key);
    const bool is_gone = found ? kube::text_at(*found, "/metadata/uid") != pod.id.to_string()
                               : found.error().code == kube::errc::not_found;
    if (!is_gone) co_return;
  }
  const auto is_here = [&](const kube::object& pod) {
    return dependencies_.book.book().find(pod.id.to_string()) != nullptr;
  };
  while (answering() && std::ranges::any_of(leaving, is_here)) {
    const bool slept = co_await controller::sleep_for(controller::milliseconds(5));
    if (!slept) co_return;
  }
}

// kube-scheduler may see a deletion before this program does, and asks at once. To refuse the pod then makes it forget
// the nomination, and a rival would take the card that was emptied.
boost::asio::awaitable<http_response> request_handler::filter_nominated(std::string body) {
  auto out = filter(body);
  if (in_the_way_.empty()) co_return out;
  using namespace boost::asio::experimental::awaitable_operators;
  co_await (see_departures(std::exchange(in_the_way_, {})) || controller::sleep_for(limits_.departures));
  co_return filter(body);
}

http_response request_handler::prioritize(const std::string& body) {
  if (!answering()) return not_now;
  auto& position = kept();
  if (const auto read = extender::read(position.parser, body, position.args); !read)
    return not_understood(read.error());
  kube::pod from_body;
  const auto* pod = pod_of(position.args.pod, position.args.uid, position.args.pod_json, from_body);
  if (!pod) return not_understood("Pod cannot be read");
  const pod_request request(*pod, dependencies_.book.keys());
  position.scores.assign(position.args.nodes.size(), 0);
  if (!request.nothing()) {
    look_up(dependencies_.book.book(), position);
    quota::score(request.containers(), position.views, quota::policy::binpack, position.scores, request.only());
  }
  std::string out;
  out.reserve(16 + position.args.nodes.size() * 48);
  append_priorities(out, position.args.nodes, position.scores);
  give_back(position, body.size());
  return json_answer(std::move(out));
}

boost::asio::awaitable<void> request_handler::settled() const {
  const auto until = controller::boot_now() + limits_.seals;
  while (answering() && !dependencies_.binds.sealed() && controller::boot_now() < until) {
    const bool slept = co_await controller::sleep_for(controller::milliseconds(20));
    if (!slept) co_return;
  }
}

boost::asio::awaitable<http_response> request_handler::bind(std::string body) {
  co_await settled();
  if (!answering() || !dependencies_.binds.ready()) co_return not_now;
  body_parser parser;
  auto read = read_bind(parser, body);
  if (!read) co_return not_understood(read.error());
  const auto message = co_await dependencies_.binds.bind(std::move(*read));
  co_return json_answer(bind_result(message));
}

http_response request_handler::preempt(const std::string& body) {
  if (!answering()) return not_now;
  body_parser parser;
  preempt_args args;
  if (const auto read = extender::read(parser, body, args); !read) return not_understood(read.error());
  kube::pod from_body;
  const auto* pod = pod_of(args.pod, args.uid, args.pod_json, from_body);
  if (!pod) return not_understood("Pod cannot be read");
  const pod_request request(*pod, dependencies_.book.keys());
  // kube-scheduler has reprieved all it could, and takes an empty list on one node as an error of the whole attempt. So
  // a node comes back with all its victims or not at all.
  std::vector<victims> out;
  std::vector<std::string> gone;
  const bool served = emptied_already(*pod, args);
  for (auto& node : args.nodes) {
    if (node.pods.empty() || served) continue;
    gone.clear();
    for (const auto& uid : node.pods) gone.push_back(uid.to_string());
    if (request.nothing() || dependencies_.book.try_on(*pod, request, node.node, gone).held)
      out.push_back(std::move(node));
  }
  if (out.empty() && !request.nothing() && dependencies_.on_waiting) dependencies_.on_waiting(*pod);
  if (!out.empty() && !request.nothing()) {
    offer now{.pod = pod->id, .leaving = {}};
    for (const auto& node : out)
      for (const auto& uid : node.pods) now.leaving[std::string(node.node)].push_back(uid.to_string());
    offers_.push_back(std::move(now));
    if (offers_.size() > most_offers) offers_.pop_front();
  }
  return json_answer(preempt_result(out));
}

// kube-scheduler may see the victims' deletion before this program does. Then filter refuses the emptied node, and
// kube-scheduler would make others leave on a second one. An empty answer makes it forget the nomination, so that an
// attempt after this one goes on as usual.
bool request_handler::emptied_already(const kube::pod& pod, const preempt_args& args) {
  const auto offered = std::ranges::find(offers_, pod.id, &offer::pod);
  if (offered == offers_.end()) return false;
  const auto leaving = std::move(offered->leaving);
  offers_.erase(offered);
  const auto preemptor = kube::from_json<kube::pod>(args.pod_json);
  if (!preemptor || preemptor->nominated_node.empty()) return false;
  const auto& chosen = preemptor->nominated_node.front();
  const auto match = leaving.find(chosen);
  if (match == leaving.end() || std::ranges::find(args.nodes, chosen, &victims::node) != args.nodes.end()) return false;
  return dependencies_.book.try_on(pod, pod_request(pod, dependencies_.book.keys()), chosen, match->second)
      .held.has_value();
}

void request_handler::add_routes(controller::http_server& server) {
  const auto timed = [this](std::string_view verb, http_response (request_handler::*call)(const std::string&)) {
    return
        [this, &seconds = seconds_.with({verb}), call](http_request request) -> boost::asio::awaitable<http_response> {
          co_await settled();
          const auto began = std::chrono::steady_clock::now();
          auto out = (this->*call)(request.body);
          seconds.observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
          co_return out;
        };
  };
  server.route_async(
      "POST", std::string(filter_path),
      [this, &seconds = seconds_.with({"filter"})](http_request request) -> boost::asio::awaitable<http_response> {
        co_await settled();
        const auto began = std::chrono::steady_clock::now();
        auto out = co_await filter_nominated(std::move(request.body));
        seconds.observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
        co_return out;
      },
      max_filter_body);
  server.route_async("POST", std::string(prioritize_path), timed("prioritize", &request_handler::prioritize),
                     max_filter_body);
  server.route_async("POST", std::string(preempt_path), timed("preempt", &request_handler::preempt), max_filter_body);
  server.route_async(
      "POST", std::string(bind_path),
      [this](http_request http_request) -> boost::asio::awaitable<http_response> {
        const auto began = std::chrono::steady_clock::now();
        auto out = co_await bind(std::move(http_request.body));
        seconds_.with({"bind"}).observe(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
        co_return out;
      },
      max_bind_body);
}

}  // namespace reconcilers::extender
