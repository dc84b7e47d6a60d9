#pragma once
// Annotations of products of which only their own scheduler and plugin know what to do: named for people, never acted
// upon. HAMi alone has some.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/projections/node.hpp"
#include "text/phrase.hpp"

namespace reconcilers::dialects {

/// What is wrong with an annotation that a product keeps on a node.
struct annotation_fault {
  std::string annotation;
  text::phrase reason;
  bool unreadable = false;  ///< the product cannot read it either; else it says that the product left the node out
};
std::vector<annotation_fault> annotation_faults(const kube::node& node);

/// The product whose own scheduler or plugin alone reads this annotation of a pod, as people know it; empty: none.
/// Ask it of what nothing here reads.
std::string_view reader_of(std::string_view annotation);
/// Of those the ones that people write.
std::span<const std::string_view> unread_annotations();

}  // namespace reconcilers::dialects
