#include "cli/console/waiting.hpp"

#include <algorithm>
#include <span>

#include "api/engine_words.hpp"
#include "cli/explain/obstacles.hpp"
#include "cli/explain/open_nodes.hpp"
#include "cli/explain/proposals.hpp"
#include "cli/lint/unserved.hpp"
#include "reconcilers/extender/reasons.hpp"
#include "reconcilers/verify/verify.hpp"
#include "text/list.hpp"
#include "text/messages.hpp"

namespace cli::console {
namespace {

namespace ext = reconcilers::extender;
using text::language;

ordered_json asks_json(const kube::pod& pod) {
  auto out = ordered_json::object();
  for (const auto& [key, amount] : reconcilers::verify::asked_by(pod)) out[key] = amount;
  return out;
}

/// {"en": words(en), "zh": words(zh)}
ordered_json in_both(auto words) { return {{"en", words(language::en)}, {"zh", words(language::zh)}}; }

std::string container_of(const waiting_answer& answer, std::size_t index) {
  const auto& names = answer.request.names();
  return index < names.size() ? names[index]->name : std::to_string(index);
}

ordered_json causes_json(const waiting_answer& answer) {
  auto out = ordered_json::array();
  for (const auto& cause : answer.reason.causes) {
    ordered_json entry{{"code", api::code_of(cause)},
                       {"reason", in_both([&](language locale) { return api::words_of(cause, locale); })},
                       {"nodes", cause.nodes},
                       {"container", nullptr},
                       {"key", nullptr}};
    if (cause.container >= 0) entry["container"] = container_of(answer, static_cast<std::size_t>(cause.container));
    if (!cause.key.empty()) entry["key"] = cause.key;
    out.push_back(std::move(entry));
  }
  return out;
}

/// @param nodes empty: no node is named
ordered_json change_json(const std::optional<quota::change>& change, const waiting_answer& answer,
                         std::span<const quota::node_view> nodes) {
  if (!change || answer.fits()) return nullptr;
  ordered_json out{{"code", api::code_of(*change)}, {"amount", change->amount}};
  if (!change->key.empty()) out["key"] = change->key;
  if (change->action == quota::change::kind::amount) {
    out["container"] = container_of(answer, change->container);
    out["current"] = change->current;
  }
  out["text"] = in_both([&](language locale) { return words_of(*change, nodes, answer.request, locale); });
  return out;
}

/// What the pod itself says, so that no card would help: its gates, and labels that it wants and no node has.
std::vector<std::string> held_back_by(const picture& picture, const kube::described_pod* whole, const viewer& viewer,
                                      language locale) {
  std::vector<std::string> out;
  if (!whole) return out;
  if (auto gates = gates_of(*whole, locale); !gates.empty()) out.push_back(std::move(gates));
  for (auto& entry : unmet_selectors(*whole, picture, locale, viewer.nodes)) out.push_back(std::move(entry.text));
  return out;
}

std::string_view kind_of(const open_answer& judged, bool is_held_back) {
  const auto& answer = judged.about;
  if (!answer.unknown.empty()) return "unknown_resource";
  if (is_held_back) return "held_back";
  if (answer.limit) return "quota";
  if (answer.is_kept_everywhere) return "kept_for_others";
  if (answer.reason.fitting == 0) return "fits_nowhere";
  return judged.fits_on_closed_alone() ? "closed" : "other";
}

std::string closed_text(const closed_nodes& closed, language locale) {
  return text::message(
      "explain.closed", locale,
      {{"nodes", text::counted(closed.nodes, "explain.nodes", locale)}, {"text", words_of(closed.reason, locale)}});
}

/// @param refused the key for want of which kube-scheduler refused the pod when it last looked; empty: it did not
std::string reason_of(const open_answer& judged, std::span<const quota::node_view> nodes, const std::string& refused,
                      language locale) {
  const auto& answer = judged.about;
  if (answer.limit) return text::message("explain.quota", locale, {{"text", api::words_of(*answer.limit, locale)}});
  if (answer.is_kept_everywhere) return text::message("engine.answer.kept", locale);
  if (answer.reason.fitting > 0 && judged.fits_on_closed_alone()) {
    std::vector<std::string> texts;
    for (const auto& closed : judged.closed) texts.push_back(closed_text(closed, locale));
    return text::joined(texts, text::message("finding.remedy", locale));
  }
  const auto out = words_of_causes(answer.reason, nodes, answer.request, locale);
  if (answer.reason.fitting == 0) return out;
  return text::message(refused.empty() ? "engine.answer.not_cards" : "engine.answer.refused_before", locale,
                       {{"answer", out}, {"key", refused}});
}

ordered_json closed_json(const open_answer& judged) {
  auto out = ordered_json::array();
  for (const auto& closed : judged.closed)
    out.push_back({{"reason", in_both([&](language locale) { return words_of(closed.reason, locale); })},
                   {"nodes", closed.nodes}});
  return out;
}

/// In the order in which people should try them.
ordered_json changes_json(const std::vector<proposal>& proposals) {
  auto out = ordered_json::array();
  for (const auto& entry : proposals)
    out.push_back({{"kind", to_string(entry.action)},
                   {"text", in_both([&](language locale) { return words_of(entry.text, locale); })},
                   {"command", entry.command.empty() ? ordered_json() : ordered_json(entry.command)}});
  return out;
}

constexpr std::size_t most_examples = 3;

/// What would place most of the pods with the least. A module that is off, or has no node yet, comes before what the
/// pod or the holder of a card would give up.
const ordered_json* smallest_change(const ordered_json& reason) {
  const auto& changes = reason["changes"];
  const auto gives_up = [](const ordered_json& change) {
    const auto kind = change["kind"].get<std::string>();
    return kind == to_string(proposal::kind::pod) || kind == to_string(proposal::kind::key) ||
           kind == to_string(proposal::kind::card);
  };
  const bool is_free = !changes.empty() && !gives_up(changes[0]);
  if (!is_free && !reason["unserved"].empty()) return &reason["unserved"][0];
  return changes.empty() ? nullptr : &changes[0]["text"];
}

/// What someone with the right types to place the pod; empty: no one command does.
ordered_json placing_command(const std::vector<proposal>& proposals) {
  return proposals.empty() || proposals.front().command.empty() ? ordered_json()
                                                                : ordered_json(proposals.front().command);
}

}  // namespace

bool waits(const picture& picture, const known_resources& known, const kube::pod& pod) {
  if (!pod.node_name.empty() || pod.finished() || pod.deleting || pod.containers.empty()) return false;
  return ext::asks(pod, picture.book->keys()) || !unknown_keys(pod, known, text::language::en).empty();
}

waiting_page waiting_pods(const picture& picture, const known_resources& known, const viewer& viewer,
                          std::string_view ns, page_range range) {
  std::vector<kube::object_key> all;
  for (const auto& pod : picture.pods.all()) {
    const bool is_asked_for = viewer.sees(pod.key.ns) && (ns.empty() || pod.key.ns == ns);
    if (is_asked_for && waits(picture, known, pod)) all.push_back(pod.key);
  }
  std::ranges::sort(all);
  const auto begin = std::min(range.offset, all.size()), end = begin + std::min(range.limit, all.size() - begin);
  const std::span page = std::span(all).subspan(begin, end - begin);
  return {all.size(), begin, {page.begin(), page.end()}};
}

ordered_json waiting_reason(const picture& picture, const known_resources& known, const viewer& viewer,
                            const kube::pod& pod, const kube::described_pod* whole) {
  const auto rules = whole ? std::optional(node_rules(*whole)) : std::nullopt;
  const auto* known_rules = rules ? &*rules : nullptr;
  const auto judged = why_waiting_with_rules(picture, known, pod, known_rules, language::en);
  const auto& answer = judged.about;
  const bool is_held_back = !held_back_by(picture, whole, viewer, language::en).empty();
  // Node names are for those who may list nodes.
  const auto nodes =
      viewer.nodes ? std::span<const quota::node_view>(answer.nodes) : std::span<const quota::node_view>();
  const bool names_node = viewer.nodes && answer.reason.nearest;
  const auto refused = refused_before(judged, whole, is_held_back);
  const auto reason = [&](language locale) {
    if (!answer.unknown.empty()) return unknown_keys(pod, known, locale);
    if (!is_held_back) return reason_of(judged, nodes, refused, locale);
    return text::joined(held_back_by(picture, whole, viewer, locale), text::message("finding.remedy", locale));
  };
  auto unserved = ordered_json::array();
  const auto chinese =
      answer.unserved.empty() ? answer.unserved : unserved_resources(picture, known, pod, language::zh);
  for (std::size_t i = 0; i < chinese.size(); ++i) unserved.push_back({{"en", answer.unserved[i]}, {"zh", chinese[i]}});
  const auto proposals = proposals_of(picture, pod, answer, known_rules, viewer.nodes);
  return {
      {"asks", asks_json(pod)},
      {"kind", kind_of(judged, is_held_back)},
      {"reason", in_both(reason)},
      {"unserved", std::move(unserved)},
      {"nodes", answer.reason.nodes},
      {"fitting", answer.reason.fitting},
      {"closed", closed_json(judged)},
      {"refusedBefore", refused.empty() ? ordered_json() : ordered_json(refused)},
      {"causes", causes_json(answer)},
      {"changeOfPod", change_json(answer.reason.of_pod, answer, nodes)},
      {"changeOfNode", viewer.nodes ? change_json(answer.reason.of_node, answer, nodes) : ordered_json()},
      {"nearestNode", names_node ? ordered_json(answer.nodes[*answer.reason.nearest].inventory->name) : ordered_json()},
      {"quota",
       answer.limit ? in_both([&](language locale) { return api::words_of(*answer.limit, locale); }) : ordered_json()},
      {"changes", changes_json(proposals)},
      {"command", placing_command(proposals)}};
}

namespace {

/// No value of one field looks like another field.
std::string rules_text(const kube::described_pod& pod) {
  auto out = ordered_json::array({pod.rules.selector, pod.gates});
  for (const auto& [key, op, value, effect] : pod.rules.tolerations) out.push_back({key, op, value, effect});
  out.push_back(pod.rules.terms.has_value());
  for (const auto& term : pod.rules.terms.value_or(std::vector<std::vector<kube::node_rules::requirement>>())) {
    auto requirements = ordered_json::array();
    for (const auto& [key, op, values, is_field] : term) requirements.push_back({key, op, values, is_field});
    out.push_back(std::move(requirements));
  }
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

std::string question_of(const viewer& viewer, const kube::pod& pod, const kube::described_pod* whole) {
  auto out = (viewer.nodes ? "nodes\n" : "\n") + pod.key.ns + "\n" + std::to_string(pod.priority) + "\n";
  if (whole) out += rules_text(*whole) + "\n" + refused_key(*whole) + "\n";
  for (const auto& container : pod.containers) {
    out += container.name + "\n" + std::to_string(static_cast<int>(container.kind));
    for (const auto& [key, amount] : container.limits) out += "\n" + std::string(key) + "=" + std::to_string(amount);
  }
  for (const auto& map : {&pod.annotations, &pod.labels})
    for (const auto& [key, value] : *map) out.append("\n").append(key).append("=").append(value);
  return out;
}

std::vector<waiting_question> waiting_questions(const picture& picture, const known_resources& known,
                                                const viewer& viewer, const unbound_pods* unbound) {
  std::map<std::string, waiting_question> all;
  for (const auto& pod : picture.pods.all()) {
    if (!viewer.sees(pod.key.ns) || !waits(picture, known, pod)) continue;
    auto& question = all[question_of(viewer, pod, unbound ? unbound->find(pod.key) : nullptr)];
    question.pods.push_back(pod.key);
    if (pod.created > 0 && (question.since == 0 || pod.created < question.since)) question.since = pod.created;
  }
  std::vector<waiting_question> out;
  for (auto& [text, question] : all) {
    std::ranges::sort(question.pods);
    out.push_back(std::move(question));
  }
  std::ranges::sort(out, {}, [](const waiting_question& question) {
    return std::pair(-static_cast<std::int64_t>(question.pods.size()), question.pods.front());
  });
  return out;
}

ordered_json reasons_view(const std::vector<waiting_question>& questions, const std::vector<ordered_json>& reasons) {
  struct group {
    const ordered_json* reason = nullptr;
    std::vector<kube::object_key> pods;
    std::int64_t since = 0;
  };
  std::map<std::string, group> groups;  // by what people read
  std::size_t total = 0, looked_at = 0;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const auto& question = questions[i];
    total += question.pods.size();
    if (i >= reasons.size() || reasons[i].is_null()) continue;
    looked_at += question.pods.size();
    const auto* change = smallest_change(reasons[i]);
    auto& group = groups[reasons[i]["reason"]["en"].get<std::string>() + "\n" + (change ? change->dump() : "")];
    group.reason = &reasons[i];
    group.pods.insert(group.pods.end(), question.pods.begin(), question.pods.end());
    if (question.since > 0 && (group.since == 0 || question.since < group.since)) group.since = question.since;
  }
  std::vector<group> sorted;
  for (auto& [text, group] : groups) {
    std::ranges::sort(group.pods);
    sorted.push_back(std::move(group));
  }
  std::ranges::sort(sorted, {}, [](const group& group) {
    return std::pair(-static_cast<std::int64_t>(group.pods.size()), group.pods.front());
  });
  auto rows = ordered_json::array();
  for (const auto& group : sorted) {
    const auto& first = group.pods.front();
    const auto* change = smallest_change(*group.reason);
    const auto& known = (*group.reason)["command"];
    auto examples = ordered_json::array();
    for (std::size_t i = 0; i < std::min(group.pods.size(), most_examples); ++i)
      examples.push_back({{"namespace", group.pods[i].ns}, {"name", group.pods[i].name}});
    rows.push_back(
        {{"kind", (*group.reason)["kind"]},
         {"reason", (*group.reason)["reason"]},
         {"change", change ? *change : ordered_json()},
         {"command",
          known.is_null() ? ordered_json("quartermaster explain pod " + first.name + " -n " + first.ns) : known},
         {"pods", group.pods.size()},
         {"since", group.since > 0 ? ordered_json(group.since) : ordered_json()},
         {"examples", std::move(examples)}});
  }
  return {{"total", total}, {"lookedAt", looked_at}, {"groups", std::move(rows)}};
}

ordered_json waiting_view(const waiting_page& page, std::map<kube::object_key, ordered_json> reasons) {
  auto rows = ordered_json::array();
  for (auto& [key, reason] : reasons) {
    ordered_json row{{"namespace", key.ns}, {"name", key.name}};
    row.update(reason);
    rows.push_back(std::move(row));
  }
  return {{"total", page.total}, {"offset", page.offset}, {"pods", std::move(rows)}};
}

const waiting_reasons::entry* waiting_reasons::find(const std::string& question,
                                                    controller::milliseconds oldest_allowed) const {
  const auto match = known_.find(question);
  return match != known_.end() && match->second.made >= oldest_allowed ? &match->second : nullptr;
}

const waiting_reasons::entry& waiting_reasons::keep(std::string question, entry entry) {
  if (!known_.contains(question) && known_.size() >= most_)
    known_.erase(std::ranges::min_element(known_, {}, [](const auto& each) { return each.second.made; }));
  return known_.insert_or_assign(std::move(question), std::move(entry)).first->second;
}

}  // namespace cli::console
