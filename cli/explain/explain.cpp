#include "cli/explain/explain.hpp"

#include <CLI/CLI.hpp>
#include <array>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/output/answer.hpp"
#include "cli/output/table.hpp"
#include "cli/verbs.hpp"
#include "kube/wire.hpp"
#include "reconcilers/cuda/errors.hpp"
#include "reconcilers/cuda/verdict.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

namespace compat = reconcilers::compat;
namespace crl = reconcilers::crl;
using compat::outcome, compat::verdict;
using crl::language;
using json = nlohmann::ordered_json;

constexpr std::size_t longest_log = 1u << 20;
constexpr std::array languages{language::en, language::zh};

language language_of(const std::string& name) { return name == "zh" ? language::zh : language::en; }
std::string_view code_of(language in) { return in == language::zh ? "zh" : "en"; }

/// {"en": of(en), "zh": of(zh)}
template <class Text>
json both(Text of) {
  json out;
  for (const auto in : languages) out[code_of(in)] = of(in);
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

void print_steps(std::string_view title, std::string_view steps, std::ostream& to) {
  to << title << "\n";
  for (const auto& one : lines(steps)) to << "  - " << one << "\n";
}

void print(const compat::known_error& of, language in, std::ostream& to) {
  const bool zh = in == language::zh;
  const auto& say = of.in(in);
  to << say.title << "\n" << say.symptom << "\n";
  print_steps(zh ? "检查：" : "Check:", say.check, to);
  print_steps(zh ? "处理：" : "Cure:", say.cure, to);
  to << (zh ? "来源：" : "Source: ") << of.source << "\n";
}

json as_json(const compat::known_error& of) {
  json out = {{"id", of.id}, {"name", of.name}, {"code", of.code}, {"source", of.source}};
  out["title"] = both([&](language in) { return of.in(in).title; });
  out["symptom"] = both([&](language in) { return of.in(in).symptom; });
  out["check"] = both([&](language in) { return lines(of.in(in).check); });
  out["cure"] = both([&](language in) { return lines(of.in(in).cure); });
  return out;
}

std::string what_is_known() {
  std::string out;
  for (const auto& one : compat::known_errors()) {
    out += out.empty() ? "" : ", ";
    out += one.id;
    if (one.code != 0) out += " (" + std::to_string(one.code) + ")";
  }
  return out;
}

// ---- compat

/// How the card is asked for, and what that gives.
struct answer {
  std::string_view use;  ///< "whole-card", "share"
  verdict is;
};

bool runs(const verdict& of) { return of.is == outcome::works || of.is == outcome::minor_version; }

std::string_view words_of(std::string_view use, language in) {
  if (in == language::en) return use == "share" ? "a share of a card" : "whole cards";
  return use == "share" ? "共享卡" : "整卡";
}

std::string wrong_version(std::string_view flag, const std::string& value, std::string_view example) {
  return std::string(flag) + " is \"" + crl::shown(value) + "\"; allowed is a version, for example " +
         std::string(example);
}

/// What is asked for is no version: one line. Empty: all is.
std::string wrong_usage(const explain_compat_options& options) {
  if (!compat::parse_version(options.cuda)) return wrong_version("--cuda", options.cuda, "12.4");
  if (!options.driver.empty() && !compat::parse_driver(options.driver))
    return wrong_version("--driver", options.driver, "550.54.14");
  if (!options.capability.empty() && !compat::parse_version(options.capability))
    return wrong_version("--compute-capability", options.capability, "8.0");
  if (options.node.empty() && options.driver.empty() && (!options.capability.empty() || !options.card.empty()))
    return "--compute-capability and --card go with --driver";
  return {};
}

struct subject {
  std::string name;  ///< of the node; empty: only a driver was given
  compat::node_facts facts;
};

subject subject_of(const explain_compat_options& options, const std::optional<kube::node>& of) {
  subject out;
  if (of) {
    out = {of->key.name, compat::facts_of(*of)};
  } else {
    out.facts.driver = compat::parse_driver(options.driver);
    out.facts.cuda = out.facts.driver ? compat::cuda_of(*out.facts.driver) : std::nullopt;
    out.facts.capability = compat::parse_version(options.capability);
    out.facts.product = options.card;
    out.facts.card = compat::class_of(options.card);
  }
  if (!options.mode.empty()) out.facts.mode = options.mode;
  return out;
}

std::vector<answer> answers_for(const compat::version& runtime, const subject& about) {
  const auto on = compat::machine_of(about.facts);
  std::vector<answer> out;
  if (const auto* shim = compat::shim_of(about.facts.mode))
    out.push_back({"share", compat::judge_shared(runtime, on, *shim)});
  out.push_back({"whole-card", compat::judge(runtime, on)});
  return out;
}

void print(const compat::version& runtime, const subject& about, const std::vector<answer>& all, language in,
           std::ostream& to) {
  const bool zh = in == language::zh;
  to << (zh ? "" : "Image of ") << "CUDA " << to_string(runtime) << (zh ? " 的镜像" : "");
  if (!about.name.empty()) to << (zh ? "，节点 " : " on node ") << about.name;
  to << (zh ? "：" : ": ") << compat::describe(about.facts, in) << "\n";
  for (const auto& one : all) {
    if (all.size() > 1) to << words_of(one.use, in) << (zh ? "：" : ": ");
    to << compat::title_of(one.is.is, in) << "\n  " << compat::text_of(one.is, in) << "\n";
    if (const auto source = compat::source_of(one.is); !source.empty())
      to << (zh ? "  来源：" : "  Source: ") << source << "\n";
  }
}

json as_json(const answer& of) {
  return {{"use", of.use},
          {"verdict", to_string(of.is.is)},
          {"runs", runs(of.is)},
          {"rule", compat::name_of(of.is.why)},
          {"text", both([&](language in) { return compat::text_of(of.is, in); })},
          {"source", compat::source_of(of.is)}};
}

json as_json(const compat::version& runtime, const subject& about, const std::vector<answer>& all) {
  const auto text = [](const auto& of) { return of ? json(to_string(*of)) : json(); };
  const auto& facts = about.facts;
  json out = {{"cuda", to_string(runtime)}, {"node", about.name.empty() ? json() : json(about.name)}};
  out["driver"] = text(facts.driver);
  out["driverCuda"] = text(facts.cuda);
  out["computeCapability"] = text(facts.capability);
  out["product"] = facts.product;
  out["mode"] = facts.mode;
  out["verdicts"] = json::array();
  for (const auto& one : all) out["verdicts"].push_back(as_json(one));
  return out;
}

// ---- compat without a node or a driver: what a driver must be

struct need {
  outcome is;
  std::string from;  ///< driver; empty: any older one
  std::string_view source;
};

std::vector<need> needs_of(const compat::version& runtime) {
  std::vector<need> out;
  if (const auto driver = compat::driver_for(runtime))
    out.push_back({outcome::works, to_string(*driver), compat::sources::release_notes});
  if (const auto* family = compat::family_of(runtime.major))
    out.push_back({outcome::minor_version, to_string(family->floor), compat::sources::minor_version});
  out.push_back({outcome::forward_package, {}, compat::sources::forward});
  return out;
}

void print_needs(const compat::version& runtime, language in, std::ostream& to) {
  const bool zh = in == language::zh;
  table rows(zh ? std::vector<std::string>{"结论", "驱动不低于", "来源"}
                : std::vector<std::string>{"VERDICT", "DRIVER FROM", "SOURCE"});
  for (const auto& one : needs_of(runtime))
    rows.add({std::string(compat::title_of(one.is, in)), one.from, std::string(one.source)});
  to << (zh ? "Linux 上 CUDA " : "CUDA ") << to_string(runtime) << (zh ? " 对驱动的要求：\n" : " on Linux:\n");
  rows.print(to);
}

json json_of_needs(const compat::version& runtime) {
  json out = {{"cuda", to_string(runtime)}, {"needs", json::array()}};
  for (const auto& one : needs_of(runtime))
    out["needs"].push_back({{"verdict", to_string(one.is)},
                            {"driverFrom", one.from.empty() ? json() : json(one.from)},
                            {"source", one.source}});
  return out;
}

constexpr std::string_view error_example = R"(Examples:
  $ quartermaster explain error 999
  $ quartermaster explain error UNSUPPORTED_PTX_VERSION --lang zh
  $ kubectl logs POD | quartermaster explain error -

Exit codes: 0 explained, 1 nothing known in it, 2 wrong usage. All of them: docs/troubleshooting.md)";

