#include "reconcilers/cuda/errors.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "api/xid.hpp"
#include "reconcilers/cuda/error_signs.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace reconcilers::cuda {
namespace {

// Raw string literals that the build makes of docs/troubleshooting*.md. Longer than every compiler has to take; ours
// does.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Woverlength-strings"
constexpr std::string_view english_page =
#include "troubleshooting.md.inc"
    ;
constexpr std::string_view chinese_page =
#include "troubleshooting.zh.md.inc"
    ;
#pragma clang diagnostic pop

/// What stands between two marks; to the end where the second is not there.
std::string_view between(std::string_view text, std::string_view begin, std::string_view end) {
  const auto match = text.find(begin);
  if (match == text.npos) return {};
  text.remove_prefix(match + begin.size());
  return text.substr(0, text.find(end));
}

/// The items of a Markdown list, one a line; a line that is no item belongs to the one before it.
std::string steps_of(std::string_view list) {
  std::string out;
  for (std::size_t begin = 0; begin < list.size();) {
    const auto end = std::min(list.find('\n', begin), list.size());
    const auto line = list.substr(begin, end - begin);
    const bool item = line.starts_with("- ");
    if (!out.empty()) out += item ? '\n' : ' ';
    out += item ? line.substr(2) : text::trimmed(line);
    begin = end + 1;
  }
  return out;
}

/// The section of a page that ends with the command for `id`.
std::string_view section_of(std::string_view page, std::string_view id) {
  const auto command = "`quartermaster explain error " + std::string(id);
  for (auto position = page.find("\n## "); position != page.npos;) {
    const auto next = page.find("\n## ", position + 1);
    const auto section = page.substr(position, next - position);
    if (section.contains(command + "`") || section.contains(command + " --lang")) return section;
    position = next;
  }
  return {};
}

error_words words_of(std::string_view section, std::string_view symptom, std::string_view check,
                     std::string_view cure) {
  return {.title = std::string(between(section, "\n## ", "\n")),
          .symptom = steps_of(between(section, symptom, "\n\n")),
          .check = steps_of(between(section, check, "\n\n")),
          .cure = steps_of(between(section, cure, "\n\n"))};
}

std::vector<known_error> read_pages() {
  std::vector<known_error> out;
  for (const auto& row : all_error_signs()) {
    const auto english = section_of(english_page, row.id), chinese = section_of(chinese_page, row.id);
    auto source = between(english, "· source: ", "\n");
    if (source.starts_with('<')) source = between(source, "<", ">");
    out.push_back({.id = row.id,
                   .name = row.name,
                   .code = std::atoi(std::string(row.codes.substr(0, row.codes.find(' '))).c_str()),
                   .source = source,
                   .en = words_of(english, "**Symptom** ", "**Check**\n\n", "**Cure**\n\n"),
                   .zh = words_of(chinese, "**现象** ", "**检查**\n\n", "**处理**\n\n")});
  }
  return out;
}

}  // namespace

std::span<const known_error> known_errors() {
  static const auto all = read_pages();
  return all;
}

std::vector<error_match> matches_of(const error_finder& finder) {
  const auto all = known_errors();
  std::vector<error_match> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!finder.found()[i]) continue;
    auto& match = out.emplace_back(error_match{&all[i], {}});
    for (const auto xid : finder.xids())
      if (section_of_xid(xid) == all[i].id) match.xids.push_back(xid);
  }
  return out;
}

std::vector<error_match> errors_in(std::string_view text) {
  error_finder finder;
  finder.read(text);
  finder.finish();
  return matches_of(finder);
}

std::string_view fault_of_xid(std::uint64_t xid) {
  const auto* entry = api::find_xid(xid);
  switch (entry ? entry->cause : api::xid_cause::unknown) {
    case api::xid_cause::program:
      return "program";
    case api::xid_cause::driver:
    case api::xid_cause::firmware:
      return "driver";
    case api::xid_cause::nvlink:
      return "link";
    case api::xid_cause::memory:
    case api::xid_cause::bus:
    case api::xid_cause::card:
      return "card";
    case api::xid_cause::unknown:
      break;
  }
  return "unknown";
}

std::string text_of_xid(std::uint64_t xid, text::language locale) {
  const auto key = [xid] {
    switch (api::class_of(xid)) {
      case api::xid_class::fatal:
        return "cuda.xid.fatal";
      case api::xid_class::application:
        return "cuda.xid.application";
      case api::xid_class::notice:
        break;
    }
    return "cuda.xid.notice";
  };
  const auto* entry = api::find_xid(xid);
  return text::message(key(), locale,
                       {{"xid", std::to_string(xid)},
                        {"name", entry ? std::string(entry->name) : text::message("cuda.xid.not_in_table", locale)},
                        {"fault", text::message("cuda.fault." + std::string(fault_of_xid(xid)), locale)}});
}

}  // namespace reconcilers::cuda
