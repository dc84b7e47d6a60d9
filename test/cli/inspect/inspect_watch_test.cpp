#include "cli/inspect/inspect_watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "test/words.hpp"

namespace cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

node_row row_of(const std::string& name, const std::string& reason) {
  node_row out;
  out.name = name;
  out.mode = "vgpu";
  out.phase = "Ready";
  out.reason = reason;
  return out;
}

/// With one space between cells: how wide a column is depends on the words of its header.
std::string cells_of(const std::string& rows) { return std::regex_replace(rows, std::regex(" +"), " "); }

TEST(node_watch, golden_table_for_a_pipe_and_then_the_rows_that_changed) {
  node_watch watch({}, false);
  EXPECT_EQ(watch.changes({row_of("gpu-1", "Enrolled"), row_of("gpu-2", "Enrolled")}),
            "NAME   MODE  PHASE  CARDS  FREE  SICK  CORDONED  REASON\n"
            "gpu-1  vgpu  Ready  -      -     -     -         Enrolled\n"
            "gpu-2  vgpu  Ready  -      -     -     -         Enrolled\n");
  EXPECT_EQ(watch.changes({row_of("gpu-1", "Enrolled"), row_of("gpu-2", "Enrolled")}), "");
  EXPECT_EQ(watch.changes({row_of("gpu-1", "Enrolled"), row_of("gpu-2", "PluginNotReady")}),
            "gpu-2  vgpu  Ready  -      -     -     -         PluginNotReady\n");
  EXPECT_EQ(watch.changes({row_of("gpu-1", "Enrolled"), row_of("gpu-2", "PluginNotReady")}), "");
}

TEST(node_watch, a_node_that_joins_or_leaves_is_a_row) {
  node_watch watch({}, false);
  watch.changes({row_of("gpu-1", "Enrolled")});
  EXPECT_EQ(cells_of(watch.changes({row_of("a-much-longer-name", "Enrolled"), row_of("gpu-1", "Enrolled")})),
            "a-much-longer-name vgpu Ready - - - - Enrolled\n")
      << "the row of gpu-1 is as it was, whatever the widths are";
  EXPECT_EQ(cells_of(watch.changes({row_of("a-much-longer-name", "Enrolled")})), "gpu-1 - - - - - - Gone\n");
}

TEST(node_watch, the_header_comes_with_the_first_node) {
  node_watch watch({}, false);
  EXPECT_EQ(watch.changes({}), words::english("inspect.no_node") + "\n");
  EXPECT_EQ(watch.changes({}), "");
  EXPECT_THAT(watch.changes({row_of("gpu-1", "Enrolled")}), StartsWith(words::english("column.node_name") + " "));
}

TEST(node_watch, a_terminal_gets_the_whole_table_again) {
  node_watch watch({}, true);
  EXPECT_THAT(watch.changes({row_of("gpu-1", "Enrolled")}),
              StartsWith("\033[H\033[2J\033[3J" + words::english("column.node_name") + " "));
  EXPECT_EQ(watch.changes({row_of("gpu-1", "Enrolled")}), "");
  const auto again = watch.changes({row_of("gpu-1", "Enrolled"), row_of("gpu-2", "Enrolled")});
  EXPECT_THAT(again, HasSubstr("gpu-1"));
  EXPECT_THAT(again, HasSubstr("gpu-2"));
  EXPECT_THAT(watch.changes({}), Not(HasSubstr("gpu-1")));
}

}  // namespace
}  // namespace cli
