#include "cli/explain/simulate.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "api/engine_words.hpp"
#include "api/names.hpp"
#include "cli/cluster/declaration_registry.hpp"
#include "cli/cluster/refusal.hpp"
#include "cli/explain/explain_pod.hpp"
#include "cli/explain/obstacles.hpp"
#include "cli/explain/other_plugins.hpp"
#include "cli/flags/flags.hpp"
#include "cli/lint/field_forms.hpp"
#include "cli/lint/lint_workload.hpp"
#include "cli/output/answer.hpp"
#include "cli/output/listing.hpp"
#include "cli/verbs.hpp"
#include "cli/views/view_reply.hpp"
#include "kube/config.hpp"
#include "kube/json_text.hpp"
#include "kube/projections/from_json.hpp"
#include "quota/explain.hpp"
#include "quota/filter.hpp"
#include "reconcilers/extender/protocol.hpp"
#include "reconcilers/extender/reasons.hpp"
#include "text/list.hpp"
#include "text/text.hpp"
#include "text/yaml/fault_words.hpp"
#include "text/yaml/source.hpp"

namespace cli {
namespace {

namespace ext = reconcilers::extender;
using nlohmann::ordered_json;

constexpr std::size_t most_pods = 10'000;

/// Why the API server refuses what an object describes there, or would drop the part that asks for a card: the first
/// error of `quartermaster lint`, with its place.
std::string refusal_of(const manifest& manifest, const pod_forms& forms, text::language locale) {
  const auto error = first_error_of(manifest, forms, locale);
  if (!error) return {};
  return text::shown(error->file, 400) + ":" + std::to_string(error->location.line) + ":" +
         std::to_string(error->location.column) + ": " + error->message;
}

constexpr std::string_view simulate_example = R"(Examples:
  $ quartermaster simulate -f pods.yaml
  $ kubectl get pods -n lab -o yaml | quartermaster simulate -f -    # bound pods stay where they are
  $ quartermaster inspect --save now.json && quartermaster simulate -f pods.yaml --snapshot now.json

Pods are tried in the order of the file, each on what the earlier ones left. A workload (Deployment, Job, ...) counts as
new pods, as many as run at once; a DaemonSet as one. What is suspended, paused or without replicas makes none now,
and the answer says so. Judged are cards, declared keys, amounts that other device plugins offer, limits of the
namespace, ResourceQuota and LimitRange of cards, scheduling gates, the scheduler's name, nodeSelector, required node
affinity and taints; not CPU, memory, ports, pod affinity and topology spread.
Devices of DRA are not judged.
Exit codes: 0 all fit, 1 the cluster or the file cannot be read, or no pods are in it, 2 wrong usage, 3 some do not fit
or were not judged; with --strict also where other objects of the file were not judged)";

/// Where the pod would lie, and booked there for those after it; or why nowhere.
struct seat {
  std::string node;
  quota::holding held;
  std::string reason;
};
/// What nodes say that take no such pod, however empty they are.
class refusals {
 public:
  void add(node_refusal refusal) {
    if (refusal.key.empty())
      ++of_pod_[std::move(refusal.text)];
    else if (refusal.mode.empty())
      ++elsewhere_[std::move(refusal.text)];
    else
      ++modes_[refusal.key][std::move(refusal.mode)];
  }
  bool empty() const { return of_pod_.empty() && elsewhere_.empty() && modes_.empty(); }
  /// With how many nodes say so. What can be cured in the pod comes before nodes that offer other things; several modes
  /// that lack the same key are one: "modes vgpu and pgpu, which do not offer K".
  std::vector<std::pair<std::string, std::size_t>> texts(text::language locale) const {
    auto elsewhere = elsewhere_;
    for (const auto& [key, modes] : modes_) {
      std::vector<std::string> names;
      std::size_t nodes = 0;
      for (const auto& [mode, count] : modes) {
        names.push_back(mode);
        nodes += count;
      }
      const auto list = text::joined(names, text::message("engine.comma", locale));
      elsewhere[text::message(names.size() == 1 ? "explain.mode.one" : "explain.mode.several", locale,
                              {{"mode", list}, {"modes", list}, {"key", key}})] = nodes;
    }
    std::vector<std::pair<std::string, std::size_t>> out(of_pod_.begin(), of_pod_.end());
    out.insert(out.end(), elsewhere.begin(), elsewhere.end());
    return out;
  }

