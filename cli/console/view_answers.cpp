#include "cli/console/view_answers.hpp"

#include <sstream>

#include "cli/chargeback/chargeback.hpp"
#include "cli/cluster/usage.hpp"
#include "cli/console/holdings.hpp"
#include "cli/explain/explain_pod.hpp"
#include "cli/inspect/inspect.hpp"
#include "cli/inspect/inspect_fleet.hpp"
#include "cli/output/answer.hpp"
#include "kube/projections/from_json.hpp"
#include "kube/request.hpp"

namespace cli::console {
namespace {

look_options look_of(const listing_style& style) {
  look_options out;
  static_cast<listing_style&>(out) = style;
  return out;
}

}  // namespace

view_answer nodes_answer(const picture& picture, const listing_style& style, const std::vector<std::string>& only) {
  auto rows = node_rows(fleet(picture), only, node_selector(style));
  for (auto& row : rows) {
    row.message = {};
    row.waits_for.clear();
    row.fix.reset();
  }
  std::ostringstream out;
  auto look = look_of(style);
  look.only = only;
  print(rows, look, out);
  return {out.str(), {}, 0};
}

view_answer pods_answer(const picture& picture, const std::string& ns, const listing_style& style,
                        const std::vector<std::string>& only) {
  std::ostringstream out;
  auto look = look_of(style);
  look.pods = only;
  look.scope.ns = ns;
  print(pod_rows(fleet(picture, {}, ns), ns, only), look, out);
  return {out.str(), {}, 0};
}

view_answer holdings_answer(const picture& picture, const std::string& ns, const listing_style& style,
                            const std::string& name) {
  std::ostringstream out;
  top_pods(picture, ns, style, out, name);
  return {out.str(), {}, 0};
}

kube::task<view_answer> explanation_answer(kube::transport& transport, const picture& picture, kube::object_key pod,
                                           listing_style style) {
  const auto answer =
      co_await send_patiently(transport, "get pod " + pod.to_string(), kube::get_request(kube::pod::of(), pod));
  std::optional<kube::described_pod> whole;
  if (answer) {
    if (auto read = kube::from_json<kube::described_pod>(answer->body)) whole = std::move(*read);
  } else if (answer.error().code != kube::errc::not_found) {
    co_return std::unexpected(answer.error());
  }
  std::ostringstream out, note;
  const int code = explain_pod(picture, pod, style, out, note, whole, others::unnamed);
  // What is wrong with the limits of gpu-quota-admission may be those of another namespace.
  const bool is_shown = picture.book->trouble().empty();
  co_return view_answer{out.str(), is_shown ? note.str() : std::string(), code};
}

kube::task<view_answer> bill_answer(kube::transport& transport, const picture& picture, std::string ns,
                                    std::string month, listing_style style) {
  const auto objects = co_await read_usage(transport, month);
  if (!objects && objects.error().code != kube::errc::not_found) co_return std::unexpected(objects.error());
  const auto* policy = picture.policies.find(reconcilers::policy_key);
  const auto report = chargeback_of(month, objects ? *objects : std::vector<api::accelerator_usage>(),
                                    policy ? policy->chargeback : reconcilers::chargeback_spec(), ns);
  std::ostringstream out, note;
  const auto locale = bilingual(style.language).locale();
  if (!report) {
    const int code = failed({"report.nothing_counted", {{"month", month}}}, locale, note);
    co_return view_answer{{}, note.str(), code};
  }
  auto own = *report;
  const bool adds_up = own.discrepancy.empty();
  if (!adds_up) own.discrepancy = text::phrase{"report.difference.of_others"};  // the amounts are sums over others
  print(own, style, out);
  if (!adds_up) failed({"report.discrepancy_of_month", {{"month", month}, {"text", own.discrepancy}}}, locale, note);
  co_return view_answer{out.str(), note.str(), adds_up ? 0 : 3};
}

view_answer declarations_answer(const declared_resources& declared, const std::string& ns, const listing_style& style,
                                std::string_view name) {
  inspection found;  // without ConfigMaps that declare nothing, and without an audit of pods
  found.resources = rows_of(registry_of(declared, ns));
  if (!name.empty())
    std::erase_if(found.resources, [&](const resource_row& row) { return row.declaration.config_map.name != name; });
  inspect_options options;
  options.ns = ns;
  options.style = style;
  std::ostringstream out;
  print(found, options, out);
  return {out.str(), {}, 0};
}

view_answer simulation_answer(picture& picture, std::span<const tried_pod> pods, const listing_style& style) {
  struct bookings {
    reconcilers::extender::account& book;
    std::span<const tried_pod> pods;
    ~bookings() {
      for (const auto& tried : pods) book.release(tried.pod.id);
    }
  };
  const bookings given_back{*picture.book, pods};
  namespace_limits limits(bilingual(style.language).locale());
  std::ostringstream out;
  const int code = simulate(picture, limits, pods, style, out);
  return {out.str(), {}, code};
}

}  // namespace cli::console
