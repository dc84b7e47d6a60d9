#include "cli/console/access.hpp"

#include <openssl/crypto.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <nlohmann/json.hpp>

namespace cli::console {

access::access(kube::client& api, access_settings settings, std::function<std::vector<std::string>()> namespaces,
               std::function<controller::milliseconds()> now)
    : api_(api),
      settings_(std::move(settings)),
      namespaces_(std::move(namespaces)),
      now_(std::move(now)),
      tokens_(
          api, settings_, [this](person person) { return rights_of(std::move(person)); }, now_),
      link_strangers_(settings_.strangers) {}

kube::task<bool> access::may_list(const person& person, const right& right) {
  const nlohmann::json attributes{
      {"verb", "list"}, {"group", right.group}, {"resource", right.resource}, {"namespace", right.ns}};
  co_return co_await controller::is_allowed(api_, person, "resourceAttributes", attributes);
}

kube::task<bool> access::may_list(const viewer& viewer, const char* resource, std::string ns) {
  if (viewer.by_link) co_return true;
  co_return co_await may_list(person{viewer.user, viewer.review}, right{"", resource, std::move(ns)});
}

kube::task<void> access::ask_all(const person& person, std::vector<right>& rights) {
  std::size_t next = 0;
  const auto worker = [&]() -> kube::task<void> {
    while (next < rights.size()) {
      auto& right = rights[next++];
      const auto answer = co_await may_list(person, right);
      if (!answer) co_return std::unexpected(answer.error());
      right.is_there = *answer;
    }
    co_return kube::result<void>();
  };
  using namespace boost::asio::experimental::awaitable_operators;
  const auto [first, second, third, fourth] = co_await (worker() && worker() && worker() && worker());
  for (const auto* ended : {&first, &second, &third, &fourth})
    if (!*ended) co_return std::unexpected(ended->error());
  co_return kube::result<void>();
}

kube::task<access::admission> access::rights_of(person person) {
  viewer out;
  out.user = person.name;
  out.review = person.review;
  const std::string own_group = "quartermaster.io";
  std::vector<right> everywhere{{"", "nodes", ""},
                                {own_group, "acceleratornodes", ""},
                                {"", "pods", ""},
                                {own_group, "acceleratorquotas", ""},
                                {"", "configmaps", settings_.declarations}};
  if (auto answered = co_await ask_all(person, everywhere); !answered) co_return std::unexpected(answered.error());
  out.nodes = everywhere[0].is_there && everywhere[1].is_there;
  out.all_pods = everywhere[2].is_there;
  out.all_quotas = everywhere[3].is_there;
  out.declarations = everywhere[4].is_there;
  if (out.all_pods && out.all_quotas) co_return out;
  auto names = namespaces_();
  out.lacks_namespaces = names.size() > settings_.most_namespaces && !out.all_pods;
  if (names.size() > settings_.most_namespaces) names.resize(settings_.most_namespaces);
  std::vector<right> pods, quotas;
  if (!out.all_pods) {
    for (const auto& name : names) pods.push_back({"", "pods", name});
    if (auto answered = co_await ask_all(person, pods); !answered) co_return std::unexpected(answered.error());
    for (const auto& right : pods)
      if (right.is_there) out.namespaces.insert(right.ns);
    names.assign(out.namespaces.begin(), out.namespaces.end());
  }
  if (out.all_quotas) co_return out;
  for (const auto& name : names) quotas.push_back({own_group, "acceleratorquotas", name});
  if (auto answered = co_await ask_all(person, quotas); !answered) co_return std::unexpected(answered.error());
  for (const auto& right : quotas)
    if (right.is_there) out.quota_namespaces.insert(right.ns);
  co_return out;
}

boost::asio::awaitable<access::admission> access::admit(std::string authorization, std::string address) {
  if (settings_.link_token.empty()) co_return co_await tokens_.admit(std::move(authorization), std::move(address));
  const auto token = controller::bearer_in(authorization);
  if (token.empty()) co_return std::unexpected(controller::unauthenticated(audience));
  const bool is_equal = token.size() == settings_.link_token.size() &&
                        CRYPTO_memcmp(token.data(), settings_.link_token.data(), token.size()) == 0;
  if (is_equal) co_return viewer{"kubeconfig", {}, true, true, true, true, true, false, {}, {}};
  if (const auto wait = link_strangers_.ask(address, now_())) co_return std::unexpected(controller::too_often(*wait));
  co_return std::unexpected(refusal{401, "unauthenticated", {"console.not_the_link"}, 0});
}

}  // namespace cli::console
