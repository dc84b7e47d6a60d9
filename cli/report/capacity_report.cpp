#include "cli/report/capacity_report.hpp"

#include <nlohmann/json.hpp>

#include "text/text.hpp"

namespace cli {
namespace {

using text::shown;

/// "130/400": given out, of what there is.
std::string part_of(const nlohmann::ordered_json& row, const char* used, const char* all) {
  return row[used].dump() + "/" + row[all].dump();
}

using model_row = nlohmann::ordered_json;
listed_column<model_row> number_column(std::string_view name, const char* field, bool is_wide = false) {
  const auto text = [field](const model_row& entry, const bilingual&) {
    return entry[field].is_null() ? std::string() : entry[field].dump();
  };
  return {name, text, is_wide};
}
listed_column<model_row> name_column(std::string_view name, const char* field) {
  return {name, [field](const model_row& entry, const bilingual&) { return shown(entry[field].get<std::string>()); }};
}
listed_column<model_row> part_column(std::string_view name, const char* used, const char* all) {
  return {name, [used, all](const model_row& entry, const bilingual&) { return part_of(entry, used, all); }};
}

const listing<model_row>& models_listing() {
  static const listing<model_row> out{
      "models",
      {name_column("model", "model"), name_column("mode", "mode"), number_column("cards", "cards"),
       number_column("usable", "usable"), number_column("free", "free"), number_column("sick", "unhealthy"),
       number_column("cordoned", "cordoned"), part_column("usable-cores", "usedCores", "cores"),
       part_column("usable-mib", "usedMiB", "memoryMiB"), number_column("stranded-cores", "strandedCores"),
       number_column("stranded-mib", "strandedMiB"), number_column("days-until-full", "daysUntilFull"),
       number_column("nodes", "nodes", true), number_column("stranded-cards", "strandedCards", true)},
      [](const model_row& entry) { return entry; },
      {},
      "report.capacity.nothing"};
  return out;
}

}  // namespace

std::vector<std::string> capacity_headers() { return sort_keys(models_listing()); }

void print_capacity(const nlohmann::ordered_json& view, const text::phrase& no_days, const listing_style& style,
                    std::ostream& out) {
  auto rest = view;
  rest.erase("models");
  if (!print(models_listing(), view["models"].get<std::vector<model_row>>(), style, out, std::move(rest))) return;
  const bilingual say(style.language);
  const auto reason = words_of(no_days, say.locale());
  if (!view["models"].empty() && !reason.empty())
    out << say.message("report.capacity.no_days", {{"reason", shown(reason, 1000)}}) << "\n";
}

}  // namespace cli
