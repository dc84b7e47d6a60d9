// quartermaster man: the man page, written from the tree of verbs and options. It is a hidden verb: ./dev release calls
// it.

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

#include "cli/completion/tree.hpp"
#include "cli/flags/flags.hpp"
#include "cli/flags/usage.hpp"
#include "cli/verbs.hpp"
#include "controller/clock.hpp"
#include "kube/authorities.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

/// The code point at `index`, which then is behind it. Our texts are UTF-8.
char32_t next_code_point(std::string_view text, std::size_t& index) {
  const auto first = static_cast<unsigned char>(text[index++]);
  if (first < 0x80) return first;
  const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  char32_t out = first & (0x3FU >> more);
  for (int i = 0; i < more && index < text.size(); ++i)
    out = out << 6U | (static_cast<unsigned char>(text[index++]) & 0x3FU);
  return out;
}

/// Text as roff takes it literally.
std::string roff(std::string_view text) {
  std::string out;
  for (std::size_t index = 0; index < text.size();) {
    const bool begins_line = index == 0 || text[index - 1] == '\n';
    const auto c = next_code_point(text, index);
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'' || c == '`' || c == '^' || c == '~') {
      out += c == '\'' ? "\\(aq" : c == '`' ? "\\(ga" : c == '^' ? "\\(ha" : "\\(ti";
    } else if (c == '.' && begins_line) {
      out += "\\&.";
    } else if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      std::ostringstream code;
      code << std::hex << std::uppercase << static_cast<unsigned>(c);
      out += "\\[u" + code.str() + "]";
    }
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }

/// Text with line ends of its own, such as examples.
std::string literal(std::string_view text) { return ".PP\n.nf\n" + roff(text) + "\n.fi\n"; }

/// "-o, --output text|wide|json|yaml", the names bold.
std::string heading(const CLI::Option& option) {
  std::string out;
  for (const auto& name : option.get_snames()) out += (out.empty() ? "" : ", ") + bold("-" + name);
  for (const auto& name : option.get_lnames()) out += (out.empty() ? "" : ", ") + bold("--" + name);
  if (out.empty()) return bold(option.get_name(true));
  if (!takes_value(option)) return out;
  std::string values;
  for (const auto& choice : choices_of(option)) values += (values.empty() ? "" : "|") + choice;
  if (values.empty()) {
    const auto type = option.get_type_name();
    values = type.substr(0, type.find(':'));
  }
  return out + " \\fI" + roff(values) + "\\fR";
}

void write_option(const CLI::Option& option, std::ostream& out) {
  auto text = option.get_description();
  if (option.get_required()) text += " (required)";
  if (!option.get_default_str().empty()) text += " (default: " + option.get_default_str() + ")";
  if (!option.get_envname().empty()) text += " (environment: " + option.get_envname() + ")";
  out << ".TP\n" << heading(option) << "\n" << roff(text) << "\n";
}

std::string path_to(const CLI::App& verb) {
  return verb.get_parent() ? path_to(*verb.get_parent()) + " " + verb.get_name() : verb.get_name();
}

/// The verb and those below it, a subsection each. A verb that only has verbs is no command.
void write_commands(CLI::App& verb, const std::string& common_footer, std::ostream& out) {
  const auto below = shown_verbs(verb);
  const auto arguments = arguments_of(verb);
  if (below.empty() || !arguments.empty()) {
    out << ".SS " << roff(path_to(verb));
    for (const auto* argument : arguments) out << " " << roff(argument->get_name(true));
    out << "\n" << roff(verb.get_description()) << ".\n";
    for (const auto* option : arguments) write_option(*option, out);
    for (const auto* option : options_of(verb))
      if (option != verb.get_help_ptr()) write_option(*option, out);
    const auto footer = verb.get_footer();
    if (!footer.empty() && footer != common_footer) out << literal(footer);
  }
  for (auto* next : below) write_commands(*next, common_footer, out);
}

