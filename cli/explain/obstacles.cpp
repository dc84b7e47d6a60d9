#include "cli/explain/obstacles.hpp"

#include <algorithm>
#include <set>

#include "cli/explain/engine_words.hpp"
#include "cli/explain/pod_fields.hpp"
#include "cli/lint/unoffered.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using nlohmann::json;
using text::shown;

constexpr std::size_t longest = 1000;  // of a sentence by another program

/// "UnexpectedAdmissionError: Allocate failed"; empty: it says neither.
std::string reason_and_message(const json& status) {
  const auto reason = shown(text_at(status, "reason"), longest), message = shown(text_at(status, "message"), longest);
  return reason.empty() || message.empty() ? reason + message : reason + ": " + message;
}

class finder {
 public:
  finder(const json& pod, text::language locale) : pod_(pod), locale_(locale) {}

  void add_ended() {
    const auto& status = member(pod_, "status");
    const auto phase = text_at(status, "phase");
    if (phase == "Succeeded") add("ended", words("ended_well"), true);
    if (phase != "Failed") return;
    const auto cause = reason_and_message(status);
    auto text = cause.empty() ? words("failed") : words("failed_with", {{"cause", cause}});
    if (text_at(status, "reason") == "UnexpectedAdmissionError") text += "\n" + words("refused_by_kubelet");
    add("ended", std::move(text), true);
  }

  void add_deleted() {
    const auto& metadata = member(pod_, "metadata");
    const auto since = shown(text_at(metadata, "deletionTimestamp"));
    if (since.empty()) return;
    std::vector<std::string> finalizers;
    for (const auto& entry : member(metadata, "finalizers"))
      if (entry.is_string()) finalizers.push_back(shown(entry.get<std::string>()));
    add("deleted",
        words(finalizers.empty() ? "deleted" : "deleted_with_finalizers",
              {{"time", since}, {"list", some_of(finalizers, 3, locale_)}}),
        true);
  }

  void add_gated() {
    std::vector<std::string> gates;
    for (const auto& gate : member(member(pod_, "spec"), "schedulingGates"))
      if (auto name = text_at(gate, "name"); !name.empty()) gates.push_back(shown(name));
    if (gates.empty()) return;
    add("gated", words(gates.size() == 1 ? "gated.one" : "gated.many", {{"list", some_of(gates, 8, locale_)}}), true);
  }

  /// Cards by names that no node can have.
  void add_native() {
    const auto& spec = member(pod_, "spec");
    std::set<std::string> seen;
    for (const auto* list : {"initContainers", "containers"})
      for (const auto& container : member(spec, list)) {
        const auto& limits = member(member(container, "resources"), "limits");
        if (!limits.is_object()) continue;
        for (const auto& [key, amount] : limits.items()) {
          const std::string card(card_of_native_domain(key));
          if (card.empty() || !seen.insert(key).second) continue;
          add("native_resource", words("native_resource", {{"key", shown(key, 320)}, {"hint", card}}), true);
        }
      }
  }

  /// Devices of DRA: another program gives them out.
  void add_claims() {
    const auto claims = claims_of(member(pod_, "spec"));
    if (claims.empty()) return;
    const auto ns = shown(text_at(member(pod_, "metadata"), "namespace"));
    add("claims", words("claims", {{"list", some_of(claims, 8, locale_)}, {"namespace", ns}}), true);
  }

  void add_scheduler(std::string_view asking) {
    const auto named = text_at(member(pod_, "spec"), "schedulerName");
    const auto name = named.empty() ? std::string("default-scheduler") : shown(named);
    const json* looked = nullptr;
    for (const auto& condition : member(member(pod_, "status"), "conditions"))
      if (text_at(condition, "type") == "PodScheduled") looked = &condition;
    const auto others = asking.empty() ? words("no_one_asks") : words("one_asks", {{"scheduler", std::string(asking)}});
    if (!looked)
      return add("not_looked_at", words("not_looked_at", {{"scheduler", name}, {"others", others}}),
                 name != asking && name != "default-scheduler");
    if (name != asking) add("other_scheduler", words("other_scheduler", {{"scheduler", name}, {"others", others}}));
    if (const auto text = reason_and_message(*looked); !text.empty() && text_at(*looked, "status") == "False")
      add("scheduler_says", words("scheduler_says", {{"scheduler", name}, {"text", text}}));
  }

  /// What its containers wait for on their node.
  void add_not_well() {
    const auto& status = member(pod_, "status");
    if (const auto cause = reason_and_message(status); !cause.empty())
      add("not_well", words("node_says", {{"text", cause}}));
    for (const auto* list : {"initContainerStatuses", "containerStatuses"})
      for (const auto& container : member(status, list)) {
        const auto& waiting = member(member(container, "state"), "waiting");
        const auto reason = text_at(waiting, "reason");
        if (reason.empty() || reason == "PodInitializing" || reason == "ContainerCreating") continue;
        const auto name = shown(text_at(container, "name"));
        add("not_well", words("container_waits", {{"name", name}, {"text", reason_and_message(waiting)}}));
      }
  }

  std::vector<obstacle> found;

 private:
  std::string words(const std::string& key, std::initializer_list<text::parameter> parameters = {}) const {
    return text::message("explain.obstacle." + key, locale_, parameters);
  }
  void add(const char* code, std::string text, bool decisive = false) {
    found.push_back({code, std::move(text), decisive});
  }

  const json& pod_;
  text::language locale_;
};

}  // namespace

std::vector<std::string> claims_of(const json& spec) {
  std::vector<std::string> out;
  for (const auto& claim : member(spec, "resourceClaims"))
    if (auto name = text_at(claim, "name"); !name.empty()) out.push_back(shown(name));
  return out;
}

std::vector<obstacle> obstacles_of(const json& pod, std::string_view asking, text::language locale) {
  finder finder(pod, locale);
  finder.add_ended();
  if (!finder.found.empty()) return finder.found;
  finder.add_deleted();
  if (!text_at(member(pod, "spec"), "nodeName").empty()) {
    finder.add_not_well();
  } else if (pod.is_object()) {
    finder.add_native();
    finder.add_gated();
    finder.add_claims();
    if (std::ranges::find(finder.found, "gated", &obstacle::code) == finder.found.end()) finder.add_scheduler(asking);
  }
  return finder.found;
}

}  // namespace cli
