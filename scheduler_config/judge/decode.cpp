// The strict decoder: apimachinery's serializer/json with EnableStrict, sigs.k8s.io/json and sigs.k8s.io/yaml.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "scheduler_config/judge/judging.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace scheduler_config {
namespace {

bool has_field(const shape& shape, std::string_view name) {
  return std::ranges::find(shape.fields, name, &field::name) != shape.fields.end();
}

/// Standard alphabet with padding; line breaks are skipped, as Go does.
bool is_base64(std::string_view text) {
  std::size_t count = 0, padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    const bool letter =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/';
    if (c == '=')
      ++padding;
    else if (!letter || padding > 0)
      return false;
    ++count;
  }
  return count % 4 == 0 && padding <= 2;
}

/// .nan and .inf, which YAML has and JSON has not: kube-scheduler makes JSON of the whole file, so they end it in
/// places that no one reads, too.
bool is_no_number(const text::yaml::node& node) {
  return json_type_of(node) == json_type::number &&
         text::yaml::canonical(node).find_first_of("nN") != std::string::npos;
}

class decoder {
 public:
  explicit decoder(judging& judging) : judging_(judging) {}

  void repeated(const text::yaml::node* node, const std::string& path) {
    if (!spend() || !seen_.insert(node).second) return;
    for (const auto* key : text::yaml::repeated_keys(node))
      judging_.say({.issue = code::written_twice, .location = key->location, .field = below(path, key->text)});
    if (node->overridden)
      judging_.say({.issue = code::merged_twice,
                    .location = node->overridden->location,
                    .field = below(path, node->overridden->text)});
    if (is_no_number(*node))
      judging_.refuse(node, {.issue = code::wrong_type,
                             .location = node->location,
                             .field = path,
                             .value = shown_value(*node),
                             .allowed = phrase_of(term::number)});
    for (std::size_t i = 0; i < node->items.size(); ++i) repeated(node->items[i], below(path, i));
    for (const auto& entry : node->entries) repeated(entry.value, below(path, entry.key->text));
  }

  void mapping(const text::yaml::node* node, const shape& shape, const std::string& path) {
    std::vector<const text::yaml::node*> unknown;
    for (const auto& entry : node->entries) {
      if (!spend()) return;
      if (text::yaml::find_entry(node, entry.key->text) != &entry) continue;
      const auto known = std::ranges::find(shape.fields, key_of(entry), &field::name);
      if (known == shape.fields.end()) {
        unknown.push_back(entry.key);
      } else if (!of_this_version(*known)) {
        other_version(entry, *known, path);
      } else {
        value(entry.key, entry.value, *known, below(path, known->name));
      }
    }
    if (!unknown.empty()) say_unknown(unknown, shape, path);
  }

 private:
  bool spend() {
    if (judging_.budget == 1)
      judging_.say({.issue = code::not_yaml, .terms = {{"other", phrase_of(term::too_many_values)}}});
    if (judging_.budget > 0) --judging_.budget;
    return judging_.budget > 0 && judging_.out.size() < 100;
  }
  static std::string key_of(const text::yaml::node::entry& entry) {
    return entry.key->scalar() ? text::yaml::canonical(*entry.key) : std::string("?");
  }
  bool of_this_version(const field& field) const { return field.since <= judging_.scheduler.minor; }
  void other_version(const text::yaml::node::entry& entry, const field& known, const std::string& path) {
    judging_.refuse(entry.value,
                    {.issue = code::field_of_other_version,
                     .location = entry.key->location,
                     .field = below(path, known.name),
                     .allowed = since_version(known.since),
                     .terms = {{"other", phrase_of(term::other_version, {{"api", std::string(api_version)},
                                                                         {"version", judging_.version()}})}}});
  }

