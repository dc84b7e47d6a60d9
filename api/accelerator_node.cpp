#include "api/accelerator_node.hpp"

#include <algorithm>
#include <charconv>

#include "controller/clock.hpp"
#include "kube/json_object.hpp"

namespace api {

namespace on_demand = kube::on_demand;

namespace {

/// What stands next to a message, by which readers say it in their own language.
void read_code(std::string_view key, on_demand::value field, text::phrase_code& code) {
  if (key == "cause") code.cause = on_demand::text_or(field);
  if (key != "parameters" || field.type() != simdjson::ondemand::json_type::object) return;
  on_demand::each_member(field, [&](std::string_view name, on_demand::value value) {
    if (code.parameters.size() < text::most_phrase_parameters)
      code.parameters[std::string(name)] = on_demand::text_or(value);
  });
}

rolled_back read_given_up(on_demand::value object) {
  rolled_back made;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "request") made.request = on_demand::text_or(field);
    if (key == "reason") made.reason = on_demand::text_or(field);
    if (key == "message") made.message = on_demand::text_or(field);
    read_code(key, field, made.code);
    if (key == "at") made.timestamp = controller::parse_rfc3339_seconds(on_demand::text_or(field)).value_or(0);
    if (key == "attempts") made.attempts = on_demand::number_or(field, 1);
    if (key == "policyGeneration") made.policy_generation = on_demand::number_or(field, 0);
    if (key == "blockers")
      on_demand::each_item(field,
                           [&](on_demand::value value) { made.blockers.emplace_back(on_demand::text_or(value)); });
  });
  return made;
}

/// Of pods of which there is more to say than that the change waits for them.
void read_blocker_cause(on_demand::value object, mode_status& status) {
  std::string pod;
  text::phrase_code code;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "pod") pod = on_demand::text_or(field);
    read_code(key, field, code);
  });
  if (!pod.empty()) status.blocker_causes.insert_or_assign(std::move(pod), std::move(code));
}

void read_condition(on_demand::value object, accelerator_node& node, agent_report* report) {
  std::string type, status, since, reason, message;
  text::phrase_code code;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "type") type = on_demand::text_or(field);
    if (key == "status") status = on_demand::text_or(field);
    if (key == "lastTransitionTime") since = on_demand::text_or(field);
    if (key == "reason") reason = on_demand::text_or(field);
    if (key == "message") message = on_demand::text_or(field);
    read_code(key, field, code);
  });
  if (type == "Ready") {
    node.mode.ready = std::move(status);
    node.mode.ready_since = std::move(since);
  } else if (type == "CardsHealthy") {
    node.cards_healthy = std::move(status);
    node.cards_healthy_since = std::move(since);
    node.cards_healthy_reason = std::move(reason);
    node.cards_healthy_message = std::move(message);
  } else if (type == "PreflightPassed") {
    node.preflight_passed = std::move(status);
    if (report) report->passed_since = std::move(since);
  } else if (type == agent_reporting_condition) {
    node.agent_reporting = std::move(status);
    node.agent_reporting_message = std::move(message);
    node.agent_reporting_code = std::move(code);
  }
}

void read_driver(on_demand::value object, accelerator_node& node) {
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "version") node.driver = on_demand::text_or(field);
    if (key == "cuda") node.cuda = on_demand::text_or(field);
    if (key == "boot") node.boot = on_demand::text_or(field);
  });
}

reported_card read_card(on_demand::value object) {
  reported_card made;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "uuid") made.uuid = on_demand::text_or(field);
    if (key == "model") made.model = on_demand::text_or(field);
    if (key == "health") made.health = on_demand::text_or(field);
    if (key == "memoryMiB") made.memory_mib = on_demand::number_or(field, 0);
    if (key == "index") made.index = static_cast<std::int32_t>(on_demand::number_or(field, -1));
    if (key == "numa") made.numa = static_cast<std::int32_t>(on_demand::number_or(field, -1));
    if (key == "mig") made.mig = on_demand::flag_or(field, false);
    if (key == "memoryLimits") made.is_limited = on_demand::text_or(field) == limits_by_driver;
    if (key == "computeCapability") made.compute_capability = on_demand::text_or(field);
    if (key == "busID") made.bus_id = on_demand::text_or(field);
    if (key == "warnings")
      on_demand::each_item(field,
                           [&](on_demand::value value) { made.warnings.emplace_back(on_demand::text_or(value)); });
    if (key == "links")
      on_demand::each_item(field,
                           [&](on_demand::value value) { made.links.push_back(link_in(on_demand::text_or(value))); });
  });
  return made;
}

/// Of a list in which an item of another shape says nothing.
template <class Item>
void each_object(on_demand::value list, Item item) {
  using type = simdjson::ondemand::json_type;
  if (list.type() != type::array) return;
  on_demand::each_item(list, [&](on_demand::value value) {
    if (value.type() == type::object) item(value);
  });
}

/// A row of preflight.
void read_check(on_demand::value object, accelerator_node& node, agent_report* report) {
  check_row row;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "check") row.name = on_demand::text_or(field);
    if (key == "state") row.state = check_state_in(on_demand::text_or(field));
    if (key == "found" && report) row.found = on_demand::text_or(field);
    if (key == "remedy" && report) row.remedy = on_demand::text_or(field);
    if (key == "cause" && report) row.cause = on_demand::text_or(field);
    if (key == "parameters" && report && field.type() == simdjson::ondemand::json_type::object)
      on_demand::each_member(field, [&](std::string_view name, on_demand::value value) {
        if (row.parameters.size() < most_check_parameters)
          row.parameters[std::string(name)] = on_demand::text_or(value);
      });
  });
  if (row.name == to_string(check::default_runtime)) node.default_runtime = row.state;
  if (row.name == to_string(check::container_toolkit)) node.container_toolkit = row.state;
  if (row.state == check_state::failed) node.failed_checks.push_back(row.name);
  if (report) report->checks.push_back(std::move(row));
}