 private:
  std::map<std::string, std::size_t> of_pod_, elsewhere_;
  std::map<std::string, std::map<std::string, std::size_t>> modes_;  ///< nodes by mode, by the key they lack
};

seat take_seat(picture& picture, foreign_room& room, const tried_pod& tried, const kube::pod& pod,
               const ext::pod_request& request, const kube::quantities& foreign, text::language locale) {
  auto& book = *picture.book;
  std::vector<quota::node_view> nodes;
  std::map<std::string, std::size_t> closed;  // nodes by what keeps the pod away, whatever their cards
  for (const auto& node : ext::candidates(book.book(), picture.nodes)) {
    const auto* known = picture.nodes.find({{}, node.inventory->name});
    auto refused = known ? tried.nodes.refuses(*known, locale) : std::string();
    if (known && refused.empty()) refused = words_of(room.refusal(*known, foreign), locale);
    if (refused.empty())
      nodes.push_back(node);
    else
      ++closed[std::move(refused)];
  }
  std::vector<quota::shortfall> found(nodes.size());
  std::vector<std::uint8_t> scores(nodes.size());
  quota::filter(request.containers(), nodes, found, request.only());
  quota::score(request.containers(), nodes, quota::policy::binpack, scores, request.only());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (found[i].fits()) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(-int{scores[i]}, i); });
  std::optional<quota::exceeded_limit> limit;
  for (const auto i : order) {
    auto here = book.try_on(pod, request, nodes[i].inventory->name);
    if (here.limit && !limit) limit = std::move(here.limit);
    if (!here.held || book.assume(pod, *here.held, {}) != quota::booked::done) continue;
    auto node = here.held->node;
    room.take(node, foreign);
    return {std::move(node), std::move(*here.held), {}};
  }
  std::string reason;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) reason += (reason.empty() ? "" : text::message("finding.remedy", locale)) + text;
  };
  if (limit)
    reason = api::words_of(*limit, locale);
  else if (!nodes.empty() || closed.empty()) {
    // Nodes of another mode are listed apart from those that are full.
    refusals refused;
    std::vector<quota::node_view> serving;
    for (const auto& node : nodes)
      if (auto refusal = refusal_by(node, request, picture, locale))
        refused.add(std::move(*refusal));
      else
        serving.push_back(node);
    const auto without_annotations = change_of_annotations(pod, request, serving, locale);
    if (!serving.empty() || refused.empty()) {
      const auto explanation = quota::explain(request.containers(), serving, request.only());
      const bool is_other_change = !without_annotations.empty() && !explanation.of_pod && !explanation.of_node;
      reason = is_other_change ? words_of_causes(explanation, serving, request, locale)
                               : words_of(explanation, serving, request, locale);
    }
    if (!without_annotations.empty()) reason += text::message("finding.remedy", locale) + without_annotations;
    add(words_of(nodes_by_refusal(refused.texts(locale)), locale));
  }
  add(words_of(nodes_by_refusal(closed.begin(), closed.end()), locale));
  return {{}, {}, reason};
}

}  // namespace

