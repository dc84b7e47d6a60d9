#include "cli/lint/range_amounts.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "kube/quantity.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using text::yaml::node;

/// An amount of one key, and the part in which a person wrote it.
struct written_amount {
  std::int64_t value = 0;
  std::string_view part;
  const node::entry* entry = nullptr;
};
using amounts_by_part = std::map<std::string_view, written_amount>;

/// What must not be more than what.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> ordered_parts{{{"min", "max"},
                                                                                      {"min", "defaultRequest"},
                                                                                      {"defaultRequest", "max"},
                                                                                      {"defaultRequest", "default"},
                                                                                      {"min", "default"},
                                                                                      {"default", "max"}}};

class range_judge {
 public:
  range_judge(const manifest& manifest, text::language locale, std::vector<lint_finding>& findings)
      : manifest_(manifest), locale_(locale), findings_(findings) {}

  void check(const node& item, const std::string& path) {
    const auto type = text::yaml::text_at(&item, "type");
    for (const auto* part : {"default", "defaultRequest"}) {
      const auto* entry = text::yaml::find_entry(&item, part);
      const bool is_there = entry && entry->value->mapping() && !entry->value->entries.empty();
      if (is_there && type == "Pod")
        return say(*entry, path + "." + part, text::yaml::canonical(*entry->value), "type: Pod");
    }
    std::map<std::string_view, amounts_by_part> keys;
    for (const auto* part : {"min", "max", "default", "defaultRequest"})
      if (const auto* amounts = text::yaml::find(&item, part); amounts && amounts->mapping())
        for (const auto& entry : amounts->entries)
          if (const auto value = kube::parse_quantity(text::yaml::canonical(*entry.value)))
            keys[entry.key->text].insert_or_assign(part, written_amount{*value, part, &entry});
    for (auto& [key, amounts] : keys) {
      if (type == "Container") fill(amounts);
      check_key(key, amounts, path);
    }
  }

 private:
  /// As the API server does, in this order.
  static void fill(amounts_by_part& amounts) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 3> defaults{
        {{"default", "max"}, {"defaultRequest", "default"}, {"defaultRequest", "min"}}};
    for (const auto& [part, source] : defaults)
      if (const auto match = amounts.find(source); match != amounts.end()) amounts.try_emplace(part, match->second);
  }

  void check_key(std::string_view key, const amounts_by_part& amounts, const std::string& path) {
    const auto find = [&](std::string_view part) {
      const auto match = amounts.find(part);
      return match == amounts.end() ? nullptr : &match->second;
    };
    const bool is_equal_by_rule = text::is_extended_resource(key) || key.starts_with("hugepages-");
    const auto *limit = find("default"), *request = find("defaultRequest");
    if (is_equal_by_rule && limit && request && limit->value != request->value)
      return contradict(key, *request, *limit, path);
    for (const auto& [lower, upper] : ordered_parts) {
      const auto *less = find(lower), *more = find(upper);
      if (less && more && less->value > more->value) return contradict(key, *less, *more, path);
    }
  }

  void contradict(std::string_view key, const written_amount& amount, const written_amount& other,
                  const std::string& path) {
    const auto index = "[" + text::shown(key, 320) + "]";
    say(*amount.entry, path + "." + std::string(amount.part) + index, text::yaml::canonical(*amount.entry->value),
        std::string(other.part) + index + ": " + text::yaml::canonical(*other.entry->value));
  }

  void say(const node::entry& entry, const std::string& path, const std::string& value, const std::string& other) {
    findings_.push_back(finding_of(lint_code::refused_together, manifest_, entry.key->location,
                                   {.field = path, .value = value, .other = other}, locale_));
  }

  const manifest& manifest_;
  text::language locale_;
  std::vector<lint_finding>& findings_;
};

}  // namespace

void lint_range(const manifest& manifest, text::language locale, std::vector<lint_finding>& findings) {
  const auto* list = text::yaml::find(text::yaml::find(manifest.root, "spec"), "limits");
  if (!list || !list->sequence()) return;
  range_judge judge(manifest, locale, findings);
  for (std::size_t i = 0; i < list->items.size(); ++i)
    judge.check(*list->items[i], "spec.limits[" + std::to_string(i) + "]");
}

}  // namespace cli