constexpr std::string_view compat_example = R"(Examples:
  $ quartermaster explain compat --cuda 12.4 --node gpu-1
  $ quartermaster explain compat --cuda 12.4 --driver 535.54.03 --card A100
  $ quartermaster explain compat --cuda 12.4        # what a driver must be

Exit codes: 0 works (also by minor version compatibility), 1 the node cannot be read, 2 wrong usage,
3 does not work, needs a package, or nothing is known. In vgpu mode the first verdict counts, of a share of a card.)";

}  // namespace

int run_explain_error(const explain_error_options& options, std::istream& in, std::ostream& out, std::ostream& err) {
  std::string text;
  if (options.words == std::vector<std::string>{"-"}) {
    text.resize(longest_log + 1);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (text.size() > longest_log) {
      err << "quartermaster: standard input has more than 1 MiB; give the last lines: tail -n 1000\n";
      return 2;
    }
  } else {
    for (const auto& one : options.words) text += (text.empty() ? "" : " ") + one;
  }
  const auto found = compat::errors_in(text);
  auto all = json::array();
  for (const auto* one : found) all.push_back(as_json(*one));
  if (!printed_as_data(all, options.output, out)) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (i > 0) out << "\n";
      print(*found[i], language_of(options.language), out);
    }
  }
  if (!found.empty()) return 0;
  err << "quartermaster: no error known in \"" << crl::shown(text) << "\"; known are " << what_is_known() << "\n";
  return 1;
}

