// The strict decoder: apimachinery's serializer/json with EnableStrict, sigs.k8s.io/json and sigs.k8s.io/yaml.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "scheduler_config/judge/judging.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace reconcilers::scheduler_config {
namespace {

bool has_field(const shape& in, std::string_view name) {
  return std::ranges::find(in.fields, name, &field::name) != in.fields.end();
}

/// Standard alphabet with padding; line breaks are passed over, as Go does.
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

class decoder {
 public:
  explicit decoder(judging& in) : in_(in) {}

  void repeated(const yaml::node* at, const std::string& path) {
    if (!spend() || !seen_.insert(at).second) return;
    for (const auto* key : yaml::repeated_keys(at))
      in_.say({.what = code::written_twice, .at = key->at, .field = below(path, key->text)});
    if (at->overridden)
      in_.say({.what = code::merged_twice, .at = at->overridden->at, .field = below(path, at->overridden->text)});
    for (std::size_t i = 0; i < at->items.size(); ++i) repeated(at->items[i], below(path, i));
    for (const auto& one : at->entries) repeated(one.value, below(path, one.key->text));
  }

  void mapping(const yaml::node* at, const shape& as, const std::string& path) {
    std::vector<const yaml::node*> unknown;
    for (const auto& one : at->entries) {
      if (!spend()) return;
      if (yaml::find_entry(at, one.key->text) != &one) continue;
      const auto known = std::ranges::find(as.fields, key_of(one), &field::name);
      if (known == as.fields.end()) {
        unknown.push_back(one.key);
      } else if (!of_this_version(*known)) {
        other_version(one, *known, path);
      } else {
        value(one.key, one.value, *known, below(path, known->name));
      }
    }
    if (!unknown.empty()) say_unknown(unknown, as, path);
  }

 private:
  bool spend() {
    if (in_.budget == 1) in_.say({.what = code::not_yaml, .other = "aliases make it more than 400,000 values"});
    if (in_.budget > 0) --in_.budget;
    return in_.budget > 0 && in_.out.size() < 100;
  }
  static std::string key_of(const yaml::node::entry& of) {
    return of.key->scalar() ? yaml::canonical(*of.key) : std::string("?");
  }
  bool of_this_version(const field& one) const { return one.since <= in_.on.minor; }
  void other_version(const yaml::node::entry& at, const field& known, const std::string& path) {
    in_.refuse(at.value, {.what = code::field_of_other_version,
                          .at = at.key->at,
                          .field = below(path, known.name),
                          .other = std::string(api_version) + " in Kubernetes " + in_.version(),
                          .allowed = "from Kubernetes 1." + std::to_string(known.since)});
  }

  /// Fields at the left margin that an extender has slipped out of it: one mistake, however many they are.
  void say_unknown(const std::vector<const yaml::node*>& keys, const shape& as, const std::string& path) {
    finding slipped{.what = code::field_misplaced};
    for (const auto* key : keys) {
      const auto name = key->scalar() ? yaml::canonical(*key) : std::string("?");
      const auto belongs = path.empty() ? home_of(name) : std::string();
      if (belongs.empty()) {
        finding out{.what = code::field_unknown, .at = key->at, .field = below(path, name)};
        std::vector<std::string_view> names;
        for (const auto& one : as.fields) {
          if (!of_this_version(one)) continue;
          names.push_back(one.name);
          out.allowed += (out.allowed.empty() ? "" : ", ") + std::string(one.name);
        }
        out.hint = crl::nearest(name, names);
        in_.say(std::move(out));
      } else if (slipped.value.empty()) {
        slipped.at = key->at, slipped.field = name, slipped.value = name, slipped.other = belongs;
      } else {
        slipped.value += ", " + name;
      }
    }
    if (!slipped.value.empty()) in_.say(std::move(slipped));
  }
  /// The extender a field of the left margin belongs to: the last one.
  std::string home_of(std::string_view name) const {
    const auto count = in_.items(in_.of.root, "extenders").size();
    const auto last = "extenders[" + std::to_string(count == 0 ? 0 : count - 1) + "]";
    if (has_field(extender(), name)) return last;
    if (has_field(tls(), name)) return last + ".tlsConfig";
    return {};
  }

  void wrong(const yaml::node* key, const yaml::node* at, const std::string& path, std::string allowed,
             std::string hint = {}) {
    in_.refuse(at, {.what = code::wrong_type,
                    .at = key->at,
                    .field = path,
                    .value = shown_value(*at),
                    .allowed = std::move(allowed),
                    .hint = std::move(hint)});
  }