other_card read_other_card(on_demand::value object) {
  other_card made;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "busID") made.bus_id = on_demand::text_or(field);
    if (key == "vendor") made.vendor = on_demand::text_or(field);
    if (key == "pciID") made.pci_id = on_demand::text_or(field);
    if (key == "model") made.model = on_demand::text_or(field);
    if (key == "driver") made.driver = on_demand::text_or(field);
    if (key == "numa") made.numa = static_cast<std::int32_t>(on_demand::number_or(field, -1));
  });
  return made;
}

runtime_fix read_fix(on_demand::value object) {
  runtime_fix made;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "result") made.result = on_demand::text_or(field);
    if (key == "message") made.message = on_demand::text_or(field);
    read_code(key, field, made.code);
    if (key == "pod") made.pod = on_demand::text_or(field);
    if (key == "at") made.timestamp = controller::parse_rfc3339_seconds(on_demand::text_or(field)).value_or(0);
  });
  return made;
}

/// @param report what the operator does not keep; null: it is skipped
void read_status(on_demand::value status, accelerator_node& node, agent_report* report) {
  auto& made = node.mode;
  const auto add_to = [](std::vector<std::string>& list) {
    return [&list](on_demand::value value) { list.emplace_back(on_demand::text_or(value)); };
  };
  on_demand::each_member(status, [&](std::string_view key, on_demand::value field) {
    if (key == "requestedMode") made.requested_mode = on_demand::text_or(field);
    if (key == "actualMode") made.actual_mode = on_demand::text_or(field);
    if (key == "phase") made.phase = on_demand::text_or(field);
    if (key == "reason") made.reason = on_demand::text_or(field);
    if (key == "message") made.message = on_demand::text_or(field);
    read_code(key, field, made.code);
    if (key == "since") made.since = on_demand::text_or(field);
    if (key == "rolledBack") made.given_up = read_given_up(field);
    if (key == "conditions")
      on_demand::each_item(field, [&](on_demand::value value) { read_condition(value, node, report); });
    if (key == "runtimeFix") node.fix = read_fix(field);
    if (key == "driver") read_driver(field, node);
    if (key == "preflight") each_object(field, [&](on_demand::value value) { read_check(value, node, report); });
    if (key == "otherCards" && report)
      each_object(field, [&](on_demand::value value) { report->other_cards.push_back(read_other_card(value)); });
    if (key == "restore") on_demand::each_item(field, add_to(node.restore));
    if (key == "cards")
      on_demand::each_item(field, [&](on_demand::value value) { node.cards.push_back(read_card(value)); });
    if (key == "blockers") on_demand::each_item(field, add_to(made.blockers));
    if (key == "blockerCauses") each_object(field, [&](on_demand::value value) { read_blocker_cause(value, made); });
  });
}

struct path_word {
  quota::path path;
  std::string_view word;
};
constexpr path_word path_words[] = {{quota::path::system, "SYS"},
                                    {quota::path::numa_node, "NODE"},
                                    {quota::path::host_bridge, "PHB"},
                                    {quota::path::bridges, "PXB"},
                                    {quota::path::bridge, "PIX"}};

}  // namespace

std::string_view pod_of_blocker(std::string_view entry) { return entry.substr(0, entry.find(' ')); }

std::vector<text::phrase> blockers_of(const mode_status& status) {
  std::vector<text::phrase> out;
  for (const auto& entry : status.blockers) {
    const auto match = status.blocker_causes.find(pod_of_blocker(entry));
    auto cause = match == status.blocker_causes.end() ? text::phrase() : phrase_of(match->second, {});
    out.push_back(cause.empty() ? text::phrase(entry)
                                : text::phrase{"status.node.blocker", {{"pod", match->first}, {"cause", cause}}});
  }
  return out;
}

std::string text_of(const quota::link& link) {
  const auto row = std::ranges::find(path_words, link.pci, &path_word::path);
  const auto path = row == std::end(path_words) ? std::string() : std::string(row->word);
  if (link.nvlinks == 0) return path.empty() ? "X" : path;
  return "NV" + std::to_string(link.nvlinks) + (path.empty() ? "" : " " + path);
}

quota::link link_in(std::string_view text) {
  quota::link out;
  if (text.starts_with("NV")) {
    const auto end = std::from_chars(text.data() + 2, text.data() + text.size(), out.nvlinks).ptr;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  const auto row = std::ranges::find(path_words, text, &path_word::word);
  if (row != std::end(path_words)) out.pci = row->path;
  return out;
}

kube::result<accelerator_node> accelerator_node::decode(std::string_view bytes) {
  return on_demand::decode<accelerator_node>(
      bytes, kube::keep_none, [](accelerator_node& node, std::string_view part, on_demand::value status) {
        if (part == "status") read_status(status, node, nullptr);
      });
}

kube::result<reported_node> reported_node::decode(std::string_view bytes) {
  return on_demand::decode<reported_node>(bytes, kube::keep_none,
                                          [](reported_node& node, std::string_view part, on_demand::value status) {
                                            if (part == "status") read_status(status, node, &node.report);
                                          });
}

}  // namespace api
