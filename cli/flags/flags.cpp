#include "cli/flags/flags.hpp"

#include <CLI/CLI.hpp>

#include "cli/flags/usage.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

std::string node_name(const std::string& text) {
  for (const std::string_view kind : {"node/", "nodes/", "no/"})
    if (text.starts_with(kind)) return text.substr(kind.size());
  return text;
}

}  // namespace

CLI::App* add_verb(CLI::App& parent, std::string name, std::string description) {
  return parent.add_subcommand(std::move(name), std::move(description));
}

CLI::Option* add_option(CLI::App& verb, std::string names, std::string& value, std::string help) {
  return verb.add_option(std::move(names), value, std::move(help));
}
CLI::Option* add_option(CLI::App& verb, std::string names, std::vector<std::string>& values, std::string help) {
  return verb.add_option(std::move(names), values, std::move(help));
}
CLI::Option* add_option(CLI::App& verb, std::string names, int& value, std::string help) {
  return verb.add_option(std::move(names), value, std::move(help));
}
CLI::Option* add_option(CLI::App& verb, std::string names, std::optional<int>& value, std::string help) {
  return verb.add_option(std::move(names), value, std::move(help));
}
CLI::Option* add_option(CLI::App& verb, std::string names, std::size_t& value, std::string help) {
  return verb.add_option(std::move(names), value, std::move(help));
}
CLI::Option* add_flag(CLI::App& verb, std::string names, bool& value, std::string help) {
  const auto check = [](const std::string& text) {
    return text == "true" || text == "false" ? std::string() : refusal("usage.not_a_switch", text::shown(text));
  };
  return verb.add_flag(std::move(names), value, std::move(help))->check(CLI::Validator(check, ""));
}

CLI::Option* add_node(CLI::App& verb, std::string& value, std::string help, std::string names) {
  return add_option(verb, std::move(names), value, std::move(help))->transform(node_name)->check(not_empty());
}
CLI::Option* add_nodes(CLI::App& verb, std::vector<std::string>& values, std::string help) {
  return add_option(verb, "node", values, std::move(help))->transform(node_name)->check(not_empty());
}
CLI::Option* add_operator_namespace(CLI::App& verb, std::string& value) {
  return add_option(verb, "--operator-namespace", value,
                    "The operator's; without it the one with the lease quartermaster");
}

CLI::Option* add_metrics_authentication(CLI::App& verb, bool& value) {
  return add_flag(verb, "--metrics-authentication", value,
                  "Serve the port of /metrics by TLS, and /metrics only to accounts with the right to get it "
                  "(ClusterRole quartermaster-metrics of the chart)");
}

CLI::Validator not_empty() {
  return {[](const std::string& text) { return text.empty() ? refusal("usage.empty") : std::string(); }, ""};
}
CLI::Validator choice(std::vector<std::string> words) { return CLI::IsMember(std::move(words)); }

CLI::Validator whole_number(int least, int most) {
  const CLI::Validator range = CLI::Range(least, most);
  const auto check = [range](std::string& text) {
    const bool is_number = !text.empty() && text.front() >= '0' && text.front() <= '9';
    const bool is_decimal = text.find_first_not_of("0123456789") == std::string::npos;
    if (is_number && (!is_decimal || (text.size() > 1 && text.front() == '0')))
      return refusal("usage.not_decimal", text);
    return range(text);
  };
  return {check, range.get_description()};
}

CLI::Validator absolute_path() {
  return {[](const std::string& text) {
            return text.starts_with('/') ? std::string() : refusal("usage.not_absolute", text::shown(text));
          },
          ""};
}

CLI::Validator socket_path(std::size_t longest) {
  return {[longest](const std::string& text) {
            return text.size() <= longest ? std::string()
                                          : refusal("usage.too_long_for_socket", std::to_string(longest));
          },
          ""};
}

CLI::Option* add_refusal_language(CLI::App& verb, std::string& language) {
  return add_option(verb, "--lang", language, "en or zh: of a refusal")->check(choice({"en", "zh"}));
}

CLI::Validator namespace_name() {
  const auto check = [](const std::string& text) {
    const bool is_name = text::is_dns_subdomain(text, 63) && !text.contains('.');
    return is_name ? std::string() : refusal("usage.not_a_namespace", text::shown(text));
  };
  return {check, ""};
}

CLI::Option* add_namespace_option(CLI::App& verb, std::string& value, std::string help) {
  const auto refuse = [] { throw CLI::ValidationError("-A", refusal("usage.one_namespace")); };
  verb.add_flag_callback("-A,--all-namespaces", refuse)->group("");  // a habit of kubectl; not in the help
  return add_namespace_filter(verb, value, std::move(help));
}

CLI::Option* add_namespace_filter(CLI::App& verb, std::string& value, std::string help) {
  return add_option(verb, "-n,--namespace", value, std::move(help))->check(namespace_name());
}

}  // namespace cli
