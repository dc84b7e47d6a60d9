#include "cli/explain/namespace_limits.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kube/client.hpp"
#include "kube/quantity.hpp"
#include "kube/quantity_text.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using nlohmann::json;

constexpr std::string_view request_prefix = "requests.";

// Fields of an object that may have any form: what is not as the API has it is as if it were not there.

const json& member(const json& object, const char* name) {
  static const json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}
std::string text_at(const json& object, const char* name) {
  const auto& found = member(object, name);
  return found.is_string() ? found.get<std::string>() : std::string();
}

std::string limit_words(const std::string& key, text::language locale,
                        std::initializer_list<text::parameter> parameters) {
  return text::message("namespace_limit." + key, locale, parameters);
}

bool counts_pods(std::string_view key) { return key == "pods" || key == "count/pods"; }

/// More than any node has; sums over the containers of a file stay below an int64's most.
constexpr std::int64_t largest = 1'000'000'000'000;

std::optional<std::int64_t> amount_of(const json& value) {
  std::optional<std::int64_t> out;
  if (value.is_number_integer()) out = value.get<std::int64_t>();
  if (value.is_string()) out = kube::parse_quantity(kube::unpadded_quantity(value.get_ref<const std::string&>()));
  return out ? std::optional(std::clamp<std::int64_t>(*out, 0, largest)) : out;
}

std::map<std::string, std::int64_t> amounts_in(const json& list, auto wanted) {
  std::map<std::string, std::int64_t> out;
  if (!list.is_object()) return out;
  for (const auto& [key, value] : list.items())
    if (const auto amount = wanted(key) ? amount_of(value) : std::nullopt) out[key] = *amount;
  return out;
}

/// What a container asks for: its requests, and where they say nothing its limits.
std::map<std::string, std::int64_t> requests_of(const kube::container& container) {
  std::map<std::string, std::int64_t> out;
  for (const auto* list : {&container.limits, &container.requests})
    for (const auto& [key, amount] : *list) out[key] = std::clamp<std::int64_t>(amount, 0, largest);
  return out;
}

/// What the pod asks for at most at one time, as the API server reckons it: an init container next to the sidecars that
/// started before it, or all others together.
std::map<std::string, std::int64_t> requests_of_pod(std::span<const kube::container> containers) {
  std::map<std::string, std::int64_t> sum, peak;
  for (const auto& container : containers)
    for (const auto& [key, amount] : requests_of(container)) {
      auto& now = sum[key];
      if (container.kind == kube::container::role::init)
        peak[key] = std::max(peak[key], now + amount);
      else
        now += amount;
    }
  for (const auto& [key, amount] : peak) sum[key] = std::max(sum[key], amount);
  return sum;
}

}  // namespace

void namespace_limits::add(const json& object) {
  const auto& metadata = member(object, "metadata");
  const auto ns = text_at(metadata, "namespace"), name = text_at(metadata, "name");
  const auto kind = text_at(object, "kind");
  const auto& spec = member(object, "spec");
  if (kind == "LimitRange") {
    for (const auto& item : member(spec, "limits")) {
      const auto type = text_at(item, "type");
      if (type != "Container" && type != "Pod") continue;
      range made{name, type == "Pod", amounts_in(member(item, "default"), kube::is_extended_resource),
                 amounts_in(member(item, "min"), kube::is_extended_resource),
                 amounts_in(member(item, "max"), kube::is_extended_resource)};
      if (!made.standard.empty() || !made.least.empty() || !made.most.empty()) ranges_[ns].push_back(std::move(made));
    }
  } else if (kind == "ResourceQuota") {
    const auto counted = [](std::string_view key) {
      return counts_pods(key) ||
             (key.starts_with(request_prefix) && kube::is_extended_resource(key.substr(request_prefix.size())));
    };
    quota made{name, amounts_in(member(spec, "hard"), counted),
               amounts_in(member(member(object, "status"), "used"), counted)};
    if (made.hard.empty()) return;
    if (!member(spec, "scopes").empty() || !member(spec, "scopeSelector").empty())
      return doubt(limit_words("scopes", locale_, {{"name", ns + "/" + name}}));
    quotas_[ns].push_back(std::move(made));
  }
}

