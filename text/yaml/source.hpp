#pragma once
// YAML (several documents) and JSON as people write them, with the place of every key and value, so that a finding can
// say where. Aliases and merge keys are resolved. Whatever a file holds, time and memory are bounded by its size: an
// alias is a pointer, never a copy.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/yaml/scalar.hpp"

namespace text::yaml {

/// Both from 1; columns count characters, not bytes.
struct place {
  int line = 1, column = 1;

  friend auto operator<=>(const place&, const place&) = default;
};

struct node {
  enum class shape : std::uint8_t { null, scalar, sequence, mapping };
  struct entry {
    const node* key;
    const node* value;
  };

  shape is = shape::null;
  bool quoted = false;  ///< text whatever it looks like: in quotes, a block, !!str
  bool flow = false;    ///< a list or mapping in brackets
  place location;
  std::size_t offset = 0;  ///< its first byte in source::text: that of its anchor or tag, where it has one
  std::string text;        ///< of a scalar, as it was written
  std::vector<const node*> items;
  std::vector<entry> entries;        ///< in the order of the file, merged ones last
  std::size_t merged = 0;            ///< how many of them came by <<
  const node* overridden = nullptr;  ///< a key of its own that << brings as well; null: none

  bool scalar() const { return is == shape::scalar; }
  bool mapping() const { return is == shape::mapping; }
  bool sequence() const { return is == shape::sequence; }
};

type type_of(const node& scalar);

/// The text Kubernetes would see (scalar.hpp); a list or mapping as a line of JSON of at most 64 KiB.
std::string canonical(const node& node);

/// The last entry of that name, as kubectl takes it; null when there is none or `parent` is no mapping.
const node::entry* find_entry(const node* parent, std::string_view key);
const node* find(const node* parent, std::string_view key);
/// The text of a scalar under `key`, empty where there is none.
std::string_view text_at(const node* node, std::string_view key);
/// Keys that a later entry of the same mapping repeats.
std::vector<const node*> repeated_keys(const node* parent);

/// The tree as JSON: whole numbers as numbers, fractions as text. Empty when it would be more than `most` values
/// (aliases multiply).
std::optional<nlohmann::json> to_json(const node& node, std::size_t most = 200'000);

/// One file. Nodes live as long as it does, and stay where they are when it is moved.
struct source {
  std::string name;  ///< as it was given; "<stdin>" for standard input
  std::string text;  ///< what was parsed: without a byte order mark
  std::vector<const node*> documents;
  std::deque<node> nodes;

  source() = default;
  source(source&&) = default;
  source& operator=(source&&) = default;
};

inline constexpr std::size_t max_bytes = 32u << 20;

struct fault {
  place location;
  std::string message;
};
std::expected<source, fault> parse(std::string text);
/// The error is one line: "NAME:LINE:COLUMN: what".
std::expected<source, std::string> read(std::string name, std::string text);
/// The bytes of a file, or of standard input for "-": more than are allowed where the file is longer, so that the
/// reader can tell. The error is one line that begins with the name.
std::expected<std::string, std::string> read_bytes(const std::string& path, std::istream& standard_input);
/// The same, parsed.
std::expected<source, std::string> read_file(const std::string& path, std::istream& standard_input);

}  // namespace text::yaml
