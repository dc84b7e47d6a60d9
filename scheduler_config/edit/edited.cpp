#include "scheduler_config/edit/edited.hpp"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "scheduler_config/edit/placing.hpp"
#include "scheduler_config/managed.hpp"
#include "text/text.hpp"

namespace reconcilers::scheduler_config {
namespace {

using yaml::node;
using plain = nlohmann::json;

/// Those of a list that `bare` has no more: ours are the first.
std::span<const node* const> gone(const document& text, const document& bare, std::string_view key) {
  const auto items = [key](const document& of) -> std::span<const node* const> {
    const auto* list = yaml::find(of.root, key);
    return list ? std::span<const node* const>(list->items) : std::span<const node* const>();
  };
  const auto before = items(text), after = items(bare);
  return before.first(before.size() - std::min(before.size(), after.size()));
}

plain without_secrets(plain of) {
  if (!of.is_structured()) return of;
  for (auto at = of.begin(); at != of.end(); ++at) {
    const bool secret = of.is_object() && at.key().ends_with("Data");
    *at = secret ? plain("(not shown)") : without_secrets(*at);
  }
  return of;
}

std::string shown_json(std::string_view field, const plain& value, const char* instead_of_a_secret) {
  if (field.ends_with("Data")) return instead_of_a_secret;
  return without_secrets(value).dump(-1, ' ', false, plain::error_handler_t::replace);
}

/// Of a member of managedResources.
std::string name_of(const plain& item) { return item.at("name").get<std::string>(); }

class comparison {
 public:
  /// `ours` may be null: we write nothing there.
  void compare(const node& is, const plain* ours, const std::string& field, yaml::place at) {
    static const plain nothing = plain::object();
    if (is.mapping() && (!ours || ours->is_object())) return members(is, ours ? *ours : nothing, field);
    if (is.sequence() && ours && ours->is_array()) return items(is, *ours, field);
    const auto value = yaml::to_json(is);
    if (ours && value == *ours) return;
    out.push_back({at, field, value ? shown_json(field, *value, "another (not shown)") : "a list",
                   ours ? shown_json(field, *ours, given) : ""});
  }

  std::vector<edit> out;

 private:
  static constexpr auto given = "what is given";

  void missing(const plain& ours, const std::string& field, yaml::place at) {
    out.push_back({at, field, "", shown_json(field, ours, given)});
  }
  void members(const node& is, const plain& ours, const std::string& field) {
    for (const auto& [key, value] : is.entries) {
      const auto at = ours.find(key->text);
      compare(*value, at == ours.end() ? nullptr : &*at, below(field, key->text), key->at);
    }
    for (const auto& [key, value] : ours.items()) {
      if (!yaml::find(&is, key)) missing(value, below(field, key), is.at);
    }
  }
  void items(const node& is, const plain& ours, const std::string& field) {
    const auto named = [&](std::string_view name) { return std::ranges::find(ours, name, name_of); };
    for (std::size_t i = 0; i < is.items.size(); ++i) {
      const auto at = named(yaml::text_at(is.items[i], "name"));
      compare(*is.items[i], at == ours.end() ? nullptr : &*at, below(field, i), is.items[i]->at);
    }
    for (const auto& one : ours) {
      const auto same = [&](const node* item) { return yaml::text_at(item, "name") == name_of(one); };
      if (std::ranges::none_of(is.items, same)) missing(one, field + "[" + name_of(one) + "]", is.at);
    }
  }
};

/// Between our marks; in JSON there is none, and in brackets ours is one line.
std::vector<edit> comments_in(std::string_view text) {
  std::vector<edit> out;
  bool inside = false;
  for (yaml::place at; !text.empty(); ++at.line) {
    const auto line = crl::trimmed(take_line(text));
    const auto hash = line.starts_with('#') ? 0 : line.find(" #");
    if (line == end_mark) inside = false;
    if (inside && hash != line.npos) out.push_back({at, "a comment", std::string(crl::trimmed(line.substr(hash))), ""});
    inside = inside || line == begin_mark || line == begin_mark_after_break;
  }
  return out;
}

}  // namespace

std::vector<edit> edits_of(std::string_view text, std::string_view bare, const addition& ours) {
  const auto before = parse_document(text), after = parse_document(bare);
  if (!before || !after) return {};
  comparison made;
  const auto extender = tree_of(ours.extender);
  const auto extenders = gone(*before, *after, "extenders"), profiles = gone(*before, *after, "profiles");
  for (std::size_t i = 0; i < extenders.size(); ++i)
    made.compare(*extenders[i], &extender, below("extenders", i), extenders[i]->at);
  const auto written =
      ours.scheduler_name.empty() ? nlohmann::ordered_json::array() : profiles_for(*after, ours.scheduler_name);
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const plain one = {{"schedulerName", yaml::text_at(profiles[i], "schedulerName")}};
    const bool known = std::ranges::any_of(written, [&](const auto& of) { return plain(of) == one; });
    made.compare(*profiles[i], known ? &one : nullptr, below("profiles", i), profiles[i]->at);
  }
  std::ranges::move(comments_in(text), std::back_inserter(made.out));
  std::ranges::sort(made.out, {}, [](const edit& one) { return std::tie(one.at, one.field); });
  return std::move(made.out);
}

addition merged_into(std::string_view text, std::string_view bare, extender_settings said) {
  const auto before = parse_document(text), after = parse_document(bare);
  if (!before || !after) return {};
  const auto extenders = gone(*before, *after, "extenders"), profiles = gone(*before, *after, "profiles");
  const auto* entry = extenders.empty() ? nullptr : extenders.front();
  if (said.url.empty()) said.url = yaml::text_at(entry, "urlPrefix");
  const auto* managed = yaml::find(entry, "managedResources");
  if (said.resources.empty() && managed) {
    for (const auto* one : managed->items) {
      const auto* known = managed_key_of(yaml::text_at(one, "name"));
      if (known) said.resources.emplace_back(known->key);
    }
  }
  addition out{extender_entry(said), ""};
  const auto* tls = yaml::find(entry, "tlsConfig");
  for (const auto* key : {"serverName", "caData", "certData", "keyData"}) {
    if (const auto is = yaml::text_at(tls, key); !is.empty()) out.extender["tlsConfig"][key] = is;
  }
  if (!profiles.empty()) out.scheduler_name = yaml::text_at(profiles.back(), "schedulerName");
  return out;
}

}  // namespace reconcilers::scheduler_config
