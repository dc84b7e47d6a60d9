#include "cli/views/view_reply.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "cli/cluster/refusal.hpp"
#include "kube/client.hpp"
#include "kube/percent.hpp"

namespace cli {
namespace {

constexpr std::string_view group_path = "/apis/view.quartermaster.io";

std::string target_of(const view_question& question, const listing_style& style) {
  std::string out = std::string(group_path) + "/v1alpha1/namespaces/" + question.ns + "/" + question.plural;
  if (!question.name.empty()) {
    out += "/";
    kube::append_percent_encoded(out, question.name);
  }
  std::vector<std::pair<std::string, std::string>> words{{"form", style.output}, {"lang", style.language}};
  if (!style.sort_by.empty()) words.emplace_back("sortBy", style.sort_by);
  if (!style.selector.empty()) words.emplace_back("selector", style.selector);
  if (style.no_headers) words.emplace_back("noHeaders", "true");
  words.insert(words.end(), question.more.begin(), question.more.end());
  char mark = '?';
  for (const auto& [name, value] : words) {
    out += std::exchange(mark, '&') + name + "=";
    kube::append_percent_encoded(out, value);
  }
  return out;
}

}  // namespace

kube::task<view_outcome> ask_view(kube::transport& transport, view_question question, listing_style style) {
  kube::client api(transport);
  const auto target = target_of(question, style);
  const auto answer = co_await api.raw(target);
  if (!answer) co_return std::unexpected(answer.error());
  view_outcome out;
  if (answer->status == 403) {  // also of an API that is not there
    const auto group = co_await api.raw(std::string(group_path));
    out.is_refused = group && group->status == 200;
  }
  if (answer->status != 200) co_return out;
  const auto document = nlohmann::json::parse(answer->body, nullptr, false);
  if (document.is_object() && document.value("kind", "") == "Answer")
    out.reply = {document.value("text", ""), document.value("note", ""), document.value("exitCode", 1)};
  co_return out;
}

namespace {

kube::task<void> keep_reply(kube::transport& transport, view_question question, listing_style style,
                            view_outcome& out) {
  auto outcome = co_await ask_view(transport, std::move(question), std::move(style));
  if (!outcome) co_return std::unexpected(outcome.error());
  out = std::move(*outcome);
  co_return kube::result<void>();
}

}  // namespace

view_outcome view_reply_of(const cluster_options& cluster, const view_question& question, const listing_style& style) {
  view_outcome out;
  const auto done =
      ask_cluster(cluster, [&](kube::transport& transport) { return keep_reply(transport, question, style, out); });
  return done ? out : view_outcome();
}

std::optional<int> namespace_answer(const cluster_options& cluster, const namespace_scope& scope,
                                    view_question question, const listing_style& style, text::phrase& refused,
                                    std::ostream& out, std::ostream& err) {
  if (refused.key != "transport.forbidden" || scope.everywhere) return std::nullopt;
  question.ns = scope.is_open() ? namespace_of(cluster) : scope.ns;
  const auto outcome = view_reply_of(cluster, question, style);
  if (outcome.is_refused) refused = where_view_suffices(std::move(refused), question.ns);
  if (!outcome.reply) return std::nullopt;
  const auto locale = bilingual(style.language).locale();
  if (scope.is_open()) failed(own_namespace(question.ns), locale, err);
  return print(*outcome.reply, locale, out, err);
}

int print(const view_reply& reply, text::language locale, std::ostream& out, std::ostream& err) {
  failed({"transport.views"}, locale, err);
  err << reply.note;
  out << reply.text;
  return reply.code;
}

}  // namespace cli
