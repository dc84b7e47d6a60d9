#include "scheduler_config/edit/edited.hpp"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "scheduler_config/edit/placing.hpp"
#include "scheduler_config/managed.hpp"
#include "text/text.hpp"

namespace scheduler_config {
namespace {

using text::yaml::node;
using plain = nlohmann::json;

/// Those of a list that `bare` has no more: ours are the first.
std::span<const node* const> gone(const document& text, const document& bare, std::string_view key) {
  const auto items = [key](const document& document) -> std::span<const node* const> {
    const auto* list = text::yaml::find(document.root, key);
    return list ? std::span<const node* const>(list->items) : std::span<const node* const>();
  };
  const auto before = items(text), after = items(bare);
  return before.first(before.size() - std::min(before.size(), after.size()));
}

text::phrase words(std::string_view key) { return {"scheduler_file." + std::string(key)}; }

plain without_secrets(plain value) {
  if (!value.is_structured()) return value;
  for (auto position = value.begin(); position != value.end(); ++position) {
    const bool secret = value.is_object() && position.key().ends_with("Data");
    *position =
        secret ? plain(text::message("scheduler_file.not_shown", text::language::en)) : without_secrets(*position);
  }
  return value;
}

text::phrase shown_json(std::string_view field, const plain& value, const char* instead_of_a_secret) {
  if (field.ends_with("Data")) return words(instead_of_a_secret);
  return {without_secrets(value).dump(-1, ' ', false, plain::error_handler_t::replace)};
}

/// Of a member of managedResources.
std::string name_of(const plain& item) { return item.at("name").get<std::string>(); }

class comparison {
 public:
  /// `expected` may be null: we write nothing there.
  void compare(const node& is, const plain* expected, const std::string& field, text::yaml::place place) {
    static const plain nothing = plain::object();
    if (is.mapping() && (!expected || expected->is_object())) return members(is, expected ? *expected : nothing, field);
    if (is.sequence() && expected && expected->is_array()) return items(is, *expected, field);
    const auto value = text::yaml::to_json(is);
    if (expected && value == *expected) return;
    out.push_back({place, field, value ? shown_json(field, *value, "other_not_shown") : phrase_of(term::list),
                   expected ? shown_json(field, *expected, "given") : text::phrase()});
  }

  std::vector<edit> out;

 private:
  void missing(const plain& plain, const std::string& field, text::yaml::place place) {
    out.push_back({place, field, {}, shown_json(field, plain, "given")});
  }
  void members(const node& is, const plain& plain, const std::string& field) {
    for (const auto& [key, value] : is.entries) {
      const auto match = plain.find(key->text);
      compare(*value, match == plain.end() ? nullptr : &*match, below(field, key->text), key->location);
    }
    for (const auto& [key, value] : plain.items()) {
      if (!text::yaml::find(&is, key)) missing(value, below(field, key), is.location);
    }
  }
  void items(const node& is, const plain& plain, const std::string& field) {
    const auto named = [&](std::string_view name) { return std::ranges::find(plain, name, name_of); };
    for (std::size_t i = 0; i < is.items.size(); ++i) {
      const auto position = named(text::yaml::text_at(is.items[i], "name"));
      compare(*is.items[i], position == plain.end() ? nullptr : &*position, below(field, i), is.items[i]->location);
    }
    for (const auto& entry : plain) {
      const auto same = [&](const node* item) { return text::yaml::text_at(item, "name") == name_of(entry); };
      if (std::ranges::none_of(is.items, same)) missing(entry, field + "[" + name_of(entry) + "]", is.location);
    }
  }
};

/// Between our marks; in JSON there is none, and in brackets ours is one line.
std::vector<edit> comments_in(std::string_view text) {
  std::vector<edit> out;
  bool inside = false;
  for (text::yaml::place place; !text.empty(); ++place.line) {
    const auto line = text::trimmed(take_line(text));
    const auto hash = line.starts_with('#') ? 0 : line.find(" #");
    if (line == end_mark) inside = false;
    if (inside && hash != line.npos)
      out.push_back({place, words("comment"), std::string(text::trimmed(line.substr(hash))), {}});
    inside = inside || line == begin_mark || line == begin_mark_after_break;
  }
  return out;
}

}  // namespace

std::vector<edit> edits_of(std::string_view text, std::string_view bare, const addition& addition) {
  const auto before = parse_document(text), after = parse_document(bare);
  if (!before || !after) return {};
  comparison made;
  const auto extender = tree_of(addition.extender);
  const auto extenders = gone(*before, *after, "extenders"), profiles = gone(*before, *after, "profiles");
  for (std::size_t i = 0; i < extenders.size(); ++i)
    made.compare(*extenders[i], &extender, below("extenders", i), extenders[i]->location);
  const auto written =
      addition.scheduler_name.empty() ? nlohmann::ordered_json::array() : profiles_for(*after, addition.scheduler_name);
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const plain profile = {{"schedulerName", text::yaml::text_at(profiles[i], "schedulerName")}};
    const bool known = std::ranges::any_of(written, [&](const auto& item) { return plain(item) == profile; });
    made.compare(*profiles[i], known ? &profile : nullptr, below("profiles", i), profiles[i]->location);
  }
  std::ranges::move(comments_in(text), std::back_inserter(made.out));
  std::ranges::sort(made.out, {}, [](const edit& edit) { return std::tie(edit.location, edit.field.key); });
  return std::move(made.out);
}

addition merged_into(std::string_view text, std::string_view bare, extender_settings settings) {
  const auto before = parse_document(text), after = parse_document(bare);
  if (!before || !after) return {};
  const auto extenders = gone(*before, *after, "extenders"), profiles = gone(*before, *after, "profiles");
  const auto* entry = extenders.empty() ? nullptr : extenders.front();
  if (settings.url.empty()) settings.url = text::yaml::text_at(entry, "urlPrefix");
  const auto* managed = text::yaml::find(entry, "managedResources");
  if (settings.resources.empty() && managed) {
    for (const auto* item : managed->items) {
      const auto* known = managed_key_of(text::yaml::text_at(item, "name"));
      if (known) settings.resources.emplace_back(known->key);
    }
  }
  addition out{extender_entry(settings), ""};
  const auto* tls = text::yaml::find(entry, "tlsConfig");
  for (const auto* key : {"serverName", "caData", "certData", "keyData"}) {
    if (const auto is = text::yaml::text_at(tls, key); !is.empty()) out.extender["tlsConfig"][key] = is;
  }
  if (!profiles.empty()) out.scheduler_name = text::yaml::text_at(profiles.back(), "schedulerName");
  return out;
}

}  // namespace scheduler_config
