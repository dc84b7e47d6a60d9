#include "reconcilers/admission/compatibility.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "api/names.hpp"
#include "kube/quantity.hpp"
#include "reconcilers/admission/admission_review.hpp"
#include "reconcilers/cuda/affinity.hpp"
#include "reconcilers/cuda/requirement.hpp"
#include "reconcilers/cuda/verdict.hpp"
#include "reconcilers/declarations/pod_spec.hpp"
#include "text/messages.hpp"
#include "text/phrase.hpp"
#include "text/text.hpp"

namespace reconcilers::cuda {
namespace {

using nlohmann::json;
using text::shown;

constexpr std::string_view paddle_env = "FLAGS_allocator_strategy", paddle_value = "naive_best_fit";
constexpr std::string_view mig_prefix = "nvidia.com/mig-";

const json* member(const json* object, std::string_view name) {
  if (!object || !object->is_object()) return nullptr;
  const auto match = object->find(name);
  return match == object->end() || match->is_null() ? nullptr : &*match;
}
// ---- the pod

struct container : declarations::program {
  std::string path;  ///< "/spec/containers/0"
  std::string name;
  kube::quantities asks;  ///< extended resources above zero

  bool names(std::string_view variable) const {
    return std::ranges::any_of(env, [&](const auto& entry) { return entry.first == variable; });
  }
  std::optional<std::string> value_of(std::string_view variable) const {
    for (auto position = env.rbegin(); position != env.rend(); ++position) {
      if (position->first == variable) return position->second;
    }
    return std::nullopt;
  }
};

/// Those that ask for extended resources. None of a spec that cannot be read: the API server refuses it.
std::vector<container> containers_of(const json* spec) {
  std::vector<container> out;
  if (!spec) return out;
  auto read = declarations::parse_pod_spec(spec->dump(-1, ' ', false, json::error_handler_t::replace),
                                           declarations::program_wish::read);
  if (!read) return out;
  for (std::size_t i = 0; i < read->containers.size() && out.size() < declarations::max_containers; ++i) {
    auto& known = read->containers[i];
    std::erase_if(known.limits, [](const auto& limit) { return limit.second <= 0; });
    if (known.limits.empty()) continue;
    out.push_back({std::move(read->programs[i]), read->path(i), std::move(known.name), std::move(known.limits)});
  }
  return out;
}

/// The library a container's share of a card goes through; null for whole cards and for none.
const shim_row* shim_for(const container& container) {
  for (const auto& shim : shims()) {
    if (const auto amount = kube::amount(container.asks, shim.resource); amount > 0 && amount % shim.whole != 0)
      return &shim;
  }
  return nullptr;
}

// ---- what it needs

struct version_need {
  requirement constraint;
  bool asked_of_us = false;  ///< by one of our annotations
};

struct needs {
  text::language language;
  std::vector<version_need> all = {};
  std::vector<text::phrase> wrong = {};

