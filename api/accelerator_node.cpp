#include "api/accelerator_node.hpp"

#include <algorithm>
#include <charconv>

#include "controller/clock.hpp"
#include "kube/json_object.hpp"

namespace api {

namespace on_demand = kube::on_demand;

namespace {

rolled_back read_given_up(on_demand::value object) {
  rolled_back made;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "request") made.request = on_demand::text_or(field);
    if (key == "reason") made.reason = on_demand::text_or(field);
    if (key == "message") made.message = on_demand::text_or(field);
    if (key == "at") made.timestamp = controller::parse_rfc3339_seconds(on_demand::text_or(field)).value_or(0);
    if (key == "attempts") made.attempts = on_demand::number_or(field, 1);
    if (key == "policyGeneration") made.policy_generation = on_demand::number_or(field, 0);
    if (key == "blockers")
      on_demand::each_item(field,
                           [&](on_demand::value value) { made.blockers.emplace_back(on_demand::text_or(value)); });
  });
  return made;
}

void read_condition(on_demand::value object, accelerator_node& node) {
  std::string type, status, since, reason, message;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "type") type = on_demand::text_or(field);
    if (key == "status") status = on_demand::text_or(field);
    if (key == "lastTransitionTime") since = on_demand::text_or(field);
    if (key == "reason") reason = on_demand::text_or(field);
    if (key == "message") message = on_demand::text_or(field);
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
  } else if (type == agent_reporting_condition) {
    node.agent_reporting = std::move(status);
    node.agent_reporting_message = std::move(message);
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

/// A row of preflight. A row of another shape says nothing.
void read_check(on_demand::value row, accelerator_node& node) {
  if (row.type() != simdjson::ondemand::json_type::object) return;
  std::string check, state;
  on_demand::each_member(row, [&](std::string_view key, on_demand::value field) {
    if (key == "check") check = on_demand::text_or(field);
    if (key == "state") state = on_demand::text_or(field);
  });
  if (check == "default_runtime") node.default_runtime = state;
  if (check == "container_toolkit") node.container_toolkit = state;
  if (state == "failed") node.failed_checks.push_back(std::move(check));
}

runtime_fix read_fix(on_demand::value object) {
  runtime_fix made;
  on_demand::each_member(object, [&](std::string_view key, on_demand::value field) {
    if (key == "result") made.result = on_demand::text_or(field);
    if (key == "message") made.message = on_demand::text_or(field);
    if (key == "pod") made.pod = on_demand::text_or(field);
    if (key == "at") made.timestamp = controller::parse_rfc3339_seconds(on_demand::text_or(field)).value_or(0);
  });
  return made;
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
        if (part != "status") return;
        auto& made = node.mode;
        on_demand::each_member(status, [&](std::string_view key, on_demand::value field) {
          if (key == "requestedMode") made.requested_mode = on_demand::text_or(field);
          if (key == "actualMode") made.actual_mode = on_demand::text_or(field);
          if (key == "phase") made.phase = on_demand::text_or(field);
          if (key == "reason") made.reason = on_demand::text_or(field);
          if (key == "message") made.message = on_demand::text_or(field);
          if (key == "since") made.since = on_demand::text_or(field);
          if (key == "rolledBack") made.given_up = read_given_up(field);
          if (key == "conditions")
            on_demand::each_item(field, [&](on_demand::value value) { read_condition(value, node); });
          if (key == "runtimeFix") node.fix = read_fix(field);
          if (key == "driver") read_driver(field, node);
          if (key == "preflight" && field.type() == simdjson::ondemand::json_type::array)
            on_demand::each_item(field, [&](on_demand::value value) { read_check(value, node); });
          if (key == "restore")
            on_demand::each_item(field,
                                 [&](on_demand::value value) { node.restore.emplace_back(on_demand::text_or(value)); });
          if (key == "cards")
            on_demand::each_item(field, [&](on_demand::value value) { node.cards.push_back(read_card(value)); });
          if (key == "blockers") {
            on_demand::each_item(
                field, [&](on_demand::value value) { made.blockers.emplace_back(on_demand::text_or(value)); });
          }
        });
      });
}

}  // namespace api