int explain_compat(const explain_compat_options& options, const std::optional<kube::node>& of, std::ostream& out,
                   std::ostream& err) {
  if (const auto wrong = wrong_usage(options); !wrong.empty()) {
    err << "quartermaster: " << wrong << "\n";
    return 2;
  }
  const auto runtime = *compat::parse_version(options.cuda);
  const auto in = language_of(options.language);
  if (!of && options.driver.empty()) {
    if (!printed_as_data(json_of_needs(runtime), options.output, out)) print_needs(runtime, in, out);
    return 0;
  }
  const auto about = subject_of(options, of);
  const auto all = answers_for(runtime, about);
  if (!printed_as_data(as_json(runtime, about, all), options.output, out)) print(runtime, about, all, in, out);
  return runs(all.front().is) ? 0 : 3;
}

kube::task<kube::node> read_node(kube::transport& over, std::string name) {
  const auto operation = "get nodes " + name;
  auto answer = co_await send_patiently(
      over, operation, kube::get_request(kube::resources::nodes, {{}, name}, kube::encoding::protobuf));
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  const auto inside = kube::wire::unwrap(answer->body);
  if (!inside) co_return std::unexpected(inside.error());
  co_return kube::node::decode(inside->raw);
}

int run_explain_compat(const explain_compat_options& options, std::ostream& out, std::ostream& err) {
  std::optional<kube::node> node;
  if (!options.node.empty() && wrong_usage(options).empty()) {
    const auto fetch = [](kube::transport& over, std::string name,
                          std::optional<kube::node>& into) -> kube::task<void> {
      auto found = co_await read_node(over, std::move(name));
      if (!found) co_return std::unexpected(std::move(found.error()));
      into = std::move(*found);
      co_return kube::result<void>();
    };
    const auto asked =
        ask_cluster(options.cluster, [&](kube::transport& over) { return fetch(over, options.node, node); });
    if (!asked) {
      err << "quartermaster: " << asked.error().what << "\n";
      return 1;
    }
  }
  return explain_compat(options, node, out, err);
}

void add_explain(CLI::App& app, int& rc) {
  auto* verb =
      app.add_subcommand("explain", "Say why a pod waits, what an error means, or whether an image runs on a node");
  verb->require_subcommand(1);

  auto* error = verb->add_subcommand("error", "What an error of a program on an accelerator means, and what to do");
  auto about = std::make_shared<explain_error_options>();
  error->add_option("text", about->words, "A code, a name or lines of a log; - reads them from standard input")
      ->required();
  add_answer_options(*error, about->language, about->output);
  add_unused_namespace(*error);
  error->footer(std::string(error_example));
  error->callback([about, &rc] { rc = run_explain_error(*about, std::cin, std::cout, std::cerr); });

  add_explain_pod(*verb, rc);
  auto* compat_verb = verb->add_subcommand("compat", "Does an image of a CUDA version run there, and by which rule");
  auto asked = std::make_shared<explain_compat_options>();
  compat_verb->add_option("--cuda", asked->cuda, "CUDA version the image was built with, for example 12.4")->required();
  auto* node = compat_verb->add_option("--node", asked->node, "A node of the cluster; its labels are read");
  for (auto* other :
       {compat_verb->add_option("--driver", asked->driver, "Version of the NVIDIA driver, for example 550.54.14"),
        compat_verb->add_option("--compute-capability", asked->capability, "Of the card, for example 8.0"),
        compat_verb->add_option("--card", asked->card, "Name of the card, for example A100")})
    other->excludes(node);
  compat_verb->add_option("--mode", asked->mode, "Mode of the node: pgpu, vgpu or mps; without it the node's own")
      ->check(CLI::IsMember({"pgpu", "vgpu", "mps"}));
  add_answer_options(*compat_verb, asked->language, asked->output);
  add_unused_namespace(*compat_verb);
  add_cluster_options(*compat_verb, asked->cluster);
  compat_verb->footer(std::string(compat_example));
  compat_verb->callback([asked, &rc] { rc = run_explain_compat(*asked, std::cout, std::cerr); });
}

}  // namespace cli
