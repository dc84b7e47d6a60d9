#include "reconcilers/nodes/card_labels.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <ranges>
#include <tuple>

#include "text/resource_name.hpp"

namespace reconcilers {
namespace {

constexpr std::string_view removed_mark = "-";
constexpr std::string_view discovery_prefix = "nvidia.com/";

using cards = std::vector<api::reported_card>;

/// A value that no label can have would have the API server refuse all of them.
void add(label_values& labels, std::string key, std::string value) {
  if (text::is_label_value(value)) labels.insert_or_assign(std::move(key), std::move(value));
}

std::vector<std::string_view> split(std::string_view text, char mark) {
  std::vector<std::string_view> out;
  for (const auto part : text | std::views::split(mark)) out.emplace_back(part.begin(), part.end());
  return out;
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> out;
  for (const auto word : split(name, ' '))
    if (!word.empty()) out.emplace_back(word);
  return out;
}

/// "NVIDIA A100-SXM4-80GB" is "NVIDIA-A100-SXM4-80GB". Source: k8s-device-plugin v0.20.0, internal/lm/resource.go,
/// sanitise.
std::string product_of(std::string model) {
  std::erase_if(model, [](char letter) {
    const bool is_kept = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                         (letter >= '0' && letter <= '9') || std::string_view("-_. ").contains(letter);
    return !is_kept;
  });
  std::string out;
  for (const auto& word : words_of(model)) out += (out.empty() ? "" : "-") + word;
  return out;
}

/// Source: the same file, getArchFamily.
std::string_view family_of(int major, int minor) {
  switch (major) {
    case 1:
      return "tesla";
    case 2:
      return "fermi";
    case 3:
      return "kepler";
    case 5:
      return "maxwell";
    case 6:
      return "pascal";
    case 7:
      return minor < 5 ? "volta" : "turing";
    case 8:
      return minor < 9 ? "ampere" : "ada-lovelace";
    case 9:
      return "hopper";
    case 10:
    case 12:
      return "blackwell";
    case 13:
      return "rubin";
    default:
      return "undefined";
  }
}

std::optional<int> number_of(std::string_view text) {
  int out = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

/// Source: internal/lm/nvml.go, newVersionLabeler; the short forms are deprecated there, and people select by them.
void add_versions(const api::accelerator_node& report, label_values& out) {
  const auto driver = split(report.driver, '.');
  if (driver.size() == 2 || driver.size() == 3) {
    const std::string major(driver[0]), minor(driver[1]), revision(driver.size() == 3 ? driver[2] : "");
    add(out, "nvidia.com/cuda.driver-version.full", report.driver);
    add(out, "nvidia.com/cuda.driver-version.major", major);
    add(out, "nvidia.com/cuda.driver-version.minor", minor);
    add(out, "nvidia.com/cuda.driver-version.revision", revision);
    add(out, "nvidia.com/cuda.driver.major", major);
    add(out, "nvidia.com/cuda.driver.minor", minor);
    add(out, "nvidia.com/cuda.driver.rev", revision);
  }
  const auto cuda = split(report.cuda, '.');
  if (cuda.size() != 2) return;
  const std::string major(cuda[0]), minor(cuda[1]);
  add(out, "nvidia.com/cuda.runtime-version.full", report.cuda);
  add(out, "nvidia.com/cuda.runtime-version.major", major);
  add(out, "nvidia.com/cuda.runtime-version.minor", minor);
  add(out, "nvidia.com/cuda.runtime.major", major);
  add(out, "nvidia.com/cuda.runtime.minor", minor);
}

/// GPU Feature Discovery takes one model by chance where a node has several, and what it says of cards that MIG has cut
/// depends on its strategy. Both are left out.
void add_discovery(const api::accelerator_node& report, const cards& cards, label_values& out) {
  const auto all_have = [&](auto member) {
    return std::ranges::all_of(cards, [&](const auto& card) { return card.*member == cards.front().*member; });
  };
  add_versions(report, out);
  if (all_have(&api::reported_card::compute_capability)) {
    const auto capability = split(cards.front().compute_capability, '.');
    const auto major = capability.size() == 2 ? number_of(capability.front()) : std::nullopt;
    const auto minor = capability.size() == 2 ? number_of(capability.back()) : std::nullopt;
    if (major && minor) {
      add(out, "nvidia.com/gpu.family", std::string(family_of(*major, *minor)));
      add(out, "nvidia.com/gpu.compute.major", std::to_string(*major));
      add(out, "nvidia.com/gpu.compute.minor", std::to_string(*minor));
    }
  }
  const auto product = product_of(cards.front().model);
  if (product.empty() || !all_have(&api::reported_card::model) || std::ranges::any_of(cards, &api::reported_card::mig))
    return;
  add(out, "nvidia.com/gpu.product", product);
  add(out, "nvidia.com/gpu.count", std::to_string(cards.size()));
  if (const auto memory = cards.front().memory_mib; memory > 0)
    add(out, "nvidia.com/gpu.memory", std::to_string(memory));
}

/// As ACK sets up its nodes: `nvidia-smi --id=0` with dashes for blanks, and the number of cards.
void add_ack(const cards& cards, label_values& out) {
  auto name = cards.front().model;
  std::ranges::replace(name, ' ', '-');
  if (!name.empty()) add(out, "aliyun.accelerator/nvidia_name", name);
  if (const auto memory = cards.front().memory_mib; memory > 0)
    add(out, "aliyun.accelerator/nvidia_mem", std::to_string(memory) + "MiB");
  add(out, "aliyun.accelerator/nvidia_count", std::to_string(cards.size()));
}

/// The second word of three or more, of the first card. Source: gpu-manager, pkg/services/watchdog/label.go.
void add_gpu_manager(const cards& cards, label_values& out) {
  const auto words = words_of(cards.front().model);
  if (words.size() > 2) add(out, "gaia.tencent.com/gpu-model", words[1]);
}

label_values recorded(const kube::node& node) {
  label_values out;
  for (const auto entry : split(node.annotations.value_or(card_labels_annotation, ""), ',')) {
    const auto mark = entry.find('=');
    if (mark != std::string_view::npos) out.emplace(entry.substr(0, mark), entry.substr(mark + 1));
  }
  return out;
}

}  // namespace

label_values card_labels(const api::accelerator_node& report, const std::vector<std::string>& families) {
  label_values out;
  auto cards = report.cards;
  if (cards.empty()) return out;
  std::ranges::sort(cards, {}, [](const api::reported_card& card) { return std::tie(card.index, card.uuid); });
  const auto has = [&](std::string_view family) { return std::ranges::find(families, family) != families.end(); };
  if (has("GPUFeatureDiscovery")) add_discovery(report, cards, out);
  if (has("ACK")) add_ack(cards, out);
  if (has("GPUManager")) add_gpu_manager(cards, out);
  return out;
}

std::string record_of(const label_values& labels, const std::vector<std::string>& withheld) {
  auto all = labels;
  for (const auto& key : withheld) all.insert_or_assign(key, std::string(removed_mark));
  std::string out;
  for (const auto& [key, value] : all) out += (out.empty() ? "" : ",") + key + "=" + value;
  return out;
}

card_label_step next_card_labels(const kube::node& node, const label_values& wanted) {
  card_label_step out;
  const auto before = recorded(node);
  const auto is_discovered = [&](std::string_view key) {
    return node.has_gpu_discovery && key.starts_with(discovery_prefix);
  };
  for (const auto& [key, value] : wanted) {
    const auto present = node.labels.find(key);
    const auto written = before.find(key);
    if (is_discovered(key)) continue;
    if (written == before.end()) {
      if (!present) out.labels.emplace(key, value);
    } else if (!present) {
      out.withheld.push_back(key);
    } else if (*present == written->second) {
      out.labels.emplace(key, value);
    }
  }
  for (const auto& [key, value] : before)
    if (is_discovered(key) && node.labels.find(key) == value) out.handed_over.emplace(key, value);
  out.record = record_of(out.labels, out.withheld);
  out.is_idle = out.record == node.annotations.value_or(card_labels_annotation, "");
  return out;
}

}  // namespace reconcilers
