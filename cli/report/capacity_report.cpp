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
listed_column<model_row> number_column(std::string_view en, std::string_view zh, const char* name,
                                       bool is_wide = false) {
  const auto text = [name](const model_row& entry, const bilingual&) {
    return entry[name].is_null() ? std::string() : entry[name].dump();
  };
  return {en, zh, text, is_wide};
}
listed_column<model_row> name_column(std::string_view en, std::string_view zh, const char* name) {
  return {en, zh, [name](const model_row& entry, const bilingual&) { return shown(entry[name].get<std::string>()); }};
}
listed_column<model_row> part_column(std::string_view en, std::string_view zh, const char* used, const char* all) {
  return {en, zh, [used, all](const model_row& entry, const bilingual&) { return part_of(entry, used, all); }};
}

const listing<model_row>& models_listing() {
  static const listing<model_row> out{
      "models",
      {name_column("MODEL", "型号", "model"), name_column("MODE", "模式", "mode"),
       number_column("CARDS", "卡", "cards"), number_column("USABLE", "可用", "usable"),
       number_column("FREE", "空闲", "free"), part_column("CORES", "核心", "usedCores", "cores"),
       part_column("MEMORY-MIB", "显存(MIB)", "usedMiB", "memoryMiB"),
       number_column("STRANDED-CORES", "搁置核心", "strandedCores"),
       number_column("STRANDED-MIB", "搁置(MIB)", "strandedMiB"),
       number_column("DAYS-UNTIL-FULL", "用满天数", "daysUntilFull"), number_column("NODES", "节点数", "nodes", true),
       number_column("STRANDED-CARDS", "搁置的卡", "strandedCards", true)},
      [](const model_row& entry) { return entry; },
      {},
      "report.capacity.nothing"};
  return out;
}

}  // namespace

std::vector<std::string> capacity_headers() { return sort_keys(models_listing()); }

void print_capacity(const nlohmann::ordered_json& view, const listing_style& style, std::ostream& out) {
  auto rest = view;
  rest.erase("models");
  if (!print(models_listing(), view["models"].get<std::vector<model_row>>(), style, out, std::move(rest))) return;
  const bilingual say(style.language);
  const auto& reason = view["trendMessage"].get_ref<const std::string&>();
  if (!view["models"].empty() && !reason.empty())
    out << say.message("report.capacity.no_days", {{"reason", shown(reason, 1000)}}) << "\n";
}

}  // namespace cli