  void add(std::expected<requirement, text::phrase> read, text::phrase source, bool asked_of_us) {
    if (!read) {
      wrong.push_back({"cuda.need.wrong", {{"source", std::move(source)}, {"problem", std::move(read.error())}}});
      return;
    }
    read->source = words_of(source, language);
    if (!read->any_of.empty()) all.push_back({std::move(*read), asked_of_us});
  }
  std::vector<requirement> requirements(bool asked_of_us_only) const {
    std::vector<requirement> out;
    for (const auto& entry : all) {
      if (entry.asked_of_us || !asked_of_us_only) out.push_back(entry.constraint);
    }
    return out;
  }
};

/// As Go's strconv.ParseBool.
bool is_true(const std::optional<std::string>& text) {
  static constexpr std::array<std::string_view, 6> words{"1", "t", "T", "TRUE", "true", "True"};
  return text && std::ranges::find(words, *text) != words.end();
}

void read_env(const container& container, needs& needs) {
  const bool checked = !is_true(container.value_of(names::disable_env));
  const auto describe_source = [&](std::string_view variable) {
    return text::phrase{"cuda.need.env", {{"name", shown(variable, 64)}, {"container", shown(container.name, 63)}}};
  };
  std::set<std::string> seen;
  for (const auto& [name, value] : container.env) {
    const bool requires_something =
        name.starts_with(names::require_prefix) && !name.starts_with(names::require_jetpack);
    const auto counts = container.value_of(name);
    if (checked && requires_something && counts && seen.insert(name).second)
      needs.add(parse_requirement(*counts), describe_source(name), false);
  }
  // The toolkit looks at CUDA_VERSION only where the image says nothing better.
  const auto runtime = container.value_of(names::cuda_env);
  const auto required = container.value_of("NVIDIA_REQUIRE_CUDA");
  if (runtime && !runtime->empty() && (!required || required->empty()))
    needs.add(parse_cuda_version(*runtime, checked), describe_source(names::cuda_env), false);
}

needs needs_of(const json& pod, const std::vector<container>& containers, text::language language) {
  needs out{language};
  const auto* annotations = member(member(&pod, "metadata"), "annotations");
  for (const auto& [key, about] :
       {std::pair(names::cuda_annotation, property::cuda), {names::capability_annotation, property::arch}}) {
    const auto* text = member(annotations, key);
    if (text && text->is_string())
      out.add(parse_annotation(text->get_ref<const std::string&>(), about),
              {"cuda.need.annotation", {{"name", std::string(key)}}}, true);
  }
  for (const auto& container : containers) read_env(container, out);
  return out;
}

/// "a and b and c"
text::phrase joined_by_and(std::vector<text::phrase> items) {
  text::phrase out;
  for (auto& item : items)
    out = out.empty() ? std::move(item)
                      : text::phrase{"cuda.need.and", {{"first", std::move(out)}, {"second", std::move(item)}}};
  return out;
}

text::phrase list_of(const std::vector<requirement>& all) {
  std::vector<text::phrase> out;
  for (const auto& entry : all) out.push_back({"cuda.need.item", {{"source", entry.source}, {"text", entry.text}}});
  return joined_by_and(std::move(out));
}

// ---- the nodes

struct survey {
  std::vector<node_facts> offering;  ///< nodes that offer one of the resources the pod asks for
  std::vector<const node_facts*> yes, no, unknown;
};

bool offers(const kube::node& node, const std::set<std::string_view>& resources) {
  return std::ranges::any_of(resources, [&](std::string_view resource) {
    return kube::amount(node.allocatable, resource) > 0 || kube::amount(node.capacity, resource) > 0;
  });
}

survey look_at(std::span<const kube::node* const> nodes, const std::vector<container>& containers) {
  std::set<std::string_view> resources;
  for (const auto& container : containers) {
    for (const auto& [key, amount] : container.asks) resources.insert(key);
  }
  survey out;
  for (const auto* node : nodes) {
    if (offers(*node, resources)) out.offering.push_back(facts_of(*node));
  }
  return out;
}

void judge(survey& survey, std::span<const requirement> needed, bool shared) {
  for (const auto& entry : survey.offering) {
    const auto is = shared && entry.mig ? fit::no : meets(entry, needed);
    (is == fit::yes ? survey.yes : is == fit::no ? survey.no : survey.unknown).push_back(&entry);
  }
}

text::phrase resources_of(const std::vector<container>& containers) {
  std::set<std::string> all;
  for (const auto& container : containers) {
    for (const auto& [key, amount] : container.asks) all.insert(shown(key, 80));
  }
  return joined_by_and({all.begin(), all.end()});
}

// ---- the decision

class compatibility_decision {
 public:
  /// `is_template`: of pods that will be made; nothing is written into it.
  compatibility_decision(const json& pod, std::span<const kube::node* const> nodes, const admission_settings& settings,
                         bool is_template = false)
      : spec_(member(&pod, "spec")),
        settings_(settings),
        is_template_(is_template),
        containers_(containers_of(spec_)),
        needs_(needs_of(pod, containers_, settings.language)),
        nodes_(look_at(nodes, containers_)) {}

