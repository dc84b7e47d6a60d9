#include "scheduler_config/edit/merge.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "scheduler_config/edit/placing.hpp"
#include "scheduler_config/judge/judging.hpp"
#include "text/text.hpp"
#include "text/yaml/writer.hpp"

namespace reconcilers::scheduler_config {
namespace {

using yaml::node;
using json = nlohmann::ordered_json;
using plain = nlohmann::json;
using result = std::expected<std::string, finding>;

void put_first(plain& in, const char* key, const json& items) {
  if (!in.contains(key) || in[key].is_null()) in[key] = plain::array();
  auto& list = in[key];
  for (std::size_t i = items.size(); i-- > 0;) list.insert(list.begin(), tree_of(items[i]));
}

/// Where one list of the root gets its new items.
class list_edit {
 public:
  list_edit(const document& of, const std::string& key) : of_(of), key_(key) {}

  std::expected<insertion, finding> add(const json& items) const {
    const auto* entry = yaml::find_entry(of_.root, key_);
    const bool own = entry && of_.root->merged == 0;
    if (entry && !own) return std::unexpected(no_place(entry->key->at, key_));
    if (of_.root->flow) return entry ? into_brackets(*entry, items) : as_first_member(items);
    if (!entry) return at_the_end(items);
    if (entry->value->flow) return into_brackets(*entry, items);
    return below_key(of_, *entry, key_, items);
  }

 private:
  std::size_t at(const node* of) const { return of_.base + of->from; }
  std::string_view text() const { return of_.text; }

