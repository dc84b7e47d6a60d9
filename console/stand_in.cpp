// Stands in for the page where console/page has not been built: one line of HTML.

#include "console/page/assets.hpp"

namespace console::page {

const asset* find(std::string_view path) {
  static constexpr asset page{"", "text/html; charset=utf-8",
                              "<!doctype html><title>Quartermaster</title>The page is not built.\n", "",
                              "\"stand-in\""};
  return path.empty() ? &page : nullptr;
}

}  // namespace console::page
