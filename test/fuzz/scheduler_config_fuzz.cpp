// Any bytes as a scheduler's configuration: a verdict without a crash, and, where our entry can be merged, a file in
// which nothing foreign is lost and from which it comes out again byte for byte. The same of the manifest of the static
// pod.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "scheduler_config/edit/edited.hpp"
#include "scheduler_config/edit/placing.hpp"
#include "scheduler_config/edit/render.hpp"
#include "scheduler_config/edit/static_pod_edit.hpp"
#include "text/text.hpp"

namespace {

using namespace scheduler_config;

constexpr std::string_view url = "https://10.96.0.77/scheduler";

void require(bool holds) {
  if (!holds) std::abort();
}

void judged(std::string_view text, int minor) {
  server server;
  server.minor = minor;
  for (const auto& entry : judge(text, server)) {
    require(entry.location.line >= 1 && entry.location.column >= 1);
    for (const auto locale : {text::language::en, text::language::zh})
      require(text::is_plain_text(message_of(entry, locale)));
  }
}

void merged(const std::string& text, const std::string& scheduler_name) {
  extender_settings settings;
  settings.url = url;
  const addition addition{extender_entry(settings), scheduler_name};
  const auto there = merge(text, addition);
  if (!there) return;
  require(!any_ends(judge(*there)));
  const auto back = unmerge(*there, url);
  // Ours may have been there already: then what is given back is the file without it.
  require(back && (*back == text || unmerge(text, url) == *back));
  require(edits_of(*there, *back, addition).empty() && edits_of(*there, *back, merged_into(*there, *back, {})).empty());
  if (*back != text) edits_of(text, *back, addition);
  // Without our entry it reads as before, but for the lists that hold it.
  auto before = *tree_of(*parse_document(*back)), after = *tree_of(*parse_document(*there));
  require(after["extenders"].is_array() && !after["extenders"].empty() && after["extenders"][0]["urlPrefix"] == url);
  after["extenders"].erase(0);
  auto& extenders = before["extenders"];
  require(after["extenders"] == (extenders.is_array() ? extenders : nlohmann::json::array()));
  for (auto* entry : {&before, &after}) entry->erase("extenders");
  if (!scheduler_name.empty()) {
    for (auto* entry : {&before, &after}) entry->erase("profiles");
  }
  require(before == after);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  judged(text, 36);
  judged(text, 30);
  merged(text, "");
  merged(text, "cards");
  const config_file file{.path = "/etc/kubernetes/scheduler-config.yaml", .checksum = "0123"};
  if (const auto there = add_config_file(text, file)) {
    const auto back = remove_config_file(*there);
    require(*there == text || (back && (*back == text || remove_config_file(text) == *back)));
  }
  if (const auto document = parse_document(text)) {
    judge_static_pod(*document, &*document);
  }
  return 0;
}
