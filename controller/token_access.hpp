#pragma once
// Who is asking, and what they may do: the caller's own token, judged by the API server (TokenReview), and the rights
// that the user of this class asks about (SubjectAccessReview). Answers are kept for a while, and never longer than the
// token lives; so a right that is taken away holds for that long. A token that the API server has accepted within the
// last hour is asked about again from a budget of its own: wrong tokens of others, also from the same address, never
// use it up. Wrong tokens from other addresses leave new tokens from the address of an accepted one their turn, because
// kubelets exchange tokens every hour. Tokens are known here by their SHA-256 only, and stand in no log and no message.
//
// A token is taken that is for `audience`, which no other program takes, or for the API server itself. A TokenReview
// asks about either: one that names no audience is about the API server's own, which has no fixed name. So the token's
// own word (JWT claim aud) says which of the two is asked first; it decides nothing else.

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <expected>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "controller/clock.hpp"
#include "controller/rate.hpp"
#include "controller/sleep.hpp"
#include "kube/client.hpp"
#include "text/phrase.hpp"

namespace controller {

/// An answer that is no page: status, word for programs, sentence for people.
struct refusal {
  int status = 0;
  std::string code;
  text::phrase message;
  std::int64_t retry_seconds = 0;  ///< 0: not said
};

struct token_settings {
  std::string audience;                     ///< empty: only tokens for the API server itself are taken
  bool audience_only = false;               ///< tokens for the API server itself are refused
  std::chrono::seconds kept{30};            ///< what was answered yes
  std::chrono::seconds kept_refused{5};     ///< what was answered no
  std::chrono::seconds accepted_for{3600};  ///< how long an accepted token renews from the budget of such tokens
  std::size_t most_tokens = 1024;           ///< known at a time, of either answer
  std::size_t most_accepted = 4096;         ///< tokens with that budget, and addresses that they came from
  std::size_t most_waiting = 64;            ///< requests that wait for the same question of another one
  rate_settings strangers{5, 20, 4096};     ///< tokens that are not known, per address
  rate_settings everyone{50, 100, 1};       ///< of all addresses together, without those of accepted tokens
  rate_settings neighbours{50, 100, 1};     ///< of all addresses of accepted tokens together
  rate_settings renewals{10, 40, 4096};     ///< accepted tokens, per person
  rate_settings all_renewals{50, 100, 1};   ///< accepted tokens, of all together
};

/// Whose token it is.
struct token_owner {
  std::string name;
  std::string review;  ///< JSON: user, uid, groups and extra, as a SubjectAccessReview takes them
};

/// Asks the API server about tokens, as often as the budgets allow.
class token_reviewer {
 public:
  using digest = std::string;

  token_reviewer(kube::client& api, token_settings settings, std::function<milliseconds()> now);

  /// A refusal is kept, unless the API server could not be asked.
  boost::asio::awaitable<std::expected<token_owner, refusal>> owner_of(std::string token, digest digest,
                                                                       std::string address);
  /// A token that is good for something here came from this address.
  void trust(const std::string& address);
  /// The token is good for nothing here.
  void reject(const digest& digest, refusal reason);
  /// The answer no that is kept.
  std::optional<refusal> rejection_of(const digest& digest) const;
  /// At most `settings.most_tokens` of them: the one that ends first makes room.
  template <class Value>
  void keep(std::unordered_map<digest, Value>& known, const digest& digest, Value value, std::size_t most) const;

  const token_settings settings;
  std::size_t known() const { return refused_.size() + accepted_.size(); }
  milliseconds now() const { return now_(); }

 private:
  struct rejection {
    refusal reason;
    milliseconds until{0};
  };
  struct acceptance {
    std::string user;
    milliseconds until{0};
  };
  /// Of a TokenReview. Without an owner the token is refused.
  struct judgement {
    std::optional<token_owner> owner;
    bool is_for_others = false;  ///< the API server made it, for another audience
  };
  /// Whether the token is for `settings.audience`, or else for the API server itself.
  kube::task<judgement> review(std::string token, bool asks_for_audience);
  refusal refusal_of(const judgement& judgement) const;
  /// How long to wait before the API server is asked about the token; empty: not at all, and it counts.
  std::optional<std::chrono::seconds> wait_for(const digest& digest, const std::string& address);