  /// Fields at the left margin that an extender has slipped out of it: one mistake, however many they are.
  void say_unknown(const std::vector<const text::yaml::node*>& keys, const shape& shape, const std::string& path) {
    finding slipped{.issue = code::field_misplaced};
    for (const auto* key : keys) {
      const auto name = key->scalar() ? text::yaml::canonical(*key) : std::string("?");
      const auto belongs = path.empty() ? home_of(name) : std::string();
      if (path.empty() && name == "algorithmSource") {
        judging_.say({.issue = code::algorithm_source, .location = key->location, .field = name});
      } else if (belongs.empty()) {
        finding out{.issue = code::field_unknown, .location = key->location, .field = below(path, name)};
        std::vector<std::string_view> names;
        std::string allowed;
        for (const auto& field : shape.fields) {
          if (!of_this_version(field)) continue;
          names.push_back(field.name);
          allowed += (allowed.empty() ? "" : ", ") + std::string(field.name);
        }
        out.allowed = text::phrase(allowed);
        out.hint = text::nearest(name, names);
        judging_.say(std::move(out));
      } else if (slipped.value.empty()) {
        slipped.location = key->location, slipped.field = name, slipped.value = name, slipped.other = belongs;
      } else {
        slipped.value += ", " + name;
      }
    }
    if (!slipped.value.empty()) judging_.say(std::move(slipped));
  }
  /// The extender a field of the left margin belongs to: the last one.
  std::string home_of(std::string_view name) const {
    const auto count = judging_.items(judging_.config.root, "extenders").size();
    const auto last = "extenders[" + std::to_string(count == 0 ? 0 : count - 1) + "]";
    if (has_field(extender(), name)) return last;
    if (has_field(tls(), name)) return last + ".tlsConfig";
    return {};
  }

  void wrong(const text::yaml::node* key, const text::yaml::node* node, const std::string& path, term allowed,
             std::string hint = {}) {
    judging_.refuse(node, {.issue = code::wrong_type,
                           .location = key->location,
                           .field = path,
                           .value = shown_value(*node),
                           .allowed = phrase_of(allowed),
                           .hint = std::move(hint),
                           .terms = terms_of(*node)});
  }

  void value(const text::yaml::node* key, const text::yaml::node* node, const field& field, const std::string& path) {
    if (!spend() || judging_.refused.contains(node)) return;
    const auto is = json_type_of(*node);
    if (is == json_type::null) {
      if (field.is == type::duration) wrong_duration(key, node, path);
      return;
    }
    switch (field.is) {
      case type::any:
        return;
      case type::text:
        if (is != json_type::text) wrong(key, node, path, term::text, quoted(*node, is));
        return;
      case type::boolean:
        if (is != json_type::boolean) wrong(key, node, path, term::boolean, unquoted(*node, text::yaml::type::boolean));
        return;
      case type::int32:
      case type::int64:
        return integer(key, node, field, path);
      case type::real:
        if (is != json_type::number) wrong(key, node, path, term::number, unquoted(*node, text::yaml::type::integer));
        return;
      case type::duration:
      case type::optional_duration:
        if (is != json_type::text || !parse_duration(node->text)) wrong_duration(key, node, path);
        return;
      case type::bytes:
        if (is != json_type::text) return wrong(key, node, path, term::base64, quoted(*node, is));
        if (!is_base64(node->text))
          judging_.refuse(
              node, {.issue = code::not_base64, .location = key->location, .field = path, .hint = file_field(path)});
        return;
      case type::object:
        if (is != json_type::mapping) return wrong(key, node, path, term::mapping);
        return mapping(node, *field.layout, path);
      case type::labels:
        if (is != json_type::mapping) return wrong(key, node, path, term::mapping);
        for (const auto& entry : node->entries)
          value(entry.key, entry.value, {"", type::text}, below(path, entry.key->text));
        return;
      case type::texts:
      case type::objects:
        if (is != json_type::list) return not_a_list(key, node, path, is == json_type::mapping);
        for (std::size_t i = 0; i < node->items.size(); ++i) item(node->items[i], field, below(path, i));
    }
  }
  void not_a_list(const text::yaml::node* key, const text::yaml::node* node, const std::string& path, bool is_mapping) {
    wrong(key, node, path, term::list);
    if (is_mapping) judging_.out.back().terms.push_back({"hint", phrase_of(term::dash_before)});
  }
  void item(const text::yaml::node* node, const field& field, const std::string& path) {
    if (field.is == type::texts)
      value(node, node, {"", type::text}, path);
    else
      value(node, node, {"", type::object, field.layout}, path);
  }

  void integer(const text::yaml::node* key, const text::yaml::node* node, const field& field, const std::string& path) {
    const auto number = integer_of(node);
    const bool narrow = field.is == type::int32;
    // Of YAML kube-scheduler gets 16 for 16.0; JSON it takes as it is written, and Go's decoder refuses 16.0 and 1e1.
    if (judging_.config.json && number && node->text.find_first_of(".eE") != node->text.npos)
      return wrong(key, node, path, term::plain_whole_number, std::to_string(*number));
    using std::numeric_limits;
    const bool fits =
        number &&
        (!narrow || (*number >= numeric_limits<std::int32_t>::min() && *number <= numeric_limits<std::int32_t>::max()));
    if (!fits)
      wrong(key, node, path, narrow ? term::whole_number_32 : term::whole_number,
            unquoted(*node, text::yaml::type::integer));
  }
  void wrong_duration(const text::yaml::node* key, const text::yaml::node* node, const std::string& path) {
    const auto number = integer_of(node);
    auto hint = number && *number > 0 && *number < 100'000 ? std::to_string(*number) + "s" : std::string("5s");
    judging_.refuse(node, {.issue = code::not_a_duration,
                           .location = key->location,
                           .field = path,
                           .value = shown_value(*node),
                           .hint = std::move(hint),
                           .terms = terms_of(*node)});
  }

