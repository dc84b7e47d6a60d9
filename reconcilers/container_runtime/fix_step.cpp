#include "reconcilers/container_runtime/fix_step.hpp"

#include <algorithm>

#include "text/list.hpp"
#include "text/text.hpp"

namespace reconcilers::container_runtime {
namespace {

using namespace std::chrono_literals;
using kind = fix_step::kind;

bool is_unfit(const fix_candidate& node) {
  return node.default_runtime == api::check_state::warning || node.default_runtime == api::check_state::failed;
}

/// Why a node that needs it is left alone; empty: it is not.
std::string obstacle(const fix_candidate& node) {
  if (node.toolkit == api::check_state::failed) return "no container toolkit";
  if (runtime_to_fix(node.reported).empty()) return text::shown(node.reported) + " is not set up by fix-runtime";
  if (!node.is_ready) return "not Ready";
  return {};
}

/// "3 nodes match, 1 left to fix; left alone: gpu-3 (not Ready)".
std::string summary_of(const fix_state& state, std::size_t left) {
  std::vector<std::string> alone;
  std::size_t silent = 0;
  for (const auto& node : state.nodes) {
    if (node.default_runtime.value_or(api::check_state::unknown) == api::check_state::unknown)
      ++silent;
    else if (const auto reason = is_unfit(node) ? obstacle(node) : std::string(); !reason.empty())
      alone.push_back(node.name + " (" + reason + ")");
  }
  const auto count = state.nodes.size();
  auto out =
      text::counted(count, "node") + (count == 1 ? " matches, " : " match, ") + std::to_string(left) + " left to fix";
  if (!alone.empty()) out += "; left alone: " + text::some_of(alone);
  if (silent > 0) out += "; " + text::counted(silent, "node") + " without an agent that reports default_runtime";
  return out;
}

std::string retry_hint(const fix_pod& pod) {
  return "; put it right on the node, or try again: kubectl delete pod -n " + pod.key.ns + " " + pod.key.name;
}

fix_step halted(std::string message) {
  fix_step out;
  out.type = kind::halted;
  out.message = std::move(message);
  return out;
}

fix_step removal(std::string message) {
  fix_step out;
  out.type = kind::remove;
  out.message = std::move(message);
  return out;
}

fix_step wait(std::string message, std::chrono::seconds time) {
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

fix_step step_of_pod(const fix_state& state, const fix_pod& pod, const std::string& summary) {
  if (!pod.is_ours)
    return state.is_wanted ? halted("pod " + pod.key.to_string() +
                                    " has the operator's name and is not its own: "
                                    "delete it, and the operator goes on")
                           : fix_step();
  const auto under_way = summary + "; node " + pod.node + " is under way";
  if (pod.is_deleting) {
    if (time_left(state, pod.created) > 0s) return wait(under_way, 5s);
    return halted("node " + pod.node + ": pod " + pod.key.to_string() +
                  " is being deleted, and the kubelet does not confirm it; start the node, or go on without it: "
                  "kubectl delete pod --force -n " +
                  pod.key.ns + " " + pod.key.name);
  }
  const bool is_stale = !state.is_wanted || pod.wish != state.wish;
  if (!pod.has_succeeded && !pod.has_failed) {
    const auto left = time_left(state, pod.created);
    if (left > 0s) return wait(under_way, left);
    if (is_stale) return removal(under_way);
    return halted("node " + pod.node + ": pod " + pod.key.to_string() + " has not ended within " +
                  std::to_string(fix_patience.count()) + " min" +
                  (pod.reason.empty() ? "" : " (" + text::shown(pod.reason) + ")") + retry_hint(pod));
  }
  if (pod.recorded == 0 && pod.has_report) {
    fix_step out;
    out.type = kind::record;
    out.message = under_way;
    return out;
  }
  const auto node = std::ranges::find(state.nodes, pod.node, &fix_candidate::name);
  if (is_stale || node == state.nodes.end() || !is_unfit(*node)) return removal(under_way);
  if (pod.has_failed) return halted("node " + pod.node + ": " + pod.answer + retry_hint(pod));
  const auto left = time_left(state, pod.recorded);
  if (left > 0s) return wait(under_way, left);
  return halted("node " + pod.node + ": fix-runtime ended well (" + pod.answer +
                "), and the agent still reports default_runtime as " + std::string(to_string(*node->default_runtime)) +
                retry_hint(pod));
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
  out.message += "; node " + next->name + " is under way";
  return out;
}

}  // namespace reconcilers::container_runtime