namespace {

/// How many pods an object makes at once, and why none.
struct pod_count {
  std::int64_t number = 1;
  std::string none;  ///< below "explain.simulate.none"; empty: it makes them
};

std::int64_t number_at(const text::yaml::node* parent, std::string_view key, std::int64_t otherwise) {
  const auto* value = text::yaml::find(parent, key);
  return value ? field_forms::whole_number(*value).value_or(otherwise) : otherwise;
}

bool is_true(const text::yaml::node* parent, std::string_view key) {
  const auto* value = text::yaml::find(parent, key);
  return value && text::yaml::type_of(*value) == text::yaml::type::boolean && text::yaml::canonical(*value) == "true";
}

/// A Job that is complete or has failed.
bool has_ended(const text::yaml::node* status) {
  const auto* conditions = text::yaml::find(status, "conditions");
  return conditions && conditions->sequence() && std::ranges::any_of(conditions->items, [](const auto* condition) {
           const auto type = text::yaml::text_at(condition, "type");
           return (type == "Complete" || type == "Failed") && text::yaml::text_at(condition, "status") == "True";
         });
}

/// A Job runs no more at once than are still to be completed; where it does not say how many are, as many as run at
/// once, until one has succeeded.
pod_count count_of_job(const text::yaml::node* job, const text::yaml::node* status) {
  const auto parallel = number_at(job, "parallelism", 1);
  const auto completions = number_at(job, "completions", 1);
  const auto succeeded = number_at(status, "succeeded", 0);
  const auto left = text::yaml::find(job, "completions") ? std::max<std::int64_t>(completions - succeeded, 0)
                    : succeeded > 0                      ? 0
                                                         : parallel;
  if (has_ended(status)) return {0, "ended"};
  return {std::min(parallel, left), parallel == 0      ? "no_parallelism"
                                    : completions == 0 ? "no_completions"
                                    : left == 0        ? "ended"
                                                       : ""};
}

/// Of a kind that is read by its form: as many as the replicas of all that is round the pod make, and as a Job in it
/// runs at once.
pod_count count_above(const pod_form& form) {
  constexpr std::int64_t beyond = most_pods + 1;
  pod_count out;
  for (const auto* mapping : form.above) {
    auto part = text::yaml::find(mapping, "parallelism") || text::yaml::find(mapping, "completions")
                    ? count_of_job(mapping, nullptr)
                    : pod_count{number_at(mapping, "replicas", 1), ""};
    if (part.number == 0 && part.none.empty()) part.none = "no_replicas";
    out.number = std::min(out.number * std::clamp<std::int64_t>(part.number, 0, beyond), beyond);
    if (out.none.empty()) out.none = part.none;
  }
  return out;
}

/// What is no number there has been refused.
pod_count count_of(const manifest& manifest, const pod_forms& forms, const pod_form& form) {
  if (!forms.by_form && (manifest.kind == "Pod" || manifest.kind == "PodTemplate")) return {};
  const auto* workload = text::yaml::find(manifest.root, "spec");
  pod_count out;
  if (forms.by_form) {
    out = count_above(form);
  } else if (manifest.kind == "CronJob") {
    out = count_of_job(text::yaml::find(text::yaml::find(workload, "jobTemplate"), "spec"), nullptr);
  } else if (manifest.kind == "Job") {
    out = count_of_job(workload, text::yaml::find(manifest.root, "status"));
  } else {
    const auto replicas = number_at(workload, "replicas", 1);
    out = {replicas, replicas == 0 ? "no_replicas" : ""};
  }
  const bool is_suspended = is_true(workload, "suspend") || is_true(text::yaml::find(workload, "runPolicy"), "suspend");
  if (out.none.empty() && is_suspended) out.none = "suspended";
  if (out.none.empty() && manifest.kind == "Deployment" && is_true(workload, "paused")) out.none = "paused";
  return out;
}

std::string why_none(const pod_count& count, text::language locale) {
  return text::message("explain.simulate.none." + count.none, locale,
                       {{"pods", text::counted(static_cast<std::size_t>(count.number), "explain.pods", locale)}});
}

/// The spec as JSON. Resources that stand alone are those of a container.
std::optional<nlohmann::json> spec_of(const pod_form& form) {
  if (!form.alone) return text::yaml::to_json(*form.spec);
  auto resources = text::yaml::to_json(*text::yaml::find(form.spec, "resources"));
  if (!resources) return std::nullopt;
  return nlohmann::json{{"containers", {{{"name", "main"}, {"resources", std::move(*resources)}}}}};
}

}  // namespace

