#include "quota/simulate.hpp"

#include "quota/filter.hpp"

namespace quota {

simulation simulate(const ledger& book, std::span<const std::string> nodes, std::span<const asking> pods, policy how) {
  simulation out;
  ledger now{book};
  std::vector<node_view> views;
  const auto look = [&] {
    views.clear();
    for (const std::string& one : nodes) views.push_back(now.view(one).value_or(node_view{}));
  };
  look();
  demand what;
  placement where;
  std::vector<shortfall> fits(nodes.size());
  std::vector<std::uint8_t> scores(nodes.size());
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const asking& pod = pods[i];
    simulated& one = out.pods.emplace_back();
    filter(pod.containers, views, fits, pod.only);
    score(pod.containers, views, how, scores, pod.only);
    for (std::size_t at = 0; at < nodes.size(); ++at)
      if (fits[at].fits() && (!one.node || scores[at] > scores[*one.node])) one.node = at;
    if (!one.node) {
      one.why = explain(pod.containers, views, pod.only);
      one.text = text_of(one.why, views);
      continue;
    }
    const node_view& on = views[*one.node];
    if (read(pod.containers, on.what->serves, what) ||
        !place(what, on, {.how = how, .only = pod.only}, where).fits())  // as filter found
      continue;
    one.held = holding_of(what, where, *on.what);
    // A name no pod has: UIDs are not numbers.
    if (now.assume("simulated/" + std::to_string(i), one.held, INT64_MAX) == booked::done) ++out.fitting;
    look();
  }
  return out;
}

}  // namespace quota
