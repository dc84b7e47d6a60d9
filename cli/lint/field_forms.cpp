#include "cli/lint/field_forms.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "cli/lint/field_rules.hpp"
#include "kube/quantity.hpp"
#include "kube/quantity_text.hpp"
#include "text/list.hpp"
#include "text/text.hpp"

namespace cli::field_forms {
namespace {

namespace fields = kubernetes_fields;
using text::yaml::node;
using fault_kind = field_fault::kind;

/// The form of these is judged where they are read, with words of its own; what is in them is judged here.
bool is_read_elsewhere(const fields::object_type& type, std::string_view name) {
  if (type.name == "PodSpec") return name == "containers" || name == "initContainers";
  if (type.name == "Container") return name == "resources";
  if (type.name == "ResourceRequirements") return name == "limits" || name == "requests";
  return name == "spec" && !type.name.starts_with("PersistentVolumeClaim");
}

/// That these are missing is reported elsewhere.
bool is_missed_elsewhere(const fields::object_type& type, std::string_view name) {
  return name == "spec" || name == "template" || name == "jobTemplate" ||
         (type.name == "PodSpec" && name == "containers") ||
         (type.name == "NodeSelectorRequirement" && name == "operator");
}

/// So is a word of theirs that is not legal.
bool is_operator(const fields::object_type& type, std::string_view name) {
  return name == "operator" && (type.name == "NodeSelectorRequirement" || type.name == "Toleration");
}

/// Amounts of other resources are judged by what they count.
bool is_plain_resource(std::string_view name) {
  return name == "cpu" || name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-");
}

/// Null is what an empty field is: the API server takes its default.
bool is_null(const node& value) {
  return value.is == node::shape::null || (value.scalar() && type_of(value) == text::yaml::type::null);
}
/// Not filled in yet: `helm template` does that.
bool is_template(const node& value) { return value.scalar() && value.text.contains("{{"); }
bool is_text(const node& value) { return value.scalar() && type_of(value) == text::yaml::type::text; }
bool is_flag(const node& value) { return value.scalar() && type_of(value) == text::yaml::type::boolean; }
bool is_number(const node& value, std::int64_t least, std::int64_t most) {
  const auto number = whole_number(value);
  return number && *number >= least && *number <= most;
}
bool is_number_32(const node& value) {
  return is_number(value, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max());
}
/// IsValidPortName of apimachinery.
bool is_port_name(std::string_view text) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_part = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '-'; };
  return !text.empty() && text.size() <= 15 && std::ranges::all_of(text, is_part) &&
         std::ranges::any_of(text, is_letter) && !text.contains("--") && text.front() != '-' && text.back() != '-';
}
/// As Go trims blanks.
bool is_unpadded(std::string_view text) {
  constexpr std::string_view blanks = " \t\n\v\f\r";
  return text.empty() || (!blanks.contains(text.front()) && !blanks.contains(text.back()));
}
bool is_quantity(const node& value) {
  return value.scalar() && kube::parse_quantity(kube::unpadded_quantity(canonical(value))).has_value();
}

class search {
 public:
  explicit search(bool is_whole) : is_whole_(is_whole) {}

  std::vector<field_fault> found;

  void look_at(const node* parent, const std::string& path, const fields::object_type& type) {
    if (!parent || !parent->mapping() || !seen_.emplace(parent, &type).second) return;
    std::set<std::string> meant;  // by names that are not known
    for (const auto& entry : parent->entries) {
      const std::string_view name = entry.key->text;
      const auto* row = type.find(name);
      if (!row && is_whole_) {
        meant.insert(fields::meant(name, type));
        found.push_back(
            {fault_kind::unknown, entry.key, entry.value, below(path, text::shown(name, 320)), {}, &type, nullptr});
      }
      if (row && text::yaml::find_entry(parent, name) == &entry) value(entry, below(path, name), type, *row);
    }
    missing(*parent, path, type, meant);
    if (is_whole_) together(*parent, path, type, meant);
    for (const auto& item : field_rules::repeated_items(*parent, path, type))
      found.push_back({fault_kind::repeated, item.field->key, item.field->value, item.path, {}, &type, nullptr});
  }

