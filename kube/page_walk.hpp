#pragma once
// From page to page of a list, and to its end, also where a server never says that it has come: it names the same page
// again, or always another one.

#include <string>
#include <string_view>

#include "kube/error.hpp"
#include "kube/request.hpp"

namespace kube {

class page_walk {
 public:
  /// `operation` begins the error ("list pods").
  explicit page_walk(std::string operation) : operation_(std::move(operation)) {}

  /// Whether there is a page after the one that came with this token, which `options` then asks for. errc::decode: it
  /// is the page that has just come, or there are more than any cluster has.
  result<bool> next(std::string_view token, list_options& options) {
    if (token.empty()) return false;
    const auto problem = token == options.continue_token ? std::string("names the same next page twice")
                         : pages_++ == most_pages
                             ? "names no last page after " + std::to_string(most_pages) + " of them"
                             : std::string();
    if (!problem.empty())
      return std::unexpected(
          error{errc::decode, 0, operation_ + ": the server " + problem + ", so the list has no end", {}});
    options.continue_token = token;
    return true;
  }

 private:
  /// Pages have 50 objects or more: etcd holds no million of them.
  static constexpr int most_pages = 20'000;
  std::string operation_;
  int pages_ = 1;
};

}  // namespace kube