/// The environment variables of all options, each with the option that it stands in for.
void collect_variables(CLI::App& verb, std::map<std::string, std::string>& variables) {
  for (const auto* option : options_of(verb))
    if (!option->get_envname().empty())
      variables.try_emplace(option->get_envname(), path_to(verb) + " " + long_name(*option));
  for (auto* next : shown_verbs(verb)) collect_variables(*next, variables);
}

void write_entry(std::string_view name, std::string_view text, std::ostream& out) {
  out << ".TP\n" << bold(name) << "\n" << roff(text) << "\n";
}

void write_surroundings(CLI::App& app, std::ostream& out) {
  out << ".SH EXIT STATUS\n";
  write_entry("0", "Done.", out);
  write_entry("1", "Failed, with one line on standard error that says why.", out);
  write_entry("2", "Wrong usage.", out);
  write_entry("3", "Found problems; or, where a command answers a question: it does not fit.", out);
  out << ".SH ENVIRONMENT\n";
  write_entry("KUBECONFIG", "Kubeconfig files, with colons between them, where --kubeconfig is not given.", out);
  write_entry("HTTPS_PROXY, NO_PROXY", "The proxy for API servers, and the hosts that need none.", out);
  write_entry("SSL_CERT_FILE", "File of the CAs that are believed where a kubeconfig names none.", out);
  std::map<std::string, std::string> variables;
  collect_variables(app, variables);
  for (const auto& [name, option] : variables) write_entry(name, "Stands in for " + option + ".", out);
  out << ".SH FILES\n";
  write_entry("~/.kube/config", "The kubeconfig, where nothing else names one.", out);
  write_entry("/var/run/secrets/kubernetes.io/serviceaccount", "What a pod uses in place of a kubeconfig.", out);
  std::string bundles;
  for (const auto& file : kube::known_authority_files()) bundles += (bundles.empty() ? "" : ", ") + std::string(file);
  write_entry("The CAs of the machine", "The first of these files that is there: " + bundles + ".", out);
}

std::string a_date(const std::string& text) {
  const auto read = controller::parse_rfc3339_seconds(text + "T00:00:00Z");
  // 2026-02-30 is read as the second of March.
  if (read && controller::rfc3339_seconds(controller::wall_time(std::chrono::seconds(*read))).starts_with(text + "T"))
    return {};
  return refusal("usage.no_date", text::shown(text, 40));
}

void write_manual(CLI::App& app, const std::string& date, std::ostream& out) {
  out << ".\\\" Made by `quartermaster man` from the options of the program.\n"
      << ".TH QUARTERMASTER 1 \"" << date << "\" \"" << roff(version_line()) << "\" \"User Commands\"\n.nh\n.ad l\n"
      << ".SH NAME\nquartermaster \\- accelerators on Kubernetes\n"
      << ".SH SYNOPSIS\n"
      << bold("quartermaster") << " \\fIcommand\\fR [\\fIoptions\\fR]\n.br\n"
      << bold("kubectl quartermaster") << " \\fIcommand\\fR [\\fIoptions\\fR]\n"
      << ".SH DESCRIPTION\n"
      << roff(app.get_description()) << "\n.PP\nEvery command prints its help with " << bold("--help")
      << ".\n.SH COMMANDS\n";
  for (auto* verb : shown_verbs(app)) write_commands(*verb, app.get_footer(), out);
  write_surroundings(app, out);
  out << ".SH SEE ALSO\n" << ".BR kubectl (1)\n";
}

}  // namespace

void add_man(CLI::App& app, int& rc) {
  auto* verb = add_verb(app, "man", "Print the man page")->group("");
  auto date = std::make_shared<std::string>();
  add_option(*verb, "--date", *date, "Of the page, as YYYY-MM-DD")->check(a_date);
  verb->callback([&app, date, &rc] {
    write_manual(app, *date, std::cout);
    rc = 0;
  });
}

}  // namespace cli
