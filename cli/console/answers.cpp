#include "cli/console/answers.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "controller/gzip.hpp"

namespace cli::console {

const answers::answer* answers::find(const std::string& key, std::uint64_t revision,
                                     controller::milliseconds now) const {
  const auto match = known_.find(key);
  if (match == known_.end()) return nullptr;
  const auto age = now - match->second.made;
  const bool is_same = match->second.revision == revision && age < settings_.most_age;
  return is_same || age < settings_.least_age ? &match->second : nullptr;
}

const answers::answer& answers::find_or_make(const std::string& key, std::uint64_t revision,
                                             controller::milliseconds now,
                                             const std::function<std::string()>& compute) {
  const auto* kept = find(key, revision, now);
  return kept ? *kept : keep(key, revision, now, compute());
}

const answers::answer& answers::keep(const std::string& key, std::uint64_t revision, controller::milliseconds now,
                                     std::string body) {
  const auto size_of = [](const answer& entry) { return entry.body.size() + entry.packed.size(); };
  if (const auto match = known_.find(key); match != known_.end()) {
    bytes_ -= size_of(match->second);
    known_.erase(match);
  }
  answer made{std::move(body), {}, {}, revision, now};
  made.etag = etag_of(made.body);
  if (made.body.size() >= settings_.least_packed) made.packed = controller::gzip(made.body);
  make_room(size_of(made));
  bytes_ += size_of(made);
  return known_.insert_or_assign(key, std::move(made)).first->second;
}

void answers::make_room(std::size_t bytes) {
  while (!known_.empty() && (known_.size() >= settings_.most || bytes_ + bytes > settings_.most_bytes)) {
    const auto oldest = std::ranges::min_element(known_, {}, [](const auto& entry) { return entry.second.made; });
    bytes_ -= oldest->second.body.size() + oldest->second.packed.size();
    known_.erase(oldest);
  }
}

std::string etag_of(std::string_view body) {
  std::array<unsigned char, 32> sum{};
  unsigned size = 0;
  EVP_Digest(body.data(), body.size(), sum.data(), &size, EVP_sha256(), nullptr);
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "\"";
  for (std::size_t i = 0; i < sum.size() / 2; ++i) {
    out += digits[sum[i] >> 4];
    out += digits[sum[i] & 15];
  }
  return out + "\"";
}

bool takes_gzip(std::string_view accept_encoding) {
  // A caller that refuses gzip (q=0) has it in its list, and browsers have no such list.
  return accept_encoding.contains("gzip") && !accept_encoding.contains("gzip;q=0,") &&
         !accept_encoding.ends_with("gzip;q=0");
}

controller::http_response response_of(const answers::answer& answer, const controller::http_fields& fields) {
  controller::http_response out;
  out.content_type = "application/json; charset=utf-8";
  out.fields = {{"ETag", answer.etag}, {"Vary", "Authorization, Cookie, Accept-Encoding"}};
  if (fields.if_none_match == answer.etag) {
    out.status = 304;
    return out;
  }
  const bool is_packed = !answer.packed.empty() && takes_gzip(fields.accept_encoding);
  if (is_packed) out.fields.emplace_back("Content-Encoding", "gzip");
  out.body = is_packed ? answer.packed : answer.body;
  return out;
}

}  // namespace cli::console
