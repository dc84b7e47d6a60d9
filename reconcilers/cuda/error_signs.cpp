#include "reconcilers/cuda/error_signs.hpp"

#include <vector>

namespace reconcilers::cuda {

std::span<const error_signs> all_error_signs() {
  static const auto all = [] {
    std::vector<error_signs> out;
    for (const auto part : {cards_error_signs(), driver_error_signs(), containers_error_signs(), vendors_error_signs(),
                            memory_error_signs(), image_error_signs(), program_error_signs()})
      out.insert(out.end(), part.begin(), part.end());
    return out;
  }();
  return all;
}

}  // namespace reconcilers::cuda