namespace {

/// "Application lab/a"; of what is no object its place.
std::string called(const manifest& manifest, const std::string& file) {
  if (manifest.kind.empty()) return file + ":" + std::to_string(manifest.root ? manifest.root->location.line : 1);
  return manifest.kind + " " + manifest.key.to_string();
}

kube::result<kube::described_pod> pod_of(const nlohmann::json& metadata, const nlohmann::json& spec) {
  const nlohmann::json document{{"metadata", metadata}, {"spec", spec}};
  return kube::from_json<kube::described_pod>(document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// Nothing of commands, environment, volumes.
nlohmann::json deciding_part(const nlohmann::json& metadata, const nlohmann::json& spec) {
  nlohmann::json part = nlohmann::json::object();
  for (const auto* key : {"nodeName", "nodeSelector", "tolerations", "priority", "priorityClassName", "schedulerName",
                          "schedulingGates", "resourceClaims", "resources", "overhead"})
    if (const auto match = spec.find(key); match != spec.end()) part[key] = *match;
  if (const auto affinity = spec.find("affinity"); affinity != spec.end() && affinity->is_object())
    if (const auto of_node = affinity->find("nodeAffinity"); of_node != affinity->end())
      part["affinity"]["nodeAffinity"] = *of_node;
  for (const auto* list : {"containers", "initContainers"}) {
    const auto match = spec.find(list);
    if (match == spec.end() || !match->is_array()) continue;
    part[list] = nlohmann::json::array();
    for (const auto& container : *match) {
      nlohmann::json kept = nlohmann::json::object();
      for (const auto* key : {"name", "resources", "restartPolicy"})
        if (container.is_object() && container.contains(key)) kept[key] = container[key];
      part[list].push_back(std::move(kept));
    }
  }
  auto about = metadata;
  if (about.contains("annotations")) about["annotations"].erase("kubectl.kubernetes.io/last-applied-configuration");
  return {{"metadata", std::move(about)}, {"spec", std::move(part)}};
}

/// What admission adds to pods that it sends to the scheduler of our own; such a taint is there only while it does.
bool is_sent(const kube::pod& pod) {
  return (pod.scheduler_name.empty() || pod.scheduler_name == api::names::scheduler_name) &&
         pod.labels.value_or(api::names::scheduler_label, "") != "ignore";
}

}  // namespace

namespace {

/// Of a pod on its way to the console's server. Values are copied by a call for each level, and who sends 50,000 levels
/// must not take the server's stack.
constexpr int deepest_value = 32;

void take_pod(kube::described_pod pod, tried_pod& tried) {
  tried.pod = std::move(pod);
  tried.pod.id = kube::uid::parse("simulated " + tried.pod.key.to_string());
  tried.nodes = node_rules(tried.pod);
  if (is_sent(tried.pod)) tried.nodes.tolerate(std::string(api::names::accelerator_taint));
  tried.pod.node_name.clear();
}

}  // namespace

std::string as_parameter(std::span<const tried_pod> pods) {
  auto all = nlohmann::json::array();
  for (const auto& tried : pods) {
    nlohmann::json entry{{"name", tried.pod.key.name}, {"namespace", tried.pod.key.ns}, {"new", tried.is_new}};
    if (tried.one_a_node) entry["oneANode"] = true;
    if (!tried.none.empty())
      entry["none"] = tried.none;
    else if (!tried.refused.empty())
      entry["refused"] = tried.refused;
    else
      entry["pod"] = nlohmann::json::parse(tried.document, nullptr, false);
    all.push_back(std::move(entry));
  }
  return kube::base64_encode(all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::expected<std::vector<tried_pod>, text::phrase> tried_pods_in(std::string_view parameter, const std::string& ns) {
  const auto text = kube::base64_decode(parameter);
  bool is_too_deep = false;
  const auto is_shallow = [&](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
    is_too_deep = is_too_deep || depth > deepest_value;
    return depth <= deepest_value;
  };
  const auto all = text ? nlohmann::json::parse(*text, is_shallow, false) : nlohmann::json();
  const auto unusable = std::unexpected(text::phrase{"console.view.pods"});
  if (!all.is_array() || all.empty() || is_too_deep) return unusable;
  std::vector<tried_pod> out;
  for (const auto& entry : all) {
    if (!entry.is_object()) return unusable;
    tried_pod tried;
    tried.pod.key = {ns, kube::text_in(entry, "name")};
    if (kube::text_in(entry, "namespace") != ns) return unusable;
    tried.is_new = entry.contains("new") && entry["new"] == true;
    tried.refused = kube::text_in(entry, "refused");
    tried.none = kube::text_in(entry, "none");
    tried.one_a_node = entry.contains("oneANode") && entry["oneANode"] == true;
    if (tried.refused.empty() && tried.none.empty()) {
      const auto document = entry.value("pod", nlohmann::json::object());
      auto pod =
          kube::from_json<kube::described_pod>(document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      if (!pod) return unusable;
      const auto key = tried.pod.key;
      pod->key = key;
      take_pod(std::move(*pod), tried);
    }
    out.push_back(std::move(tried));
  }
  return out;
}

std::string add_pods(const manifest& manifest, const std::string& ns, std::vector<tried_pod>& tried_pods,
                     text::language locale) {
  const bool bare = manifest.kind == "Pod";
  const auto phase =
      bare ? text::yaml::text_at(text::yaml::find(manifest.root, "status"), "phase") : std::string_view();
  if (phase == "Succeeded" || phase == "Failed") return {};
  const auto forms = pod_forms_of(manifest);
  if (forms.knowledge != kind_knowledge::makes_pods) return {};
  const auto refused = refusal_of(manifest, forms, locale);
  std::size_t index = 0;
  const auto refuse = [&](std::string name, const std::string& reason) {
    tried_pod tried{{}, {}, !bare, reason};
    tried.pod.key = {manifest.key.ns.empty() ? ns.empty() ? "default" : ns : manifest.key.ns, std::move(name)};
    tried_pods.push_back(std::move(tried));
  };
  auto base = manifest.key.name;
  if (base.empty()) base = text::yaml::text_at(text::yaml::find(manifest.root, "metadata"), "generateName");
  if (base.empty()) refuse("-", refused.empty() ? text::message("explain.simulate.no_name", locale) : refused);
  if (base.empty()) return {};
  const auto first = tried_pods.size();
  pod_count all{0, {}};  // of what is suspended as a whole
  for (const auto& form : forms.forms) all.number += count_of(manifest, forms, form).number;
  for (const auto& form : forms.forms) {
    if (!form.spec || !refused.empty()) {
      refuse(base, refused);
      break;  // once
    }
    const auto read = spec_of(form);
    if (!read) return text::message("explain.simulate.too_large", locale, {{"pod", manifest.key.to_string()}});
    nlohmann::json metadata{{"namespace", !manifest.key.ns.empty() ? manifest.key.ns : ns.empty() ? "default" : ns}};
    const auto* about = text::yaml::find(form.holder, "metadata");
    for (const auto* part : {"labels", "annotations"})
      if (const auto* map = text::yaml::find(about, part); map && map->mapping())
        for (const auto& entry : map->entries) metadata[part][entry.key->text] = text::yaml::canonical(*entry.value);
    const auto count = count_of(manifest, forms, form);
    if (!count.none.empty()) {
      tried_pod tried{{}, {}, !bare};
      tried.pod.key = {metadata["namespace"].get<std::string>(), base};
      all.none = count.none;
      tried.none = why_none(all, locale);
      const bool is_whole = all.number == 0 || count.number > 0;  // not one of several kinds of pods
      if (is_whole && tried_pods.size() == first) tried_pods.push_back(std::move(tried));
      continue;
    }
    const bool single = forms.forms.size() == 1 && count.number == 1;
    for (std::int64_t i = 0; i < count.number; ++i, ++index) {
      metadata["name"] = single ? base : base + "-" + std::to_string(index);
      if (tried_pods.size() == most_pods)
        return text::message("explain.simulate.too_many", locale, {{"most", std::to_string(most_pods)}});
      tried_pod tried{{}, {}, !bare};
      tried.pod.key = {metadata["namespace"].get<std::string>(), metadata["name"].get<std::string>()};
      tried.one_a_node = !forms.by_form && manifest.kind == "DaemonSet";
      if (auto pod = pod_of(metadata, *read)) {
        take_pod(std::move(*pod), tried);
        tried.document = deciding_part(metadata, *read).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      } else {
        tried.refused = pod.error().message;
      }
      tried_pods.push_back(std::move(tried));
    }
  }
  return {};
}

namespace {

/// Devices of DRA that the pod asks for; empty: none.
std::string without_judgement(const kube::described_pod& pod, const known_resources& known, const bilingual& say) {
  std::vector<std::string> claims;
  for (const auto& claim : pod.claims) claims.push_back(text::shown(claim.name));
  if (!claims.empty()) return say.message("explain.simulate.claims", {{"list", some_of(claims, 8, say.locale())}});
  const auto classes = classes_asked_by(pod, known);
  if (classes.empty()) return {};
  return say.message("explain.simulate.classes", {{"list", some_of(classes, 8, say.locale())}});
}

/// Cards by names that no node can have: "kubernetes.io/gpu".
std::string native_cards(const kube::described_pod& pod, const bilingual& say) {
  for (const auto& key : pod.native_limits)
    if (const std::string card(card_of_native_domain(key)); !card.empty())
      return say.message("explain.obstacle.native_resource", {{"key", text::shown(key, 320)}, {"hint", card}});
  return {};
}

/// Why a pod fits nowhere whatever cards are free; empty: `let_in` is the pod as admission leaves it.
std::string cause_before_cards(const tried_pod& tried, namespace_limits& limits, const known_resources& known,
                               const bilingual& say, std::optional<kube::pod>& let_in) {
  if (!tried.refused.empty()) return tried.refused;
  kube::pod pod = tried.pod;
  if (auto refused = limits.admit(pod.key.ns, pod.containers); !refused.empty()) return refused;
  if (auto unknown = unknown_keys(pod, known, say.locale()); !unknown.empty()) return unknown;
  if (auto native = native_cards(tried.pod, say); !native.empty()) return native;
  if (auto gates = gates_of(tried.pod, say.locale()); !gates.empty()) return gates;
  if (std::ranges::all_of(pod.containers, [](const auto& container) { return container.limits.empty(); }))
    pod.containers.clear();
  let_in = std::move(pod);
  return {};
}

/// Where there is room, another scheduler than the one that asks the operator need not put the pod.
text::phrase doubt_of_scheduler(const kube::pod& pod, std::string_view asking) {
  const auto& name = pod.scheduler_name;
  if (name.empty() || name == asking || name == "default-scheduler") return {};
  return {"explain.simulate.other_scheduler", {{"scheduler", text::shown(name)}}};
}

/// What becomes of a pod.
enum class pod_end : std::uint8_t { fits, waits, not_judged, not_made };

struct simulated_pod {
  std::string name, node;
  std::string cards, amounts;
  text::phrase cause;  ///< why it is nowhere, or has no card
  ordered_json json;
};

const listing<simulated_pod>& simulated_listing() {
  using row = simulated_pod;
  static const listing<row> out{
      .name = "pods",
      .columns = {{"pod", [](const row& pod, const bilingual&) { return text::shown(pod.name, 400); }},
                  {"node", [](const row& pod, const bilingual&) { return text::shown(pod.node, 400); }},
                  {"cards", [](const row& pod, const bilingual&) { return pod.cards; }},
                  {"amounts", [](const row& pod, const bilingual&) { return pod.amounts; }, true},
                  {"cause",
                   [](const row& pod, const bilingual& say) {
                     return pod.cause.empty() ? std::string() : words_of(pod.cause, say.locale());
                   }}},
      .json = [](const row& pod) { return pod.json; },
      .object = [](const row& pod) { return "pod/" + text::shown(pod.name, 400); }};
  return out;
}

/// Of a DaemonSet: some node may take its pod, whatever cards are free there.
bool has_node(const picture& picture, const node_rules& rules, text::language locale) {
  return std::ranges::any_of(picture.nodes.all(),
                             [&](const kube::node& node) { return rules.refuses(node, locale).empty(); });
}

/// What a pod is tried on, and what those before it took.
struct trial {
  picture& cluster;
  namespace_limits& limits;
  known_resources known;
  foreign_room room;
};

/// Tries one pod, and books it where it fits.
std::pair<simulated_pod, pod_end> simulated(trial& trial, const tried_pod& tried, const bilingual& say) {
  auto& [picture, limits, known, room] = trial;
  const auto name = tried.pod.key.to_string();
  if (const auto* bound = tried.is_new ? nullptr : picture.pods.find(tried.pod.key);
      bound && !bound->node_name.empty() && !bound->finished())
    return {{name,
             bound->node_name,
             "",
             "",
             text::phrase("explain.simulate.there"),
             {{"pod", name}, {"node", bound->node_name}, {"bound", true}}},
            pod_end::fits};
  auto none = tried.none;
  if (none.empty() && tried.one_a_node && tried.refused.empty() && !has_node(picture, tried.nodes, say.locale()))
    none = say.message("explain.simulate.none.no_node");
  if (!none.empty())
    return {{name,
             "-",
             "",
             "",
             text::phrase(none),
             {{"pod", name}, {"node", nullptr}, {"asks", false}, {"pods", 0}, {"why", none}}},
            pod_end::not_made};
  const auto nowhere = [&](const std::string& cause, pod_end end) {
    ordered_json json{{"pod", name}, {"node", nullptr}, {"asks", true}, {"why", cause}};
    if (end == pod_end::not_judged) json["judged"] = false;
    return std::pair(simulated_pod{name, "-", "", "", text::phrase(cause), std::move(json)}, end);
  };
  std::optional<kube::pod> let_in;
  if (const auto cause = cause_before_cards(tried, limits, known, say, let_in); !cause.empty())
    return nowhere(cause, pod_end::waits);
  if (const auto devices = without_judgement(tried.pod, known, say); !devices.empty())
    return nowhere(devices, pod_end::not_judged);
  const auto& pod = *let_in;
  const ext::pod_request request(pod, picture.book->keys());
  const auto foreign = foreign_amounts(pod, known, picture);
  if (request.nothing() && !foreign.empty()) {
    const auto fit = fit_of(picture, room, &tried.nodes, foreign, say.locale());
    if (!fit.best)
      return nowhere(fit.refusals.empty() ? say.message("explain.simulate.no_open_node") : fit.refusals,
                     pod_end::waits);
    room.take(fit.best->key.name, foreign);
    const auto note = say.message(
        "explain.simulate.other_plugin",
        {{"list", keys_in(foreign, say.locale())}, {"nodes", text::counted(fit.nodes, "explain.nodes", say.locale())}});
    return {{name,
             say.message("explain.simulate.any"),
             "",
             "",
             text::phrase(note),
             {{"pod", name}, {"node", nullptr}, {"asks", false}, {"why", note}}},
            pod_end::fits};
  }
  if (request.nothing())
    return {{name,
             say.message("explain.simulate.any"),
             "",
             "",
             text::phrase("explain.simulate.no_card"),
             {{"pod", name}, {"node", nullptr}, {"asks", false}}},
            pod_end::fits};
  const auto seat = take_seat(picture, room, tried, pod, request, foreign, say.locale());
  const bool fits = seat.reason.empty();
  std::string cards, amounts;
  for (const auto& held : rows_of(seat.held, request, say.locale())) {
    cards += (cards.empty() ? "" : ", ") + held.card;
    amounts += (amounts.empty() ? "" : "; ") + held.amount;
  }
  ordered_json json{{"pod", name}, {"node", fits ? ordered_json(seat.node) : ordered_json()}, {"asks", true}};
  auto cause = fits ? doubt_of_scheduler(pod, asking_scheduler(picture)) : text::phrase(seat.reason);
  if (fits) json["holds"] = json_of(seat.held, request);
  if (!cause.empty()) json["why"] = words_of(cause, say.locale());
  return {{name, fits ? seat.node : "-", text::shown(cards, 2000), amounts, std::move(cause), std::move(json)},
          fits ? pod_end::fits : pod_end::waits};
}

}  // namespace

int simulate(picture& picture, namespace_limits& limits, std::span<const tried_pod> pods, const listing_style& style,
             std::ostream& out) {
  const bilingual say(style.language);
  trial trial{picture, limits, resources_of(picture), foreign_room(picture)};
  std::vector<simulated_pod> rows;
  std::map<pod_end, std::size_t> count;
  for (const auto& tried : pods) {
    auto [row, end] = simulated(trial, tried, say);
    rows.push_back(std::move(row));
    ++count[end];
  }
  const auto fitting = count[pod_end::fits], unjudged = count[pod_end::not_judged];
  const auto made = rows.size() - count[pod_end::not_made];
  if (print(simulated_listing(), std::move(rows), style, out,
            {{"fitting", fitting}, {"of", made}, {"notJudged", unjudged}}))
    out << say.message(unjudged > 0 ? "explain.simulate.sum_unjudged" : "explain.simulate.sum",
                       {{"fitting", std::to_string(fitting)},
                        {"pods", std::to_string(made)},
                        {"unjudged", std::to_string(unjudged)}})
        << "\n";
  return fitting == made ? 0 : 3;
}

namespace {

kube::task<void> read_with_limits(kube::transport& transport, std::set<std::string> namespaces, picture& picture,
                                  namespace_limits& limits) {
  auto done = co_await read_ledger(transport, picture);
  if (!done) co_return done;
  if (auto classes = co_await read_device_classes(transport)) picture.classes = std::move(*classes);
  if (auto refused = co_await read_refused_declarations(transport)) picture.refused_declarations = std::move(*refused);
  co_return co_await read_namespace_limits(transport, std::move(namespaces), limits);
}

}  // namespace

namespace {

/// Bytes of a path that the servers in between take.
constexpr std::size_t longest_parameter = 40'000;

/// From the console's server, for pods of one namespace; the API server's own limits on pods of it are judged here,
/// with the person's own rights. Nothing: it does not answer.
view_outcome simulated_there(const cluster_options& cluster, std::vector<tried_pod> pods, namespace_limits& limits,
                             const listing_style& style) {
  const auto ns = pods.empty() ? std::string() : pods.front().pod.key.ns;
  const auto is_elsewhere = [&](const tried_pod& tried) { return tried.pod.key.ns != ns; };
  if (ns.empty() || std::ranges::any_of(pods, is_elsewhere)) return {};
  const auto read =
      ask_cluster(cluster, [&](kube::transport& transport) { return read_namespace_limits(transport, {ns}, limits); });
  if (!read) return {};
  for (auto& tried : pods) {
    kube::pod copy = tried.pod;
    if (tried.refused.empty() && tried.is_pod()) tried.refused = limits.admit(ns, copy.containers);
  }
  auto parameter = as_parameter(pods);
  if (parameter.size() > longest_parameter) return {};
  return view_reply_of(cluster, {ns, "simulations", {}, {{"pods", std::move(parameter)}}}, style);
}

}  // namespace

void add_simulate(CLI::App& app, int& rc) {
  struct options {
    std::string file, ns, snapshot;
    bool strict = false;
    listing_style style;
    cluster_options cluster;
  };
  auto* verb =
      add_verb(app, "simulate", "Would these pods fit, and on which cards? From the cluster as it is; changes nothing");
  auto flags = std::make_shared<options>();
  add_option(*verb, "-f,--file", flags->file, "Pods and workloads in YAML or JSON; - is standard input")
      ->required()
      ->type_name("FILE");
  add_namespace_option(
      *verb, flags->ns,
      "Namespace of objects that name none; without it: that of the kubeconfig's context, else default");
  add_listing_options(*verb, flags->style, sort_keys(simulated_listing()));
  add_flag(*verb, "--strict", flags->strict, "Exit code 3 also where something in the file was not judged");
  add_option(*verb, "--snapshot", flags->snapshot, "Instead of a cluster: a file of quartermaster inspect --save")
      ->type_name("FILE");
  add_cluster_options(*verb, flags->cluster);
  verb->footer(std::string(simulate_example));
  verb->callback([flags, &rc] {
    const auto fail = [&](const std::string& reason) { rc = failed(reason, std::cerr); };
    const auto file = text::yaml::read_file(flags->file, std::cin);
    const auto locale = bilingual(flags->style.language).locale();
    if (!file) return fail(words_of(text::yaml::unreadable(file.error()), locale));
    if (file->documents.empty()) return fail(text::message("explain.simulate.empty", locale, {{"file", flags->file}}));
    std::vector<tried_pod> pods;
    std::vector<std::string> unjudged;
    classes_by_resource classes;  // of the file
    bool makes_pods = false;      // none at the moment is an answer, too
    const bool is_of_context = flags->ns.empty() && flags->snapshot.empty();
    const auto ns = is_of_context ? namespace_of(flags->cluster) : flags->ns;
    for (const auto& entry : manifests_in(*file)) {
      if (const auto problem = add_pods(entry, ns, pods, locale); !problem.empty()) return fail(problem);
      const auto knowledge = pod_forms_of(entry).knowledge;
      makes_pods = makes_pods || knowledge == kind_knowledge::makes_pods;
      if (knowledge == kind_knowledge::unknown) unjudged.push_back(called(entry, flags->file));
      if (is_of_dra(entry) && entry.kind == "DeviceClass")
        add_class(text::yaml::to_json(*entry.root).value_or(nlohmann::json()), classes);
    }
    if (!unjudged.empty())
      failed(text::message("explain.simulate.unjudged", locale,
                           {{"objects", text::shown(text::some_of(unjudged, 8, locale), 600)}}),
             std::cerr);
    if (pods.empty() && !makes_pods)
      return fail(text::message("explain.simulate.no_pod", locale, {{"file", flags->file}}));
    picture all;
    std::set<std::string> namespaces;
    for (const auto& pod : pods) namespaces.insert(pod.pod.key.ns);
    namespace_limits limits(locale);
    auto read = flags->snapshot.empty()
                    ? in_words(ask_cluster(flags->cluster,
                                           [&](kube::transport& transport) {
                                             return read_with_limits(transport, namespaces, all, limits);
                                           }))
                    : gather(flags->cluster, flags->snapshot, all);
    if (!read && read.error().key == "transport.forbidden") {
      namespace_limits own(locale);
      const auto outcome = simulated_there(flags->cluster, pods, own, flags->style);
      if (outcome.reply) {
        for (const auto& text : own.doubts()) std::cerr << "quartermaster: " << text << "\n";
        rc = print(*outcome.reply, locale, std::cout, std::cerr);
        return;
      }
      if (outcome.is_refused) read = std::unexpected(where_view_suffices(read.error(), *namespaces.begin()));
    }
    if (!read) return void(rc = failed(read.error(), locale, std::cerr));
    if (!flags->snapshot.empty()) take_in_limits(all, limits);
    say_doubts(all, namespaces, locale, std::cerr);
    for (const auto& text : limits.doubts()) std::cerr << "quartermaster: " << text << "\n";
    all.classes.insert(classes.begin(), classes.end());
    rc = simulate(all, limits, pods, flags->style, std::cout);
    if (rc == 0 && flags->strict && !unjudged.empty()) rc = 3;
  });
}

}  // namespace cli
