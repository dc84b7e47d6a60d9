#include "reconcilers/container_runtime/fix_step.hpp"

#include <algorithm>

#include "text/text.hpp"

namespace reconcilers::container_runtime {
namespace {

using namespace std::chrono_literals;
using kind = fix_step::kind;

bool is_unfit(const fix_candidate& node) {
  return node.default_runtime == api::check_state::warning || node.default_runtime == api::check_state::failed;
}

text::phrase runtimes_phrase(std::string_view key, std::vector<text::phrase_argument> arguments = {}) {
  return {"status.runtimes." + std::string(key), std::move(arguments)};
}

/// Why a node that needs it is left alone; empty: it is not.
text::phrase obstacle(const fix_candidate& node) {
  if (node.toolkit == api::check_state::failed) return runtimes_phrase("no_toolkit");
  if (runtime_to_fix(node.reported).empty())
    return runtimes_phrase("other_runtime", {{"runtime", text::shown(node.reported)}});
  if (!node.is_ready) return runtimes_phrase("not_ready");
  return {};
}

/// "3 nodes match, 1 left to fix; left alone: gpu-3 (not Ready)".
text::phrase summary_of(const fix_state& state, std::size_t left) {
  constexpr std::size_t most_named = 3;
  std::vector<text::phrase> alone;
  std::size_t silent = 0;
  for (const auto& node : state.nodes) {
    if (node.default_runtime.value_or(api::check_state::unknown) == api::check_state::unknown)
      ++silent;
    else if (const auto reason = is_unfit(node) ? obstacle(node) : text::phrase(); !reason.empty())
      alone.push_back(runtimes_phrase("node", {{"node", node.name}, {"cause", reason}}));
  }
  std::vector<text::phrase> parts{text::counted_phrase(state.nodes.size(), "status.runtimes.summary")};
  parts.front().arguments.push_back({"left", std::to_string(left)});
  if (!alone.empty()) {
    const auto more = alone.size() > most_named ? alone.size() - most_named : 0;
    alone.resize(std::min(alone.size(), most_named));
    auto list = text::joined_by_commas(std::move(alone));
    if (more > 0) list = runtimes_phrase("and_more", {{"list", list}, {"number", std::to_string(more)}});
    parts.push_back(runtimes_phrase("alone", {{"list", list}}));
  }
  if (silent > 0) parts.push_back(text::counted_phrase(silent, "status.runtimes.silent"));
  return text::joined_by_semicolons(std::move(parts));
}

text::phrase with_retry(text::phrase message, const fix_pod& pod) {
  return runtimes_phrase("retry", {{"message", std::move(message)}, {"namespace", pod.key.ns}, {"pod", pod.key.name}});
}

text::phrase under_way(const text::phrase& summary, const std::string& node) {
  return runtimes_phrase("under_way", {{"summary", summary}, {"node", node}});
}

fix_step halted(text::phrase message) {
  fix_step out;
  out.type = kind::halted;
  out.message = std::move(message);
  return out;
}

fix_step removal(text::phrase message) {
  fix_step out;
  out.type = kind::remove;
  out.message = std::move(message);
  return out;
}

fix_step wait(text::phrase message, std::chrono::seconds time) {
  fix_step out;
  out.type = kind::wait;
  out.message = std::move(message);
  out.again_in = std::max<std::chrono::seconds>(time, 1s);
  return out;
}

/// Of the patience since `begin`. Clocks differ and are set: a time that is far ahead says nothing, and is over.
std::chrono::seconds time_left(const fix_state& state, std::int64_t begin) {
  const auto left = fix_patience - std::chrono::seconds(state.wall - begin);
  return left > 2 * fix_patience ? 0s : left;
}

fix_step step_of_pod(const fix_state& state, const fix_pod& pod, const text::phrase& summary) {
  if (!pod.is_ours)
    return state.is_wanted ? halted(runtimes_phrase("foreign_pod", {{"pod", pod.key.to_string()}})) : fix_step();
  const auto progress = under_way(summary, pod.node);
  if (pod.is_deleting) {
    if (time_left(state, pod.created) > 0s) return wait(progress, 5s);
    return halted(runtimes_phrase("pod_stays", {{"node", pod.node}, {"namespace", pod.key.ns}, {"pod", pod.key.name}}));
  }
  const bool is_stale = !state.is_wanted || pod.wish != state.wish;
  if (!pod.has_succeeded && !pod.has_failed) {
    const auto left = time_left(state, pod.created);
    if (left > 0s) return wait(progress, left);
    if (is_stale) return removal(progress);
    return halted(with_retry(runtimes_phrase(pod.reason.empty() ? "too_long" : "too_long_because",
                                             {{"node", pod.node},
                                              {"pod", pod.key.to_string()},
                                              {"minutes", std::to_string(fix_patience.count())},
                                              {"cause", text::shown(pod.reason)}}),
                             pod));
  }
  if (pod.recorded == 0 && pod.has_report) {
    fix_step out;
    out.type = kind::record;
    out.message = progress;
    return out;
  }
  const auto node = std::ranges::find(state.nodes, pod.node, &fix_candidate::name);
  if (is_stale || node == state.nodes.end() || !is_unfit(*node)) return removal(progress);
  if (pod.has_failed)
    return halted(with_retry(runtimes_phrase("of_node", {{"node", pod.node}, {"text", pod.answer}}), pod));
  const auto left = time_left(state, pod.recorded);
  if (left > 0s) return wait(progress, left);
  return halted(with_retry(runtimes_phrase("no_effect", {{"node", pod.node},
                                                         {"answer", pod.answer},
                                                         {"state", std::string(to_string(*node->default_runtime))}}),
                           pod));
}

}  // namespace

std::string_view runtime_to_fix(std::string_view reported) {
  if (reported.contains("k3s") || reported.contains("k0s")) return {};
  if (reported.starts_with("containerd://")) return "containerd";
  if (reported.starts_with("cri-o://")) return "crio";
  if (reported.starts_with("docker://")) return "docker";
  return {};
}

fix_step next_fix_step(const fix_state& state) {
  std::vector<const fix_candidate*> left;
  for (const auto& node : state.nodes)
    if (is_unfit(node) && obstacle(node).empty()) left.push_back(&node);
  const auto summary = summary_of(state, left.size());
  if (state.pod) return step_of_pod(state, *state.pod, summary);
  fix_step out;
  if (!state.is_wanted) return out;
  out.message = summary;
  if (left.empty()) return out;
  const auto* next = *std::ranges::min_element(left, {}, &fix_candidate::name);
  out.type = kind::make;
  out.node = next->name;
  out.runtime = runtime_to_fix(next->reported);
  out.message = under_way(summary, next->name);
  return out;
}

}  // namespace reconcilers::container_runtime
