#include "cli/explain/explain.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>

#include "api/xid.hpp"
#include "cli/cluster/refusal.hpp"
#include "cli/explain/explain_alert.hpp"
#include "cli/explain/own_reasons.hpp"
#include "cli/flags/flags.hpp"
#include "cli/output/answer.hpp"
#include "cli/output/listing.hpp"
#include "cli/verbs.hpp"
#include "kube/wire.hpp"
#include "reconcilers/cuda/errors.hpp"
#include "reconcilers/cuda/rules.hpp"
#include "reconcilers/cuda/verdict.hpp"
#include "text/list.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace cuda = reconcilers::cuda;
namespace declarations = reconcilers::declarations;
using cuda::outcome, cuda::verdict;
using nlohmann::ordered_json;
using text::language;

constexpr std::size_t block_size = 64 << 10;
constexpr std::size_t longest_shown = 1024;    // of a log in which nothing is known
constexpr std::size_t longest_read = 1 << 20;  // for reasons of our own
constexpr std::array languages{language::en, language::zh};

language language_of(const std::string& name) { return name == "zh" ? language::zh : language::en; }
std::string_view code_of(language locale) { return locale == language::zh ? "zh" : "en"; }

/// {"en": of(en), "zh": of(zh)}
template <class Text>
ordered_json both(Text text) {
  ordered_json out;
  for (const auto language : languages) out[code_of(language)] = text(language);
  return out;
}

