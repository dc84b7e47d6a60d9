#pragma once
// The verdict as people and programs read it: the annotation, and the note of the event. The text is a function of what
// was judged and nothing else, so an unchanged ConfigMap is never written twice.

#include <cstdint>
#include <string>
#include <string_view>

#include "reconcilers/declarations/registry.hpp"

namespace reconcilers::declarations {

inline constexpr std::string_view verdict_annotation = "quartermaster.io/verdict";
inline constexpr std::size_t max_verdict_bytes = 8192;

enum class verdict : std::uint8_t { accepted, warning, refused };
std::string_view to_string(verdict v) noexcept;
verdict verdict_of(const judgement& judgement);

/// One line of JSON, at most max_verdict_bytes:
/// {"v":1,"verdict":"refused","key":"example.com/fpga","findings":[{"severity","code","field","value","allowed","remedy","message"}],
///  "more":N,"observed":"<16 hex figures>"}
/// in English; `more` counts findings that found no room and is absent when all are there. The code lets readers have
/// it in Chinese. Of a refused declaration whose last accepted content stays in force, "meanwhile" says so, before the
/// findings.
std::string annotation_of(const judgement& judgement);

/// One that is refused, for those who only name it.
struct refused_declaration {
  kube::object_key config_map;
  std::string key;                ///< as in the judgement; empty where it cannot be read
  std::string reason, reason_zh;  ///< the note of it
  const std::string& reason_in(text::language locale) const {
    return locale == text::language::zh ? reason_zh : reason;
  }
};
/// In the order of their ConfigMaps.
std::vector<refused_declaration> refused_declarations(const registry& registry);

/// `annotation` says the same as `other` but for the hash: no news for people.
bool same_words(std::string_view annotation, std::string_view other);

/// The first findings as sentences, at most 1,000 bytes; what an event says.
std::string note_of(const judgement& judgement, text::language locale = text::language::en);

/// A label that a declaration or a device configuration is made of; others are their owner's.
bool is_judged(std::string_view label);
/// 64-bit FNV-1a over our labels and the data, by name: the content that is judged. Independent of their order.
std::uint64_t content_hash(const config_map_view& config_map);

}  // namespace reconcilers::declarations
