#include "api/other_card.hpp"

#include <nlohmann/json.hpp>

#include "kube/json_text.hpp"

namespace api {

nlohmann::json json_of(const other_card& card) {
  nlohmann::json out = {{"busID", card.bus_id}, {"vendor", card.vendor}, {"pciID", card.pci_id}};
  if (!card.model.empty()) out["model"] = card.model;
  if (!card.driver.empty()) out["driver"] = card.driver;
  if (card.numa >= 0) out["numa"] = card.numa;
  return out;
}

std::vector<other_card> other_cards_in(const nlohmann::json& status) {
  std::vector<other_card> out;
  if (!status.is_object()) return out;
  const auto cards = status.find("otherCards");
  if (cards == status.end() || !cards->is_array()) return out;
  for (const auto& entry : *cards) {
    if (!entry.is_object()) continue;
    other_card card;
    card.bus_id = kube::text_in(entry, "busID");
    card.vendor = kube::text_in(entry, "vendor");
    card.pci_id = kube::text_in(entry, "pciID");
    card.model = kube::text_in(entry, "model");
    card.driver = kube::text_in(entry, "driver");
    card.numa = static_cast<std::int32_t>(kube::number_in(entry, "numa", -1));
    out.push_back(std::move(card));
  }
  return out;
}

}  // namespace api