std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> out;
  for (;;) {
    const auto end = text.find('\n');
    out.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

// ---- error

void print_steps(std::string_view title, std::string_view steps, std::ostream& out) {
  out << title << "\n";
  for (const auto& line : lines(steps)) out << "  - " << line << "\n";
}

void print(const cuda::error_match& match, language locale, std::ostream& out) {
  const auto& say = match.error->in(locale);
  out << say.title << "\n";
  for (const auto xid : match.xids) out << cuda::text_of_xid(xid, locale) << "\n";
  out << say.symptom << "\n";
  print_steps(text::message("explain_error.check", locale), say.check, out);
  print_steps(text::message("explain_error.cure", locale), say.cure, out);
  out << text::message("explain_error.source", locale, {{"text", std::string(match.error->source)}}) << "\n";
}

ordered_json as_json(const cuda::error_match& match) {
  const auto& known_error = *match.error;
  ordered_json out = {
      {"id", known_error.id}, {"name", known_error.name}, {"code", known_error.code}, {"source", known_error.source}};
  for (const auto xid : match.xids)
    out["xids"].push_back({{"number", xid},
                           {"fault", cuda::fault_of_xid(xid)},
                           {"withdrawn", api::class_of(xid) == api::xid_class::fatal},
                           {"text", both([&](language language) { return cuda::text_of_xid(xid, language); })}});
  out["title"] = both([&](language language) { return known_error.in(language).title; });
  out["symptom"] = both([&](language language) { return known_error.in(language).symptom; });
  out["check"] = both([&](language language) { return lines(known_error.in(language).check); });
  out["cure"] = both([&](language language) { return lines(known_error.in(language).cure); });
  return out;
}

void print(const own_reason& reason, language locale, std::ostream& out) {
  const auto say = words_of(reason, locale);
  const auto print_part = [&](const char* part, const std::string& words) {
    if (!words.empty()) out << text::message(std::string("explain_alert.") + part, locale) << " " << words << "\n";
  };
  out << say.title << "\n";
  print_part("means", say.means);
  print_part("look", say.look);
  print_part("do", say.act);
}

ordered_json as_json(const own_reason& reason) {
  ordered_json out = {{"id", reason.key}, {"name", reason.name}};
  const auto add = [&](const char* name, std::string reason_words::* part) {
    out[name] = both([&](language language) { return words_of(reason, language).*part; });
  };
  add("title", &reason_words::title);
  add("means", &reason_words::means);
  add("look", &reason_words::look);
  add("do", &reason_words::act);
  return out;
}

/// What the text names that no table has: "Xid 171", "12345".
std::vector<std::string> unknown_numbers(const cuda::error_finder& finder) {
  std::vector<std::string> out;
  for (const auto xid : finder.xids())
    if (!api::find_xid(xid)) out.push_back("Xid " + std::to_string(xid));
  out.insert(out.end(), finder.unknown().begin(), finder.unknown().end());
  return out;
}

constexpr std::string_view list_word = "list";

/// The few known names that a person may have meant by this one; of several words none is looked for.
std::vector<std::string> names_near(std::string_view name) {
  constexpr std::size_t most = 3, least_part = 4;
  name = text::trimmed(name);
  if (name.empty() || name.size() > 64 || name.find_first_of(" \t\n") != name.npos) return {};
  auto all = own_names();
  for (const auto& known_error : cuda::known_errors()) all.emplace_back(known_error.id);
  std::vector<std::pair<std::size_t, std::string>> near;
  for (auto& candidate : all) {
    const auto distance = text::distance(name, candidate);
    const bool is_part = name.size() >= least_part && text::lower_case(candidate).contains(text::lower_case(name));
    if (is_part || distance <= std::max<std::size_t>(1, std::max(name.size(), candidate.size()) / 3))
      near.emplace_back(distance, std::move(candidate));
  }
  std::ranges::sort(near);
  std::vector<std::string> out;
  for (auto& [distance, candidate] : near | std::views::take(most)) out.push_back(std::move(candidate));
  return out;
}

/// Every error with its code and title, then the names of what Quartermaster says itself.
int print_known(const explain_error_options& options, std::ostream& out) {
  const auto locale = language_of(options.language);
  auto all = ordered_json::array();
  for (const auto& known_error : cuda::known_errors()) all.push_back(known_error.id);
  for (auto& name : own_names()) all.push_back(std::move(name));
  if (printed_as_data(all, options.output, out)) return 0;
  for (const auto& known_error : cuda::known_errors()) {
    out << known_error.id;
    if (known_error.code != 0) out << " (" << known_error.code << ")";
    out << "  " << known_error.in(locale).title << "\n";
  }
  for (const auto& name : own_names()) out << name << "\n";
  return 0;
}

// ---- compat

/// How the card is asked for, and what that gives.
struct answer {
  std::string_view use;  ///< "whole-card", "share"
  verdict is;
};

bool runs(const verdict& verdict) { return verdict.is == outcome::works || verdict.is == outcome::minor_version; }

std::string_view use_words(std::string_view use, language locale) {
  return text::pattern_of(use == "share" ? "explain_compat.share" : "explain_compat.whole_cards", locale);
}

text::phrase wrong_version(std::string_view flag, const std::string& value, std::string_view example) {
  return {"explain_compat.wrong_version",
          {{"name", std::string(flag)}, {"value", text::shown(value)}, {"example", std::string(example)}}};
}

/// Of two numbers: "70" is how nvcc writes 7.0, and of "8.0.1" or "8" no one knows what is meant.
bool is_capability(const std::string& text) {
  const auto value = cuda::parse_version(text);
  return value && value->major < 20 && std::ranges::count(text, '.') == 1;
}

text::phrase wrong_capability(const std::string& value) {
  return {"explain_compat.wrong_capability", {{"name", "--compute-capability"}, {"value", text::shown(value)}}};
}

/// As images and compilers call versions: "cu121" is CUDA 12.1, "sm_90" and "compute_90" the capability 9.0.
std::string spelled_out(const std::string& value, std::initializer_list<std::string_view> prefixes) {
  const auto name = text::lower_case(value);
  for (const auto prefix : prefixes) {
    if (!name.starts_with(prefix)) continue;
    auto figures = name.substr(prefix.size());
    if (!prefix.starts_with("cu") && (figures.ends_with('a') || figures.ends_with('f'))) figures.pop_back();
    const bool is_number = std::ranges::all_of(figures, [](unsigned char c) { return std::isdigit(c) != 0; });
    if (is_number && figures.size() >= 2) return figures.insert(figures.size() - 1, ".");
  }
  return value;
}
explain_compat_options spelled_out(explain_compat_options options) {
  options.cuda = spelled_out(options.cuda, {"cu"});
  options.capability = spelled_out(options.capability, {"sm_", "sm", "compute_"});
  return options;
}

/// How a version with less than its numbers was read.
std::vector<text::phrase> readings(const explain_compat_options& options) {
  std::vector<text::phrase> out;
  if (!options.cuda.contains('.'))
    out.push_back({"explain_compat.major_version",
                   {{"value", text::shown(options.cuda)}, {"cuda", to_string(*cuda::parse_version(options.cuda))}}});
  if (!options.driver.empty() && !options.driver.contains('.'))
    out.push_back({"explain_compat.branch", {{"value", text::shown(options.driver)}}});
  return out;
}

void print(const std::vector<text::phrase>& notes, language locale, std::ostream& out) {
  for (const auto& note : notes) out << words_of(note, locale) << "\n";
}

ordered_json as_json(const std::vector<text::phrase>& notes) {
  auto out = ordered_json::array();
  for (const auto& note : notes) out.push_back(both([&](language language) { return words_of(note, language); }));
  return out;
}

/// What is asked for is no version: one line. Empty: all is.
text::phrase wrong_usage(const explain_compat_options& options) {
  if (!cuda::parse_version(options.cuda)) return wrong_version("--cuda", options.cuda, "12.4");
  if (!options.driver.empty() && !cuda::parse_driver(options.driver))
    return wrong_version("--driver", options.driver, "550.54.14");
  if (!options.capability.empty() && !is_capability(options.capability)) return wrong_capability(options.capability);
  const auto of_card = cuda::capability_of(options.card);
  if (!options.capability.empty() && of_card && *of_card != *cuda::parse_version(options.capability))
    return {"explain_compat.two_capabilities",
            {{"card", text::shown(options.card)},
             {"capability", to_string(*of_card)},
             {"value", text::shown(options.capability)}}};
  if (options.node.empty() && options.driver.empty() && (!options.capability.empty() || !options.card.empty()))
    return {"explain_compat.with_driver"};
  return {};
}

struct subject {
  std::string name;  ///< of the node; empty: only a driver was given
  cuda::node_facts facts;
};

subject subject_of(const explain_compat_options& options, const std::optional<kube::node>& node) {
  subject out;
  if (node) {
    out = {node->key.name, cuda::facts_of(*node)};
  } else {
    out.facts.driver = cuda::parse_driver(options.driver);
    if (out.facts.driver)
      out.facts.cuda = options.driver.contains('.') ? cuda::cuda_of(*out.facts.driver)
                                                    : cuda::cuda_of_branch(out.facts.driver->major);
    out.facts.capability = cuda::parse_version(options.capability);
    out.facts.product = options.card;
    out.facts.card = cuda::class_of(options.card);
  }
  if (!out.facts.capability) out.facts.capability = cuda::capability_of(out.facts.product);
  if (!options.mode.empty()) out.facts.mode = options.mode;
  return out;
}

std::vector<answer> answers_for(const cuda::version& runtime, const subject& about) {
  const auto machine = cuda::machine_of(about.facts);
  std::vector<answer> out;
  if (const auto* shim = cuda::shim_of(about.facts.mode))
    out.push_back({"share", cuda::doubted(cuda::judge_shared(runtime, machine, *shim))});
  out.push_back({"whole-card", cuda::doubted(cuda::judge(runtime, machine))});
  return out;
}

void print(const cuda::version& runtime, const subject& about, const std::vector<answer>& all,
           const std::vector<text::phrase>& notes, language locale, std::ostream& out) {
  out << text::message(
             about.name.empty() ? "explain_compat.image" : "explain_compat.image_on_node", locale,
             {{"cuda", to_string(runtime)}, {"node", about.name}, {"facts", cuda::describe(about.facts, locale)}})
      << "\n";
  print(notes, locale, out);
  for (const auto& entry : all) {
    const std::string title(cuda::title_of(entry.is.is, locale));
    out << (all.size() > 1 ? text::message("explain_compat.of_use", locale,
                                           {{"use", std::string(use_words(entry.use, locale))}, {"title", title}})
                           : title)
        << "\n  " << cuda::text_of(entry.is, locale) << "\n";
    if (const auto source = cuda::source_of(entry.is); !source.empty())
      out << "  " << text::message("explain_error.source", locale, {{"text", std::string(source)}}) << "\n";
  }
}

ordered_json as_json(const answer& answer) {
  return {{"use", answer.use},
          {"verdict", to_string(answer.is.is)},
          {"runs", runs(answer.is)},
          {"rule", cuda::name_of(answer.is.reason)},
          {"text", both([&](language language) { return cuda::text_of(answer.is, language); })},
          {"source", cuda::source_of(answer.is)}};
}

ordered_json as_json(const cuda::version& runtime, const subject& about, const std::vector<answer>& all,
                     const std::vector<text::phrase>& notes) {
  const auto text = [](const auto& value) { return value ? ordered_json(to_string(*value)) : ordered_json(); };
  const auto& facts = about.facts;
  ordered_json out = {{"cuda", to_string(runtime)},
                      {"node", about.name.empty() ? ordered_json() : ordered_json(about.name)}};
  out["driver"] = text(facts.driver);
  out["driverCuda"] = text(facts.cuda);
  out["computeCapability"] = text(facts.capability);
  out["product"] = facts.product;
  out["mode"] = facts.mode;
  out["verdicts"] = ordered_json::array();
  for (const auto& entry : all) out["verdicts"].push_back(as_json(entry));
  out["notes"] = as_json(notes);
  return out;
}

// ---- compat without a node or a driver: what a driver must be

struct driver_need {
  outcome is;
  std::string driver;  ///< driver; empty: any older one
  std::string_view source;
};

/// A toolkit that is older than the table of drivers: every driver of the table knows it.
bool is_before_table(const cuda::version& runtime) {
  return cuda::is_toolkit(runtime) && runtime < cuda::toolkits().back().cuda;
}

/// Nothing of a toolkit that is not known: no document speaks of it.
std::vector<driver_need> needs_of(const cuda::version& runtime) {
  std::vector<driver_need> out;
  if (is_before_table(runtime))
    return {{outcome::works, to_string(cuda::toolkits().back().driver), cuda::sources::release_notes}};
  if (const auto driver = cuda::driver_for(runtime))
    out.push_back({outcome::works, to_string(*driver), cuda::sources::release_notes});
  if (const auto* family = cuda::family_of(runtime.major))
    out.push_back({outcome::minor_version, to_string(family->floor), cuda::sources::minor_version});
  if (cuda::is_toolkit(runtime)) out.push_back({outcome::forward_package, {}, cuda::sources::forward});
  return out;
}

/// What the rows do not say.
std::vector<text::phrase> notes_on_needs(const cuda::version& runtime, const explain_compat_options& options) {
  auto out = readings(options);
  if (!is_before_table(runtime)) return out;
  const auto& oldest = cuda::toolkits().back();
  out.push_back(
      {"explain_compat.before_table", {{"cuda", to_string(oldest.cuda)}, {"driver", to_string(oldest.driver)}}});
  return out;
}

void print_needs(const cuda::version& runtime, const std::vector<text::phrase>& notes, language locale,
                 std::ostream& out) {
  static const listing<driver_need> needs{
      .name = "needs",
      .columns = {{"verdict", [](const driver_need& entry,
                                 const bilingual& say) { return std::string(cuda::title_of(entry.is, say.locale())); }},
                  {"driver-from", [](const driver_need& entry, const bilingual&) { return entry.driver; }},
                  {"source", [](const driver_need& entry, const bilingual&) { return std::string(entry.source); }}},
      .json = {},
      .object = {}};
  const auto rows = needs_of(runtime);
  if (!rows.empty()) {
    out << text::message("explain_compat.on_linux", locale, {{"cuda", to_string(runtime)}}) << "\n";
    print(needs, rows, listing_style("table", std::string(code_of(locale))), out);
  }
  print(notes, locale, out);
}

ordered_json json_of_needs(const cuda::version& runtime, const std::vector<text::phrase>& notes) {
  ordered_json out = {{"cuda", to_string(runtime)}, {"needs", ordered_json::array()}};
  for (const auto& entry : needs_of(runtime))
    out["needs"].push_back({{"verdict", to_string(entry.is)},
                            {"driverFrom", entry.driver.empty() ? ordered_json() : ordered_json(entry.driver)},
                            {"source", entry.source}});
  out["notes"] = as_json(notes);
  return out;
}

constexpr std::string_view error_example = R"(Examples:
  $ quartermaster explain error 999
  $ quartermaster explain error xid 79
  $ quartermaster explain error UNSUPPORTED_PTX_VERSION --lang zh
  $ quartermaster explain error UntoleratedTaint    # a reason of Quartermaster itself
  $ kubectl logs POD | quartermaster explain error -
  $ quartermaster explain error list                # all that are known

Exit codes: 0 explained, 1 nothing known in it, 2 wrong usage, 3 a number in it is not known.
All of them: docs/troubleshooting.md)";