  admission made() {
    if (containers_.empty()) return std::move(out_);
    for (const auto& entry : needs_.wrong) object(entry);
    if (spec_) {
      if (const auto shut = judge_affinity(*spec_)) out_.warnings.push_back(text_of(*shut, settings_.language));
    }
    share();
    allocator();
    place();
    if (!out_.refusal.empty()) out_.patch = json::array();
    return std::move(out_);
  }

 private:
  void warn(const text::phrase& reason) { out_.warnings.push_back(words_of(reason, settings_.language)); }

  /// Refused where that is wanted, else a warning.
  void object(const text::phrase& reason) {
    if (settings_.mode != enforcement::deny) return warn(reason);
    out_.refusal += (out_.refusal.empty() ? "" : "; ") + words_of(reason, settings_.language);
  }

  /// The library's name, for people.
  text::phrase_argument shim_argument() const {
    return {"library", std::string(shared_->name), std::string(shared_->zh.empty() ? shared_->name : shared_->zh)};
  }

  /// Shares of cards: the library between must know the runtime, and cards must be whole below it.
  void share() {
    const auto match =
        std::ranges::find_if(containers_, [](const container& container) { return shim_for(container) != nullptr; });
    if (match == containers_.end()) return;
    shared_ = shim_for(*match);
    const auto asks_mig = [](const container& container) {
      return std::ranges::any_of(container.asks, [](const auto& ask) { return ask.first.starts_with(mig_prefix); });
    };
    if (std::ranges::any_of(containers_, asks_mig))
      object({"cuda.need.next_to_mig",
              {{"container", shown(match->name, 63)}, {"key", std::string(shared_->resource)}, shim_argument()}});
    const auto runtime = runtime_of(needs_.requirements(false));
    if (!runtime) return;
    const auto& baseline = shared_->baseline;
    if (runtime->major != baseline.major || *runtime > baseline) {
      object({"cuda.need.share_of_other_runtime",
              {{"container", shown(match->name, 63)},
               {"key", std::string(shared_->resource)},
               {"runtime", to_string(*runtime)},
               shim_argument(),
               {"first", std::to_string(baseline.major) + ".0"},
               {"last", to_string(baseline)},
               {"source", std::string(shared_->source)},
               {"whole", std::to_string(shared_->whole)}}});
      hopeless_ = true;
      return;
    }
    // Driver and runtime of one major version, and a driver that knows the runtime by itself.
    const bool requested = std::ranges::any_of(needs_.all, &version_need::asked_of_us);
    const auto next = std::to_string(runtime->major + 1) + ".0";
    needs_.add(parse_annotation(">=" + to_string(*runtime) + ",<" + next, property::cuda),
               {"cuda.need.same_major", {shim_argument()}}, requested);
  }

  /// Paddle's default allocator on a share of a card.
  void allocator() {
    for (const auto& container : containers_) {
      if (!shim_for(container) || !text::lower_case(container.image).contains("paddle")) continue;
      const auto set = container.value_of(paddle_env);
      const bool known = set || !container.names(paddle_env);
      if (!known || set == paddle_value) continue;
      const auto name = shown(container.name, 63);
      const auto wanted = std::string(paddle_env) + "=" + std::string(paddle_value);
      if (!set && settings_.paddle_allocator && !container.has_more_env) {
        if (is_template_) continue;  // its pods get it
        const json variable = {{"name", paddle_env}, {"value", paddle_value}};
        if (container.has_env)
          add(container.path + "/env/-", variable);
        else
          add(container.path + "/env", json::array({variable}));
        warn({"cuda.need.paddle_written", {{"container", name}, {"wanted", wanted}}});
        continue;
      }
      const text::phrase allocator =
          set ? text::phrase{std::string(paddle_env) + "=" + shown(*set, 40)} : text::phrase{"cuda.need.own_allocator"};
      warn({"cuda.need.paddle", {{"container", name}, {"allocator", allocator}, {"wanted", wanted}}});
    }
  }

