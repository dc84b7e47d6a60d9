#include "reconcilers/modules/accelerator_policy.hpp"

#include <algorithm>
#include <charconv>

#include "kube/json_object.hpp"
#include "reconcilers/modules/catalogue.hpp"

namespace reconcilers {
namespace {

namespace on_demand = kube::on_demand;

std::string text_of(on_demand::value field) {
  std::string_view raw;
  return simdjson::to_json_string(field).get(raw) == simdjson::SUCCESS && raw != "null" ? std::string(raw)
                                                                                        : std::string();
}

/// Text as it is, anything else as JSON: an older version of us may have let a number in.
std::string word_of(on_demand::value field) {
  return field.type().value() == simdjson::ondemand::json_type::string ? std::string(on_demand::text_or(field))
                                                                       : text_of(field);
}

/// Nothing where it is not an object: what a policy holds that the schema would not take is not our downfall.
settings_map read_settings(on_demand::value object) {
  settings_map made;
  if (object.type().value() != simdjson::ondemand::json_type::object) return made;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    std::string owned(key);
    made[std::move(owned)] = word_of(field);
  });
  return made;
}

node_set read_node_set(on_demand::value object) {
  node_set made;
  if (object.type().value() != simdjson::ondemand::json_type::object) return made;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "name") made.name = on_demand::text_or(field);
    if (key == "settings") made.settings = read_settings(field);
  });
  return made;
}

module_spec read_module(on_demand::value object) {
  module_spec made;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "enabled") made.enabled = on_demand::flag_or(field, false);
    if (key == "image") made.image = on_demand::text_or(field);
    if (key == "imagePullPolicy") made.image_pull_policy = on_demand::text_or(field);
    if (key == "resources") made.resources = text_of(field);
    if (key == "args") made.args = text_of(field);
    if (key == "env") made.env = text_of(field);
    if (key == "tolerations") made.tolerations = text_of(field);
    if (key == "priorityClassName") made.priority_class = on_demand::text_or(field);
    if (key == "runtimeClassName") made.runtime_class = on_demand::text_or(field);
    if (key == "rollout") made.rollout = on_demand::text_or(field);
    if (key == "adopt") made.adopt = on_demand::flag_or(field, false);
    if (key == "settings") made.settings = read_settings(field);
    if (key == "device") made.device = text_of(field);
    if (key == "nodeSets" && field.type().value() == simdjson::ondemand::json_type::array)
      on_demand::each_item(field, [&](on_demand::value value) { made.node_sets.push_back(read_node_set(value)); });
  });
  return made;
}

label_alias read_alias(on_demand::value object) {
  label_alias made;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "key") made.key = on_demand::text_or(field);
    if (key == "value") made.value = on_demand::text_or(field);
    if (key == "mode") made.mode = on_demand::text_or(field);
  });
  return made;
}

enrolment_spec read_enrolment(on_demand::value object) {
  enrolment_spec made;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "default") {
      made.default_mode = on_demand::text_or(field);
      if (made.default_mode == "None") made.default_mode.clear();
    } else if (key == "labelAliases") {
      on_demand::each_item(field, [&](on_demand::value value) { made.aliases.push_back(read_alias(value)); });
    } else if (key == "takeOver") {
      made.take_over = on_demand::flag_or(field, false);
    } else if (key == "verifyTimeout") {
      made.verify_timeout = parse_duration(on_demand::text_or(field)).value_or(made.verify_timeout);
    } else if (key == "maxUnavailable") {
      made.max_unavailable = text_of(field);
      std::erase(made.max_unavailable, '"');
    } else if (key == "drain") {
      on_demand::each_member(field, [&](std::string_view name, on_demand::value value) {
        if (name == "mode") made.evict = on_demand::text_or(value) == "Evict";
        if (name == "timeout")
          made.drain_timeout = parse_duration(on_demand::text_or(value)).value_or(made.drain_timeout);
      });
    }
  });
  return made;
}

scheduler_spec read_scheduler(on_demand::value object) {
  scheduler_spec made;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "mode") made.mode = on_demand::text_or(field, "None");
    if (key == "isolateNodes") made.isolate_nodes = on_demand::flag_or(field, true);
    if (key == "image") made.image = on_demand::text_or(field);
    if (key == "replicas") made.replicas = static_cast<std::int32_t>(on_demand::number_or(field, made.replicas));
  });
  return made;
}

/// A price that the schema would not take is skipped: its model then has none, and reports say so.
chargeback_spec read_chargeback(on_demand::value object) {
  chargeback_spec made;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "currency") made.currency = on_demand::text_or(field);
    if (key == "organizationLabel") made.organization_label = on_demand::text_or(field);
    if (key != "prices") return;
    on_demand::each_item(field, [&](on_demand::value entry) {
      chargeback_spec::price price;
      std::optional<std::int64_t> amount;
      on_demand::each_member(entry, [&](std::string_view name, on_demand::value value) {
        if (name == "model") price.model = on_demand::text_or(value);
        if (name == "cardHour") amount = parse_millionths(on_demand::text_or(value));
      });
      if (!amount) return;
      price.card_hour = *amount;
      made.prices.push_back(std::move(price));
    });
  });
  return made;
}

/// `*` in the pattern stands for any text. The last star is tried again further on, as long as the text lasts.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