constexpr std::string_view compat_example = R"(Examples:
  $ quartermaster explain compat --cuda 12.4 --node gpu-1
  $ quartermaster explain compat --cuda 12.4 --driver 535.54.03 --card A100
  $ quartermaster explain compat --cuda 12.4        # what a driver must be

Exit codes: 0 works (also by minor version compatibility), 1 the node cannot be read, 2 wrong usage,
3 does not work, works only with PTX, needs a package, or something is not known: a toolkit, driver or card that is not
in the tables. In vgpu mode the first verdict counts, of a share of a card.)";

}  // namespace

int run_explain_error(const explain_error_options& options, std::istream& input, std::ostream& out, std::ostream& err) {
  if (options.words == std::vector{std::string(list_word)}) return print_known(options, out);
  cuda::error_finder finder;
  std::string text;
  bool is_beyond = false;
  if (options.words == std::vector<std::string>{"-"}) {
    std::string block(block_size, '\0');
    while (input.read(block.data(), static_cast<std::streamsize>(block.size())) || input.gcount() > 0) {
      const auto part = std::string_view(block).substr(0, static_cast<std::size_t>(input.gcount()));
      if (text.size() < longest_read) text += part.substr(0, longest_read - text.size());
      is_beyond = is_beyond || text.size() >= longest_read;
      finder.read(part);
    }
  } else {
    for (const auto& word : options.words) text += (text.empty() ? "" : " ") + word;
    finder.read(text);
  }
  finder.finish();
  const auto found = cuda::matches_of(finder);
  const auto own = own_reasons_in(text);
  if (text.size() > longest_shown) text.resize(longest_shown);
  auto all = ordered_json::array();
  for (const auto& match : found) all.push_back(as_json(match));
  for (const auto& reason : own) all.push_back(as_json(reason));
  if (!printed_as_data(all, options.output, out)) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (i > 0) out << "\n";
      print(found[i], language_of(options.language), out);
    }
    for (bool is_first = found.empty(); const auto& reason : own) {
      if (!std::exchange(is_first, false)) out << "\n";
      print(reason, language_of(options.language), out);
    }
  }
  if (text::trimmed(text).empty() && found.empty())
    return failed({"explain_error.empty"}, language_of(options.language), err);
  if (const auto unknown = unknown_numbers(finder); !found.empty() && !unknown.empty())
    return failed({"explain_error.not_known", {{"list", text::joined(unknown)}}}, language_of(options.language), err,
                  3);
  if (!found.empty() || !own.empty()) return 0;
  if (is_beyond) failed({"explain_error.beyond"}, language_of(options.language), err);
  const auto near = names_near(text);
  return failed(
      {"explain_error.unknown",
       {{"text", text::shown(text)},
        {"near", near.empty() ? text::phrase() : text::phrase{"explain_error.near", {{"list", text::joined(near)}}}},
        {"command", "quartermaster explain error " + std::string(list_word)}}},
      language_of(options.language), err);
}

