#include "call.hpp"

#include <algorithm>

#include "words.hpp"

namespace nvml {
namespace {

std::span<const word> words_of(const std::string& key) {
  if (key == "brand") return brands();
  if (key == "architecture") return architectures();
  if (key == "compute_mode") return compute_modes();
  if (key == "throttle_reasons") return throttle_reasons();
  return {};
}

subject locate(const char* function, const handle* handle, bool (*is_wanted)(handle_kind, handle_kind),
               handle_kind kind) {
  auto& session = session::instance();
  auto now = session.current();
  if (!handle || !session.knows(handle) || !is_wanted(handle->kind, kind)) throw failure{invalid_argument};
  const auto& card = card_of(*now, handle->uuid);
  const auto errors = card.find("errors");
  if (errors != card.end() && errors->contains(function))
    throw failure{static_cast<return_code>(number_for(nvml::errors(), (*errors)[function].get<std::string>()).value())};
  return {now, card, *handle};
}

}  // namespace

const json& card_of(const fixture& fixture, const std::string& uuid) {
  const auto& cards = fixture.node["cards"];
  const auto card = std::ranges::find_if(cards, [&uuid](const json& other) { return other["uuid"] == uuid; });
  if (card == cards.end() || card->value("lost", false)) throw failure{gpu_is_lost};
  return *card;
}

json subject::fact(const char* key) const {
  if (handle.kind != handle_kind::card) throw failure{not_supported};
  if (auto changed = session::instance().setting(handle.uuid, key); !changed.is_null()) return changed;
  const auto value = card.find(key);
  if (value == card.end() || value->is_null()) throw failure{not_supported};
  return *value;
}

bool subject::is_cut() const {
  const auto mig = card.find("mig");
  return mig != card.end() && mig->is_object() && mig->value("enabled", false);
}

subject find(const char* function, const handle* handle, handle_kind kind) {
  // A MIG device goes through where a card is asked for: the fact then says that it is not supported.
  return locate(
      function, handle,
      [](handle_kind actual, handle_kind wanted) {
        return actual == wanted || (actual == handle_kind::mig_device && wanted == handle_kind::card);
      },
      kind);
}

std::int64_t number(const subject& subject, const char* key) {
  const auto value = subject.fact(key);
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_string()) return number_for(words_of(key), value.get<std::string>()).value();
  if (!value.is_array()) return value.get<std::int64_t>();
  std::int64_t mask = 0;
  for (const auto& word : value) mask |= number_for(words_of(key), word.get<std::string>()).value();
  return mask;
}

}  // namespace nvml
