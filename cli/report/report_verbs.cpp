// Flags of report chargeback, right-size and capacity, and what each reads.

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "cli/chargeback/chargeback.hpp"
#include "cli/cluster/prometheus.hpp"
#include "cli/cluster/refusal.hpp"
#include "cli/cluster/usage.hpp"
#include "cli/console/history.hpp"
#include "cli/flags/flags.hpp"
#include "cli/flags/usage.hpp"
#include "cli/output/answer.hpp"
#include "cli/report/capacity_report.hpp"
#include "cli/report/right_size.hpp"
#include "cli/verbs.hpp"
#include "cli/views/view_reply.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

constexpr std::string_view chargeback_example = R"(Example:
  $ quartermaster report chargeback --month 2026-11
  NAMESPACE  MODEL     MODE  ORGANIZATION  PRIORITY  CARD-HOURS  MEMORY-GIB-HOURS  COST
  team-a     Tesla-T4  vgpu  research      0         12.50       187.50            31.25 EUR
  Sum: 31.25 EUR

  MODEL     CAPACITY  PARTS  IDLE    UNHEALTHY  UNATTRIBUTED  BEYOND
  Tesla-T4  720.00    12.50  707.50  0.00       0.00          0.00
  PARTS: what rows hold. UNATTRIBUTED: no one looked then. BEYOND: given out beyond a card.
  It adds up. Counted through 2026-11-16T00:00:00Z.

CARD-HOURS are of the cores: 100 cores are a card. COST is the price of a card-hour (spec.chargeback.prices of the
AcceleratorPolicy) times the larger of the part of the cores and the part of the memory; -o wide has those hours as
PAID-HOURS. Each row is rounded half up to two decimals, and the sum is that of the rounded rows. The second table has
hours of whole cards of the cluster: PARTS, IDLE, UNHEALTHY and UNATTRIBUTED are as much as CAPACITY and BEYOND.
-o json has exact seconds and costs with six decimals; -o csv has one line a row.
Exit codes: 0 done, 1 the cluster cannot be read or counted nothing in that month, 2 wrong usage, 3 it does not add up.)";

constexpr std::string_view right_size_example = R"(Example:
  $ quartermaster report right-size --prometheus-url https://prometheus.example:9090
  NAMESPACE  POD    CONTAINER  MODEL     GIVEN-MIB  PEAK-MIB  USED%  ADVISED-MIB
  team-a     infer  main       Tesla-T4  15360      1500      9%     2048

Containers that used less than 30 % of their card memory over the last day, by the series of the alert
QuartermasterShareMemoryUnused. ADVISED-MIB is the peak and a quarter of it, in whole units of 256 MiB.
Exit codes: 0 done, 1 Prometheus does not answer or has no such series, 2 wrong usage.)";

constexpr std::string_view capacity_example = R"(Example:
  $ quartermaster report capacity --prometheus-url https://prometheus.example:9090
  MODEL  MODE  CARDS  USABLE  FREE  SICK  CORDONED  CORES   MEMORY-MIB  STRANDED-CORES  STRANDED-MIB  DAYS-UNTIL-FULL
  T4     vgpu  4      4       3     0     0         80/400  8192/61440  20              0             12.5

The numbers of the console's capacity view. Usable cards are healthy and not cordoned. Free ones of them hold no pod,
and a new pod gets them right now: their node is ready and in no change of mode. Sick cards of more nodes than
spec.health.maxWithdrawn allows are usable, too: pods still get them. Stranded is what is left on cards that no new
share fits on, because their cores, memory or number of shares has run out. Days until full follow from the last 7 days
in Prometheus.
Exit codes: 0 done, 1 the cluster or Prometheus cannot be read, 2 wrong usage.)";

struct report_options {
  listing_style style;
  std::string month, snapshot;
  namespace_scope scope;
  cluster_options cluster;
  prometheus_options prometheus;
};

std::int64_t seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

struct usage_found {
  std::vector<api::accelerator_usage> objects;
  reconcilers::chargeback_spec spec;
};

kube::task<void> fetch(kube::transport& transport, std::string month, usage_found& found) {
  auto objects = co_await read_usage(transport, std::move(month));
  if (!objects) co_return std::unexpected(std::move(objects.error()));
  found.objects = std::move(*objects);
  const std::function<void(reconcilers::accelerator_policy)> keep = [&](const reconcilers::accelerator_policy& policy) {
    if (policy.key.name == api::names::policy) found.spec = policy.chargeback;
  };
  co_return co_await list_each<reconcilers::accelerator_policy>(transport, kube::list_options(), keep);
}

int run_chargeback(const report_options& options, std::ostream& out, std::ostream& err) {
  const auto month = options.month.empty() ? api::month_of(seconds_now()) : options.month;
  usage_found found;
  const auto read =
      ask_cluster(options.cluster, [&](kube::transport& transport) { return fetch(transport, month, found); });
  const auto locale = bilingual(options.style.language).locale();
  if (!read && read.error().code == kube::errc::not_found) return failed({"transport.no_usage"}, locale, err);
  if (!read) {
    auto refused = phrase_of(read.error());
    if (const auto code =
            namespace_answer(options.cluster, options.scope, {{}, "bills", month}, options.style, refused, out, err))
      return *code;
    return failed(refused, locale, err);
  }
  const auto report = chargeback_of(month, found.objects, found.spec, options.scope.ns);
  if (!report) return failed({"report.nothing_counted", {{"month", month}}}, locale, err);
  print(*report, filtered_by(options.style, {namespace_filter(options.scope.ns)}), out);
  if (report->discrepancy.empty()) return 0;
  return failed({"report.discrepancy_of_month", {{"month", month}, {"text", report->discrepancy}}}, locale, err, 3);
}

