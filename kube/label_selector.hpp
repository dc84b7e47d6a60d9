#pragma once
// A label selector as people write it for kubectl's -l: "a=b,c!=d,e,!f,g in (x,y),h notin (z)". For objects that are
// here already; an API server is given the text itself.

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "kube/packed_map.hpp"

namespace kube {

class label_selector {
 public:
  /// What is wrong with the text, in one line. An empty text selects everything. Names and values are held to the API
  /// server's rules for labels.
  static std::expected<label_selector, std::string> parse(std::string_view text);
  bool selects(const packed_map& labels) const;

 private:
  struct requirement {
    std::string key;
    bool is_in = true;        ///< false: the label is missing, or has none of the values
    bool has_values = false;  ///< false: whether the label is there is all that counts
    std::vector<std::string> values;
  };
  std::vector<requirement> all_;
};

}  // namespace kube
