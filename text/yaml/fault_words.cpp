#include "text/yaml/fault_words.hpp"

#include <yaml-cpp/exceptions.h>

#include <algorithm>
#include <array>
#include <utility>

#include "text/messages.hpp"
#include "text/quotation.hpp"

namespace text::yaml {
namespace {

bool is_known(std::string_view key) { return !pattern_of(key, language::en).empty(); }

}  // namespace

std::string fault_of_library(std::string_view words) {
  /// What the library says, and the end of its key. To some it adds the value.
  static const std::array<std::pair<std::string_view, std::string_view>, 41> library_faults{{
      {YAML::ErrorMsg::YAML_DIRECTIVE_ARGS, "directive_args"},
      {YAML::ErrorMsg::YAML_VERSION, "version"},
      {YAML::ErrorMsg::YAML_MAJOR_VERSION, "major_version"},
      {YAML::ErrorMsg::REPEATED_YAML_DIRECTIVE, "directive_twice"},
      {YAML::ErrorMsg::TAG_DIRECTIVE_ARGS, "tag_args"},
      {YAML::ErrorMsg::REPEATED_TAG_DIRECTIVE, "tag_twice"},
      {YAML::ErrorMsg::CHAR_IN_TAG_HANDLE, "tag_handle"},
      {YAML::ErrorMsg::TAG_WITH_NO_SUFFIX, "tag_suffix"},
      {YAML::ErrorMsg::END_OF_VERBATIM_TAG, "tag_end"},
      {YAML::ErrorMsg::END_OF_MAP, "map_end"},
      {YAML::ErrorMsg::END_OF_MAP_FLOW, "flow_map_end"},
      {YAML::ErrorMsg::END_OF_SEQ, "list_end"},
      {YAML::ErrorMsg::END_OF_SEQ_FLOW, "flow_list_end"},
      {YAML::ErrorMsg::MULTIPLE_TAGS, "two_tags"},
      {YAML::ErrorMsg::MULTIPLE_ANCHORS, "two_anchors"},
      {YAML::ErrorMsg::MULTIPLE_ALIASES, "two_aliases"},
      {YAML::ErrorMsg::ALIAS_CONTENT, "alias_content"},
      {YAML::ErrorMsg::INVALID_HEX, "hex"},
      {YAML::ErrorMsg::INVALID_UNICODE, "unicode"},
      {YAML::ErrorMsg::INVALID_ESCAPE, "escape"},
      {YAML::ErrorMsg::UNKNOWN_TOKEN, "token"},
      {YAML::ErrorMsg::DOC_IN_SCALAR, "document_in_scalar"},
      {YAML::ErrorMsg::EOF_IN_SCALAR, "end_in_scalar"},
      {YAML::ErrorMsg::CHAR_IN_SCALAR, "character_in_scalar"},
      {YAML::ErrorMsg::TAB_IN_INDENTATION, "tab"},
      {YAML::ErrorMsg::FLOW_END, "flow_end"},
      {YAML::ErrorMsg::BLOCK_ENTRY, "block_entry"},
      {YAML::ErrorMsg::MAP_KEY, "map_key"},
      {YAML::ErrorMsg::MAP_VALUE, "map_value"},
      {YAML::ErrorMsg::ALIAS_NOT_FOUND, "alias_name"},
      {YAML::ErrorMsg::ANCHOR_NOT_FOUND, "anchor_name"},
      {YAML::ErrorMsg::CHAR_IN_ALIAS, "character_in_alias"},
      {YAML::ErrorMsg::CHAR_IN_ANCHOR, "character_in_anchor"},
      {YAML::ErrorMsg::ZERO_INDENT_IN_BLOCK, "block_indent"},
      {YAML::ErrorMsg::CHAR_IN_BLOCK, "character_in_block"},
      {YAML::ErrorMsg::AMBIGUOUS_ANCHOR, "ambiguous_anchor"},
      {YAML::ErrorMsg::UNKNOWN_ANCHOR, "unknown_anchor"},
      {YAML::ErrorMsg::INVALID_SCALAR, "no_scalar"},
      {YAML::ErrorMsg::BAD_CONVERSION, "conversion"},
      {YAML::ErrorMsg::BAD_SUBSCRIPT, "subscript"},
      {YAML::ErrorMsg::INVALID_NODE, "node"},
  }};
  const auto same = [&](const auto& row) { return row.first == words; };
  const auto with_value = [&](const auto& row) { return row.first.ends_with(": ") && words.starts_with(row.first); };
  auto match = std::ranges::find_if(library_faults, same);
  if (match == library_faults.end()) match = std::ranges::find_if(library_faults, with_value);
  return match == library_faults.end() ? std::string(words) : "yaml.fault." + std::string(match->second);
}

phrase unreadable(const std::string& error) {
  constexpr std::string_view mark = ": ";
  const auto last = error.rfind(mark);
  const bool ends_in_key = last != error.npos && is_known(error.substr(last + mark.size()));
  const auto gap = ends_in_key ? last : std::min(error.find(mark), error.size());
  const auto place = error.substr(0, gap), problem = error.substr(std::min(gap + mark.size(), error.size()));
  return {"yaml.unreadable",
          {{"place", place}, {"problem", ends_in_key ? phrase{problem, {{"place", place}}} : quotation_of(problem)}}};
}

}  // namespace text::yaml
