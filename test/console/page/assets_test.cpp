// The page inside the program is the one that npm made.
#include "console/page/assets.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

namespace {

using console::page::find;

TEST(console_page_assets, unpack_to_the_files_of_the_build) {
  const auto packed = std::filesystem::temp_directory_path() / ("quartermaster-asset-" + std::to_string(::getpid()));
  std::set<std::string_view> etags;
  for (const std::string path : {"", "assets/app.js", "assets/app.css", "assets/icon.svg", "assets/third-party.txt"}) {
    const auto* asset = find(path);
    ASSERT_NE(asset, nullptr) << path;
    EXPECT_EQ(asset->encoding, "gzip");
    EXPECT_TRUE(etags.insert(asset->etag).second) << asset->etag;
    EXPECT_TRUE(asset->etag.starts_with('"') && asset->etag.ends_with('"')) << asset->etag;
    std::ofstream(packed, std::ios::binary)
        .write(asset->bytes.data(), static_cast<std::streamsize>(asset->bytes.size()));
    const std::string file = "console/page/dist/" + (path.empty() ? "index.html" : path);
    EXPECT_EQ(std::system(("gzip -dc <" + packed.string() + " | cmp - " + file).c_str()), 0) << path;
  }
  std::filesystem::remove(packed);
}

TEST(console_page_assets, have_types_that_browsers_ask_for) {
  EXPECT_EQ(find("")->type, "text/html; charset=utf-8");
  EXPECT_EQ(find("assets/app.js")->type, "text/javascript; charset=utf-8");
  EXPECT_EQ(find("assets/app.css")->type, "text/css; charset=utf-8");
}

TEST(console_page_assets, are_found_by_their_exact_path_only) {
  for (const std::string_view path :
       {"index.html", "/", "assets", "assets/", "assets/app.js/", "../assets.cpp", "assets/APP.JS"}) {
    EXPECT_EQ(find(path), nullptr) << path;
  }
}

}  // namespace