  void place() {
    const auto all = needs_.requirements(false);
    if (hopeless_ || (all.empty() && !shared_)) return;
    judge(nodes_, all, shared_ != nullptr);
    const text::phrase_argument needed{"needs", list_of(all)},
        resources{"resources", shown(words_of(resources_of(containers_), settings_.language), 300)};
    if (nodes_.yes.empty() && nodes_.unknown.empty() && !nodes_.no.empty()) {
      const text::phrase_argument needed_or_whole{"needs",
                                                  all.empty() ? text::phrase{"cuda.need.not_cut"} : list_of(all)};
      object({"cuda.need.no_node", {resources, needed_or_whole, nodes_argument(nodes_.no)}});
    } else if (nodes_.yes.empty() && !nodes_.unknown.empty()) {
      warn({"cuda.need.not_known", {resources, needed}});
    }
    const auto written = needs_.requirements(settings_.mode != enforcement::deny);
    if (written.size() < all.size() && !nodes_.no.empty() && !nodes_.yes.empty())
      warn({"cuda.need.some_nodes",
            {{"number", std::to_string(nodes_.no.size())},
             {"all", std::to_string(nodes_.offering.size())},
             resources,
             needed,
             nodes_argument(nodes_.no),
             {"annotation", std::string(names::cuda_annotation)}}});
    limits();
    write(written);
  }

  /// Where it would run on some nodes only within the limits of minor version compatibility.
  void limits() {
    const auto runtime = runtime_from_env();
    if (!runtime || shared_) return;
    std::vector<const node_facts*> limited;
    for (const auto* ye : nodes_.yes) {
      if (cuda::judge(*runtime, machine_of(*ye)).is == outcome::minor_version) limited.push_back(ye);
    }
    if (limited.empty()) return;
    warn({"cuda.need.limited", {{"runtime", to_string(*runtime)}, nodes_argument(limited)}});
  }
  text::phrase_argument nodes_argument(const std::vector<const node_facts*>& nodes) const {
    return {"nodes", describe(nodes, settings_.language)};
  }
  std::optional<version> runtime_from_env() const {
    std::optional<version> out;
    for (const auto& container : containers_) {
      if (const auto is = container.value_of(names::cuda_env)) out = std::max(out, parse_version(*is));
    }
    return out;
  }

  void write(const std::vector<requirement>& needed) {
    if (needed.empty()) return;
    std::vector<const node_facts*> all;
    for (const auto& entry : nodes_.offering) all.push_back(&entry);
    auto terms = terms_of(needed, vocabulary_of(all));
    const bool some_mig = shared_ && std::ranges::any_of(nodes_.offering, &node_facts::mig);
    if (terms && some_mig) terms = product({{{std::string(keys::mig_strategy), "NotIn", {"single", "mixed"}}}}, *terms);
    const auto* affinity = member(spec_, "affinity");
    const auto* of_nodes = member(affinity, "nodeAffinity");
    const auto* required = member(of_nodes, "requiredDuringSchedulingIgnoredDuringExecution");
    const auto* own = member(required, "nodeSelectorTerms");
    auto is = terms ? merged(own ? *own : json(), *terms) : merge{merge::kind::too_many, {}};
    switch (is.is) {
      case merge::kind::unchanged:
        return;
      case merge::kind::too_many:
        warn({"cuda.need.too_many_terms", {{"most", std::to_string(max_terms)}, {"needs", list_of(needed)}}});
        return;
      case merge::kind::contradiction:
        object({terms->empty() ? "cuda.need.impossible" : "cuda.need.excluded", {{"needs", list_of(needed)}}});
        return;
      case merge::kind::changed:
        break;
    }
    json list = {{"nodeSelectorTerms", std::move(is.terms)}};
    const std::string path = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    if (own)
      add(path + "/nodeSelectorTerms", std::move(list["nodeSelectorTerms"]));
    else if (of_nodes)
      add(path, std::move(list));
    else if (affinity)
      add("/spec/affinity/nodeAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", std::move(list)}});
    else
      add("/spec/affinity", {{"nodeAffinity", {{"requiredDuringSchedulingIgnoredDuringExecution", std::move(list)}}}});
  }

