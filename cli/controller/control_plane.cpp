#include "cli/controller/control_plane.hpp"

#include <algorithm>
#include <array>

#include "agent/static_pod/health.hpp"
#include "text/phrase_code.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace pods = agent::static_pod;
using pods::state;
using reconcilers::scheduler_row;

constexpr std::string_view no_agent = "NoAgent";
constexpr std::size_t named_at_most = 3;
constexpr std::size_t most_said = 1000;  ///< bytes of what an agent says
/// Worst first.
constexpr std::array states{state::stopped,  state::rolled_back, state::rolling_back, state::changing,
                            state::removing, state::waiting,     state::applied,      state::disabled};

/// How bad it is: the lower the worse. What no agent has said comes after what one says is wrong.
std::size_t rank(const scheduler_row& scheduler_row) {
  const auto match = std::ranges::find(states, std::string_view(scheduler_row.reason),
                                       [](state state) { return pods::to_string(state); });
  return match == states.end() ? 2 : static_cast<std::size_t>(match - states.begin());
}

/// The reason of a row, which anyone who may write ConfigMaps has written.
text::phrase shown(const text::phrase& reason) {
  const auto code = code_of(reason);
  const auto sentence = text::shown(text::message_text(reason), most_said);
  if (code.empty()) return sentence;
  auto safe = code;
  for (auto& [name, value] : safe.parameters)
    if (!name.ends_with(":cause")) value = text::shown(value, most_said);
  return phrase_of(safe, sentence);
}

scheduler_row row_of(const std::string& node, const pods::status_row& row) {
  scheduler_row out;
  out.name = node;
  out.mode = "StaticPod";
  out.version = text::shown(row.version, most_said);
  out.checksum = text::shown(row.checksum, most_said);
  out.reason = row.is;
  if (!row.reason.empty()) out.message = shown(row.reason);
  out.desired = 1;
  out.good = row.is == pods::to_string(state::applied) && row.reason.empty();
  out.ready = out.good ? 1 : 0;
  if (out.good) out.message = {"status.control_plane.good"};
  return out;
}

scheduler_row silent(const std::string& node) {
  scheduler_row out;
  out.name = node;
  out.mode = "StaticPod";
  out.reason = no_agent;
  out.message = {"status.control_plane.no_agent"};
  out.desired = 1;
  return out;
}

/// What is wrong with the first of them.
text::phrase troubles(const std::vector<scheduler_row>& rows) {
  std::vector<text::phrase> out;
  std::size_t wrong = 0;
  for (const auto& row : rows) {
    if (row.good || ++wrong > named_at_most) continue;
    out.push_back({row.message.empty() ? "status.control_plane.node" : "status.control_plane.node_because",
                   {{"node", row.name}, {"reason", row.reason}, {"cause", row.message}}});
  }
  const auto named = out.size();
  auto list = text::joined_by_commas(std::move(out));
  if (wrong == named) return list;
  return {"status.control_plane.and_more", {{"list", list}, {"number", std::to_string(wrong - named)}}};
}

}  // namespace

control_plane_status status_of(const control_plane_facts& control_plane_facts) {
  control_plane_status out;
  std::set<std::string, std::less<>> reported;
  if (control_plane_facts.config_map) {
    for (const auto& [node, text] : control_plane_facts.config_map->data) {
      const auto row = pods::read_row(text);
      const bool known = std::ranges::find(states, std::string_view(row.is),
                                           [](state state) { return pods::to_string(state); }) != states.end();
      if (!known || !control_plane_facts.nodes.contains(node)) continue;
      reported.emplace(node);
      if (control_plane_facts.wanted || row.is != pods::to_string(state::disabled))
        out.rows.push_back(row_of(std::string(node), row));
    }
  }
  if (control_plane_facts.wanted) {
    for (const auto& node : control_plane_facts.control_plane_nodes) {
      if (!reported.contains(node)) out.rows.push_back(silent(node));
    }
  }
  std::ranges::sort(out.rows, {}, &scheduler_row::name);
  if (!control_plane_facts.wanted && out.rows.empty()) return out;

  const auto good = static_cast<std::size_t>(std::ranges::count_if(out.rows, &scheduler_row::good));
  const auto all = out.rows.size();
  controller::condition is;
  is.type = reconcilers::scheduler_ready;
  is.generation = control_plane_facts.generation;
  is.status = control_plane_facts.wanted && good == all && all > 0 ? "True" : "False";
  auto asking = text::counted_phrase(all, "status.control_plane.asking");
  asking.arguments.push_back({"good", std::to_string(good)});
  is.message = text::joined_by_semicolons({std::move(asking), troubles(out.rows)});
  if (!control_plane_facts.wanted)
    is.reason = "SwitchingOff";
  else if (is.status == "True")
    is.reason = "StaticPod";
  else
    is.reason = all == 0 ? std::string(no_agent) : std::ranges::min_element(out.rows, {}, rank)->reason;
  if (all == 0) is.message = {"status.control_plane.none"};
  out.state = std::move(is);
  return out;
}

control_plane_metric::control_plane_metric(controller::registry& registry)
    : nodes_(
          registry.gauges("quartermaster_static_pod_masters",
                          "Control-plane nodes by how their kube-scheduler's configuration stands (spec.scheduler.mode "
                          "StaticPod).",
                          {"state"})) {}

void control_plane_metric::set(const control_plane_status& control_plane_status) {
  const auto count = [&](std::string_view state) {
    return static_cast<double>(std::ranges::count(control_plane_status.rows, state, &scheduler_row::reason));
  };
  for (const auto state : states) nodes_.with({pods::to_string(state)}).set(count(pods::to_string(state)));
  nodes_.with({no_agent}).set(count(no_agent));
}

}  // namespace cli