int explain_compat(const explain_compat_options& input, const std::optional<kube::node>& node, std::ostream& out,
                   std::ostream& err) {
  const auto options = spelled_out(input);
  const auto language = language_of(options.language);
  if (const auto wrong = wrong_usage(options); !wrong.empty()) return failed(wrong, language, err, 2);
  const auto runtime = *cuda::parse_version(options.cuda);
  const bool is_known = cuda::is_toolkit(runtime);
  const text::phrase doubt{"explain_compat.not_known",
                           {{"cuda", to_string(runtime)}, {"newest", to_string(cuda::toolkits().front().cuda)}}};
  if (!node && options.driver.empty()) {
    const auto notes = notes_on_needs(runtime, options);
    if (!printed_as_data(json_of_needs(runtime, notes), options.output, out))
      print_needs(runtime, notes, language, out);
    return is_known ? 0 : failed(doubt, language, err, 3);
  }
  const auto about = subject_of(options, node);
  const auto all = answers_for(runtime, about);
  const auto notes = readings(options);
  if (!printed_as_data(as_json(runtime, about, all, notes), options.output, out))
    print(runtime, about, all, notes, language, out);
  if (!is_known) return failed(doubt, language, err, 3);
  return runs(all.front().is) ? 0 : 3;
}

kube::task<kube::node> read_node(kube::transport& transport, std::string name) {
  const auto operation = "get nodes " + name;
  auto answer = co_await send_patiently(
      transport, operation, kube::get_request(kube::resources::nodes, {{}, name}, kube::encoding::protobuf));
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  const auto inside = kube::wire::unwrap(answer->body);
  if (!inside) co_return std::unexpected(inside.error());
  co_return kube::node::decode(inside->raw);
}