  void value(const node::entry& entry, const std::string& path, const fields::object_type& type,
             const fields::known_field& row) {
    const auto& is = *entry.value;
    if (is_null(is)) return;
    const spot spot{entry.key, &is, path, &type, &row};
    const bool is_read = is_read_elsewhere(type, row.name);
    switch (row.is_in) {
      case fields::arrangement::single:
        if (!is_read || row.is != fields::form::of_type) return single(spot);
        return look_at(&is, path, *row.parts);
      case fields::arrangement::list:
        if (!is_read) unless(is.sequence(), spot, form::list);
        return items(spot, is_read);
      case fields::arrangement::mapping:
        if (!is_read) unless(is.mapping(), spot, form::mapping);
        return entries(spot);
    }
  }

 private:
  struct spot {
    const node *place, *value;
    std::string path;
    const fields::object_type* owner;
    const fields::known_field* about;
  };

  static std::string below(const std::string& path, std::string_view name) {
    return path + (path.empty() ? "" : ".") + std::string(name);
  }

  void missing(const node& parent, const std::string& path, const fields::object_type& type,
               const std::set<std::string>& meant) {
    if (!is_whole_) return;
    for (const auto& row : type.fields)
      if (row.required && !is_missed_elsewhere(type, row.name) && !meant.contains(std::string(row.name)) &&
          is_missing(parent, type, row))
        found.push_back({fault_kind::missing, &parent, nullptr, below(path, row.name), {}, &type, &row});
  }

  static bool is_missing(const node& parent, const fields::object_type& type, const fields::known_field& row) {
    const auto* entry = text::yaml::find_entry(&parent, row.name);
    if (!entry || is_null(*entry->value)) return true;
    // That these names are empty is reported with what they may be.
    if (row.name == "name" && (type.name == "Container" || type.name == "Volume")) return false;
    return entry->value->scalar()
               ? entry->value->text.empty()
               : row.is_in == fields::arrangement::list && (entry->value->sequence() && entry->value->items.empty());
  }

  void together(const node& parent, const std::string& path, const fields::object_type& type,
                const std::set<std::string>& meant) {
    if (const auto* rule = field_rules::alternatives_of(type)) {
      const auto names = field_rules::names_of(*rule, type);
      const auto chosen = field_rules::chosen(parent, names);
      const bool is_meant = std::ranges::any_of(names, [&](auto name) { return meant.contains(std::string(name)); });
      if (chosen.empty() && !rule->may_lack && !is_meant)
        found.push_back({fault_kind::none_chosen, &parent, nullptr, path, {}, &type, nullptr, text::joined(names)});
      if (chosen.size() > 1)
        found.push_back({fault_kind::two_chosen,
                         chosen[1]->key,
                         chosen[1]->value,
                         below(path, chosen[1]->key->text),
                         {},
                         &type,
                         nullptr,
                         chosen[0]->key->text});
    }
    if (field_rules::are_values_legal(parent, type)) return;
    const auto* values = text::yaml::find_entry(&parent, "values");
    const auto legal = "operator: " + std::string(text::yaml::text_at(&parent, "operator"));
    found.push_back({fault_kind::next_to,
                     values ? values->key : &parent,
                     values ? values->value : nullptr,
                     below(path, "values"),
                     {},
                     &type,
                     nullptr,
                     legal});
  }

  void items(const spot& list, bool is_read) {
    if (!list.value->sequence()) return;
    std::size_t index = 0;
    for (const auto* item : list.value->items) {
      const auto path = list.path + "[" + std::to_string(index++) + "]";
      if (is_null(*item)) {
        if (list.about->is == fields::form::of_type) missing(*item, path, *list.about->parts, {});
      } else if (is_read)
        look_at(item, path, *list.about->parts);
      else
        single({item, item, path, list.owner, list.about});
    }
  }

  void entries(const spot& mapping) {
    if (!mapping.value->mapping()) return;
    for (const auto& entry : mapping.value->entries) {
      const std::string_view key = entry.key->text;
      const bool is_judged = mapping.about->is != fields::form::quantity || is_plain_resource(key);
      if (is_judged && !is_null(*entry.value))
        single(
            {entry.key, entry.value, mapping.path + "[" + text::shown(key, 320) + "]", mapping.owner, mapping.about});
    }
  }

  void unless(bool legal, const spot& spot, form expected) {
    if (!legal)
      found.push_back({fault_kind::misformed, spot.place, spot.value, spot.path, expected, spot.owner, spot.about});
  }