  kube::client& api_;
  std::function<milliseconds()> now_;
  std::unordered_map<digest, rejection> refused_;
  std::unordered_map<digest, acceptance> accepted_;
  std::unordered_map<std::string, acceptance> addresses_;
  rate strangers_, everyone_, neighbours_, renewals_, all_renewals_;
};

/// What follows "Bearer "; empty: it is no such header, or longer than any token.
std::string_view bearer_in(std::string_view authorization);
std::string sha256_of(std::string_view text);
/// When a token ends by its own word (JWT claim exp), seconds since 1970; empty: it does not say.
std::optional<std::int64_t> end_of(std::string_view token);
/// By its own word (JWT claim aud) it is for this audience.
bool names_audience(std::string_view token, std::string_view name);
/// A SubjectAccessReview about resourceAttributes or nonResourceAttributes.
kube::task<bool> is_allowed(kube::client& api, const token_owner& owner, const char* kind,
                            const nlohmann::json& attributes);

refusal unauthenticated(std::string_view audience);
refusal too_often(std::chrono::seconds wait);
/// `subject`: "the token", "rights".
refusal not_asked(text::phrase subject, const kube::error& error);

/// Tokens with what their owners may do, as `judge` says it. A refusal of `judge` is kept like one of a token. One
/// question per token at a time; who has the same token waits for the answer.
template <class Rights>
class token_access {
 public:
  using admission = std::expected<Rights, refusal>;
  using judge = std::function<kube::task<admission>(token_owner)>;

  /// `api` needs `create` for the two reviews, nothing else.
  token_access(kube::client& api, token_settings settings, judge judge, std::function<milliseconds()> now)
      : reviewer_(api, std::move(settings), std::move(now)), judge_(std::move(judge)) {}

  /// `authorization` is the header's value. `address` is the caller's.
  boost::asio::awaitable<admission> admit(std::string authorization, std::string address);
  std::size_t known() const { return sessions_.size() + reviewer_.known(); }

 private:
  using digest = token_reviewer::digest;
  struct session {
    Rights rights;
    milliseconds until{0};
  };
  boost::asio::awaitable<admission> learn(std::string token, digest digest, std::string address);

  token_reviewer reviewer_;
  judge judge_;
  std::unordered_map<digest, session> sessions_;
  counted::counts asking_, waiting_;  ///< by digest: the API server is being asked; others wait
};

template <class Value>
void token_reviewer::keep(std::unordered_map<digest, Value>& known, const digest& digest, Value value,
                          std::size_t most) const {
  if (known.size() >= most && !known.contains(digest)) {
    const auto now = now_();
    std::erase_if(known, [&](const auto& entry) { return entry.second.until <= now; });
    if (known.size() >= most)
      known.erase(std::ranges::min_element(known, {}, [](const auto& entry) { return entry.second.until; }));
  }
  known.insert_or_assign(digest, std::move(value));
}

template <class Rights>
boost::asio::awaitable<typename token_access<Rights>::admission> token_access<Rights>::learn(std::string token,
                                                                                             digest digest,
                                                                                             std::string address) {
  const auto end = end_of(token);
  auto owner = co_await reviewer_.owner_of(std::move(token), digest, address);
  if (!owner) co_return std::unexpected(std::move(owner.error()));
  auto answer = co_await judge_(std::move(*owner));
  if (!answer) co_return std::unexpected(not_asked({"access.rights"}, answer.error()));
  auto rights = std::move(*answer);
  if (!rights) {
    reviewer_.reject(digest, rights.error());
    co_return std::unexpected(std::move(rights.error()));
  }
  reviewer_.trust(address);
  milliseconds kept = reviewer_.settings.kept;
  if (end) {
    const auto left = std::chrono::seconds(*end) - std::chrono::system_clock::now().time_since_epoch();
    kept = std::min(kept, std::max(std::chrono::duration_cast<milliseconds>(left), milliseconds(0)));
  }
  reviewer_.keep(sessions_, digest, session{*rights, reviewer_.now() + kept}, reviewer_.settings.most_tokens);
  co_return std::move(*rights);
}

template <class Rights>
boost::asio::awaitable<typename token_access<Rights>::admission> token_access<Rights>::admit(std::string authorization,
                                                                                             std::string address) {
  /// How long a request waits for the same question of another one.
  constexpr int most_waits = 500;
  constexpr milliseconds one_wait{20};
  const auto token = std::string(bearer_in(authorization));
  if (token.empty()) co_return std::unexpected(unauthenticated(reviewer_.settings.audience));
  const auto digest = sha256_of(token);
  if (asking_.contains(digest)) {
    const counted waiter(waiting_, digest);
    if (waiting_[digest] > reviewer_.settings.most_waiting)
      co_return std::unexpected(too_often(std::chrono::seconds(1)));
    for (int waits = 0; asking_.contains(digest) && waits < most_waits; ++waits) {
      const bool slept = co_await sleep_for(one_wait);
      if (!slept) co_return std::unexpected(refusal{503, "not_ready", {"access.stops"}, 5});
    }
  }
  if (const auto match = sessions_.find(digest); match != sessions_.end() && reviewer_.now() < match->second.until)
    co_return match->second.rights;
  if (auto reason = reviewer_.rejection_of(digest)) co_return std::unexpected(std::move(*reason));
  const counted question(asking_, digest);
  co_return co_await learn(token, digest, std::move(address));
}

}  // namespace controller
