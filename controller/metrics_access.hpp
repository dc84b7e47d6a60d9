#pragma once
// /metrics for those alone who have the right to get it (nonResourceURLs), as controller-runtime and kube-rbac-proxy
// ask for it. The port shows a certificate that signs for nothing and is made when the program starts: callers skip its
// verification. TLS keeps their tokens from those who only listen. What else the port serves stays open, for probes.

#include <functional>
#include <memory>

#include "controller/http_server.hpp"
#include "controller/token_access.hpp"
#include "kube/client.hpp"

namespace controller {

/// A scraper comes every few seconds with one token, and there may be a thousand agents: strangers get less of the API
/// server than people at the console.
token_settings metrics_tokens();

class metrics_access {
 public:
  /// `transport` needs `create` for TokenReviews and SubjectAccessReviews, also in a replica that does not lead.
  explicit metrics_access(kube::transport& transport, token_settings settings = metrics_tokens(),
                          std::function<milliseconds()> now = boot_now);

  /// The page of everything registered, or why the caller does not get it.
  boost::asio::awaitable<http_response> answer(http_request request, const registry& registry);

 private:
  struct reader {};  ///< may get the page
  kube::task<token_access<reader>::admission> judge(token_owner owner);

  kube::client api_;
  token_access<reader> tokens_;
};

/// /metrics of everything registered: for everyone, or with `reviews` for those who may get it; then the server has
/// `tls` without files, and needs what is returned as long as it answers.
std::unique_ptr<metrics_access> add_metrics_route(http_server& server, const registry& registry,
                                                  kube::transport* reviews = nullptr);

}  // namespace controller
