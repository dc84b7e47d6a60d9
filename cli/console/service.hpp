#pragma once
// The console's answers to HTTP (console/api.md): who asks, may they, how often, then the view. Reads only; nothing
// here has a method but GET and HEAD, except for the cookie of who signs in and out. One thread.

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/console/access.hpp"
#include "cli/console/answers.hpp"
#include "cli/console/history.hpp"
#include "cli/console/session.hpp"
#include "cli/console/views.hpp"
#include "cli/console/waiting.hpp"
#include "controller/http_server.hpp"

namespace cli::console {

struct service_settings {
  std::vector<std::string> hosts;            ///< names of the console besides localhost; without port
  std::vector<std::string> frame_ancestors;  ///< origins of pages that may show it in a frame
  bool tls = false;                          ///< it serves HTTPS itself
  bool by_link = false;                      ///< the printed link signs in, and no token of a person does
  rate_settings people{10, 40, 4096};
  std::size_t most_streams = 64, most_streams_each = 4;
  std::size_t most_waiting_each = 4;             ///< views of waiting pods that are worked out for a person at a time
  std::size_t most_questions = 40;               ///< reasons that are worked out for one answer about all pods
  controller::milliseconds reason_holds{5'000};  ///< why a pod waits, whatever changes
  /// On the first screen, which many look at: 40 reasons take 2 s at 5,000 nodes.
  controller::milliseconds grouped_reason_holds{30'000};
  controller::milliseconds overview_holds{5'000};
  controller::milliseconds stream_life{600'000};
  controller::milliseconds stream_pace{1'000};  ///< between two events
  controller::milliseconds blind_pace{10'000};  ///< of those who may not see the fleet
  controller::milliseconds stream_comment{15'000};
  controller::milliseconds stream_look{500};      ///< how often it looks
  controller::milliseconds stream_check{30'000};  ///< how often the token is judged again
};

class service {
 public:
  struct dependencies {
    picture& known;
    access& doorkeeper;
    kube::transport& reading;                 ///< of the cluster, for one node and for declarations
    kube::transport* prometheus = nullptr;    ///< null: there is none
    unbound_pods* unbound = nullptr;          ///< null: what pods say of nodes is not known
    std::function<text::phrase()> not_ready;  ///< why the stores are not filled; empty: they are
    std::function<controller::milliseconds()> now = controller::boot_now;
    std::function<std::int64_t()> wall = {};  ///< seconds since 1970
    /// How long the API server has not answered, so that what is known may be old; empty: it answers.
    std::function<std::optional<controller::milliseconds>()> silence = [] {
      return std::optional<controller::milliseconds>();
    };
    /// For how long no operator has led; empty: one leads, or that is not known.
    std::function<std::optional<controller::milliseconds>()> leaderless = [] {
      return std::optional<controller::milliseconds>();
    };
  };
  service(dependencies dependencies, service_settings settings);
  service(const service&) = delete;
  service& operator=(const service&) = delete;

  /// Takes every path of the server.
  void join(controller::http_server& server);
  boost::asio::awaitable<controller::http_response> answer(controller::http_request request);

  std::size_t streams() const { return open_->all; }
  std::uint64_t revision() const { return revision_; }

 private:
  using outcome = std::expected<controller::http_response, refusal>;
  /// Open streams. Connections may outlive the service.
  struct stream_counts {
    std::size_t all = 0;
    std::map<std::string, std::size_t> by_user;
  };
  struct stream_state;
  /// The header, or what the cookie stands for; empty: neither.
  std::string authorization_of(const controller::http_request& request) const;
  boost::asio::awaitable<controller::http_response> session(controller::http_request request);
  boost::asio::awaitable<controller::http_response> api_answer(controller::http_request request);
  boost::asio::awaitable<outcome> view(const controller::http_request& request, const viewer& viewer);
  boost::asio::awaitable<outcome> node(const controller::http_request& request, const viewer& viewer, std::string name);
  boost::asio::awaitable<outcome> declarations(const controller::http_request& request, const viewer& viewer);
  boost::asio::awaitable<outcome> namespaces(const controller::http_request& request, const viewer& viewer);
  boost::asio::awaitable<outcome> waiting(const controller::http_request& request, const viewer& viewer, std::string ns,
                                          page_range range);
  /// Null: the pod does not wait any more. Valid until the next coroutine runs.
  boost::asio::awaitable<std::expected<const waiting_reasons::entry*, refusal>> reason_of(
      kube::object_key name, const viewer& viewer, const known_resources& resources, controller::milliseconds since);
  boost::asio::awaitable<outcome> reasons(const controller::http_request& request, const viewer& viewer);
  boost::asio::awaitable<outcome> overview(const controller::http_request& request, const viewer& viewer);
  /// One of `months_known`.
  boost::asio::awaitable<month_usage> usage_of(std::string month);
  boost::asio::awaitable<costs> costs_now();
  boost::asio::awaitable<outcome> pod(const controller::http_request& request, const viewer& viewer,
                                      kube::object_key key);
  boost::asio::awaitable<outcome> cost(const controller::http_request& request, const viewer& viewer,
                                       std::string month);
  std::vector<std::string> months_known() const;  ///< the newest first
  reconcilers::chargeback_spec prices() const;
  boost::asio::awaitable<outcome> capacity(const controller::http_request& request, const viewer& viewer);
  boost::asio::awaitable<outcome> holders(const controller::http_request& request, const viewer& viewer, std::string ns,
                                          page_range range);
  /// Why measured use is not known; empty: it is, as of half a minute ago at most.
  boost::asio::awaitable<text::phrase> read_measured();
  boost::asio::awaitable<outcome> measured(const controller::http_request& request, const viewer& viewer);
  boost::asio::awaitable<outcome> history(const controller::http_request& request, const viewer& viewer);
  kube::task<std::string> ask(std::string target);
  outcome stream(const controller::http_request& request, const viewer& viewer);
  boost::asio::awaitable<std::optional<std::string>> next_piece(std::shared_ptr<stream_state> state);
  bool works_too_much(const viewer& viewer) const;
  /// Null: it was not read whole.
  const kube::described_pod* whole_of(const kube::object_key& pod) const;
  /// Of the answers that are kept.
  static std::string key_of(const controller::http_request& request, const viewer& viewer);
  outcome made(const controller::http_request& request, const viewer& viewer,
               const std::function<std::string()>& compute);
  std::optional<refusal> misdirected(const controller::http_request& request) const;

  dependencies dependencies_;
  service_settings settings_;
  session_cookies cookies_;
  answers answers_;
  rate people_;
  waiting_reasons reasons_;
  turns turns_;
  counted::counts working_;  ///< views of waiting pods that are worked out, by user
  std::uint64_t revision_ = 1;
  std::shared_ptr<stream_counts> open_ = std::make_shared<stream_counts>();
  trends trends_;
  text::phrase trend_message_;
  std::string prometheus_problem_;
  std::optional<controller::milliseconds> trends_read_;
  measured_use measured_;
  pod_use pod_use_;
  text::phrase measured_message_;
  std::optional<controller::milliseconds> measured_read_;
  std::uint64_t revision_of_measured_ = 0;
  struct read_month {
    month_usage usage;
    std::optional<controller::milliseconds> read;
  };
  std::map<std::string, read_month, std::less<>> usage_;  ///< by month; a year of them at most
  declared_resources declared_;
  std::optional<controller::milliseconds> declared_read_;
};

/// The header of every answer: nothing is kept, framed, or asked of anyone else.
/// `frame_ancestors`: origins of pages that may show the page in a frame.
void add_guards(controller::http_response& response, const std::vector<std::string>& frame_ancestors = {});
controller::http_response response_of(const refusal& refusal);

}  // namespace cli::console
