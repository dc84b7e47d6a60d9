#include "cli/cluster/foreign_server.hpp"

#include <algorithm>
#include <iterator>

#include "kube/status.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

constexpr std::size_t longest_begin = 60;

std::string_view path_in(std::string_view target) { return target.substr(0, target.find('?')); }

/// Logs of pods and /readyz are text.
bool asks_for_object(const kube::request& request) {
  const auto path = path_in(request.target);
  return (path.starts_with("/api/") || path.starts_with("/apis")) && !path.ends_with("/log");
}

bool is_html(const kube::response& answer) {
  return answer.content_type.starts_with("text/html") || text::trimmed(answer.body).starts_with('<');
}

/// Messages of protobuf, and JSON, which begins with a brace.
bool is_kubernetes(const kube::request& request, const kube::response& answer) {
  constexpr std::string_view protobuf = "application/vnd.kubernetes.protobuf";
  if (request.accept.starts_with(protobuf))
    return answer.body.starts_with("k8s") || answer.content_type.starts_with(protobuf);
  return text::trimmed(answer.body).starts_with('{');
}

/// A page with status 404 or 403 says nothing of objects or rights. One of 5xx may be of a proxy before an API server
/// that is away.
bool is_foreign(const kube::request& request, const kube::response& answer) {
  if (!asks_for_object(request)) return false;
  if (kube::succeeded(answer.status)) return !is_kubernetes(request, answer);
  return answer.status >= 400 && answer.status < 500 && is_html(answer);
}

}  // namespace

text::phrase answer_check::words(const std::string& key, std::vector<text::phrase_argument> more) const {
  std::vector<text::phrase_argument> out{{"server", text::shown(cluster_.server, 300)},
                                         {"path", text::shown(path_, 300)},
                                         {"status", std::to_string(status_)},
                                         {"file", text::shown(cluster_.source, 1000)}};
  std::ranges::move(more, std::back_inserter(out));
  return {"transport.foreign." + key, std::move(out)};
}

kube::task<kube::response> answer_check::send(kube::request request) {
  status_ = 0, path_ = path_in(request.target), foreign_ = {};
  auto answer = co_await inner_.send(request);
  if (!answer) co_return answer;
  status_ = answer->status;
  if (!is_foreign(request, *answer)) co_return answer;
  const auto content = text::trimmed(answer->body);
  const text::phrase_argument type{"type", answer->content_type.empty() ? "-" : text::shown(answer->content_type)};
  foreign_ =
      content.empty() ? words("nothing", {}) : words("other", {type, {"begin", text::shown(content, longest_begin)}});
  co_return std::unexpected(
      kube::error{kube::errc::decode, answer->status, words_of(foreign_, text::language::en), std::nullopt});
}

kube::task<kube::response> answer_check::stream(kube::request request, kube::chunk_sink sink) {
  co_return co_await inner_.stream(std::move(request), std::move(sink));
}

std::optional<text::phrase> answer_check::fault(const text::phrase& problem) const {
  if (!foreign_.empty()) return foreign_;
  if (status_ == 0) return std::nullopt;
  return words("misread", {{"problem", problem}});
}

}  // namespace cli
