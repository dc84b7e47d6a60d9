#pragma once
// Who is asking, and what they may see: the caller's token (controller/token_access.hpp) and their rights, which are
// asked about resource by resource, and where that is needed namespace by namespace.

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console/viewer.hpp"
#include "controller/rate.hpp"
#include "controller/token_access.hpp"

namespace cli::console {

using controller::counted;
using controller::rate;
using controller::rate_settings;
using controller::refusal;

/// Of the tokens that are of use here alone: `kubectl create token NAME --audience quartermaster-console`.
inline constexpr std::string_view audience = "quartermaster-console";

struct access_settings : controller::token_settings {
  access_settings() { controller::token_settings::audience = console::audience; }

  std::size_t most_namespaces = 1000;  ///< asked about for one person
  std::string declarations = "kube-public";
  /// On a laptop: the token of the printed link. Who has it sees all that is there. Empty: no such token.
  std::string link_token;
};

class access {
 public:
  using admission = std::expected<viewer, refusal>;

  /// `namespaces` are those that a person may be asked about. `api` needs `create` for the two reviews, nothing else.
  access(kube::client& api, access_settings settings, std::function<std::vector<std::string>()> namespaces,
         std::function<controller::milliseconds()> now = controller::boot_now);

  /// `authorization` is the header's value. `address` is the caller's.
  boost::asio::awaitable<admission> admit(std::string authorization, std::string address);

  /// What is asked about seldom: whether the viewer may list these in the namespace.
  kube::task<bool> may_list(const viewer& viewer, const char* resource, std::string ns);

  std::size_t known() const { return tokens_.known(); }

 private:
  using person = controller::token_owner;
  struct right {
    std::string group, resource, ns;
    bool is_there = false;
  };
  kube::task<bool> may_list(const person& person, const right& right);
  /// Some at a time.
  kube::task<void> ask_all(const person& person, std::vector<right>& rights);
  kube::task<admission> rights_of(person person);

  kube::client& api_;
  access_settings settings_;
  std::function<std::vector<std::string>()> namespaces_;
  std::function<controller::milliseconds()> now_;
  controller::token_access<viewer> tokens_;
  rate link_strangers_;  ///< who tries other tokens than that of the link, per address
};

}  // namespace cli::console
