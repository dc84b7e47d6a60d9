#pragma once
// TOML as configurations of container runtimes use it, with the place of every value, so that a text can be edited and
// keep all its other bytes. Members of inline tables are settings of their own; those of tables in arrays are left out.

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace agent::facts {

using toml_path = std::vector<std::string>;

struct toml_setting {
  toml_path path;              ///< tables and key
  std::string value;           ///< as it is written, without comments
  std::size_t begin, end;      ///< where the value is in the text
  std::size_t line_end;        ///< behind its line end; of a member of an inline table: 0
  std::size_t line = 0;        ///< from 1
  std::size_t table_size = 0;  ///< how much of the path is the head of the table
  bool has_comment = false;    ///< within an array over several lines
};

struct toml_table {
  toml_path path;
  std::size_t line_end;  ///< behind the line end of its head
  std::size_t line = 0;  ///< from 1
};

/// What is no TOML, and where.
struct toml_problem {
  std::size_t line = 0;
  std::string code;   ///< below config_problem in the catalogue
  std::string value;  ///< what its words are about; empty: nothing
};

struct toml_document {
  std::vector<toml_setting> settings;
  std::vector<toml_table> tables;
  std::string newline = "\n";
  /// What go-toml 2 alone refuses, which is containerd 2's; the libraries of containerd 1 and of CRI-O take it: a byte
  /// order mark, and a table both by a dotted key and by a head.
  std::optional<toml_problem> later_problem;

  const toml_setting* find(const toml_path& path) const;
  const toml_table* find_table(const toml_path& path) const;
  /// Is something set at this path or below it?
  bool has(const toml_path& path) const;
};

std::expected<toml_document, toml_problem> read_toml(std::string_view text);

bool is_within(const toml_path& path, const toml_path& parent);
/// The text of a value: its quotes are taken off.
std::string unquoted(std::string_view value);

}  // namespace agent::facts