  static std::string quoted(const text::yaml::node& node, json_type is) {
    const bool scalar = is == json_type::number || is == json_type::boolean;
    return scalar ? "\"" + text::shown(node.text) + "\"" : std::string();
  }
  /// Text that would be right without its quotes.
  static std::string unquoted(const text::yaml::node& node, text::yaml::type wanted) {
    return node.scalar() && node.quoted && text::yaml::type_of_plain(node.text) == wanted
               ? text::yaml::canonical_plain(node.text)
               : std::string();
  }
  static std::string file_field(const std::string& path) {
    const auto name = path.substr(path.rfind('.') + 1);
    return name.ends_with("Data") ? name.substr(0, name.size() - 4) + "File" : name;
  }

  judging& judging_;
  std::set<const text::yaml::node*> seen_;
};

/// Arguments have the plugin's own kind, whatever they say of themselves.
void decode_args(judging& judging, decoder& decoder, const text::yaml::node* entry, const std::string& path) {
  const auto name = judging.text(entry, "name");
  const auto* args_shape = args_of(name, judging.scheduler.minor);
  const auto* args = judging.entry(entry, "args");
  if (!args_shape || !args) return;
  const auto args_path = below(path, "args");
  if (!args->value->mapping()) {
    judging.refuse(args->value, {.issue = code::wrong_type,
                                 .location = args->key->location,
                                 .field = args_path,
                                 .value = shown_value(*args->value),
                                 .allowed = phrase_of(term::mapping),
                                 .terms = terms_of(*args->value)});
    return;
  }
  const auto kind = judging.text(args->value, "kind"), version = judging.text(args->value, "apiVersion");
  const auto wanted_kind = name + "Args", wanted_version = std::string(api_version);
  if ((!kind.empty() && kind != wanted_kind) || (!version.empty() && version != wanted_version)) {
    const auto* match = text::yaml::find(args->value, kind.empty() || kind == wanted_kind ? "apiVersion" : "kind");
    judging.refuse(args->value, {.issue = code::args_of_other_kind,
                                 .location = match->location,
                                 .field = args_path,
                                 .value = version + (version.empty() || kind.empty() ? "" : " ") + kind,
                                 .allowed = text::phrase(wanted_version + " " + wanted_kind)});
    return;
  }
  decoder.mapping(args->value, *args_shape, args_path);
}

}  // namespace

std::optional<std::int64_t> parse_duration(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  if (text == "0") return 0;
  if (text.empty()) return std::nullopt;
  static constexpr std::pair<std::string_view, double> units[] = {{"ns", 1},          {"us", 1e3},  {"\xc2\xb5s", 1e3},
                                                                  {"\xce\xbcs", 1e3}, {"ms", 1e6},  {"s", 1e9},
                                                                  {"m", 6e10},        {"h", 3.6e12}};
  double sum = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_not_of("0123456789."), text.size());
    const auto number = text.substr(0, end);
    if (std::ranges::count(number, '.') > 1 || number.find_first_of("0123456789") == number.npos) return std::nullopt;
    text.remove_prefix(end);
    const auto unit_end = std::min(text.find_first_of("0123456789."), text.size());
    const auto* unit = std::ranges::find(units, text.substr(0, unit_end), &std::pair<std::string_view, double>::first);
    if (unit == std::end(units)) return std::nullopt;
    text.remove_prefix(unit_end);
    sum += std::strtod(std::string(number).c_str(), nullptr) * unit->second;
  }
  if (sum > 9.2e18) return std::nullopt;
  return static_cast<std::int64_t>(negative ? -sum : sum);
}

void decode(judging& judging) {
  decoder document_decoder(judging);
  document_decoder.repeated(judging.config.root, "");
  document_decoder.mapping(judging.config.root, configuration(), "");
  const auto profiles = judging.items(judging.config.root, "profiles");
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const auto path = below(below("profiles", i), "pluginConfig");
    const auto configs = judging.items(profiles[i], "pluginConfig");
    for (std::size_t j = 0; j < configs.size(); ++j) decode_args(judging, document_decoder, configs[j], below(path, j));
  }
}

}  // namespace scheduler_config
