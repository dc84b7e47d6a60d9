// Any bytes as the labels and data of three ConfigMaps, judged together: never a crash, never an unbounded or malformed
// verdict, and the same words whatever the order. Input: records of one byte (which ConfigMap, label or data, which
// known name) and text up to 0x1e.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/declarations/verdict.hpp"
#include "text/text.hpp"

namespace {

using namespace reconcilers::declarations;

struct source_text {
  std::map<std::string, std::string, std::less<>> labels, data;
};

constexpr std::array<std::string_view, 7> label_names{
    "features.alauda.io/type", "features.alauda.io/group",  "features.alauda.io/enabled",   "features.cpaas.io/type",
    "features.cpaas.io/group", "features.cpaas.io/enabled", "device-plugin.cpaas.io/config"};

void require(bool holds) {
  if (!holds) std::abort();
}

void fill(std::array<source_text, 3>& texts, std::string_view input) {
  while (!input.empty()) {
    const auto head = static_cast<std::uint8_t>(input.front());
    const auto end = std::min(input.find('\x1e'), input.size());
    const auto body = std::string(input.substr(1, end == 0 ? 0 : end - 1));
    input.remove_prefix(std::min(end + 1, input.size()));
    auto& text = texts[head % 3];
    const auto choice = head / 3;
    if (choice < 14)
      text.labels[std::string(label_names[choice % label_names.size()])] = body;
    else if (choice < 70)
      text.data[std::string(known_fields()[choice % known_fields().size()])] = body;
    else if (choice < 78)
      text.data[std::string(known_device_fields()[choice % known_device_fields().size()])] = body;
    else
      text.data[body] = body;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  std::array<source_text, 3> texts;
  for (std::size_t i = 0; i < 3; ++i) {
    texts[i].labels = {{i == 0 ? "features.alauda.io/type" : "features.cpaas.io/type", "CustomResourceLimitation"}};
    texts[i].data = {{"key", "example.com/r" + std::to_string(i)}, {"limits", "optional"}, {"requests", "disabled"}};
  }
  fill(texts, {reinterpret_cast<const char*>(bytes), size});
  std::vector<config_map_view> views;
  for (std::size_t i = 0; i < 3; ++i) {
    auto& view = views.emplace_back();
    view.key = {"kube-public", "cf-crl-" + std::to_string(i)};
    view.labels.assign(texts[i].labels.begin(), texts[i].labels.end());
    view.data.assign(texts[i].data.begin(), texts[i].data.end());
  }
  const auto judged = judge_all(views);
  for (const auto& entry : judged) {
    const auto annotation = annotation_of(entry);
    require(annotation.size() <= max_verdict_bytes && nlohmann::json::accept(annotation) &&
            text::is_plain_text(annotation));
    for (const auto lang : {text::language::en, text::language::zh}) {
      require(note_of(entry, lang).size() <= 1000 && text::is_plain_text(note_of(entry, lang)));
    }
  }
  std::ranges::reverse(views);
  require(judged == judge_all(views));
  return 0;
}
