#include "api/engine_words.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "quota/units.hpp"
#include "text/list.hpp"
#include "text/messages.hpp"

namespace api {
namespace {

using text::language;
using parameters = std::initializer_list<text::parameter>;

std::string engine_words(const std::string& key, language locale, parameters parameters = {}) {
  return text::message("engine." + key, locale, parameters);
}

/// By quota::reason: the names of their words.
constexpr std::array reason_names{"fits",         "refused",       "not_offered", "no_node",     "no_cards",
                                  "cut_cards",    "whole_cards",   "memory",      "cores",       "sharers",
                                  "cards",        "one_card",      "counted",     "together",    "search_limit",
                                  "not_selected", "plugin_choice", "one_index",   "not_steered", "changes_mode"};
static_assert(reason_names.size() == static_cast<std::size_t>(quota::reason::changes_mode) + 1);

/// Where the table of keys says what is allowed, it has the words too.
std::string legal_words(const quota::refusal& refusal, language locale) {
  switch (refusal.legal) {
    case quota::legal_amounts::multiples_of_count:
      return engine_words("refusal.multiples_of_count", locale);
    case quota::legal_amounts::one_share:
      return engine_words("refusal.one_share", locale);
    case quota::legal_amounts::one_card:
      return engine_words("refusal.one_card", locale);
    case quota::legal_amounts::of_key:
      break;
  }
  const auto pick = [&](const auto& row) { return text::message(row.words, locale); };
  if (const auto* known = quota::resource_key_of(refusal.key)) return pick(known->legal);
  for (const auto& row : quota::resource_keys)
    if (!row.on_pod.name.empty() && row.on_pod.name == refusal.key) return pick(row.on_pod);
  return pick(quota::amounts{});
}

std::string not_legal(const quota::refusal& refusal, language locale) {
  const auto say = [&](const char* key, parameters parameters) {
    return engine_words(std::string("refusal.") + key, locale, parameters);
  };
  const std::string key(refusal.key);
  const bool is_number = refusal.value != quota::not_a_number;
  auto out = is_number ? say("amount", {{"key", key}, {"amount", std::to_string(refusal.value)}})
                       : say("no_number", {{"key", key}});
  if (const auto meant = quota::units_meant(refusal.key, refusal.value); meant > 0)
    return say("unit", {{"wrong", out},
                        {"unit", std::string(unit_of(*quota::resource_key_of(refusal.key)))},
                        {"number", std::to_string(meant)}});
  out =
      say("allowed", {{"wrong", out},
                      {"legal", refusal.value > quota::most ? say("at_most", {{"number", std::to_string(quota::most)}})
                                                            : legal_words(refusal, locale)}});
  if (!is_number || (refusal.below < 0 && refusal.above < 0)) return out;
  std::vector<std::string> nearest;
  if (refusal.below >= 0) nearest.push_back(std::to_string(refusal.below));
  if (refusal.above >= 0 && refusal.above != refusal.below) nearest.push_back(std::to_string(refusal.above));
  return say("nearest", {{"wrong", out}, {"nearest", text::joined(nearest, engine_words("or", locale))}});
}

std::string subject_of(const quota::exceeded_limit& limit, language locale) {
  const auto say = [&](const char* key, std::string subject, const char* name, std::string value) {
    return engine_words(std::string("limit.") + key, locale,
                        {{"subject", std::move(subject)}, {name, std::move(value)}});
  };
  std::string out(words_of(limit.unit, locale));
  const auto& only = limit.only;
  if (!limit.model.empty()) out = say("of_model", out, "model", limit.model);
  if (!only.pool.empty()) out = say("in_pool", out, "pool", only.pool);
  if (only.isolated) out = say("with_isolation", out, "isolation", std::string(text_of(*only.isolated)));
  if (only.priority_from) out = say("from_priority", out, "number", std::to_string(*only.priority_from));
  if (only.priority_to)
    out = say(only.priority_from ? "up_to" : "up_to_priority", out, "number", std::to_string(*only.priority_to));
  return out;
}

std::string container_named(std::size_t index, container_names containers) {
  return index < containers.size() ? std::string(containers[index]) : std::to_string(index);
}
std::string name_of(const quota::node_view& view) { return view.inventory ? view.inventory->name : "?"; }

/// "asks for 9 cards, the largest of them has 8".
std::string lack_words(const quota::cause& cause, language locale) {
  const auto number = [](std::int64_t amount) { return std::to_string(amount); };
  const auto* unit = cause.code == quota::reason::memory    ? "memory"
                     : cause.code == quota::reason::counted ? "counted"
                                                            : "cards";
  return engine_words(cause.too_small ? std::string("answer.largest.") + unit : "answer.best", locale,
                      {{"needed", number(cause.needed)}, {"available", number(cause.available)}});
}

/// Why nodes do not take the pod: "3 no usable card (container main)".
std::string cause_words(const quota::cause& cause, std::span<const quota::node_view> nodes, container_names containers,
                        language locale) {
  const auto with_object = [&](const std::string& text, std::string object) {
    return engine_words("answer.cause_of", locale, {{"cause", text}, {"object", std::move(object)}});
  };
  auto out = engine_words("answer.cause", locale,
                          {{"nodes", std::to_string(cause.nodes)}, {"reason", std::string(words_of(cause, locale))}});
  if (cause.code == quota::reason::changes_mode) {
    std::vector<std::string> names;
    for (const auto& view : nodes)
      if (view.inventory && view.inventory->changes_mode) names.push_back(view.inventory->name);
    if (!names.empty()) out = with_object(out, some_of(names, 3, locale));
  }
  const auto object = object_of(cause, containers, locale);
  return object.empty() ? out : with_object(out, object);
}

}  // namespace

std::string_view code_of(quota::reason reason) { return reason_names[static_cast<std::size_t>(reason)]; }

std::string_view words_of(quota::reason reason, language locale) {
  static const auto table = [] {
    std::array<std::array<std::string_view, 2>, reason_names.size()> out;
    for (std::size_t i = 0; i < out.size(); ++i)
      for (const auto each : {language::en, language::zh})
        out[i][static_cast<std::size_t>(each)] =
            text::pattern_of(std::string("engine.reason.") + reason_names[i], each);
    return out;
  }();
  return table[static_cast<std::size_t>(reason)][static_cast<std::size_t>(locale)];
}

std::string_view code_of(const quota::cause& cause) {
  if (!cause.too_small) return code_of(cause.code);
  return cause.code == quota::reason::together ? "too_small_together" : "too_small";
}

std::string_view words_of(const quota::cause& cause, language locale) {
  if (!cause.too_small) return words_of(cause.code, locale);
  return text::pattern_of("engine.reason." + std::string(code_of(cause)), locale);
}

std::string object_of(const quota::cause& cause, container_names containers, language locale) {
  const auto about = [&](std::string subject, std::string text) {
    return engine_words("answer.object", locale, {{"subject", std::move(subject)}, {"text", std::move(text)}});
  };
  if (cause.refused) return words_of(quota::pod_fault{*cause.refused}, containers, locale);
  const auto lack = cause.needed > 0 ? lack_words(cause, locale) : std::string();
  if (!cause.key.empty()) return lack.empty() ? std::string(cause.key) : about(std::string(cause.key), lack);
  if (cause.container < 0) return {};
  auto container = engine_words("container", locale,
                                {{"name", container_named(static_cast<std::size_t>(cause.container), containers)}});
  return lack.empty() ? container : about(std::move(container), lack);
}

std::string words_of(const quota::pod_fault& fault, language locale) {
  if (!fault.is_of_two_modes) return words_of(fault.no, locale);
  return engine_words("refusal.two_modes", locale,
                      {{"key", std::string(fault.no.key)}, {"other", std::string(fault.no.other)}});
}

std::string words_of(const quota::pod_fault& fault, container_names containers, language locale) {
  const auto container = engine_words("container", locale, {{"name", container_named(fault.no.container, containers)}});
  return engine_words("answer.object", locale, {{"subject", container}, {"text", words_of(fault, locale)}});
}

std::string_view words_of(quota::resource unit, language locale) {
  static constexpr std::array keys{"engine.limit.cores", "engine.limit.memory", "engine.limit.cards"};
  return text::pattern_of(keys[static_cast<std::size_t>(unit)], locale);
}

std::string words_of(const quota::shortfall& shortfall, language locale) {
  using quota::reason;
  std::string out(words_of(shortfall.code, locale));
  const std::string key(shortfall.key);
  const auto number = [&](std::int64_t amount) {
    const auto plain = std::to_string(amount);
    return shortfall.code == reason::memory ? engine_words("shortfall.mebibytes", locale, {{"number", plain}}) : plain;
  };
  switch (shortfall.code) {
    case reason::whole_cards:
    case reason::memory:
    case reason::cores:
    case reason::cards:
    case reason::counted:
    case reason::not_selected:
      if (!key.empty()) out = engine_words("shortfall.of_key", locale, {{"reason", out}, {"key", key}});
      return engine_words(
          "shortfall.needs", locale,
          {{"reason", out}, {"needed", number(shortfall.needed)}, {"available", number(shortfall.available)}});
    case reason::not_offered:
      return engine_words("shortfall.of_key", locale, {{"reason", out}, {"key", key}});
    case reason::refused:
      return engine_words("shortfall.of_amount", locale,
                          {{"reason", out}, {"key", key}, {"amount", std::to_string(shortfall.needed)}});
    default:
      return out;
  }
}

std::string words_of(const quota::refusal& refusal, language locale) {
  using quota::wrong;
  const std::string key(refusal.key), amount = std::to_string(refusal.value), other(refusal.other);
  switch (refusal.kind) {
    case wrong::not_legal:
      return not_legal(refusal, locale);
    case wrong::needs_partner:
      return engine_words("refusal.needs_partner", locale, {{"key", key}, {"amount", amount}, {"other", other}});
    case wrong::mixed:
      return engine_words("refusal.mixed", locale, {{"key", key}, {"other", other}});
    case wrong::not_served:
      return engine_words("refusal.not_served", locale, {{"key", key}});
    case wrong::too_many:
      return engine_words("refusal.too_many", locale,
                          {{"key", key}, {"amount", amount}, {"number", std::to_string(refusal.above)}});
  }
  return {};
}

std::string words_of(const quota::exceeded_limit& limit, language locale) {
  using kind = quota::exceeded_limit::kind;
  const auto say = [&](const char* key, text::parameter more) {
    return engine_words(std::string("limit.") + key, locale, {{"namespace", limit.name_space}, std::move(more)});
  };
  const auto isolation = [](std::int64_t value) { return std::string(text_of(static_cast<quota::isolation>(value))); };
  switch (limit.rule) {
    case kind::model:
      return say(limit.model.empty() ? "unknown_model" : "model", {"model", limit.model});
    case kind::pool:
      return say(limit.only.pool.empty() ? "no_pool" : "pool", {"pool", limit.only.pool});
    case kind::isolation:
      return engine_words("limit.isolation", locale,
                          {{"namespace", limit.name_space},
                           {"limit", isolation(limit.limit)},
                           {"requested", isolation(limit.requested)}});
    case kind::nominal:
    case kind::borrowing:
    case kind::cohort:
      break;
  }
  const auto* key = limit.rule == kind::cohort      ? "limit.cohort"
                    : limit.rule == kind::borrowing ? "limit.borrowing"
                                                    : "limit.nominal";
  return engine_words(key, locale,
                      {{"cohort", limit.cohort},
                       {"namespace", limit.name_space},
                       {"limit", std::to_string(limit.limit)},
                       {"subject", subject_of(limit, locale)},
                       {"used", std::to_string(limit.used)},
                       {"requested", std::to_string(limit.requested)}});
}

std::string_view code_of(const quota::change& change) {
  using kind = quota::change::kind;
  switch (change.action) {
    case kind::amount:
      return change.amount < change.current ? "lower" : "raise";
    case kind::free_cores:
      return "free_cores";
    case kind::free_memory:
      return "free_memory";
    case kind::free_counted:
      return "free_counted";
    case kind::uncordon_card:
      return "uncordon_card";
    case kind::heal_card:
      return "heal_card";
    case kind::empty_card:
      return "empty_card";
    case kind::add_card:
      return "add_card";
  }
  return {};
}

std::string words_of(const quota::change& change, std::span<const quota::node_view> nodes, container_names containers,
                     language locale) {
  using kind = quota::change::kind;
  std::string place;
  if (!nodes.empty()) {
    const auto& view = nodes[change.node];
    const bool names_card =
        change.card && view.inventory && change.action != kind::free_counted && change.action != kind::add_card;
    const auto node = engine_words("node", locale, {{"name", name_of(view)}});
    place = names_card ? engine_words("change.card", locale,
                                      {{"card", view.inventory->cards[*change.card].uuid}, {"node", name_of(view)}})
                       : node;
  }
  const auto out = engine_words("change." + std::string(code_of(change)), locale,
                                {{"amount", std::to_string(change.amount)},
                                 {"key", std::string(change.key)},
                                 {"place", place},
                                 {"current", std::to_string(change.current)},
                                 {"container", container_named(change.container, containers)}});
  return change.action == kind::amount && !place.empty()
             ? engine_words("change.fits_on", locale, {{"change", out}, {"place", place}})
             : out;
}

std::string words_of_causes(const quota::explanation& explanation, std::span<const quota::node_view> nodes,
                            container_names containers, language locale) {
  auto out =
      engine_words("answer.fits", locale,
                   {{"fitting", std::to_string(explanation.fitting)}, {"nodes", std::to_string(explanation.nodes)}});
  bool is_first = true;
  const auto add = [&](std::string cause) {
    out = engine_words(std::exchange(is_first, false) ? "answer.first" : "answer.next", locale,
                       {{"answer", out}, {"cause", std::move(cause)}});
  };
  for (const auto& fault : explanation.faults) add(words_of(fault, containers, locale));
  for (const auto& cause : explanation.causes) add(cause_words(cause, nodes, containers, locale));
  return out;
}

std::string words_of(const quota::explanation& explanation, std::span<const quota::node_view> nodes,
                     container_names containers, language locale) {
  auto out = words_of_causes(explanation, nodes, containers, locale);
  const auto add = [&](const char* key, const char* name, std::string value) {
    out = engine_words(std::string("answer.") + key, locale, {{"answer", out}, {name, std::move(value)}});
  };
  if (explanation.fitting > 0) return out;
  if (explanation.nearest) add("nearest", "name", name_of(nodes[*explanation.nearest]));
  if (explanation.of_pod) add("of_pod", "change", words_of(*explanation.of_pod, nodes, containers, locale));
  if (explanation.of_node) add("of_node", "change", words_of(*explanation.of_node, nodes, containers, locale));
  const bool waits = std::ranges::find(explanation.causes, quota::reason::changes_mode, &quota::cause::code) !=
                     explanation.causes.end();
  if (!waits && !explanation.of_pod && !explanation.of_node) add("no_change", "name", {});
  return out;
}

}  // namespace api
