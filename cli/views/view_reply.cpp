#include "cli/views/view_reply.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "kube/client.hpp"
#include "kube/percent.hpp"

namespace cli {
namespace {

std::string target_of(const view_question& question, const listing_style& style) {
  std::string out = "/apis/view.quartermaster.io/v1alpha1/namespaces/" + question.ns + "/" + question.plural;
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

kube::task<std::optional<view_reply>> ask_view(kube::transport& transport, view_question question,
                                               listing_style style) {
  kube::client api(transport);
  const auto target = target_of(question, style);
  const auto answer = co_await api.raw(target);
  if (!answer) co_return std::unexpected(answer.error());
  if (answer->status != 200) co_return std::optional<view_reply>();
  const auto document = nlohmann::json::parse(answer->body, nullptr, false);
  if (!document.is_object() || document.value("kind", "") != "Answer") co_return std::optional<view_reply>();
  co_return view_reply{document.value("text", ""), document.value("note", ""), document.value("exitCode", 1)};
}

namespace {

kube::task<void> keep_reply(kube::transport& transport, view_question question, listing_style style,
                            std::optional<view_reply>& out) {
  auto reply = co_await ask_view(transport, std::move(question), std::move(style));
  if (!reply) co_return std::unexpected(reply.error());
  out = std::move(*reply);
  co_return kube::result<void>();
}

}  // namespace

std::optional<view_reply> view_reply_of(const cluster_options& cluster, const view_question& question,
                                        const listing_style& style) {
  std::optional<view_reply> out;
  const auto done =
      ask_cluster(cluster, [&](kube::transport& transport) { return keep_reply(transport, question, style, out); });
  return done ? out : std::nullopt;
}

int print(const view_reply& reply, text::language locale, std::ostream& out, std::ostream& err) {
  failed({"transport.views"}, locale, err);
  err << reply.note;
  out << reply.text;
  return reply.code;
}

}  // namespace cli