  void single(const spot& spot) {
    const auto& is = *spot.value;
    switch (spot.about->is) {
      case fields::form::text:
      case fields::form::time:
        unless(is_text(is), spot, form::text);
        if (spot.owner->name == "ContainerPort" && spot.about->name == "name" && is_text(is) && !is_template(is))
          unless(is.text.empty() || is_port_name(is.text), spot, form::port_name);
        if (is_image_of_pod(spot) && is_text(is) && !is_template(is))
          unless(is_unpadded(is.text), spot, form::unpadded);
        name(spot);
        return word(spot);
      case fields::form::flag:
        return unless(is_flag(is), spot, form::flag);
      case fields::form::int32:
      case fields::form::int64:
        return number(spot);
      case fields::form::quantity:
        return unless(is_quantity(is), spot, form::quantity);
      case fields::form::int_or_text:
        if (spot.about->name == "port")
          return unless(is_template(is) || (is_text(is) ? is_port_name(is.text) : is_number(is, 1, 65535)), spot,
                        form::port_or_name);
        return unless(is_text(is) || is_number_32(is), spot, form::number_or_text);
      case fields::form::object:
        return unless(is.mapping(), spot, form::mapping);
      case fields::form::of_type:
        unless(is.mapping(), spot, form::mapping);
        return look_at(&is, spot.path, *spot.about->parts);
    }
  }

  void name(const spot& spot) {
    const auto& is = *spot.value;
    const auto kind = field_rules::name_kind_of(*spot.owner, spot.about->name, is.text);
    if (kind == field_rules::name_kind::any || !is_text(is) || is_template(is)) return;
    unless(field_rules::is_name(is.text, kind), spot,
           kind == field_rules::name_kind::object  ? form::object_name
           : kind == field_rules::name_kind::label ? form::label
                                                   : form::label_key);
  }

  void number(const spot& spot) {
    constexpr auto least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
    const auto& is = *spot.value;
    if (const auto* range = field_rules::limits_of(*spot.owner, spot.about->name))
      unless(is_number(is, range->least, range->most), spot, form::range);
    else if (spot.about->is == fields::form::int32)
      unless(is_number_32(is), spot, form::number);
    else
      unless(is_number(is, least, most), spot, form::long_number);
  }

  /// Of a template the API server takes any, and refuses its pods: validateContainersOnlyForPod.
  bool is_image_of_pod(const spot& spot) const {
    return is_whole_ && spot.about->name == "image" && !spot.path.contains("emplate.");
  }

  void word(const spot& spot) {
    const auto& is = *spot.value;
    if (!is_text(is) || is.text.empty() || is_template(is)) return;
    const auto& words = spot.about->words;
    if (words.empty() || is_operator(*spot.owner, spot.about->name) || std::ranges::find(words, is.text) != words.end())
      return;
    found.push_back({fault_kind::word, spot.place, spot.value, spot.path, {}, spot.owner, spot.about});
  }

  bool is_whole_;
  std::set<std::pair<const node*, const fields::object_type*>> seen_;  ///< aliases multiply
};

}  // namespace

std::optional<std::int64_t> whole_number(const node& value) {
  if (!value.scalar()) return std::nullopt;
  const auto type = type_of(value);
  if (type != text::yaml::type::integer && type != text::yaml::type::real) return std::nullopt;
  const auto digits = canonical(value);
  std::int64_t out = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  if (failed == std::errc() && end == digits.data() + digits.size()) return out;
  if (type == text::yaml::type::integer) return std::nullopt;
  // kubectl writes a fraction as JSON does: 3.0 is 3, and so is 0.3e1.
  const double number = std::strtod(digits.c_str(), nullptr);
  constexpr double exact = 9.0e15;
  if (!(std::abs(number) < exact) || std::trunc(number) != number) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::vector<field_fault> faults_of(const node* mapping, const std::string& path, const fields::object_type& type,
                                   bool is_whole) {
  search search(is_whole);
  search.look_at(mapping, path, type);
  return std::move(search.found);
}

std::vector<field_fault> faults_of_replicas(const node* mapping, const std::string& path) {
  const auto* entry = text::yaml::find_entry(mapping, "replicas");
  if (!entry) return {};
  const auto& type = *fields::find("DeploymentSpec");
  search search(false);
  search.value(*entry, path + (path.empty() ? "" : ".") + "replicas", type, *type.find("replicas"));
  return std::move(search.found);
}

}  // namespace cli::field_forms
