#pragma once
// The page of the console, inside the program. `./dev build` makes it from console/page/source with npm, and writes
// console/page/dist/assets.cpp. The same sources and package-lock.json give the same bytes in every folder.

#include <string_view>

namespace console::page {

/// One file that a browser may ask for. All texts last as long as the program.
struct asset {
  std::string_view path;      ///< what follows "/console/": "" is the page, "assets/app.js" its program
  std::string_view type;      ///< for Content-Type
  std::string_view bytes;     ///< as they are sent
  std::string_view encoding;  ///< for Content-Encoding: "gzip"
  std::string_view etag;      ///< for ETag, with its quotes; differs where the bytes differ
};

/// Returns the asset of exactly this path, or nullptr.
const asset* find(std::string_view path);

}  // namespace console::page
