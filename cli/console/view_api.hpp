#pragma once
// API group view.quartermaster.io: what a person may see who has rights in one namespace alone. kube-apiserver passes
// requests on (APIService) and says who asks; whether they may is asked of it by SubjectAccessReview before anything is
// looked at. Reads only: get and list, no watch. One thread. docs/decisions/020-views-by-aggregation.md

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cli/cluster/picture.hpp"
#include "cli/console/history.hpp"
#include "cli/console/proxied_person.hpp"
#include "cli/console/view_answers.hpp"
#include "controller/http_server.hpp"
#include "controller/rate.hpp"
#include "kube/client.hpp"

namespace cli::console {

inline constexpr std::string_view view_group = "view.quartermaster.io", view_version = "v1alpha1";

/// A resource of the group. All are in a namespace: a RoleBinding there grants them.
struct view_type {
  std::string_view plural, singular, kind;
  bool has_get = true;
};
/// Null: there is none of this name.
const view_type* view_type_of(std::string_view plural);

/// A path below the group's version.
struct view_target {
  std::string ns, plural, name;  ///< name empty: a list
};
/// Empty: it is no such path.
std::optional<view_target> view_target_in(std::string_view path);

class view_api {
 public:
  struct dependencies {
    /// The cluster, for one answer. It is asked for once the person's right has been judged, and never for a request
    /// that is refused: so no refusal can tell what there is, by its words or by its time.
    std::function<picture&()> look;
    kube::client& api;                        ///< needs create of SubjectAccessReviews
    std::function<text::phrase()> not_ready;  ///< why the stores are not filled; empty: they are
    std::function<controller::milliseconds()> now = controller::boot_now;
    std::function<std::int64_t()> wall = {};  ///< seconds since 1970; empty: the system's
    controller::rate_settings people{5, 20, 4096};
  };
  explicit view_api(dependencies dependencies);
  view_api(const view_api&) = delete;
  view_api& operator=(const view_api&) = delete;

  /// Whom to believe from now on; before the first time everyone is refused.
  void trust(proxy_trust trust) { trust_ = std::move(trust); }
  /// Takes every path of the server.
  void join(controller::http_server& server);
  boost::asio::awaitable<controller::http_response> answer(controller::http_request request);

 private:
  using outcome = std::expected<controller::http_response, controller::refusal>;
  boost::asio::awaitable<outcome> view(const controller::http_request& request);
  /// Empty: the person may.
  boost::asio::awaitable<std::optional<controller::refusal>> objection(const controller::token_owner& person,
                                                                       const view_target& target);
  using made = std::expected<view_answer, controller::refusal>;
  boost::asio::awaitable<made> explanation(const picture& known, const view_target& target, const listing_style& style);
  boost::asio::awaitable<made> bill(const picture& known, const view_target& target, const listing_style& style);
  made simulation(picture& known, const view_target& target, const listing_style& style, std::string_view parameter);
  boost::asio::awaitable<made> declarations(const view_target& target, const listing_style& style,
                                            std::string_view parameter);
  boost::asio::awaitable<made> answer_about(picture& known, const view_target& target, const listing_style& style,
                                            const std::vector<std::string>& only, const parameters& words);
  boost::asio::awaitable<outcome> answer_to(const controller::http_request& request, const view_target& target,
                                            picture& known);

  dependencies dependencies_;
  proxy_trust trust_;
  controller::rate people_;
  declared_resources declared_;
  std::optional<controller::milliseconds> declared_read_;
};

}  // namespace cli::console
