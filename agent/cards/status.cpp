#include "agent/cards/status.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "controller/coded_message.hpp"
#include "text/list.hpp"

namespace agent::cards {
namespace {

using nlohmann::json;

json card_of(const card& card) {
  json out = {{"uuid", card.uuid},
              {"model", card.model},
              {"memoryMiB", card.memory_mib},
              {"mig", card.mig},
              {"health", card.defect.empty() ? "Healthy" : card.defect}};
  if (card.minor >= 0) out["index"] = card.minor;
  if (card.numa >= 0) out["numa"] = card.numa;
  if (!card.bus_id.empty()) out["busID"] = card.bus_id;
  if (!card.compute_capability.empty()) out["computeCapability"] = card.compute_capability;
  if (card.is_limited) out["memoryLimits"] = api::limits_by_driver;
  if (!card.warnings.empty()) out["warnings"] = card.warnings;
  for (const auto& link : card.links) out["links"].push_back(api::text_of(link));
  return out;
}

struct health {
  bool healthy = true;
  std::string reason;
  text::phrase message;
};

health judge(const inventory& report) {
  if (!report.problem.empty()) return {false, report.hangs ? "NotAnswering" : "NoDriver", report.problem};
  std::vector<std::string> sick;
  for (const auto& card : report.cards)
    if (!card.defect.empty()) sick.push_back(card.uuid + " (" + card.defect + ")");
  if (!sick.empty()) return {false, "CardUnhealthy", {"nvml.sick", {{"cards", text::joined(sick)}}}};
  if (report.silent > static_cast<int>(sick.size()))
    return {
        false,
        "CardLost",
        {"nvml.silent", {{"cards", text::counted_phrase(static_cast<std::size_t>(report.silent), "status.cards")}}}};
  if (report.cards.empty()) return {false, "NoCards", {"nvml.no_cards"}};
  return {true, "CardsAnswer", {"nvml.in_order", {{"number", std::to_string(report.cards.size())}}}};
}

}  // namespace

json status_of(const inventory& report, const std::string& boot, const api::accelerator_node& before,
               const std::string& now) {
  const auto health = judge(report);
  const std::string status = health.healthy ? "True" : "False";
  json out;
  out["driver"] = {{"boot", boot}};
  if (!report.driver.empty()) out["driver"]["version"] = report.driver;
  if (!report.cuda.empty()) out["driver"]["cuda"] = report.cuda;
  out["cards"] = json::array();
  for (const auto& card : report.cards) out["cards"].push_back(card_of(card));
  const bool is_same = before.cards_healthy == status && !before.cards_healthy_since.empty();
  json condition = {{"type", "CardsHealthy"},
                    {"status", status},
                    {"reason", health.reason},
                    {"lastTransitionTime", is_same ? before.cards_healthy_since : now}};
  controller::set_message(condition, health.message);
  out["conditions"] = json::array({std::move(condition)});
  return out;
}

std::vector<card> cards_in(const api::accelerator_node& object) {
  std::vector<card> out;
  for (const auto& reported : object.cards) {
    card made;
    made.uuid = reported.uuid;
    made.model = reported.model;
    made.bus_id = reported.bus_id;
    made.compute_capability = reported.compute_capability;
    made.minor = reported.index;
    made.numa = reported.numa;
    made.memory_mib = reported.memory_mib;
    made.mig = reported.mig;
    made.is_limited = reported.is_limited;
    made.links = reported.links;
    made.warnings = reported.warnings;
    if (!reported.healthy()) made.defect = reported.health;
    out.push_back(std::move(made));
  }
  std::ranges::sort(out, {}, [](const card& card) { return std::tie(card.minor, card.uuid); });
  return out;
}

bool says(const api::accelerator_node& object, const inventory& report, const std::string& boot) {
  const auto health = judge(report);
  return object.boot == boot && object.driver == report.driver && object.cuda == report.cuda &&
         object.cards_healthy == (health.healthy ? "True" : "False") && object.cards_healthy_reason == health.reason &&
         object.cards_healthy_message == text::message_text(health.message) && cards_in(object) == report.cards;
}

}  // namespace agent::cards
