#include "cli/explain/explain_alert.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/alerts/alerts.hpp"
#include "cli/explain/own_reasons.hpp"
#include "cli/flags/flags.hpp"
#include "cli/output/answer.hpp"
#include "text/list.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

void print_part(const std::string& title, const std::vector<std::string>& lines, std::ostream& out) {
  out << title;
  for (std::size_t i = 0; i < lines.size(); ++i) out << (i == 0 ? " " : "  ") << lines[i] << "\n";
}

std::string unknown_alert(const std::string& name, const bilingual& say) {
  std::vector<std::string_view> names;
  for (const auto& alert : known_alerts()) names.push_back(alert.name);
  const auto near = nearest_alert(name);
  return say.message("explain_alert.unknown", {{"name", text::shown(name)}}) +
         (near.empty() ? "" : say.message("explain_alert.near", {{"name", std::string(near)}})) +
         say.message("explain_alert.known", {{"names", text::joined(names)}}) +
         (own_reasons_in(name).empty() ? "" : say.message("explain_alert.a_reason", {{"name", text::shown(name)}}));
}

constexpr std::string_view alert_example = R"(Examples:
  $ quartermaster explain alert QuartermasterNodeStuck
  $ quartermaster explain alert NodeStuck

Exit codes: 0 explained, 1 there is no such alert, 2 wrong usage. All of them: docs/alerts.md)";

}  // namespace

int run_explain_alert(const explain_alert_options& options, std::ostream& out, std::ostream& err) {
  const bilingual say(options.language);
  const auto* alert = find_alert(options.name);
  if (!alert) return failed(unknown_alert(options.name, say), err);
  const nlohmann::ordered_json data = {{"alert", alert->name},  {"severity", alert->severity}, {"when", alert->delay},
                                       {"means", alert->means}, {"look", alert->look},         {"do", alert->act}};
  if (printed_as_data(data, options.output, out)) return 0;
  if (say.zh) alert = find_alert(alert->name, say.locale());
  out << alert->name << (say.zh ? "：" : ": ") << alert->severity << (say.zh ? "，" : ", ") << alert->delay << "\n";
  print_part(say.message("explain_alert.means"), alert->means, out);
  print_part(say.message("explain_alert.look"), alert->look, out);
  print_part(say.message("explain_alert.do"), alert->act, out);
  return 0;
}

void add_explain_alert(CLI::App& explain, int& rc) {
  auto* verb = add_verb(explain, "alert", "What an alert of the chart means, what to look at, and what to do");
  auto options = std::make_shared<explain_alert_options>();
  add_option(*verb, "name", options->name, "The alert's name, for example QuartermasterNodeStuck")
      ->required()
      ->type_name("ALERT");
  add_answer_options(*verb, options->language, options->output);
  add_unused_namespace(*verb);
  verb->footer(std::string(alert_example));
  verb->callback([options, &rc] { rc = run_explain_alert(*options, std::cout, std::cerr); });
}

}  // namespace cli
