#pragma once
// The little of TOML that configurations of container runtimes use, with the place of every value, so that a text can
// be edited and keep all its other bytes. What is not understood (texts over several lines, an inline table in the way)
// is an error and never guessed.

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "text/phrase.hpp"

namespace agent::container_runtime {

using toml_path = std::vector<std::string>;

struct toml_setting {
  toml_path path;              ///< tables and key
  std::string value;           ///< as it is written, without comments
  std::size_t begin, end;      ///< where the value is in the text
  std::size_t line_end;        ///< behind its line end
  std::size_t table_size = 0;  ///< how much of the path is the table
  bool has_comment = false;    ///< within an array over several lines
};

struct toml_table {
  toml_path path;
  std::size_t line_end;  ///< behind the line end of its head
};

struct toml_document {
  std::vector<toml_setting> settings;
  std::vector<toml_table> tables;
  std::string newline = "\n";

  const toml_setting* find(const toml_path& path) const;
  const toml_table* find_table(const toml_path& path) const;
  /// Is something set at this path or below it?
  bool has(const toml_path& path) const;
};

/// Error: "line 7 is not understood: ...".
std::expected<toml_document, text::phrase> read_toml(std::string_view text);

/// The text of a value: its quotes are taken off.
std::string unquoted(std::string_view value);

}  // namespace agent::container_runtime
