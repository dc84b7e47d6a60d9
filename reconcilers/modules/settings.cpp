#include "reconcilers/modules/settings.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "text/list.hpp"
#include "text/nearest.hpp"

namespace reconcilers::modules {
namespace {

constexpr std::size_t longest = 128;

bool is_number(std::string_view text, std::int64_t minimum, std::int64_t maximum) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failed == std::errc() && end == text.data() + text.size() && !text.empty() && number >= minimum &&
         number <= maximum;
}

bool is_decimal(std::string_view text, std::int64_t maximum) {
  const auto dot = text.find('.');
  const auto figures = [](std::string_view part) {
    return !part.empty() && part.size() <= 6 && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (!figures(text.substr(0, dot)) || (dot != std::string_view::npos && !figures(text.substr(dot + 1)))) return false;
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number > 0 && number <= static_cast<double>(maximum);
}

bool is_label_text(std::string_view text, std::string_view chars) {
  const auto end = [](char c) { return std::string_view(".-_").find(c) == std::string_view::npos; };
  return !text.empty() && text.find_first_not_of(chars) == std::string_view::npos && end(text.front()) &&
         end(text.back());
}

constexpr std::string_view dns = "abcdefghijklmnopqrstuvwxyz0123456789-.";
constexpr std::string_view part = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

bool is_resource(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const auto domain = text.substr(0, slash), name = text.substr(slash + 1);
  const bool native = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io") || text.starts_with("requests.");
  return !native && domain.size() <= 253 && name.size() <= 63 && is_label_text(domain, dns) &&
         is_label_text(name, part);
}

bool all_words(std::string_view text, std::span<const std::string_view> words) {
  for (;;) {
    const auto comma = text.find(',');
    if (std::ranges::find(words, text.substr(0, comma)) == words.end()) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

/// For people: no line of a policy is so long that it hides what is wrong with it.
std::string shown(std::string_view value) { return std::string(value.substr(0, 80)) + (value.size() > 80 ? "…" : ""); }

const setting* find(std::span<const setting> known, std::string_view name) {
  const auto match = std::ranges::find(known, name, &setting::name);
  return match == known.end() ? nullptr : &*match;
}

}  // namespace

bool is_legal(const setting& schema, std::string_view value) {
  using enum setting::kind;
  if (value.size() > longest || std::ranges::any_of(value, [](char c) { return static_cast<unsigned char>(c) < ' '; }))
    return false;
  switch (schema.type) {
    case flag:
      return value == "true" || value == "false";
    case number:
      return is_number(value, schema.minimum, schema.maximum);
    case decimal:
      return is_decimal(value, schema.maximum);
    case word:
      return std::ranges::find(schema.words, value) != schema.words.end();
    case words:
      return all_words(value, schema.words);
    case resource:
      return is_resource(value);
    case name:
      return value.size() <= 63 && is_label_text(value, dns);
    case text:
      return true;
  }
  return false;
}

text::phrase allowed_for_people(const setting& schema) {
  using enum setting::kind;
  const auto allowed = [](std::string_view key, std::vector<text::phrase_argument> arguments = {}) {
    return text::phrase{"status.settings.allowed." + std::string(key), std::move(arguments)};
  };
  switch (schema.type) {
    case flag:
      return {"true, false"};
    case number:
      return allowed("number", {{"least", std::to_string(schema.minimum)}, {"most", std::to_string(schema.maximum)}});
    case decimal:
      return allowed("decimal", {{"most", std::to_string(schema.maximum)}});
    case word:
      return text::joined(schema.words);
    case words:
      return allowed("words", {{"list", text::joined(schema.words)}});
    case resource:
      return allowed("resource");
    case name:
      return allowed("name");
    case text:
      return allowed("text");
  }
  return {};
}

/// Each setting that names a resource names one of its own: a plugin cannot tell two amounts under one key apart.
static void check_resources(const module_type& type, const settings_map& settings, const std::string& path) {
  std::map<std::string, std::string_view> users;
  for (const auto& known : type.settings) {
    if (known.type != setting::kind::resource) continue;
    const auto match = settings.find(known.name);
    const auto resource = match == settings.end() ? std::string(known.fallback) : match->second;
    const auto [user, first] = users.emplace(resource, known.name);
    if (!first)
      throw invalid_policy({"status.settings.same_resource",
                            {{"field", path + "." + std::string(user->second)},
                             {"other", path + "." + std::string(known.name)},
                             {"value", shown(resource)}}});
  }
}

static text::phrase unknown_setting(const module_type& type, const std::string& name, const std::string& path) {
  const std::vector<text::phrase_argument> about{{"field", path + "." + shown(name)},
                                                 {"module", std::string(type.name)}};
  if (type.settings.empty()) return {"status.settings.none", about};
  std::vector<std::string_view> names;
  for (const auto& setting : type.settings) names.push_back(setting.name);
  const auto near = text::nearest(name, names);
  text::phrase out{near.empty() ? "status.settings.unknown" : "status.settings.unknown_near", about};
  out.arguments.push_back({"list", text::joined(names)});
  if (!near.empty()) out.arguments.push_back({"hint", std::string(near)});
  return out;
}

void check_settings(const module_type& type, const settings_map& settings, const std::string& path) {
  for (const auto& [name, value] : settings) {
    const auto* known = find(type.settings, name);
    if (!known) throw invalid_policy(unknown_setting(type, name, path));
    if (!is_legal(*known, value))
      throw invalid_policy(
          {"status.settings.refused",
           {{"field", path + "." + name}, {"value", shown(value)}, {"allowed", allowed_for_people(*known)}}});
  }
  check_resources(type, settings, path);
}

std::string setting_of(std::span<const setting> known, const module_spec& spec, std::string_view name) {
  if (const auto match = spec.settings.find(name); match != spec.settings.end()) return match->second;
  const auto* row = find(known, name);
  return row ? std::string(row->fallback) : std::string();
}

bool flag_of(std::span<const setting> known, const module_spec& spec, std::string_view name) {
  return setting_of(known, spec, name) == "true";
}

}  // namespace reconcilers::modules
