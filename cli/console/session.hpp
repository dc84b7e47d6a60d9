#pragma once
// Who has signed in stays so when the page is loaded again: a cookie that holds the caller's token, sealed. The key is
// made at the start and is in this memory only, so that the cookie is of use to this process alone: elsewhere, and in
// another program on the same host, no one can read the token out of it. Nothing is kept here. The token in it is
// judged at each request as one that comes by itself, so it ends when the token ends.

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace cli::console {

class session_cookies {
 public:
  session_cookies();

  /// For Set-Cookie: no script can read it, and no other site can have it sent. `secure`: by HTTPS alone.
  std::string made_of(std::string_view token, bool secure) const;
  /// For Set-Cookie: the browser forgets it.
  static std::string gone(bool secure);
  /// The token in the cookies of a request; empty: there is none, or it is not sealed by this process.
  std::string token_in(std::string_view cookies) const;

 private:
  std::string sealed(std::string_view token) const;
  std::optional<std::string> opened(std::string_view sealed) const;

  std::array<unsigned char, 32> key_{};
};

}  // namespace cli::console
