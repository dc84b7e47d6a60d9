#include "scheduler_config/edit/merge.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "scheduler_config/edit/placing.hpp"
#include "scheduler_config/judge/judging.hpp"
#include "text/text.hpp"
#include "text/yaml/writer.hpp"

namespace scheduler_config {
namespace {

using nlohmann::ordered_json;
using text::yaml::node;
using plain = nlohmann::json;
using result = std::expected<std::string, finding>;

void put_first(plain& object, const char* key, const ordered_json& items) {
  if (!object.contains(key) || object[key].is_null()) object[key] = plain::array();
  auto& list = object[key];
  for (std::size_t i = items.size(); i-- > 0;) list.insert(list.begin(), tree_of(items[i]));
}

/// Where one list of the root gets its new items.
class list_edit {
 public:
  list_edit(const document& document, const std::string& key) : document_(document), key_(key) {}

  std::expected<insertion, finding> add(const ordered_json& items) const {
    const auto* entry = text::yaml::find_entry(document_.root, key_);
    const bool own = entry && document_.root->merged == 0;
    if (entry && !own) return std::unexpected(no_place(entry->key->location, key_));
    if (document_.root->flow) return entry ? into_brackets(*entry, items) : as_first_member(items);
    if (!entry) return at_the_end(items);
    if (entry->value->flow) return into_brackets(*entry, items);
    return below_key(document_, *entry, key_, items);
  }

 private:
  std::size_t at(const node* node) const { return document_.base + node->offset; }
  std::string_view text() const { return document_.text; }

  std::expected<insertion, finding> into_brackets(const node::entry& entry, const ordered_json& items) const {
    const auto open = at(entry.value);
    if (!entry.value->sequence() || open <= at(entry.key) || text().substr(open, 1) != "[")
      return std::unexpected(no_place(entry.key->location, key_));
    auto inside = write_flow(items);
    inside = inside.substr(1, inside.size() - 2);
    // Taken out again by what follows: a comma, or a blank where the list was empty.
    return insertion{open + 1, inside + (entry.value->items.empty() ? " " : ", ")};
  }
  std::expected<insertion, finding> as_first_member(const ordered_json& items) const {
    const auto open = at(document_.root);
    if (text().substr(open, 1) != "{") return std::unexpected(no_place(document_.root->location, key_));
    return insertion{open + 1, ordered_json(key_).dump() + ": " + write_flow(items) + ", "};
  }
  std::expected<insertion, finding> at_the_end(const ordered_json& items) const {
    ordered_json member;
    member[key_] = items;
    const auto margin = static_cast<std::size_t>(document_.root->location.column - 1);
    const bool broken = document_.end == 0 || text()[document_.end - 1] == '\n';
    return insertion{document_.end, marked(text::yaml::write(member), margin, line_break_of(text()), !broken)};
  }
  const document& document_;
  const std::string key_;
};

std::optional<finding> conflict(const document& document, const addition& addition) {
  const server any;
  const judging judging{.config = document, .scheduler = any, .out = {}, .refused = {}};
  const auto extenders = judging.items(document.root, "extenders");
  const bool binds = !addition.extender.value("bindVerb", "").empty();
  for (std::size_t i = 0; i < extenders.size(); ++i) {
    const auto path = below("extenders", i);
    const auto* verb = judging.entry(extenders[i], "bindVerb");
    if (binds && verb && !verb->value->text.empty())
      return finding{.issue = code::bound_by_another,
                     .location = verb->key->location,
                     .field = below(path, "bindVerb"),
                     .value = verb->value->text};
    const auto resources = judging.items(extenders[i], "managedResources");
    for (std::size_t j = 0; j < resources.size(); ++j) {
      const auto key = judging.text(resources[j], "name");
      for (const auto& entry : addition.extender.value("managedResources", ordered_json::array())) {
        if (entry.at("name") == key)
          return finding{.issue = code::managed_by_another,
                         .location = resources[j]->location,
                         .field = below(below(path, "managedResources"), j),
                         .value = key};
      }
    }
  }
  if (addition.scheduler_name.empty()) return std::nullopt;
  const auto profiles = judging.items(document.root, "profiles");
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const auto name = judging.text(profiles[i], "schedulerName");
    const auto path = below("profiles", i);
    if (name.empty())
      return finding{.issue = code::profile_without_name, .location = profiles[i]->location, .field = path};
    if (name == addition.scheduler_name)
      return finding{.issue = code::profile_there, .location = profiles[i]->location, .field = path, .value = name};
  }
  return std::nullopt;
}

// ---- the way back ----

/// The first item of a list in brackets, or the whole list as the first member of the root.
result cut_flow(const document& document, std::string_view url) {
  const auto* entry = text::yaml::find_entry(document.root, "extenders");
  const auto* list = entry ? entry->value : nullptr;
  auto nothing = finding{.issue = code::nothing_of_ours};
  if (!list || !list->flow || list->items.empty()) return std::unexpected(std::move(nothing));
  if (url.empty()) nothing.hint = "--address";
  if (text::yaml::text_at(list->items[0], "urlPrefix") != url) return std::unexpected(std::move(nothing));
  const std::string_view text = document.text;
  const auto open = document.base + list->offset, item = document.base + list->items[0]->offset;
  const auto end = end_of_brackets(text, item);
  const auto edited = std::unexpected(finding{.issue = code::ours_was_edited, .location = list->items[0]->location});
  if (item != open + 1 || end == text.npos) return edited;
  const auto cut = [&](std::size_t index, std::size_t stop) {
    return std::string(text.substr(0, index)) + std::string(text.substr(stop));
  };
  if (text.substr(end).starts_with(", ")) return cut(item, end + 2);
  if (text.substr(end).starts_with(" ")) return cut(item, end + 1);
  const auto key = document.base + entry->key->offset, root = document.base + document.root->offset;
  if (document.root->flow && key == root + 1 && text.substr(end).starts_with("], ")) return cut(key, end + 3);
  return edited;
}

/// Nothing but one extender, and profiles, may be gone.
std::optional<finding> lost(const document& before, const document& after) {
  auto a = tree_of(before), b = tree_of(after);
  const finding edited{.issue = code::ours_was_edited,
                       .location = before.root ? before.root->location : text::yaml::place()};
  if (!a || !b) return edited;
  const auto list = [](plain& object, const char* key) {
    auto out = object.contains(key) && object[key].is_array() ? object[key] : plain::array();
    object.erase(key);
    return out;
  };
  const auto extenders = list(*a, "extenders"), extenders_left = list(*b, "extenders");
  const auto profiles = list(*a, "profiles"), profiles_left = list(*b, "profiles");
  const auto tail = [](const plain& whole, const plain& end, std::size_t most) {
    return whole.size() >= end.size() && whole.size() - end.size() <= most &&
           std::equal(end.rbegin(), end.rend(), whole.rbegin());
  };
  if (*a != *b || !tail(extenders, extenders_left, 1) || !tail(profiles, profiles_left, 2)) return edited;
  return std::nullopt;
}

}  // namespace

