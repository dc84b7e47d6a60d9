#pragma once
// A Namespace, for its labels: whose it is.

#include <string_view>

#include "kube/object.hpp"

namespace kube {

struct name_space : object {
  // labels: all. annotations: none.
  static const resource& of();
  static constexpr encoding wire = encoding::protobuf;
  static result<name_space> decode(std::string_view bytes);
  friend bool operator==(const name_space&, const name_space&) = default;
};

}  // namespace kube