  void add(std::string path, json value) {
    out_.patch.push_back({{"op", "add"}, {"path", std::move(path)}, {"value", std::move(value)}});
  }

  const json* spec_;
  const admission_settings& settings_;
  bool is_template_;
  std::vector<container> containers_;
  needs needs_;
  survey nodes_;
  const shim_row* shared_ = nullptr;
  bool hopeless_ = false;  ///< no node can help it
  admission out_;
};

constexpr std::string_view mirror_annotation = "kubernetes.io/config.mirror";
constexpr std::array<std::string_view, 5> workloads{"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"};

/// Findings on a workload's template go to its author: no one reads what a controller gets back for its pods.
review_answer advise_on(const reviews::envelope& about, const json& workload, std::span<const kube::node* const> nodes,
                        const admission_settings& settings) {
  const auto* spec = member(&workload, "spec");
  if (about.kind == "CronJob") spec = member(member(spec, "jobTemplate"), "spec");
  const auto* pod = member(spec, "template");
  if (!pod || settings.mode == enforcement::disabled) return reviews::answer(about.uid, {});
  auto found = compatibility_decision(*pod, nodes, settings, true).made();
  if (!found.refusal.empty())
    found.warnings.insert(found.warnings.begin(),
                          text::message("cuda.need.pods_refused", settings.language, {{"reason", found.refusal}}));
  reviews::decision out;
  out.warnings = reviews::warnings_of(found.warnings);
  return reviews::answer(about.uid, out);
}

}  // namespace

admission admit(const json& pod, std::span<const kube::node* const> nodes, const admission_settings& settings) {
  if (settings.mode == enforcement::disabled) return {};
  return compatibility_decision(pod, nodes, settings).made();
}

review_answer admit_review(std::string_view review, std::span<const kube::node* const> nodes,
                           const admission_settings& settings, std::string_view own_namespace) {
  kube::on_demand::document of_its_own;
  json pod;
  const auto about =
      reviews::read(reviews::parser_for(review, of_its_own), review, [&](bool old, kube::on_demand::value value) {
        if (old) return;
        pod = json::parse(std::string_view(simdjson::to_json_string(value)), nullptr, false);
      });
  if (!about) return reviews::malformed(about.error());
  const bool is_workload = std::ranges::find(workloads, about->kind) != workloads.end();
  if (auto fits = reviews::is_about(*about, "Pod", compatibility_route.path); !fits && !is_workload)
    return reviews::malformed(fits.error());
  const bool is_new = about->operation == "CREATE" || (is_workload && about->operation == "UPDATE");
  const bool concerned = is_new && about->sub_resource.empty() && about->ns != own_namespace &&
                         !api::names::is_system(about->ns) &&
                         !member(member(member(&pod, "metadata"), "annotations"), mirror_annotation);
  if (!concerned) return reviews::answer(about->uid, {});
  if (pod.is_discarded() || !pod.is_object()) return reviews::malformed("request.object is no object");
  if (is_workload) return advise_on(*about, pod, nodes, settings);
  auto is = admit(pod, nodes, settings);
  reviews::decision out;
  out.refusal = is.refusal.empty() ? std::string() : shown(is.refusal, 4000);
  out.warnings = reviews::warnings_of(is.warnings);
  if (!is.patch.empty()) out.patch = is.patch.dump(-1, ' ', false, json::error_handler_t::replace);
  return reviews::answer(about->uid, out);
}

}  // namespace reconcilers::cuda
