#pragma once
// How an exported function answers: it finds its card in the current fixture, or ends with the error that the real
// library gives. No exception leaves the library.

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "agent/cards/nvml_abi.hpp"
#include "session.hpp"

#define NVML_EXPORT extern "C" __attribute__((visibility("default"))) nvml::return_code

namespace nvml {

using nlohmann::json;

/// Bytes.
constexpr std::uint64_t mib = 1024 * 1024;

/// A card or MIG device under a call, in the fixture of that moment.
struct subject {
  std::shared_ptr<const fixture> now;
  const json& card;
  const nvml::handle& handle;

  /// The fact, or failure{not_supported} where the card has none or a MIG device is asked.
  json fact(const char* key) const;
  bool is_mig_device() const { return handle.kind == handle_kind::mig_device; }
  bool is_cut() const;  // MIG is enabled
};

/// Throws failure: invalid_argument for a foreign handle, gpu_is_lost, or what the fixture's `errors` want for
/// `function`.
subject find(const char* function, const handle* handle, handle_kind kind = handle_kind::card);
const json& card_of(const fixture& fixture, const std::string& uuid);

template <class Body>
return_code answer(Body body) noexcept {
  try {
    body();
    return success;
  } catch (const failure& failure) {
    return failure.code;
  } catch (...) {
    return unknown;
  }
}

template <class... Pointers>
void require(const Pointers*... pointers) {
  if ((!pointers || ...)) throw failure{invalid_argument};
}

inline void copy(const std::string& text, char* target, unsigned length) {
  require(target);
  if (text.size() >= length) throw failure{insufficient_size};
  std::memcpy(target, text.c_str(), text.size() + 1);
}

/// Fills the caller's array as NVML does: `count` is its size before and the number of items after.
template <class Items, class Item>
void fill(const Items& items, unsigned* count, Item* target) {
  require(count);
  const auto size = *count;
  *count = static_cast<unsigned>(items.size());
  if (items.size() > size || (!target && !items.empty())) throw failure{insufficient_size};
  std::ranges::copy(items, target);
}

/// One fact of a card as a number: flags are 0 and 1, words are the numbers of `words.hpp`.
std::int64_t number(const subject& subject, const char* key);

template <class Number>
return_code answer_fact(const char* function, device device, const char* key, Number* target) noexcept {
  return answer([&] {
    const auto found = find(function, device);
    require(target);
    *target = static_cast<Number>(number(found, key));
  });
}

inline return_code answer_text(const char* function, device device, const char* key, char* target,
                               unsigned length) noexcept {
  return answer([&] { copy(find(function, device).fact(key).template get<std::string>(), target, length); });
}

}  // namespace nvml