int run_explain_compat(const explain_compat_options& options, std::ostream& out, std::ostream& err) {
  std::optional<kube::node> node;
  if (!options.node.empty() && wrong_usage(spelled_out(options)).empty()) {
    const auto fetch = [](kube::transport& transport, std::string name,
                          std::optional<kube::node>& output) -> kube::task<void> {
      auto found = co_await read_node(transport, std::move(name));
      if (!found) co_return std::unexpected(std::move(found.error()));
      output = std::move(*found);
      co_return kube::result<void>();
    };
    const auto result =
        ask_cluster(options.cluster, [&](kube::transport& transport) { return fetch(transport, options.node, node); });
    if (!result) return failed(phrase_of(result.error()), language_of(options.language), err);
  }
  return explain_compat(options, node, out, err);
}

void add_explain(CLI::App& app, int& rc) {
  auto* verb = add_verb(app, "explain",
                        "Say why a pod waits, what an error or an alert means, or whether an image runs on a node");
  verb->require_subcommand(1);

  auto* error = add_verb(*verb, "error", "What an error of a program on an accelerator means, and what to do");
  auto about = std::make_shared<explain_error_options>();
  add_option(*error, "text", about->words, "A code, an XID, a name or lines of a log; - reads them from standard input")
      ->required();
  add_answer_options(*error, about->language, about->output);
  add_unused_namespace(*error);
  error->footer(std::string(error_example));
  error->callback([about, &rc] { rc = run_explain_error(*about, std::cin, std::cout, std::cerr); });

  add_explain_alert(*verb, rc);
  add_explain_pod(*verb, rc);
  add_explain_node(*verb, rc);
  auto* compat_verb = add_verb(*verb, "compat", "Does an image of a CUDA version run there, and by which rule");
  auto options = std::make_shared<explain_compat_options>();
  add_option(*compat_verb, "--cuda", options->cuda, "CUDA version the image was built with, for example 12.4")
      ->required()
      ->check(not_empty());
  auto* node = add_node(*compat_verb, options->node, "A node of the cluster; its labels are read", "--node");
  for (auto* other :
       {add_option(*compat_verb, "--driver", options->driver, "Version of the NVIDIA driver, for example 550.54.14"),
        add_option(*compat_verb, "--compute-capability", options->capability, "Of the card, for example 8.0"),
        add_option(*compat_verb, "--card", options->card, "Name of the card, for example A100 or \"RTX 4090\"")})
    other->excludes(node)->check(not_empty());
  add_option(*compat_verb, "--mode", options->mode, "Mode of the node: pgpu, vgpu or mps; without it the node's own")
      ->check(choice({"pgpu", "vgpu", "mps"}));
  add_answer_options(*compat_verb, options->language, options->output);
  add_unused_namespace(*compat_verb);
  add_cluster_options(*compat_verb, options->cluster);
  compat_verb->footer(std::string(compat_example));
  compat_verb->callback([options, &rc] { rc = run_explain_compat(*options, std::cout, std::cerr); });
}

}  // namespace cli