std::string namespace_limits::admit(const std::string& ns, std::span<kube::container> containers) {
  static const std::vector<range> no_ranges;
  const auto found = ranges_.find(ns);
  const auto& ranges = found == ranges_.end() ? no_ranges : found->second;
  for (const auto& range : ranges)
    for (auto& container : containers) {
      const auto has = requests_of(container);
      for (const auto& [key, amount] : range.standard)
        if (!has.contains(key)) container.limits.emplace_back(key, amount);
      std::ranges::sort(container.limits);
    }
  const auto of_pod = requests_of_pod(containers);
  const auto beyond = [&](const range& range, const std::map<std::string, std::int64_t>& has, const char* holder) {
    const auto words = [&](const char* code, const std::string& key, std::int64_t amount, const char* name,
                           std::int64_t bound) {
      return limit_words(code, locale_,
                         {{"name", ns + "/" + range.name},
                          {"holder", limit_words(holder, locale_, {})},
                          {"key", key},
                          {"amount", std::to_string(amount)},
                          {name, std::to_string(bound)}});
    };
    for (const auto& [key, most] : range.most) {
      const auto is = has.find(key);
      if (is == has.end()) return words("range_needs", key, 0, "most", most);
      if (is->second > most) return words("range_most", key, is->second, "most", most);
    }
    for (const auto& [key, least] : range.least) {
      const auto is = has.find(key);
      const auto amount = is == has.end() ? 0 : is->second;
      if (is == has.end() || amount < least) return words("range_least", key, amount, "least", least);
    }
    return std::string();
  };
  for (const auto& range : ranges) {
    if (range.of_pod) {
      if (auto no = beyond(range, of_pod, "pod"); !no.empty()) return no;
      continue;
    }
    for (const auto& container : containers)
      if (auto no = beyond(range, requests_of(container), "container"); !no.empty()) return no;
  }
  const auto quotas = quotas_.find(ns);
  if (quotas == quotas_.end()) return {};
  const auto needs = [&](const std::string& key) -> std::int64_t {
    if (counts_pods(key)) return 1;
    const auto is = of_pod.find(key.substr(request_prefix.size()));
    return is == of_pod.end() ? 0 : is->second;
  };
  for (const auto& quota : quotas->second)
    for (const auto& [key, hard] : quota.hard) {
      const auto entry = quota.used.find(key);
      const auto used = entry == quota.used.end() ? 0 : entry->second;
      if (const auto more = needs(key); more > 0 && used + more > hard)
        return limit_words("quota", locale_,
                           {{"name", ns + "/" + quota.name},
                            {"key", key},
                            {"used", std::to_string(used)},
                            {"hard", std::to_string(hard)},
                            {"more", std::to_string(more)}});
    }
  for (auto& quota : quotas->second)
    for (const auto& [key, hard] : quota.hard) quota.used[key] += needs(key);
  return {};
}

kube::task<void> read_namespace_limits(kube::transport& transport, std::set<std::string> namespaces,
                                       namespace_limits& out) {
  kube::client api(transport);
  for (const auto& ns : namespaces)
    for (const auto* type : {&limit_ranges, &resource_quotas}) {
      kube::list_options options;
      options.ns = ns;
      auto listed = co_await api.list(*type, options);
      if (!listed && listed.error().code != kube::errc::forbidden) co_return std::unexpected(listed.error());
      if (!listed) {
        out.doubt(limit_words("forbidden", out.locale(),
                              {{"kind", std::string(type->plural)}, {"namespace", text::shown(ns)}}));
        continue;
      }
      for (auto& object : *listed) {
        object["kind"] = std::string(type->kind);  // items of a list do not say it
        object["metadata"]["namespace"] = ns;
        out.add(object);
      }
    }
  co_return kube::result<void>();
}

void take_in_limits(const picture& picture, namespace_limits& out) {
  for (const auto& text : picture.limits) out.add(json::parse(text, nullptr, false));
  if (const auto match = picture.unseen.find(part::limits); match != picture.unseen.end())
    out.doubt(limit_words("unseen", out.locale(), {{"reason", words_of(match->second, out.locale())}}));
}

}  // namespace cli
