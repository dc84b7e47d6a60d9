#pragma once
// Where in a file something can be put as text, and how it is taken out again.

#include <expected>
#include <nlohmann/json.hpp>
#include <optional>

#include "scheduler_config/edit/text_edit.hpp"
#include "scheduler_config/judge/document.hpp"

namespace scheduler_config {

finding no_place(text::yaml::place place, std::string_view field);

/// What a reader makes of the file; nothing where aliases make it too much to compare.
std::optional<nlohmann::json> tree_of(const document& document);
/// The same of what is written.
nlohmann::json tree_of(const nlohmann::ordered_json& object);

/// On the lines below a key: first in the list or mapping that stands there, or all of it where nothing does.
std::expected<insertion, finding> below_key(const document& document, const text::yaml::node::entry& entry,
                                            std::string_view field, const nlohmann::ordered_json& lines);
/// On the line after a node that ends on its own.
std::expected<insertion, finding> after_line(const document& document, const text::yaml::node& last, std::size_t margin,
                                             std::string_view field, const nlohmann::ordered_json& lines);

/// Without everything between the comment lines that `marked` writes, and without them. code::nothing_of_ours,
/// code::ours_was_edited.
std::expected<std::string, finding> without_marked(std::string_view text);

}  // namespace scheduler_config
