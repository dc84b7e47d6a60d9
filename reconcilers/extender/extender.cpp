#include "reconcilers/extender/extender.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "controller/sleep.hpp"
#include "quota/filter.hpp"
#include "reconcilers/extender/reasons.hpp"

namespace reconcilers::extender {
namespace {

using controller::http_request;
using controller::http_response;

constexpr controller::milliseconds patience{4'000};  // the scheduler's own is 5 s

const http_response not_now{503, "not the leader, or not synced yet\n"};

http_response json(std::string body) { return {200, std::move(body), "application/json"}; }
http_response not_understood(const std::string& why) { return {400, why + "\n"}; }

bool unresolvable(quota::reason why) {
  return why == quota::reason::refused || why == quota::reason::not_offered || why == quota::reason::no_node ||
         why == quota::reason::no_cards;
}

/// Kept between requests, so that a usual one allocates nothing of its own.
struct scratch {
  document parser;
  filter_args args;
  std::vector<quota::node_view> views;
  std::vector<quota::shortfall> found;
  std::vector<verdict> verdicts;
  std::vector<std::uint8_t> scores;
};

scratch& kept() {
  static thread_local scratch one;
  one.args.nodes.clear();
  one.args.pod = {};
  one.args.uid = {};
  one.args.pod_json = {};
  one.args.whole_nodes = false;
  return one;
}

constexpr std::string_view kept_for_another = "what is left is kept for a pod that is nominated to this node";

constexpr std::size_t large = 4u << 20;
/// One large request must not leave its memory behind.
void give_back(scratch& of, std::size_t body) {
  if (body > large) of = {};
}

void look_up(const quota::ledger& in, scratch& at) {
  at.views.clear();
  for (const auto& name : at.args.nodes) at.views.push_back(in.view(name).value_or(quota::node_view{}));
}

bool of_one_model(const quota::node& on) {
  return std::ranges::all_of(on.cards, [&](const quota::card& one) { return one.model == on.cards.front().model; });
}

/// The limits of the pod's namespace, judged once for nodes that are charged alike. Which cards it would be given is
/// looked at only where they differ.
class gate {
 public:
  gate(const account& book, const kube::pod& pod, const asked& by)
      : book_(book), pod_(pod), by_(by), open_(!book.limited(pod.key.ns)) {}

  /// Constant; empty: no limit refuses.
  std::string_view refusal(const quota::node& on) {
    if (open_) return {};
    if (!of_one_model(on)) {
      const auto here = book_.try_on(pod_, by_, on.name);
      return here.limit ? short_text_of(*here.limit) : std::string_view();
    }
    const auto model = on.cards.empty() ? std::string_view() : std::string_view(on.cards.front().model);
    const auto memory = on.cards.empty() ? 0 : on.cards.front().memory_mib;
    for (const auto& one : judged_)
      if (one.model == model && one.memory_mib == memory && one.pool == on.pool && one.serves == on.serves)
        return one.refusal;
    judged_.push_back({model, on.pool, memory, on.serves, {}});
    if (const auto no = book_.over(pod_, by_, on)) judged_.back().refusal = short_text_of(*no);
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
  const asked& by_;
  bool open_;
  std::vector<judgement> judged_;
};

constexpr std::array edges{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0};

}  // namespace

front::front(given by, controller::registry& metrics)
    : by_(std::move(by)),
      seconds_(
          metrics.histograms("quartermaster_extender_seconds", "Answering the scheduler, by verb.", {"verb"}, edges)),
      nodes_(metrics.counters("quartermaster_extender_nodes_total", "Nodes judged for pods, by outcome.", {"outcome"})),
      fits_(nodes_.with({"fits"})),
      fails_(nodes_.with({"fails"})) {}

const kube::pod* front::pod_of(const kube::object_key& key, const kube::uid& uid, std::string_view text,
                               kube::pod& read) {
  const auto* known = by_.pods.find(key);
  if (known && known->id == uid) return known;
  auto one = extender::pod_of(text);
  if (!one) return nullptr;
  read = std::move(*one);
  return &read;
}

http_response front::filter(const std::string& body) {
  if (!answering()) return not_now;
  asked_ = true;
  auto& at = kept();
  if (const auto read = extender::read(at.parser, body, at.args); !read) return not_understood(read.error());
  kube::pod from_body;
  const auto* pod = pod_of(at.args.pod, at.args.uid, at.args.pod_json, from_body);
  if (!pod) return not_understood("Pod cannot be read");

  at.verdicts.clear();
  std::size_t fitting = 0;
  const asked by(*pod, by_.book.keys());
  if (by.nothing()) {
    for (const auto& name : at.args.nodes) at.verdicts.push_back({name, {}, false});
    fitting = at.verdicts.size();
  } else {
    look_up(by_.book.book(), at);
    at.found.resize(at.views.size());
    quota::filter(by.containers(), at.views, at.found, by.only());
    gate limits(by_.book, *pod, by);
    for (std::size_t i = 0; i < at.found.size(); ++i) {
      const auto why = at.found[i].why;
      const bool fits = why == quota::reason::fits;
      auto reason = fits ? limits.refusal(*at.views[i].what) : quota::text_of(why);
      if (reason.empty() && by_.book.goes_before(*pod, by, at.args.nodes[i])) reason = kept_for_another;
      fitting += reason.empty() ? 1 : 0;
      at.verdicts.push_back({at.args.nodes[i], reason, unresolvable(why)});
    }
    fits_.add(static_cast<double>(fitting));
    fails_.add(static_cast<double>(at.found.size() - fitting));
    if (fitting == 0 && by_.on_waiting) by_.on_waiting(*pod);
  }
  std::string out;
  out.reserve(256 + at.args.nodes.size() * 96);
  append_filter_result(out, at.verdicts, at.args.whole_nodes);
  give_back(at, body.size());
  return json(std::move(out));
}

http_response front::prioritize(const std::string& body) {
  if (!answering()) return not_now;
  auto& at = kept();
  if (const auto read = extender::read(at.parser, body, at.args); !read) return not_understood(read.error());
  kube::pod from_body;
  const auto* pod = pod_of(at.args.pod, at.args.uid, at.args.pod_json, from_body);
  if (!pod) return not_understood("Pod cannot be read");
  const asked by(*pod, by_.book.keys());
  at.scores.assign(at.args.nodes.size(), 0);
  if (!by.nothing()) {
    look_up(by_.book.book(), at);
    quota::score(by.containers(), at.views, quota::policy::binpack, at.scores, by.only());
  }
  std::string out;
  out.reserve(16 + at.args.nodes.size() * 48);
  append_priorities(out, at.args.nodes, at.scores);
  give_back(at, body.size());
  return json(std::move(out));
}

boost::asio::awaitable<void> front::settled() const {
  const auto until = controller::boot_now() + patience;
  while (answering() && !by_.binds.sealed() && controller::boot_now() < until) {
    const bool slept = co_await controller::sleep_for(controller::milliseconds(20));
    if (!slept) co_return;
  }
}

boost::asio::awaitable<http_response> front::bind(std::string body) {
  co_await settled();
  if (!answering() || !by_.binds.ready()) co_return not_now;
  document parser;
  auto read = read_bind(parser, body);
  if (!read) co_return not_understood(read.error());
  const auto said = co_await by_.binds.bind(std::move(*read));
  co_return json(bind_result(said));
}

http_response front::preempt(const std::string& body) {
  if (!answering()) return not_now;
  document parser;
  preempt_args args;
  if (const auto read = extender::read(parser, body, args); !read) return not_understood(read.error());
  kube::pod from_body;
  const auto* pod = pod_of(args.pod, args.uid, args.pod_json, from_body);
  if (!pod) return not_understood("Pod cannot be read");
  const asked by(*pod, by_.book.keys());
  // kube-scheduler has reprieved all it could, and takes an empty list on one node as an error of the whole attempt. So
  // a node comes back with all its victims or not at all.
  std::vector<victims> out;
  std::vector<std::string> gone;
  for (auto& one : args.nodes) {
    if (one.pods.empty()) continue;
    gone.clear();
    for (const auto& uid : one.pods) gone.push_back(uid.to_string());
    if (by.nothing() || by_.book.try_on(*pod, by, one.node, gone).held) out.push_back(std::move(one));
  }
  if (out.empty() && !by.nothing() && by_.on_waiting) by_.on_waiting(*pod);
  return json(preempt_result(out));
}

void front::add_routes(controller::http_server& to) {
  const auto timed = [this](std::string_view verb, http_response (front::*call)(const std::string&)) {
    return [this, &seconds = seconds_.with({verb}), call](http_request asked) -> boost::asio::awaitable<http_response> {
      co_await settled();
      const auto began = std::chrono::steady_clock::now();
      auto out = (this->*call)(asked.body);
      seconds.observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
      co_return out;
    };
  };
  to.route_async("POST", std::string(filter_path), timed("filter", &front::filter), max_filter_body);
  to.route_async("POST", std::string(prioritize_path), timed("prioritize", &front::prioritize), max_filter_body);
  to.route_async("POST", std::string(preempt_path), timed("preempt", &front::preempt), max_filter_body);
  to.route_async(
      "POST", std::string(bind_path),
      [this](http_request asked) -> boost::asio::awaitable<http_response> {
        const auto began = std::chrono::steady_clock::now();
        auto out = co_await bind(std::move(asked.body));
        seconds_.with({"bind"}).observe(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
        co_return out;
      },
      max_bind_body);
}

}  // namespace reconcilers::extender