/// Null where `err` has said why.
std::optional<std::string> asked(const report_options& options, const std::string& query, std::ostream& err) {
  auto body = answer_of(options.prometheus, instant_target(query));
  if (body) return std::move(*body);
  failed(phrase_of(body.error()), bilingual(options.style.language).locale(), err);
  return std::nullopt;
}

int run_right_size(const report_options& options, std::ostream& out, std::ostream& err) {
  const auto locale = bilingual(options.style.language).locale();
  if (options.prometheus.url.empty()) return failed({"report.prometheus_missing"}, locale, err, 2);
  if (const auto problem = problem_of(options.prometheus); !problem.empty())
    return failed(problem, bilingual(options.style.language).locale(), err, 2);
  const auto unused = asked(options, unused_query(), err);
  if (!unused) return 1;
  const auto sizes = asked(options, given_query(), err);
  if (!sizes) return 1;
  const auto rows = right_sizes(*unused, *sizes, options.scope.ns);
  if (!rows)
    return failed({"report.prometheus", {{"url", options.prometheus.url}, {"problem", rows.error()}}}, locale, err);
  if (rows->empty()) {
    const auto measured = asked(options, measured_query(), err);
    if (!measured) return 1;
    const auto answer = answer_in(*measured);
    const auto* series = series_in(answer);
    if (!series || series->empty()) return failed({"report.no_series", {{"url", options.prometheus.url}}}, locale, err);
  }
  print(*rows, filtered_by(options.style, {namespace_filter(options.scope.ns)}), out);
  return 0;
}

int run_capacity(const report_options& options, std::ostream& out, std::ostream& err) {
  if (const auto problem = problem_of(options.prometheus); !problem.empty())
    return failed(problem, bilingual(options.style.language).locale(), err, 2);
  picture all;
  const auto read = gather(options.cluster, options.snapshot, all);
  const auto locale = bilingual(options.style.language).locale();
  if (!read) return failed(read.error(), locale, err);
  console::trends trends;
  text::phrase reason{"report.capacity.no_prometheus"};
  if (!options.prometheus.url.empty()) {
    const auto body = answer_of(options.prometheus, console::trend_target(seconds_now()));
    if (!body) return failed(phrase_of(body.error()), locale, err);
    if (const auto answer = answer_in(*body); !series_in(answer))
      return failed(
          {"report.prometheus", {{"url", options.prometheus.url}, {"problem", text::phrase{"report.unreadable"}}}},
          locale, err);
    trends = console::trends_in(*body);
    reason = trends.empty() ? text::phrase{"report.capacity.no_shares"} : text::phrase();
  }
  const auto view = console::capacity_view(all, {}, trends, reason);
  print_capacity(view, reason, options.style, out);
  return 0;
}

CLI::App* add(CLI::App& report, const char* name, const char* description, std::string_view example,
              const std::function<void(CLI::App&)>& add_options) {
  auto* verb = add_verb(report, name, description);
  add_options(*verb);
  verb->footer(std::string(example));
  return verb;
}

std::string problem_of_month(const std::string& text) {
  return api::bounds_of(text) ? "" : refusal("usage.no_month", text);
}

}  // namespace

void add_report(CLI::App& app, int& rc) {
  auto* report = add_verb(app, "report", "Report what cards cost, what is too large, and what is left");
  report->require_subcommand(1);

  const auto bill = std::make_shared<report_options>();
  auto* chargeback = add(*report, "chargeback", "Who held how much of which card in a month, and what it costs",
                         chargeback_example, [&](CLI::App& verb) {
                           add_listing_options(verb, bill->style, chargeback_headers(), object_names::none, {"csv"});
                         });
  add_option(*chargeback, "--month", bill->month, "Month of UTC; without it the current one")
      ->check(CLI::Validator(problem_of_month, ""))
      ->type_name("YYYY-MM");
  add_namespace_scope(*chargeback, bill->scope,
                      "Only rows of this namespace, without the table of the cluster; without it all that you may see");
  add_cluster_options(*chargeback, bill->cluster);
  chargeback->callback([bill, &rc] { rc = run_chargeback(*bill, std::cout, std::cerr); });

  const auto left = std::make_shared<report_options>();
  auto* capacity =
      add(*report, "capacity", "What cards of each model can still take, and for how many days", capacity_example,
          [&](CLI::App& verb) { add_listing_options(verb, left->style, capacity_headers(), object_names::none); });
  add_unused_namespace(*capacity);
  add_option(*capacity, "--snapshot", left->snapshot, "Instead of a cluster: a file of quartermaster inspect --save")
      ->type_name("FILE");
  add_prometheus_options(*capacity, left->prometheus, "Where days until full come from; without it there are none");
  add_cluster_options(*capacity, left->cluster);
  capacity->callback([left, &rc] { rc = run_capacity(*left, std::cout, std::cerr); });

  const auto sizes = std::make_shared<report_options>();
  auto* right_size =
      add(*report, "right-size", "Containers that use little of their card memory, and what would do",
          right_size_example, [&](CLI::App& verb) { add_listing_options(verb, sizes->style, right_size_headers()); });
  add_namespace_scope(*right_size, sizes->scope, "Only containers of this namespace; without it all");
  add_prometheus_options(*right_size, sizes->prometheus, "The Prometheus that scrapes the agents; required");
  right_size->callback([sizes, &rc] { rc = run_right_size(*sizes, std::cout, std::cerr); });
}

}  // namespace cli
