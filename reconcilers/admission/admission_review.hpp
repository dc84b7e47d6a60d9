#pragma once
// AdmissionReviews as they come and as they are answered, whatever they are about. For use in .cpp files (simdjson's
// header is large).

#include <expected>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/json_object.hpp"
#include "reconcilers/admission/admission.hpp"

namespace reconcilers::reviews {

template <class T>
using understood = std::expected<T, std::string>;  ///< the error is the line that is answered

/// What a review says apart from its objects.
struct envelope {
  std::string uid, kind, operation, ns, sub_resource;
};

/// Given the objects that are there: whether it is the old one, and its value.
using object_reader = std::function<void(bool old, kube::on_demand::value object)>;
/// One pass, members in any order; one that is there twice is refused, for two readers would see two reviews. Views
/// that `take` keeps live as long as `review`.
understood<envelope> read(kube::on_demand::document& document, std::string_view review, const object_reader& take);
/// The parser for a review: one is kept for what is usual, a large one must not leave its memory behind.
kube::on_demand::document& parser_for(std::string_view review, kube::on_demand::document& of_its_own);
/// The review is about this kind, which is what `path` judges.
understood<void> is_about(const envelope& review, std::string_view kind, std::string_view path);

/// What is answered to a review that was understood.
struct decision {
  std::string refusal;  ///< empty: allowed
  std::vector<std::string> warnings;
  std::string patch;  ///< JSON patch; empty: none
};
review_answer answer(std::string_view uid, const decision& decision);
review_answer malformed(std::string reason);

/// One text of at most 4,000 bytes, safe to show.
std::string joined(std::span<const std::string> texts);
/// Safe to show, each of at most 256 bytes, all together of at most 4,096.
std::vector<std::string> warnings_of(std::span<const std::string> texts);

/// As the content of a JSON string. `text` is UTF-8: it came out of JSON, or is safe to show.
void append_escaped(std::string& output, std::string_view text);

}  // namespace reconcilers::reviews