ordered_json profiles_for(const document& document, std::string_view scheduler_name) {
  auto out = ordered_json::array();
  const auto* there = text::yaml::find(document.root, "profiles");
  if (!there || !there->sequence() || there->items.empty()) out.push_back({{"schedulerName", "default-scheduler"}});
  out.push_back({{"schedulerName", scheduler_name}});
  return out;
}

result unmerge(std::string_view text, std::string_view url) {
  const auto before = parse_document(text);
  if (!before) return std::unexpected(before.error());
  auto out = without_marked(text);
  if (!out && out.error().issue == code::nothing_of_ours) out = cut_flow(*before, url);
  if (!out) return out;
  const auto after = parse_document(*out);
  if (!after) return std::unexpected(finding{.issue = code::ours_was_edited, .location = after.error().location});
  if (auto wrong = lost(*before, *after)) return std::unexpected(std::move(*wrong));
  return out;
}

result merge(std::string_view text, const addition& addition, const server& server, bool runs) {
  const auto url = addition.extender.at("urlPrefix").get<std::string>();
  auto bare = unmerge(text, url);
  if (!bare && bare.error().issue == code::nothing_of_ours) bare = std::string(text);
  if (!bare) return bare;
  const auto document = parse_document(*bare);
  if (!document) return std::unexpected(document.error());
  const auto ending = [](const findings& all) {
    return std::ranges::find(all, effect::ends, [](const finding& finding) { return effect_of(finding.issue); });
  };
  const auto first = judge(*document, server);
  if (const auto position = ending(first); !runs && position != first.end()) return std::unexpected(*position);
  if (auto wrong = conflict(*document, addition)) return std::unexpected(std::move(*wrong));

  auto wanted = tree_of(*document);
  std::vector<insertion> edits;
  const auto add = [&](const char* key, const ordered_json& items) -> std::optional<finding> {
    auto made = list_edit(*document, key).add(items);
    if (!made) return made.error();
    edits.push_back(std::move(*made));
    if (wanted) put_first(*wanted, key, items);
    return std::nullopt;
  };
  if (auto wrong = add("extenders", ordered_json::array({addition.extender})))
    return std::unexpected(std::move(*wrong));
  if (!addition.scheduler_name.empty()) {
    // A list in brackets has no room for the comment by which a profile is known again.
    const auto* there = text::yaml::find_entry(document->root, "profiles");
    if (document->root->flow || (there && there->value->flow))
      return std::unexpected(no_place(there ? there->key->location : document->root->location, "profiles"));
    if (auto wrong = add("profiles", profiles_for(*document, addition.scheduler_name)))
      return std::unexpected(std::move(*wrong));
  }
  auto merged = with_insertions(document->text, std::move(edits));

  const auto there = parse_document(merged);
  const bool ours_alone = there && wanted && tree_of(*there) == wanted;
  const auto* entry = text::yaml::find_entry(document->root, "extenders");
  if (!ours_alone || unmerge(merged, url) != *bare)
    return std::unexpected(no_place(entry ? entry->key->location : document->root->location, "extenders"));
  const auto last = judge(*there, server);
  if (const auto* added = added_end(first, last)) return std::unexpected(*added);
  return merged;
}

const finding* added_end(const findings& before, const findings& after) {
  // An entry of our own in front moves the numbers of the others.
  const auto without_numbers = [](std::string field) {
    std::erase_if(field, [](char letter) { return letter >= '0' && letter <= '9'; });
    return field;
  };
  const auto known = [&](const finding& candidate) {
    return std::ranges::any_of(before, [&](const finding& other) {
      return candidate.issue == other.issue && candidate.value == other.value && candidate.other == other.other &&
             candidate.terms == other.terms && without_numbers(candidate.field) == without_numbers(other.field);
    });
  };
  const auto found = std::ranges::find_if(
      after, [&](const finding& finding) { return effect_of(finding.issue) == effect::ends && !known(finding); });
  return found == after.end() ? nullptr : &*found;
}

std::string write_flow(const ordered_json& value) {
  if (!value.is_structured()) return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  std::string out(value.is_array() ? "[" : "{");
  for (const auto& [key, member] : value.items()) {
    if (out.size() > 1) out += ", ";
    if (value.is_object()) out += ordered_json(key).dump(-1, ' ', false, ordered_json::error_handler_t::replace) + ": ";
    out += write_flow(member);
  }
  return out + (value.is_array() ? "]" : "}");
}

}  // namespace scheduler_config
