#pragma once
// Who is asking, and what they may see: the caller's own token, judged by the API server (TokenReview), and their
// rights (SubjectAccessReview). Answers are kept for half a minute, and never longer than the token lives; so a right
// that is taken away holds for that long. A token that the API server has accepted within the last hour is asked about
// again from a budget of its own: wrong tokens of others, also from the same address, never use it up. Tokens are known
// here by their SHA-256 only, and stand in no log and no message.
//
// A token is taken that is for `audience`, which no other program takes, or for the API server itself. A TokenReview
// asks about either: one that names no audience is about the API server's own, which has no fixed name. So the token's
// own word (JWT claim aud) says which of the two is asked first; it decides nothing else.

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <expected>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cli/console/rate.hpp"
#include "cli/console/viewer.hpp"
#include "kube/client.hpp"

namespace cli::console {

/// An answer that is no view: status, word for programs, sentence for people.
struct refusal {
  int status = 0;
  std::string code, message;
  std::int64_t retry_seconds = 0;  ///< 0: not said
};

/// Of the tokens that are of use here alone: `kubectl create token NAME --audience quartermaster-console`.
inline constexpr std::string_view audience = "quartermaster-console";

struct access_settings {
  std::chrono::seconds kept{30};            ///< what was answered yes
  std::chrono::seconds kept_refused{5};     ///< what was answered no
  std::chrono::seconds accepted_for{3600};  ///< how long an accepted token renews from the budget of such tokens
  std::size_t most_tokens = 1024;           ///< known at a time, of either answer
  std::size_t most_accepted = 4096;         ///< tokens with that budget
  std::size_t most_namespaces = 1000;       ///< asked about for one person
  rate_settings strangers{5, 20, 4096};     ///< tokens that are not known, per address
  rate_settings everyone{50, 100, 1};       ///< tokens that are not known, of all together
  rate_settings renewals{10, 40, 4096};     ///< accepted tokens, per person
  rate_settings all_renewals{50, 100, 1};   ///< accepted tokens, of all together
  std::string declarations = "kube-public";
  bool audience_only = false;  ///< tokens for the API server itself are refused
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

  std::size_t known() const { return sessions_.size() + refused_.size() + accepted_.size(); }

 private:
  struct session {
    viewer rights;
    controller::milliseconds until{0};
  };
  struct rejection {
    refusal reason;
    controller::milliseconds until{0};
  };
  struct acceptance {
    std::string user;
    controller::milliseconds until{0};
  };
  struct person {
    std::string name;
    std::string review;  ///< JSON: user, uid, groups and extra, as a SubjectAccessReview takes them
  };
  /// Of a TokenReview. Without a person the token is refused.
  struct judgement {
    std::optional<person> owner;
    bool is_for_others = false;  ///< the API server made it, for another audience
  };
  using digest = std::string;
  /// Whether the token is for `audience`, or else for the API server itself.
  kube::task<judgement> review_token(std::string token, bool asks_for_audience);
  kube::task<bool> may_list(const person& person, std::string group, std::string resource, std::string ns);
  struct right {
    std::string group, resource, ns;
    bool is_there = false;
  };
  /// Some at a time.
  kube::task<void> ask_all(const person& person, std::vector<right>& rights);
  kube::task<viewer> rights_of(person person);
  boost::asio::awaitable<admission> learn(std::string token, digest digest, std::string address);
  refusal refusal_of(const judgement& judgement) const;
  /// How long to wait before the API server is asked about the token; empty: not at all, and it counts.
  std::optional<std::chrono::seconds> wait_for(const digest& digest, const std::string& address);
  /// At most `most` of them: the one that ends first makes room.
  template <class Value>
  void keep(std::unordered_map<digest, Value>& known, const digest& digest, Value value, std::size_t most) const;

  kube::client& api_;
  access_settings settings_;
  std::function<std::vector<std::string>()> namespaces_;
  std::function<controller::milliseconds()> now_;
  std::unordered_map<digest, session> sessions_;
  std::unordered_map<digest, rejection> refused_;
  std::unordered_map<digest, acceptance> accepted_;
  counted::counts asking_;  ///< by digest: the API server is being asked; others wait
  rate strangers_, everyone_, renewals_, all_renewals_;
};

/// When a token ends by its own word (JWT claim exp), seconds since 1970; empty: it does not say.
std::optional<std::int64_t> end_of(std::string_view token);
/// By its own word (JWT claim aud) it is for this audience.
bool names_audience(std::string_view token, std::string_view name);

}  // namespace cli::console