/// Of containerRuntime.fix.
settings_map read_node_selector(on_demand::value object) {
  settings_map made;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value fix) {
    if (key != "fix") return;
    on_demand::each_member(fix, [&](std::string_view name, on_demand::value labels) {
      if (name == "nodeSelector") made = read_settings(labels);
    });
  });
  return made;
}

void read_spec(on_demand::value spec, accelerator_policy& policy) {
  std::string pull_secrets;
  on_demand::each_member(spec, [&](std::string_view key, on_demand::value field) {
    if (key == "removing") policy.removing = on_demand::flag_or(field, false);
    if (key == "imagePullSecrets") pull_secrets = text_of(field);
    if (key == "modules") {
      on_demand::each_member(field, [&](std::string_view name, on_demand::value module) {
        std::string owned(name);  // the view ends with the next string that is read
        policy.modules[std::move(owned)] = read_module(module);
      });
    } else if (key == "enrolment") {
      policy.enrolment = read_enrolment(field);
    } else if (key == "compatibility") {
      on_demand::each_member(field, [&](std::string_view name, on_demand::value value) {
        if (name == "enforcement") policy.compatibility.enforcement = on_demand::text_or(value, "Warn");
        if (name == "paddleAllocator") policy.compatibility.paddle_allocator = on_demand::flag_or(value, false);
      });
    } else if (key == "scheduler") {
      policy.scheduler = read_scheduler(field);
    } else if (key == "containerRuntime") {
      policy.container_runtime.node_selector = read_node_selector(field);
    } else if (key == "chargeback") {
      policy.chargeback = read_chargeback(field);
    } else if (key == "cardLabels") {
      on_demand::each_item(field,
                           [&](on_demand::value value) { policy.card_labels.emplace_back(on_demand::text_or(value)); });
    } else if (key == "health") {
      on_demand::each_member(field, [&](std::string_view name, on_demand::value value) {
        if (name != "maxWithdrawn") return;
        policy.health.max_withdrawn = text_of(value);
        std::erase(policy.health.max_withdrawn, '"');
      });
    } else if (key == "customResources") {
      on_demand::each_member(field, [&](std::string_view name, on_demand::value value) {
        if (name == "enforcement") policy.resources.enforcement = on_demand::text_or(value, "Off");
        if (name == "fillOptional") policy.resources.fill_optional = on_demand::flag_or(value, false);
        if (name == "publish") policy.resources.publish = on_demand::flag_or(value, true);
      });
    }
  });
  policy.scheduler.pull_secrets = pull_secrets;
  if (policy.removing) policy.container_runtime.node_selector.clear();
  for (auto& [name, module] : policy.modules) {
    module.pull_secrets = pull_secrets;
    module.enabled = module.enabled && !policy.removing;
  }
}

}  // namespace

std::int64_t allowed_changes(std::string_view max_unavailable, std::int64_t nodes) {
  std::int64_t number = 1;
  const auto [end, failed] = std::from_chars(max_unavailable.begin(), max_unavailable.end(), number);
  if (failed != std::errc()) return 1;
  number = std::min<std::int64_t>(number, 1'000'000);
  if (end != max_unavailable.end() && *end == '%') number = (nodes * std::min<std::int64_t>(number, 100) + 99) / 100;
  return std::max<std::int64_t>(number, 1);
}

const chargeback_spec::price* chargeback_spec::price_of(std::string_view model) const {
  const auto match = std::ranges::find_if(prices, [&](const price& entry) { return matches(entry.model, model); });
  return match == prices.end() ? nullptr : &*match;
}

std::optional<std::int64_t> parse_millionths(std::string_view text) {
  static constexpr std::size_t most_digits = 6, most_decimals = 6;
  const auto point = std::min(text.find('.'), text.size());
  const auto whole = text.substr(0, point);
  const auto decimals = point < text.size() ? text.substr(point + 1) : std::string_view();
  const bool has_lone_point = point < text.size() && decimals.empty();
  if (whole.empty() || whole.size() > most_digits || decimals.size() > most_decimals || has_lone_point)
    return std::nullopt;
  auto digits = std::string(whole) + std::string(decimals);
  digits.append(most_decimals - decimals.size(), '0');
  std::int64_t out = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    out = out * 10 + (c - '0');
  }
  return out;
}

std::optional<std::chrono::seconds> parse_duration(std::string_view text) {
  std::int64_t total = 0, number = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      number = std::max<std::int64_t>(number, 0) * 10 + (c - '0');
      if (number > 1'000'000'000) return std::nullopt;
      continue;
    }
    if (number < 0 || (c != 'h' && c != 'm' && c != 's')) return std::nullopt;
    total += number * (c == 'h' ? 3600 : c == 'm' ? 60 : 1);
    number = -1;
  }
  if (text.empty() || number >= 0) return std::nullopt;
  return std::chrono::seconds(total);
}

kube::result<accelerator_policy> accelerator_policy::decode(std::string_view bytes) {
  auto made = on_demand::decode<accelerator_policy>(
      bytes, kube::keep_none, [](accelerator_policy& policy, std::string_view key, on_demand::value field) {
        if (key == "spec") read_spec(field, policy);
        if (key == "status") policy.status = text_of(field);
      });
  if (!made) return made;
  made->offered.catalogue = std::make_shared<const modules::offer>(made->modules);
  for (auto& alias : made->offered.catalogue->aliases()) made->enrolment.aliases.push_back(std::move(alias));
  return made;
}

}  // namespace reconcilers
