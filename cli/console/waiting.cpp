#include "cli/console/waiting.hpp"

#include <algorithm>
#include <span>

#include "api/engine_words.hpp"
#include "cli/explain/explain_pod.hpp"
#include "reconcilers/extender/reasons.hpp"
#include "reconcilers/verify/verify.hpp"

namespace cli::console {
namespace {

namespace ext = reconcilers::extender;

ordered_json asks_json(const kube::pod& pod) {
  auto out = ordered_json::object();
  for (const auto& [key, amount] : reconcilers::verify::asked_by(pod)) out[key] = amount;
  return out;
}

/// Without the node on which it fits: node names are for those who may list nodes.
std::string without_place(std::string text) { return text.substr(0, text.rfind(" (fits on ")); }

ordered_json causes_json(const waiting_answer& answer) {
  auto out = ordered_json::array();
  for (const auto& cause : answer.reason.causes) {
    ordered_json entry{{"reason", api::words_of(cause.code, text::language::en)},
                       {"nodes", cause.nodes},
                       {"container", nullptr},
                       {"key", nullptr}};
    const auto& names = answer.request.names();
    if (cause.container >= 0 && static_cast<std::size_t>(cause.container) < names.size())
      entry["container"] = names[static_cast<std::size_t>(cause.container)]->name;
    if (!cause.key.empty()) entry["key"] = cause.key;
    out.push_back(std::move(entry));
  }
  return out;
}

std::string_view kind_of(const waiting_answer& answer) {
  if (!answer.unknown.empty()) return "unknown_resource";
  if (answer.limit) return "quota";
  if (answer.is_kept_everywhere) return "kept_for_others";
  return answer.reason.fitting > 0 ? "other" : "fits_nowhere";
}

std::string reason_of(const waiting_answer& answer) {
  if (!answer.unknown.empty()) return answer.unknown;
  if (answer.limit) return "Its namespace's quota refuses it: " + api::words_of(*answer.limit, text::language::en);
  if (answer.is_kept_everywhere)
    return "The pod fits on some nodes, but kube-scheduler keeps each of them for another pod.";
  const auto text = words_of(answer.reason, answer.nodes, answer.request, text::language::en);
  return answer.reason.fitting > 0 ? text + "; cards are not what it waits for" : text.substr(0, text.find("; "));
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
                            const kube::pod& pod) {
  const auto answer = why_waiting(picture, known, pod, text::language::en);
  const auto change = [&](const std::optional<quota::change>& entry) -> ordered_json {
    if (!entry || answer.fits()) return nullptr;
    const auto text = words_of(*entry, answer.nodes, answer.request, text::language::en);
    return viewer.nodes ? text : without_place(text);
  };
  const bool names_node = viewer.nodes && answer.reason.nearest;
  return {
      {"asks", asks_json(pod)},
      {"kind", kind_of(answer)},
      {"reason", reason_of(answer)},
      {"unserved", answer.unserved},
      {"nodes", answer.reason.nodes},
      {"fitting", answer.reason.fitting},
      {"causes", causes_json(answer)},
      {"changeOfPod", change(answer.reason.of_pod)},
      {"changeOfNode", viewer.nodes ? change(answer.reason.of_node) : ordered_json()},
      {"nearestNode", names_node ? ordered_json(answer.nodes[*answer.reason.nearest].inventory->name) : ordered_json()},
      {"quota", answer.limit ? ordered_json(api::words_of(*answer.limit, text::language::en)) : ordered_json()}};
}

std::string question_of(const viewer& viewer, const kube::pod& pod) {
  auto out = (viewer.nodes ? "nodes\n" : "\n") + pod.key.ns + "\n" + std::to_string(pod.priority) + "\n";
  for (const auto& container : pod.containers) {
    out += container.name + "\n" + std::to_string(static_cast<int>(container.kind));
    for (const auto& [key, amount] : container.limits) out += "\n" + std::string(key) + "=" + std::to_string(amount);
  }
  for (const auto& map : {&pod.annotations, &pod.labels})
    for (const auto& [key, value] : *map) out.append("\n").append(key).append("=").append(value);
  return out;
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