  void value(const yaml::node* key, const yaml::node* at, const field& as, const std::string& path) {
    if (!spend()) return;
    const auto is = json_type_of(*at);
    if (is == json_type::null) {
      if (as.is == type::duration) wrong_duration(key, at, path);
      return;
    }
    switch (as.is) {
      case type::any:
        return;
      case type::text:
        if (is != json_type::text) wrong(key, at, path, "text", quoted(*at, is));
        return;
      case type::boolean:
        if (is != json_type::boolean) wrong(key, at, path, "true or false", unquoted(*at, yaml::type::boolean));
        return;
      case type::int32:
      case type::int64:
        return integer(key, at, as, path);
      case type::real:
        if (is != json_type::number) wrong(key, at, path, "a number", unquoted(*at, yaml::type::integer));
        return;
      case type::duration:
      case type::optional_duration:
        if (is != json_type::text || !parse_duration(at->text)) wrong_duration(key, at, path);
        return;
      case type::bytes:
        if (is != json_type::text) return wrong(key, at, path, "base64 text", quoted(*at, is));
        if (!is_base64(at->text))
          in_.refuse(at, {.what = code::not_base64, .at = key->at, .field = path, .hint = file_field(path)});
        return;
      case type::object:
        if (is != json_type::mapping) return wrong(key, at, path, "a mapping");
        return mapping(at, *as.of, path);
      case type::labels:
        if (is != json_type::mapping) return wrong(key, at, path, "a mapping");
        for (const auto& one : at->entries) value(one.key, one.value, {"", type::text}, below(path, one.key->text));
        return;
      case type::texts:
      case type::objects:
        if (is != json_type::list) return wrong(key, at, path, "a list", is == json_type::mapping ? "- before it" : "");
        for (std::size_t i = 0; i < at->items.size(); ++i) item(at->items[i], as, below(path, i));
    }
  }
  void item(const yaml::node* at, const field& as, const std::string& path) {
    if (as.is == type::texts)
      value(at, at, {"", type::text}, path);
    else
      value(at, at, {"", type::object, as.of}, path);
  }

  void integer(const yaml::node* key, const yaml::node* at, const field& as, const std::string& path) {
    const auto number = integer_of(at);
    const bool narrow = as.is == type::int32;
    // Of YAML kube-scheduler gets 16 for 16.0; JSON it takes as it is written, and Go's decoder refuses 16.0 and 1e1.
    if (in_.of.json && number && at->text.find_first_of(".eE") != at->text.npos)
      return wrong(key, at, path, "a whole number without fraction or exponent", std::to_string(*number));
    using std::numeric_limits;
    const bool fits =
        number &&
        (!narrow || (*number >= numeric_limits<std::int32_t>::min() && *number <= numeric_limits<std::int32_t>::max()));
    if (!fits)
      wrong(key, at, path, narrow ? "a whole number of 32 bits" : "a whole number", unquoted(*at, yaml::type::integer));
  }
  void wrong_duration(const yaml::node* key, const yaml::node* at, const std::string& path) {
    const auto number = integer_of(at);
    auto hint = number && *number > 0 && *number < 100'000 ? std::to_string(*number) + "s" : std::string("5s");
    in_.refuse(at, {.what = code::not_a_duration,
                    .at = key->at,
                    .field = path,
                    .value = shown_value(*at),
                    .hint = std::move(hint)});
  }

  static std::string quoted(const yaml::node& of, json_type is) {
    const bool scalar = is == json_type::number || is == json_type::boolean;
    return scalar ? "\"" + crl::shown(of.text) + "\"" : std::string();
  }
  /// Text that would be right without its quotes.
  static std::string unquoted(const yaml::node& of, yaml::type wanted) {
    return of.scalar() && of.quoted && yaml::type_of_plain(of.text) == wanted ? yaml::canonical_plain(of.text)
                                                                              : std::string();
  }
  static std::string file_field(const std::string& path) {
    const auto name = path.substr(path.rfind('.') + 1);
    return name.ends_with("Data") ? name.substr(0, name.size() - 4) + "File" : name;
  }

  judging& in_;
  std::set<const yaml::node*> seen_;
};

/// Arguments have the plugin's own kind, whatever they say of themselves.
void decode_args(judging& in, decoder& with, const yaml::node* entry, const std::string& path) {
  const auto name = in.text(entry, "name");
  const auto* as = args_of(name, in.on.minor);
  const auto* args = in.entry(entry, "args");
  if (!as || !args) return;
  const auto where = below(path, "args");
  if (!args->value->mapping()) {
    in.refuse(args->value, {.what = code::wrong_type,
                            .at = args->key->at,
                            .field = where,
                            .value = shown_value(*args->value),
                            .allowed = "a mapping"});
    return;
  }
  const auto kind = in.text(args->value, "kind"), version = in.text(args->value, "apiVersion");
  const auto wanted_kind = name + "Args", wanted_version = std::string(api_version);
  if ((!kind.empty() && kind != wanted_kind) || (!version.empty() && version != wanted_version)) {
    const auto* at = yaml::find(args->value, kind.empty() || kind == wanted_kind ? "apiVersion" : "kind");
    in.refuse(args->value, {.what = code::args_of_other_kind,
                            .at = at->at,
                            .field = where,
                            .value = version + (version.empty() || kind.empty() ? "" : " ") + kind,
                            .allowed = wanted_version + " " + wanted_kind});
    return;
  }
  with.mapping(args->value, *as, where);
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

void decode(judging& in) {
  decoder with(in);
  with.repeated(in.of.root, "");
  with.mapping(in.of.root, configuration(), "");
  const auto profiles = in.items(in.of.root, "profiles");
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const auto path = below(below("profiles", i), "pluginConfig");
    const auto configs = in.items(profiles[i], "pluginConfig");
    for (std::size_t j = 0; j < configs.size(); ++j) decode_args(in, with, configs[j], below(path, j));
  }
}

}  // namespace reconcilers::scheduler_config
