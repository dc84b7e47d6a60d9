#include "cli/output/headers.hpp"

namespace cli {

std::vector<std::string> headers_of(std::string_view table, std::initializer_list<std::string_view> names,
                                    const bilingual& say) {
  std::vector<std::string> out;
  for (const auto name : names) out.push_back(say.message(std::string(table) + ".column." + std::string(name)));
  return out;
}

}  // namespace cli
