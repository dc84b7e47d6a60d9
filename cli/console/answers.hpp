#pragma once
// Answers that are computed once for all who see the same, and sent again while nothing has changed. Bounded in number
// and bytes. An ETag is of the content alone: it says nothing of what has changed elsewhere.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "controller/clock.hpp"
#include "controller/http_server.hpp"

namespace cli::console {

struct answer_settings {
  std::size_t most = 64;                      ///< answers
  std::size_t most_bytes = 64u << 20;         ///< of all bodies
  controller::milliseconds least_age{1'000};  ///< so long an answer holds, whatever changes
  controller::milliseconds most_age{10'000};  ///< so long at most, whether or not something changed
  std::size_t least_packed = 1024;            ///< bytes of a body from which on it is compressed
};

class answers {
 public:
  explicit answers(answer_settings settings = {}) : settings_(settings) {}

  struct answer {
    std::string body, packed, etag;
    std::uint64_t revision = 0;
    controller::milliseconds made{0};
  };
  /// What was made at this revision and still holds; null: there is none.
  const answer* find(const std::string& key, std::uint64_t revision, controller::milliseconds now) const;
  /// The body that `compute` makes, or the one it made before at this revision.
  const answer& find_or_make(const std::string& key, std::uint64_t revision, controller::milliseconds now,
                             const std::function<std::string()>& compute);
  /// In place of what was made before.
  const answer& keep(const std::string& key, std::uint64_t revision, controller::milliseconds now, std::string body);
  std::size_t size() const { return known_.size(); }

 private:
  void make_room(std::size_t bytes);

  answer_settings settings_;
  std::map<std::string, answer> known_;
  std::size_t bytes_ = 0;
};

/// 200, or 304 where the caller has it already.
controller::http_response response_of(const answers::answer& answer, const controller::http_fields& fields);
std::string etag_of(std::string_view body);
bool takes_gzip(std::string_view accept_encoding);

}  // namespace cli::console
