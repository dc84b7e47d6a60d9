#pragma once
// The server of view_api.hpp: an address of its own, because only kube-apiserver may call it, by client certificate.
// Its own certificate is one that the operator keeps (reconcilers/views/view_certificates.hpp), in files; whom
// it believes stands in a ConfigMap. Both are read again while it runs.

#include <string>

#include "cli/console/view_api.hpp"
#include "controller/http_server.hpp"
#include "controller/manager.hpp"
#include "kube/task.hpp"

namespace cli::console {

struct view_front_options {
  std::string address;  ///< empty: there is no such server
  std::string certificate_file, key_file;
  controller::milliseconds period{10'000};
};

class view_front {
 public:
  view_front(controller::loop& loop, controller::http_server_metrics& serving, view_front_options options,
             view_api::dependencies dependencies);
  view_front(const view_front&) = delete;
  view_front& operator=(const view_front&) = delete;

  void join(controller::manager& manager);

 private:
  kube::task<void> keep_fresh();
  kube::task<void> look();
  void report(const std::string& problem);

  view_front_options options_;
  kube::client& api_;
  view_api views_;
  controller::http_server server_;
  controller::given_certificate current_;
  proxy_trust trusted_;
  std::string reported_;
};

}  // namespace cli::console
