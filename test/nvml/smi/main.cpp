// nvidia-smi for the fixtures: the list, the table, queries, the topology matrix, persistence and compute mode.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <span>

#include "views.hpp"

namespace {

using smi::end;

constexpr const char* help =
    "usage: nvidia-smi [-i ID[,ID...]] [OPTION]\n"
    "A stand-in that reads its cards from libnvidia-ml.so.1. Without an option it prints a table of the cards.\n"
    "  -L, --list-gpus            one line per card and MIG device\n"
    "  --query-gpu=FIELD[,...]    with --format=csv[,noheader][,nounits]; --help-query-gpu lists the fields\n"
    "  topo -m                    how cards are connected\n"
    "  -pm 0|1                    persistence mode\n"
    "  -c 0|2|3|MODE              compute mode: DEFAULT, PROHIBITED, EXCLUSIVE_PROCESS\n"
    "  -i ID                      only these cards: index, UUID or PCI address\n"
    "Settings (-pm, -c) are checked and answered; they are not kept after the program has ended.\n"
    "Exit codes are those of NVIDIA's program: 2 wrong argument, 4 not root, 6 no such card, 9 no driver,\n"
    "12 no library, 15 a card is lost.\n";

struct options {
  enum class verb { table, list, query, topology, persistence, compute } verb = verb::table;
  std::string argument, format, cards;
};

end wrong(const std::string& text) { return {2, text + ". Please run 'nvidia-smi -h' for help."}; }

// The value of "--name=value" or of "--name value".
bool takes(std::span<char*>& arguments, const std::string& name, std::string& value) {
  const std::string text = arguments.front();
  if (text == name) {
    if (arguments.size() < 2) throw wrong("Option " + name + " needs a value");
    arguments = arguments.subspan(1);
    value = arguments.front();
    return true;
  }
  if (!name.starts_with("--") || !text.starts_with(name + "=")) return false;
  value = text.substr(name.size() + 1);
  return true;
}

options parse(std::span<char*> arguments) {
  using verb = enum options::verb;
  options out;
  for (; !arguments.empty(); arguments = arguments.subspan(1)) {
    const std::string text = arguments.front();
    if (text == "-h" || text == "--help") throw end{0, help};
    if (text == "--help-query-gpu") throw end{0, smi::field_names()};
    if (text == "-L" || text == "--list-gpus")
      out.verb = verb::list;
    else if (text == "topo")
      out.verb = verb::topology;
    else if (text == "-m" && out.verb == verb::topology)
      continue;
    else if (takes(arguments, "--query-gpu", out.argument))
      out.verb = verb::query;
    else if (takes(arguments, "-pm", out.argument) || takes(arguments, "--persistence-mode", out.argument))
      out.verb = verb::persistence;
    else if (takes(arguments, "-c", out.argument) || takes(arguments, "--compute-mode", out.argument))
      out.verb = verb::compute;
    else if (!takes(arguments, "--format", out.format) && !takes(arguments, "-i", out.cards) &&
             !takes(arguments, "--id", out.cards))
      throw wrong("Option " + text + " is not recognized");
  }
  return out;
}

std::vector<nvml::device> selected(const smi::library& nvml, const std::string& ids) {
  if (ids.empty()) return nvml.cards();
  std::vector<nvml::device> out;
  for (const auto& id : smi::parts(ids, ',')) {
    nvml::device card = nullptr;
    const bool is_index =
        !id.empty() && id.size() < 4 && std::ranges::all_of(id, [](char sign) { return sign >= '0' && sign <= '9'; });
    const auto code = is_index
                          ? nvml.call("nvmlDeviceGetHandleByIndex_v2", static_cast<unsigned>(std::stoul(id)), &card)
                      : id.starts_with("GPU-") ? nvml.call("nvmlDeviceGetHandleByUUID", id.c_str(), &card)
                                               : nvml.call("nvmlDeviceGetHandleByPciBusId_v2", id.c_str(), &card);
    if (code == nvml::gpu_is_lost)
      throw end{15, "Unable to determine the device handle for GPU " + id + ": GPU is lost"};
    if (code) throw end{6, "No devices were found"};
    out.push_back(card);
  }
  return out;
}

smi::csv_format format_of(const options& options) {
  const auto words = smi::parts(options.format, ',');
  if (words.front() != "csv")
    throw wrong("\"--format=\" needs to be specified when using query options: csv[,noheader][,nounits]");
  return {!std::ranges::count(words, "noheader"), !std::ranges::count(words, "nounits")};
}

int compute_mode(std::string text) {
  for (auto& sign : text) sign = static_cast<char>(std::toupper(sign));
  if (text == "0" || text == "DEFAULT") return 0;
  if (text == "2" || text == "PROHIBITED") return 2;
  if (text == "3" || text == "EXCLUSIVE_PROCESS") return 3;
  throw wrong("\"" + text + "\" is not a compute mode; allowed are DEFAULT, PROHIBITED, EXCLUSIVE_PROCESS");
}

std::string changed(const smi::library& nvml, nvml::device card, const char* function, int value, const char* setting,
                    const char* name) {
  const std::string place = nvml.pci(card).bus_id;
  const auto code = nvml.call(function, card, value);
  if (code == nvml::no_permission)
    throw end{4, std::string("Unable to set ") + setting + " for GPU " + place + ": Insufficient Permissions"};
  if (code) throw end{3, std::string("Unable to set ") + setting + " for GPU " + place + ": " + nvml.text_of(code)};
  return std::string("Set ") + setting + " to " + name + " for GPU " + place + ".\n";
}

std::string set_all(const smi::library& nvml, const std::vector<nvml::device>& cards, const options& options) {
  std::string out;
  for (const auto card : cards) {
    if (options.verb == options::verb::compute) {
      constexpr const char* names[] = {"DEFAULT", "", "PROHIBITED", "EXCLUSIVE_PROCESS"};
      const auto mode = compute_mode(options.argument);
      out += changed(nvml, card, "nvmlDeviceSetComputeMode", mode, "compute mode", names[mode]);
      continue;
    }
    if (options.argument != "0" && options.argument != "1") throw wrong("Persistence mode is 0 or 1");
    const bool is_on = options.argument == "1";
    out +=
        changed(nvml, card, "nvmlDeviceSetPersistenceMode", is_on, "persistence mode", is_on ? "Enabled" : "Disabled");
  }
  return out + "All done.\n";
}

std::string run(const options& options) {
  const smi::library nvml;
  const auto cards = selected(nvml, options.cards);
  using verb = enum options::verb;
  if (cards.empty()) throw end{6, "No devices were found"};
  switch (options.verb) {
    case verb::table:
      return smi::table_view(nvml, cards);
    case verb::list:
      return smi::list_view(nvml, cards);
    case verb::query:
      return smi::csv_view(nvml, cards, options.argument, format_of(options));
    case verb::topology:
      return smi::topology_view(nvml, cards);
    case verb::persistence:
    case verb::compute:
      return set_all(nvml, cards, options);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::fputs(run(parse(std::span(argv, static_cast<std::size_t>(argc)).subspan(1))).c_str(), stdout);
    return 0;
  } catch (const end& end) {
    std::printf("%s%s", end.message.c_str(), end.message.ends_with('\n') ? "" : "\n");
    return end.code;
  }
}
