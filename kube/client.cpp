#include "kube/client.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>

#include "kube/json_text.hpp"
#include "kube/page_walk.hpp"
#include "kube/status.hpp"

namespace kube {

namespace {

using nlohmann::json;

/// A caller that patches an object needs only its new version. The rest of a Node is 20 KiB to send and to parse.
constexpr auto metadata_only = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
constexpr int most_retries = 10;                  // client-go rest/request.go
constexpr std::chrono::seconds longest_wait{30};  // a caller that has to wait longer should do something else meanwhile

/// "apply daemonsets.apps kube-system/x"
std::string operation(std::string_view verb, const resource& type, const std::string& object) {
  std::string text(verb);
  text.append(" ").append(type.plural);
  if (!type.group.empty()) text.append(".").append(type.group);
  if (!object.empty()) text.append(" ").append(object);
  return text;
}

/// Without a name the path is that of the collection, where a DELETE removes every object of the type; an HTTP client
/// takes dot segments out of a path. client-go refuses the same (rest/request.go, Name).
result<void> check_name(const std::string& operation, const object_key& key) {
  if (!key.name.empty() && key.name != "." && key.name != "..") return {};
  return std::unexpected(error{
      errc::bad_request, 0, operation + ": \"" + key.name + "\" is not the name of an object; nothing was sent", {}});
}

bool worth_waiting(const response& answer) {
  return (answer.status == 429 || answer.status >= 500) && answer.retry_after && *answer.retry_after <= longest_wait;
}

}  // namespace

task<response> client::send_patiently(request request) {
  for (int retries = 0;; ++retries) {
    auto answer = co_await transport_.send(request);
    if (!answer || retries == most_retries || !worth_waiting(*answer)) co_return answer;
    boost::asio::steady_timer pause(co_await boost::asio::this_coro::executor, *answer->retry_after);
    auto [interrupted] = co_await pause.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    if (interrupted)
      co_return std::unexpected(error{errc::cancelled, 0, "cancelled while waiting for Retry-After", {}});
  }
}

task<response> client::call(std::string name, request request, bool patient) {
  auto sending = patient ? send_patiently(std::move(request)) : transport_.send(std::move(request));
  auto answer = co_await std::move(sending);
  if (!answer) {
    answer.error().message = name + ": " + answer.error().message;
    co_return std::unexpected(std::move(answer.error()));
  }
  if (!succeeded(answer->status)) co_return std::unexpected(error_of(name, *answer));
  co_return answer;
}

task<json> client::call_json(std::string name, request request) {
  auto answer = co_await call(name, std::move(request));
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  auto object = json::parse(answer->body, nullptr, false);
  if (object.is_discarded())
    co_return std::unexpected(error{errc::decode, answer->status, name + ": the answer is not JSON", {}});
  co_return object;
}

task<json> client::get(const resource& type, object_key key) {
  auto name = operation("get", type, key.to_string());
  if (auto checked = check_name(name, key); !checked) co_return std::unexpected(std::move(checked.error()));
  auto request = get_request(type, key, encoding::json);
  co_return co_await call_json(std::move(name), std::move(request));
}

task<std::vector<json>> client::list(const resource& type, list_options options) {
  options.accept = encoding::json;
  const auto name = operation("list", type, options.ns);
  std::vector<json> all;
  page_walk pages(name);
  for (bool is_open = true; is_open;) {
    auto page = co_await call_json(name, list_page(type, options));
    if (!page) co_return std::unexpected(std::move(page.error()));
    const auto items = page->find("items");
    if (items == page->end() || (!items->is_array() && !items->is_null()))
      co_return std::unexpected(error{errc::decode, 200, name + ": the answer is not a list", {}});
    for (auto& item : *items) all.push_back(std::move(item));
    const auto more = pages.next(text_at(*page, "/metadata/continue"), options);
    if (!more) co_return std::unexpected(more.error());
    is_open = *more;
    // The token has the version in it; giving both is refused.
    options.resource_version.clear();
    options.resource_version_match.clear();
  }
  co_return all;
}

task<json> client::create(const resource& type, std::string_view ns, const json& object, write_options options) {
  const object_key key{std::string(ns), text_at(object, "/metadata/name")};
  auto name = operation("create", type, key.to_string());
  auto request = create_request(type, ns, object, options);
  co_return co_await call_json(std::move(name), std::move(request));
}

task<json> client::replace(const resource& type, object_key key, const json& object, write_options options) {
  auto name = operation("replace", type, key.to_string());
  if (auto checked = check_name(name, key); !checked) co_return std::unexpected(std::move(checked.error()));
  auto request = replace_request(type, key, object, options);
  co_return co_await call_json(std::move(name), std::move(request));
}

task<json> client::apply(const resource& type, object_key key, const json& object, write_options options) {
  auto name = operation("apply", type, key.to_string());
  if (auto checked = check_name(name, key); !checked) co_return std::unexpected(std::move(checked.error()));
  auto request = apply_request(type, key, object, options);
  co_return co_await call_json(std::move(name), std::move(request));
}

task<json> client::apply_status(const resource& type, object_key key, const json& object, write_options options) {
  auto name = operation("apply status of", type, key.to_string());
  if (auto checked = check_name(name, key); !checked) co_return std::unexpected(std::move(checked.error()));
  auto request = apply_status_request(type, key, object, options);
  request.accept = metadata_only;
  co_return co_await call_json(std::move(name), std::move(request));
}

task<json> client::patch(const resource& type, object_key key, patch_kind kind, const json& patch,
                         std::string_view subresource, write_options options) {
  auto name =
      operation(subresource.empty() ? "patch" : "patch " + std::string(subresource) + " of", type, key.to_string());
  if (auto checked = check_name(name, key); !checked) co_return std::unexpected(std::move(checked.error()));
  auto request = patch_request(type, key, kind, patch, subresource, options);
  request.accept = metadata_only;
  co_return co_await call_json(std::move(name), std::move(request));
}

task<void> client::remove(const resource& type, object_key key, preconditions only_if, propagation propagation) {
  auto name = operation("delete", type, key.to_string());
  if (auto checked = check_name(name, key); !checked) co_return std::unexpected(std::move(checked.error()));
  auto request = remove_request(type, key, only_if, propagation);
  auto answer = co_await call(std::move(name), std::move(request));
  if (!answer && answer.error().code != errc::not_found) co_return std::unexpected(std::move(answer.error()));
  co_return result<void>();
}

task<void> client::bind(object_key pod, std::string_view node, preconditions only_if, const json& annotations) {
  auto name = operation("bind", resources::pods, pod.to_string()) + " to " + std::string(node);
  if (auto checked = check_name(name, pod); !checked) co_return std::unexpected(std::move(checked.error()));
  auto request = bind_request(pod, node, only_if, annotations);
  // A bind has a deadline of seconds: waiting for Retry-After is the scheduler's decision.
  auto answer = co_await call(std::move(name), std::move(request), false);
  if (!answer) co_return std::unexpected(std::move(answer.error()));
  co_return result<void>();
}

task<void> client::evict(object_key pod, preconditions only_if) {
  auto name = operation("evict", resources::pods, pod.to_string());
  if (auto checked = check_name(name, pod); !checked) co_return std::unexpected(std::move(checked.error()));
  auto request = evict_request(pod, only_if);
  auto answer = co_await call(std::move(name), std::move(request), false);
  if (!answer && answer.error().code != errc::not_found) co_return std::unexpected(std::move(answer.error()));
  co_return result<void>();
}

task<response> client::raw(std::string_view path) {
  request request;
  request.target = path;
  request.accept = "application/json, */*";
  co_return co_await send_patiently(std::move(request));
}

}  // namespace kube
