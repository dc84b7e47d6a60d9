#include "api/accelerator_node.hpp"

#include "controller/clock.hpp"
#include "kube/json_object.hpp"

namespace api {

namespace json = kube::json;

namespace {

rolled_back read_given_up(json::value object) {
  rolled_back made;
  json::each_member(object, [&](std::string_view key, json::value field) {
    if (key == "request") made.request = json::text_or(field);
    if (key == "reason") made.reason = json::text_or(field);
    if (key == "message") made.message = json::text_or(field);
    if (key == "at") made.timestamp = controller::parse_rfc3339_seconds(json::text_or(field)).value_or(0);
    if (key == "attempts") made.attempts = json::number_or(field, 1);
    if (key == "policyGeneration") made.policy_generation = json::number_or(field, 0);
    if (key == "blockers")
      json::each_item(field, [&](json::value value) { made.blockers.emplace_back(json::text_or(value)); });
  });
  return made;
}

void read_condition(json::value object, mode_status& mode_status) {
  std::string type, status, since;
  json::each_member(object, [&](std::string_view key, json::value field) {
    if (key == "type") type = json::text_or(field);
    if (key == "status") status = json::text_or(field);
    if (key == "lastTransitionTime") since = json::text_or(field);
  });
  if (type != "Ready") return;
  mode_status.ready = std::move(status);
  mode_status.ready_since = std::move(since);
}

reported_card read_card(json::value object) {
  reported_card made;
  json::each_member(object, [&](std::string_view key, json::value field) {
    if (key == "uuid") made.uuid = json::text_or(field);
    if (key == "model") made.model = json::text_or(field);
    if (key == "health") made.health = json::text_or(field);
    if (key == "memoryMiB") made.memory_mib = json::number_or(field, 0);
    if (key == "index") made.index = static_cast<std::int32_t>(json::number_or(field, -1));
    if (key == "numa") made.numa = static_cast<std::int32_t>(json::number_or(field, -1));
    if (key == "mig") made.mig = json::flag_or(field, false);
  });
  return made;
}

}  // namespace

kube::result<accelerator_node> accelerator_node::decode(std::string_view bytes) {
  return json::decode<accelerator_node>(
      bytes, kube::keep_none, [](accelerator_node& node, std::string_view part, json::value status) {
        if (part != "status") return;
        auto& made = node.mode;
        json::each_member(status, [&](std::string_view key, json::value field) {
          if (key == "requestedMode") made.requested_mode = json::text_or(field);
          if (key == "actualMode") made.actual_mode = json::text_or(field);
          if (key == "phase") made.phase = json::text_or(field);
          if (key == "reason") made.reason = json::text_or(field);
          if (key == "message") made.message = json::text_or(field);
          if (key == "since") made.since = json::text_or(field);
          if (key == "rolledBack") made.given_up = read_given_up(field);
          if (key == "conditions") json::each_item(field, [&](json::value value) { read_condition(value, made); });
          if (key == "cards")
            json::each_item(field, [&](json::value value) { node.cards.push_back(read_card(value)); });
          if (key == "blockers") {
            json::each_item(field, [&](json::value value) { made.blockers.emplace_back(json::text_or(value)); });
          }
        });
      });
}

}  // namespace api
