#include "cli/console/view_api.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "api/accelerator_usage.hpp"
#include "cli/cluster/declared_document.hpp"
#include "cli/explain/simulate.hpp"
#include "kube/label_selector.hpp"
#include "reconcilers/declarations/parse.hpp"
#include "text/phrase_code.hpp"
#include "text/text.hpp"

namespace cli::console {
namespace {

using controller::http_request;
using controller::http_response;
using controller::refusal;
using nlohmann::ordered_json;

constexpr std::array view_types{view_type{"nodeviews", "nodeview", "NodeView"},
                                view_type{"podviews", "podview", "PodView"},
                                view_type{"holdings", "holding", "Holding"},
                                view_type{"bills", "bill", "Bill"},
                                view_type{"simulations", "simulation", "Simulation", false},
                                view_type{"declarations", "declaration", "Declaration"}};

/// A pod against a node, in one answer: some tenths of a second.
constexpr std::size_t most_trials = 100'000;
constexpr controller::milliseconds declarations_hold{10'000};
/// What declares, for `lint --cluster` (cli/cluster/declared_document.hpp).
constexpr std::string_view source_form = "source";

std::string group_version() { return std::string(view_group) + "/" + std::string(view_version); }
std::string version_path() { return "/apis/" + group_version(); }

std::int64_t now_in_seconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

refusal unknown_object(std::string_view kind, std::string_view name) {
  return {404, "NotFound", {"console.view.absent", {{"kind", std::string(kind)}, {"name", text::shown(name)}}}, 0};
}
refusal wrong_words(text::phrase message) { return {400, "BadRequest", std::move(message), 0}; }
refusal wrong_word(std::string_view name, std::string_view allowed) {
  return wrong_words({"console.view.word", {{"name", std::string(name)}, {"allowed", std::string(allowed)}}});
}

refusal unread(const kube::error& error) {
  return {503, "ServiceUnavailable", {"console.view.unread", {{"cause", std::string(kube::to_string(error.code))}}}, 2};
}

http_response json_response(const ordered_json& document, int status = 200) {
  http_response out;
  out.status = status;
  out.content_type = "application/json";
  out.body = document.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  out.fields.emplace_back("Cache-Control", "no-store");
  return out;
}

/// As every API of the cluster refuses.
http_response status_response(const refusal& refusal) {
  ordered_json status{{"kind", "Status"},
                      {"apiVersion", "v1"},
                      {"metadata", ordered_json::object()},
                      {"status", "Failure"},
                      {"message", text::message_text(refusal.message)},
                      {"reason", refusal.code},
                      {"code", refusal.status}};
  if (refusal.retry_seconds > 0) status["details"] = {{"retryAfterSeconds", refusal.retry_seconds}};
  auto out = json_response(status, refusal.status);
  if (refusal.retry_seconds > 0) out.fields.emplace_back("Retry-After", std::to_string(refusal.retry_seconds));
  return out;
}

ordered_json group_document() {
  const ordered_json version{{"groupVersion", group_version()}, {"version", view_version}};
  return {{"kind", "APIGroup"},
          {"apiVersion", "v1"},
          {"name", view_group},
          {"versions", ordered_json::array({version})},
          {"preferredVersion", version}};
}

ordered_json resources_document() {
  auto resources = ordered_json::array();
  for (const auto& type : view_types) {
    auto verbs = type.has_get ? ordered_json::array({"get", "list"}) : ordered_json::array({"list"});
    resources.push_back({{"name", type.plural},
                         {"singularName", type.singular},
                         {"namespaced", true},
                         {"kind", type.kind},
                         {"verbs", std::move(verbs)}});
  }
  return {{"kind", "APIResourceList"},
          {"apiVersion", "v1"},
          {"groupVersion", group_version()},
          {"resources", std::move(resources)}};
}

/// Nothing: the path is no document.
std::optional<ordered_json> document_of(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (path == "/apis") {
    auto groups = ordered_json::array({group_document()});
    return ordered_json{{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(groups)}};
  }
  if (path == "/apis/" + std::string(view_group)) return group_document();
  if (path == version_path()) return resources_document();
  return std::nullopt;
}

/// How an answer is to look. Empty form: as objects.
struct view_request {
  listing_style style{"", "en"};
  std::vector<std::string> only;
};

std::string word_of(const parameters& words, std::string_view name) {
  const auto match = words.find(std::string(name));
  return match == words.end() ? std::string() : match->second;
}

std::vector<std::string> words_in_list(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    if (end > 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::expected<view_request, refusal> view_request_in(const parameters& words, const view_target& target) {
  const auto watch = word_of(words, "watch");
  if (!watch.empty() && watch != "0" && watch != "false")
    return std::unexpected(refusal{405, "MethodNotAllowed", {"console.view.reads"}, 0});
  if (!word_of(words, "fieldSelector").empty() || !word_of(words, "labelSelector").empty())
    return std::unexpected(wrong_words({"console.view.selectors"}));
  view_request out;
  out.style.output = word_of(words, "form");
  if (const auto language = word_of(words, "lang"); !language.empty()) out.style.language = language;
  out.style.sort_by = word_of(words, "sortBy");
  out.style.selector = word_of(words, "selector");
  out.style.no_headers = word_of(words, "noHeaders") == "true";
  static constexpr std::array forms{std::string_view(""),     std::string_view("text"), std::string_view("table"),
                                    std::string_view("wide"), std::string_view("json"), std::string_view("yaml"),
                                    std::string_view("name"), std::string_view("csv")};
  const bool is_source = out.style.output == source_form && target.plural == "declarations";
  if (!is_source && std::ranges::find(forms, out.style.output) == forms.end())
    return std::unexpected(wrong_word("form", "text, table, wide, json, yaml, name, csv"));
  if (out.style.language != "en" && out.style.language != "zh") return std::unexpected(wrong_word("lang", "en, zh"));
  if (const auto selector = kube::label_selector::parse(out.style.selector); !selector)
    return std::unexpected(
        wrong_words({"usage.not_a_selector", {{"name", "selector"}, {"value", text::shown(out.style.selector)}}}));
  out.only = words_in_list(word_of(words, "names"));
  if (!target.name.empty()) out.only = {target.name};
  return out;
}

ordered_json object_of(const view_type& type, const view_target& target, const std::string& name, ordered_json data) {
  return {{"apiVersion", group_version()},
          {"kind", type.kind},
          {"metadata", {{"name", name}, {"namespace", target.ns}}},
          {"view", std::move(data)}};
}

/// The answer of -o json is one list of rows, each with its name, or one object.
bool has_rows(const view_target& target) {
  return target.plural == "nodeviews" || target.plural == "holdings" || target.plural == "declarations" ||
         (target.plural == "podviews" && target.name.empty());
}

/// Of a declaration it is that of its ConfigMap: keys have a slash.
std::string name_in(const ordered_json& row) {
  const auto config_map = row.find("configMap");
  return config_map == row.end() ? row.value("name", "") : config_map->value("name", "");
}

ordered_json items_of(const view_type& type, const view_target& target, const std::string& text) {
  auto out = ordered_json::array();
  auto document = ordered_json::parse(text, nullptr, false);
  if (!has_rows(target)) {
    if (document.is_discarded()) document = nullptr;  // nothing was counted in the month of a bill: words alone
    out.push_back(object_of(type, target, target.name.empty() ? "now" : target.name, std::move(document)));
    return out;
  }
  if (document.is_object() && !document.empty() && document.begin()->is_array())
    for (const auto& row : *document.begin()) out.push_back(object_of(type, target, name_in(row), row));
  return out;
}

}  // namespace

const view_type* view_type_of(std::string_view plural) {
  const auto match = std::ranges::find(view_types, plural, &view_type::plural);
  return match == view_types.end() ? nullptr : &*match;
}

std::optional<view_target> view_target_in(std::string_view path) {
  const auto begin = version_path() + "/namespaces/";
  if (!path.starts_with(begin)) return std::nullopt;
  std::vector<std::string> words;
  for (path.remove_prefix(begin.size());;) {
    const auto end = std::min(path.find('/'), path.size());
    words.emplace_back(path.substr(0, end));
    if (end == path.size()) break;
    path.remove_prefix(end + 1);
  }
  if (words.size() < 2 || words.size() > 3) return std::nullopt;
  for (const auto& word : words)
    if (!is_name(word)) return std::nullopt;
  return view_target{words[0], words[1], words.size() == 3 ? words[2] : std::string()};
}

view_api::view_api(dependencies dependencies) : dependencies_(std::move(dependencies)), people_(dependencies_.people) {
  if (!dependencies_.wall) dependencies_.wall = now_in_seconds;
}

void view_api::join(controller::http_server& server) {
  const auto all = "GET POST PUT PATCH DELETE OPTIONS";  // what is refused is refused here, as a Status
  server.route_async(all, "/*", [this](http_request request) { return answer(std::move(request)); }, 1024);
}

boost::asio::awaitable<http_response> view_api::answer(http_request request) {
  auto answered = co_await view(request);
  co_return answered ? std::move(*answered) : status_response(answered.error());
}

boost::asio::awaitable<view_api::outcome> view_api::view(const http_request& request) {
  const auto person = person_in(request, trust_);
  if (!person) co_return std::unexpected(person.error());
  if (request.method != "GET" && request.method != "HEAD")
    co_return std::unexpected(refusal{405, "MethodNotAllowed", {"console.view.reads"}, 0});
  if (auto document = document_of(request.path)) co_return json_response(*document);
  const auto target = view_target_in(request.path);
  const auto* type = target ? view_type_of(target->plural) : nullptr;
  if (!type) co_return std::unexpected(refusal{404, "NotFound", {"console.view.path"}, 0});
  if (const auto wait = people_.ask(person->name, dependencies_.now()))
    co_return std::unexpected(refusal{
        429, "TooManyRequests", {"console.too_often", {{"seconds", std::to_string(wait->count())}}}, wait->count()});
  if (auto refused = co_await objection(*person, *target)) co_return std::unexpected(std::move(*refused));
  auto& known = dependencies_.look();
  if (const auto reason = dependencies_.not_ready(); !reason.empty())
    co_return std::unexpected(refusal{503, "ServiceUnavailable", reason, 2});
  co_return co_await answer_to(request, *target, known);
}

boost::asio::awaitable<std::optional<refusal>> view_api::objection(const controller::token_owner& person,
                                                                   const view_target& target) {
  const auto verb = target.name.empty() ? "list" : "get";
  nlohmann::json question{{"verb", verb},
                          {"group", view_group},
                          {"version", view_version},
                          {"resource", target.plural},
                          {"namespace", target.ns}};
  if (!target.name.empty()) question["name"] = target.name;
  const auto allowed = co_await controller::is_allowed(dependencies_.api, person, "resourceAttributes", question);
  if (!allowed) {
    const auto reason = controller::not_asked({"access.rights"}, allowed.error());
    co_return refusal{503, "ServiceUnavailable", reason.message, 2};
  }
  if (*allowed) co_return std::nullopt;
  co_return refusal{403,
                    "Forbidden",
                    {"console.view.forbidden",
                     {{"resource", target.plural},
                      {"group", std::string(view_group)},
                      {"name", person.name},
                      {"verb", std::string(verb)},
                      {"namespace", target.ns}}},
                    0};
}

boost::asio::awaitable<view_api::made> view_api::explanation(const picture& known, const view_target& target,
                                                             const listing_style& style) {
  const kube::object_key key{target.ns, target.name};
  if (!known.pods.find(key)) co_return std::unexpected(unknown_object("pod", target.name));
  auto answer = co_await explanation_answer(dependencies_.api.used_transport(), known, key, style);
  if (!answer) co_return std::unexpected(unread(answer.error()));
  co_return std::move(*answer);
}

boost::asio::awaitable<view_api::made> view_api::bill(const picture& known, const view_target& target,
                                                      const listing_style& style) {
  const auto month = target.name.empty() ? api::month_of(dependencies_.wall()) : target.name;
  if (!api::bounds_of(month)) co_return std::unexpected(unknown_object("bill", month));
  auto answer = co_await bill_answer(dependencies_.api.used_transport(), known, target.ns, month, style);
  if (!answer) co_return std::unexpected(unread(answer.error()));
  co_return std::move(*answer);
}

view_api::made view_api::simulation(picture& known, const view_target& target, const listing_style& style,
                                    std::string_view parameter) {
  const auto pods = tried_pods_in(parameter, target.ns);
  if (!pods) return std::unexpected(wrong_words(pods.error()));
  const auto work = pods->size() * (known.nodes.all().size() + 1);
  if (work > most_trials) return std::unexpected(refusal{413, "RequestEntityTooLarge", {"console.view.too_many"}, 0});
  return simulation_answer(known, *pods, style);
}

/// They hold for all namespaces. `parameter`: in which one the command looks for them; no other has an answer.
boost::asio::awaitable<view_api::made> view_api::declarations(const view_target& target, const listing_style& style,
                                                              std::string_view parameter) {
  const auto ns = reconcilers::declarations::parse_settings().ns;
  if (!parameter.empty() && parameter != ns) co_return std::unexpected(wrong_word("declared", ns));
  const auto now = dependencies_.now();
  if (!declared_read_ || now - *declared_read_ > declarations_hold) {
    auto declared = co_await read_declared(dependencies_.api.used_transport(), ns);
    if (!declared) co_return std::unexpected(unread(declared.error()));
    declared_ = std::move(*declared);
    declared_read_ = now;
  }
  if (style.output == source_form) co_return view_answer{document_of(declared_), {}, 0};
  co_return declarations_answer(declared_, ns, style, target.name);
}

boost::asio::awaitable<view_api::made> view_api::answer_about(picture& known, const view_target& target,
                                                              const listing_style& style,
                                                              const std::vector<std::string>& only,
                                                              const parameters& words) {
  if (target.plural == "nodeviews") {
    for (const auto& name : only)
      if (!known.nodes.find({{}, name})) co_return std::unexpected(unknown_object("node", name));
    co_return nodes_answer(known, style, only);
  }
  if (target.plural == "holdings") co_return holdings_answer(known, target.ns, style, target.name);
  if (target.plural == "bills") co_return co_await bill(known, target, style);
  if (target.plural == "simulations") co_return simulation(known, target, style, word_of(words, "pods"));
  if (target.plural == "declarations") co_return co_await declarations(target, style, word_of(words, "declared"));
  if (!target.name.empty()) co_return co_await explanation(known, target, style);
  co_return pods_answer(known, target.ns, style, only);
}

boost::asio::awaitable<view_api::outcome> view_api::answer_to(const http_request& request, const view_target& target,
                                                              picture& known) {
  const auto words = parameters_in(request.query);
  if (!words) co_return std::unexpected(wrong_words(words.error()));
  auto wanted = view_request_in(*words, target);
  if (!wanted) co_return std::unexpected(wanted.error());
  const bool as_objects = wanted->style.output.empty();
  if (as_objects) wanted->style.output = "json";
  const auto answer = co_await answer_about(known, target, wanted->style, wanted->only, *words);
  if (!answer) co_return std::unexpected(answer.error());
  if (!as_objects)
    co_return json_response({{"apiVersion", group_version()},
                             {"kind", "Answer"},
                             {"text", answer->text},
                             {"note", answer->note},
                             {"exitCode", answer->code}});
  const auto& type = *view_type_of(target.plural);
  auto items = items_of(type, target, answer->text);
  if (!target.name.empty() && items.empty()) co_return std::unexpected(unknown_object(type.singular, target.name));
  if (!target.name.empty()) co_return json_response(items.front());
  co_return json_response({{"apiVersion", group_version()},
                           {"kind", std::string(type.kind) + "List"},
                           {"metadata", {{"resourceVersion", ""}}},
                           {"items", std::move(items)}});
}

}  // namespace cli::console
