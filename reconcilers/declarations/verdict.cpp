#include "reconcilers/declarations/verdict.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "text/messages.hpp"
#include "text/text.hpp"

namespace reconcilers::declarations {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t max_note_bytes = 1000;

ordered_json as_json(const finding& f) {
  return {{"severity", to_string(severity_of(f))},
          {"code", to_string(f.kind)},
          {"field", f.field},
          {"value", f.value},
          {"allowed", allowed_of(f, text::language::en)},
          {"remedy", remedy_of(f, text::language::en)},
          {"message", message_of(f, text::language::en)}};
}

std::string hex(std::uint64_t value) {
  std::array<char, 17> out{};
  std::snprintf(out.data(), out.size(), "%016llx", static_cast<unsigned long long>(value));
  return out.data();
}

class fnv {
 public:
  void add(std::string_view text) {
    for (auto size = text.size(); size != 0; size >>= 8) step(static_cast<std::uint8_t>(size));
    step(0xff);
    for (const char c : text) step(static_cast<std::uint8_t>(c));
  }
  std::uint64_t value() const { return value_; }

 private:
  void step(std::uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3ULL; }
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace

std::string_view to_string(verdict v) noexcept {
  return v == verdict::accepted ? "accepted" : v == verdict::warning ? "warning" : "refused";
}

verdict verdict_of(const judgement& judgement) {
  if (judgement.findings.empty()) return verdict::accepted;
  return has_error(judgement.findings) ? verdict::refused : verdict::warning;
}

std::string annotation_of(const judgement& judgement) {
  constexpr auto replace = ordered_json::error_handler_t::replace;
  ordered_json out{{"v", 1}, {"verdict", to_string(verdict_of(judgement))}, {"key", text::shown(judgement.key, 330)}};
  if (judgement.kept) out["meanwhile"] = text::message("declaration_note.kept", text::language::en);
  auto findings = ordered_json::array();
  std::size_t room = max_verdict_bytes - 640;  // the frame: names, key (its quotes may be escaped), count, hash
  for (const auto& f : judgement.findings) {
    auto entry = as_json(f);
    const auto size = entry.dump(-1, ' ', false, replace).size() + 1;
    if (size > room) break;
    room -= size;
    findings.push_back(std::move(entry));
  }
  const auto more = judgement.findings.size() - findings.size();
  out["findings"] = std::move(findings);
  if (more > 0) out["more"] = more;
  out["observed"] = hex(judgement.observed);
  return out.dump(-1, ' ', false, replace);
}

bool same_words(std::string_view annotation, std::string_view other) {
  const auto words = [](std::string_view text) { return text.substr(0, text.rfind(",\"observed\":")); };
  return words(annotation) == words(other);
}

std::string note_of(const judgement& judgement, text::language locale) {
  if (judgement.findings.empty()) return text::message("declaration_note.good", locale, {{"key", judgement.key}});
  std::string out;
  if (judgement.kept) out = text::message("declaration_note.kept", locale) + text::message("finding.remedy", locale);
  std::size_t index = 0;
  for (const auto& f : judgement.findings) {
    const auto message = message_of(f, locale);
    const auto rest = judgement.findings.size() - index;
    const auto tail = rest > 1 ? 24U : 0U;
    if (index > 0 && out.size() + message.size() + tail + 3 > max_note_bytes) {
      out += text::message("declaration_note.more", locale, {{"number", std::to_string(rest)}});
      break;
    }
    out += (index > 0 ? " | " : "") + message;
    ++index;
  }
  return out.size() <= max_note_bytes ? out : text::shown(out, max_note_bytes);
}

std::vector<refused_declaration> refused_declarations(const registry& registry) {
  std::vector<refused_declaration> out;
  for (const auto& judged : registry.judge_all())
    if (verdict_of(judged) == verdict::refused)
      out.push_back({judged.config_map, judged.key, note_of(judged), note_of(judged, text::language::zh)});
  return out;
}

bool is_judged(std::string_view label) {
  return label.starts_with(names::alauda) || label.starts_with(names::cpaas) || label == names::device_label;
}

std::uint64_t content_hash(const config_map_view& config_map) {
  fnv hash;
  auto sorted = config_map.labels;
  std::erase_if(sorted, [](const auto& label) { return !is_judged(label.first); });
  const auto add_all = [&](config_map_view::entries& entries) {
    std::ranges::sort(entries);
    for (const auto& [name, value] : entries) hash.add(name), hash.add(value);
    hash.add("");
  };
  add_all(sorted);
  sorted = config_map.data;
  add_all(sorted);
  if (config_map.binary > 0) hash.add(std::to_string(config_map.binary));
  if (config_map.left_out > 0) hash.add("left out " + std::to_string(config_map.left_out));
  return hash.value();
}

}  // namespace reconcilers::declarations
