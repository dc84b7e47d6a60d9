#include "api/other_card.hpp"

#include <nlohmann/json.hpp>

namespace api {

nlohmann::json json_of(const other_card& card) {
  nlohmann::json out = {{"busID", card.bus_id}, {"vendor", card.vendor}, {"pciID", card.pci_id}};
  if (!card.model.empty()) out["model"] = card.model;
  if (!card.driver.empty()) out["driver"] = card.driver;
  if (card.numa >= 0) out["numa"] = card.numa;
  return out;
}

}  // namespace api
