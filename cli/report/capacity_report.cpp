#include "cli/report/capacity_report.hpp"

#include <nlohmann/json.hpp>

#include "cli/output/answer.hpp"
#include "cli/output/table.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using text::shown;

/// "130/400": given out, of what there is.
std::string part_of(const nlohmann::ordered_json& row, const char* used, const char* all) {
  return row[used].dump() + "/" + row[all].dump();
}

}  // namespace

void print_capacity(const nlohmann::ordered_json& view, const report_style& style, std::ostream& out) {
  if (printed_as_data(view, style.output, out)) return;
  const bilingual say(style.language);
  const bool is_wide = style.output == "wide";
  const auto& models = view["models"];
  if (models.empty()) {
    out << say("No node with cards is in a mode yet", "尚无节点以某种模式提供卡") << "\n";
    return;
  }
  auto header =
      say.zh ? std::vector<std::string>{"型号", "模式",      "卡",       "可用",      "空闲",
                                        "核心", "显存(MIB)", "搁置核心", "搁置(MIB)", "用满天数"}
             : std::vector<std::string>{"MODEL", "MODE",       "CARDS",          "USABLE",       "FREE",
                                        "CORES", "MEMORY-MIB", "STRANDED-CORES", "STRANDED-MIB", "DAYS-UNTIL-FULL"};
  if (is_wide)
    for (const auto name : {say("NODES", "节点数"), say("STRANDED-CARDS", "搁置的卡")}) header.emplace_back(name);
  table lines(std::move(header));
  for (const auto& row : models) {
    std::vector<std::string> line{shown(row["model"].get<std::string>()),
                                  shown(row["mode"].get<std::string>()),
                                  row["cards"].dump(),
                                  row["usable"].dump(),
                                  row["free"].dump(),
                                  part_of(row, "usedCores", "cores"),
                                  part_of(row, "usedMiB", "memoryMiB"),
                                  row["strandedCores"].dump(),
                                  row["strandedMiB"].dump(),
                                  row["daysUntilFull"].is_null() ? "" : row["daysUntilFull"].dump()};
    if (is_wide) line.insert(line.end(), {row["nodes"].dump(), row["strandedCards"].dump()});
    lines.add(std::move(line));
  }
  lines.print(out);
  if (const auto& reason = view["trendMessage"].get_ref<const std::string&>(); !reason.empty())
    out << say("No days until full: ", "没有用满天数：") << shown(reason, 1000) << "\n";
}

}  // namespace cli