  std::expected<insertion, finding> into_brackets(const node::entry& entry, const json& items) const {
    const auto open = at(entry.value);
    if (!entry.value->sequence() || open <= at(entry.key) || text().substr(open, 1) != "[")
      return std::unexpected(no_place(entry.key->at, key_));
    auto inside = write_flow(items);
    inside = inside.substr(1, inside.size() - 2);
    // Taken out again by what follows: a comma, or a blank where the list was empty.
    return insertion{open + 1, inside + (entry.value->items.empty() ? " " : ", ")};
  }
  std::expected<insertion, finding> as_first_member(const json& items) const {
    const auto open = at(of_.root);
    if (text().substr(open, 1) != "{") return std::unexpected(no_place(of_.root->at, key_));
    return insertion{open + 1, json(key_).dump() + ": " + write_flow(items) + ", "};
  }
  std::expected<insertion, finding> at_the_end(const json& items) const {
    json member;
    member[key_] = items;
    const auto margin = static_cast<std::size_t>(of_.root->at.column - 1);
    const bool broken = of_.end == 0 || text()[of_.end - 1] == '\n';
    return insertion{of_.end, marked(yaml::write(member), margin, line_break_of(text()), !broken)};
  }
  const document& of_;
  const std::string key_;
};

std::optional<finding> conflict(const document& of, const addition& ours) {
  const server any;
  const judging in{.of = of, .on = any, .out = {}, .refused = {}};
  const auto extenders = in.items(of.root, "extenders");
  const bool binds = !ours.extender.value("bindVerb", "").empty();
  for (std::size_t i = 0; i < extenders.size(); ++i) {
    const auto path = below("extenders", i);
    const auto* verb = in.entry(extenders[i], "bindVerb");
    if (binds && verb && !verb->value->text.empty())
      return finding{.what = code::bound_by_another,
                     .at = verb->key->at,
                     .field = below(path, "bindVerb"),
                     .value = verb->value->text};
    const auto resources = in.items(extenders[i], "managedResources");
    for (std::size_t j = 0; j < resources.size(); ++j) {
      const auto key = in.text(resources[j], "name");
      for (const auto& one : ours.extender.value("managedResources", json::array())) {
        if (one.at("name") == key)
          return finding{.what = code::managed_by_another,
                         .at = resources[j]->at,
                         .field = below(below(path, "managedResources"), j),
                         .value = key};
      }
    }
  }
  if (ours.scheduler_name.empty()) return std::nullopt;
  const auto profiles = in.items(of.root, "profiles");
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const auto name = in.text(profiles[i], "schedulerName");
    const auto path = below("profiles", i);
    if (name.empty()) return finding{.what = code::profile_without_name, .at = profiles[i]->at, .field = path};
    if (name == ours.scheduler_name)
      return finding{.what = code::profile_there, .at = profiles[i]->at, .field = path, .value = name};
  }
  return std::nullopt;
}

// ---- the way back ----

/// The first item of a list in brackets, or the whole list as the first member of the root.
result cut_flow(const document& of, std::string_view url) {
  const auto* entry = yaml::find_entry(of.root, "extenders");
  const auto* list = entry ? entry->value : nullptr;
  auto nothing = finding{.what = code::nothing_of_ours};
  if (!list || !list->flow || list->items.empty()) return std::unexpected(std::move(nothing));
  if (url.empty()) nothing.hint = "--address";
  if (yaml::text_at(list->items[0], "urlPrefix") != url) return std::unexpected(std::move(nothing));
  const std::string_view text = of.text;
  const auto open = of.base + list->from, item = of.base + list->items[0]->from;
  const auto end = end_of_brackets(text, item);
  const auto edited = std::unexpected(finding{.what = code::ours_was_edited, .at = list->items[0]->at});
  if (item != open + 1 || end == text.npos) return edited;
  const auto without = [&](std::size_t from, std::size_t to) {
    return std::string(text.substr(0, from)) + std::string(text.substr(to));
  };
  if (text.substr(end).starts_with(", ")) return without(item, end + 2);
  if (text.substr(end).starts_with(" ")) return without(item, end + 1);
  const auto key = of.base + entry->key->from, root = of.base + of.root->from;
  if (of.root->flow && key == root + 1 && text.substr(end).starts_with("], ")) return without(key, end + 3);
  return edited;
}

/// Nothing but one extender, and profiles, may be gone.
std::optional<finding> lost(const document& before, const document& after) {
  auto a = tree_of(before), b = tree_of(after);
  const finding edited{.what = code::ours_was_edited, .at = before.root ? before.root->at : yaml::place()};
  if (!a || !b) return edited;
  const auto list = [](plain& of, const char* key) {
    auto out = of.contains(key) && of[key].is_array() ? of[key] : plain::array();
    of.erase(key);
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

json profiles_for(const document& of, std::string_view scheduler_name) {
  auto out = json::array();
  const auto* there = yaml::find(of.root, "profiles");
  if (!there || !there->sequence() || there->items.empty()) out.push_back({{"schedulerName", "default-scheduler"}});
  out.push_back({{"schedulerName", scheduler_name}});
  return out;
}

result unmerge(std::string_view text, std::string_view url) {
  const auto before = parse_document(text);
  if (!before) return std::unexpected(before.error());
  auto out = without_marked(text);
  if (!out && out.error().what == code::nothing_of_ours) out = cut_flow(*before, url);
  if (!out) return out;
  const auto after = parse_document(*out);
  if (!after) return std::unexpected(finding{.what = code::ours_was_edited, .at = after.error().at});
  if (auto wrong = lost(*before, *after)) return std::unexpected(std::move(*wrong));
  return out;
}

result merge(std::string_view text, const addition& ours, const server& on, bool runs) {
  const auto url = ours.extender.at("urlPrefix").get<std::string>();
  auto bare = unmerge(text, url);
  if (!bare && bare.error().what == code::nothing_of_ours) bare = std::string(text);
  if (!bare) return bare;
  const auto of = parse_document(*bare);
  if (!of) return std::unexpected(of.error());
  const auto ending = [](const findings& all) {
    return std::ranges::find(all, effect::ends, [](const finding& one) { return effect_of(one.what); });
  };
  const auto first = judge(*of, on);
  if (const auto at = ending(first); !runs && at != first.end()) return std::unexpected(*at);
  if (auto wrong = conflict(*of, ours)) return std::unexpected(std::move(*wrong));

  auto wanted = tree_of(*of);
  std::vector<insertion> edits;
  const auto add = [&](const char* key, const json& items) -> std::optional<finding> {
    auto made = list_edit(*of, key).add(items);
    if (!made) return made.error();
    edits.push_back(std::move(*made));
    if (wanted) put_first(*wanted, key, items);
    return std::nullopt;
  };
  if (auto wrong = add("extenders", json::array({ours.extender}))) return std::unexpected(std::move(*wrong));
  if (!ours.scheduler_name.empty()) {
    // A list in brackets has no room for the comment by which a profile is known again.
    const auto* there = yaml::find_entry(of->root, "profiles");
    if (of->root->flow || (there && there->value->flow))
      return std::unexpected(no_place(there ? there->key->at : of->root->at, "profiles"));
    if (auto wrong = add("profiles", profiles_for(*of, ours.scheduler_name))) return std::unexpected(std::move(*wrong));
  }
  auto merged = with_insertions(of->text, std::move(edits));

  const auto there = parse_document(merged);
  const bool ours_alone = there && wanted && tree_of(*there) == wanted;
  const auto* entry = yaml::find_entry(of->root, "extenders");
  if (!ours_alone || unmerge(merged, url) != *bare)
    return std::unexpected(no_place(entry ? entry->key->at : of->root->at, "extenders"));
  const auto last = judge(*there, on);
  if (const auto* added = added_end(first, last)) return std::unexpected(*added);
  return merged;
}

const finding* added_end(const findings& before, const findings& after) {
  // An entry of ours in front moves the numbers of the others.
  const auto without_numbers = [](std::string field) {
    std::erase_if(field, [](char letter) { return letter >= '0' && letter <= '9'; });
    return field;
  };
  const auto known = [&](const finding& one) {
    return std::ranges::any_of(before, [&](const finding& other) {
      return one.what == other.what && one.value == other.value && one.other == other.other &&
             without_numbers(one.field) == without_numbers(other.field);
    });
  };
  const auto found = std::ranges::find_if(
      after, [&](const finding& one) { return effect_of(one.what) == effect::ends && !known(one); });
  return found == after.end() ? nullptr : &*found;
}

std::string write_flow(const json& value) {
  if (!value.is_structured()) return value.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string out(value.is_array() ? "[" : "{");
  for (const auto& [key, member] : value.items()) {
    if (out.size() > 1) out += ", ";
    if (value.is_object()) out += json(key).dump(-1, ' ', false, json::error_handler_t::replace) + ": ";
    out += write_flow(member);
  }
  return out + (value.is_array() ? "]" : "}");
}

}  // namespace reconcilers::scheduler_config
