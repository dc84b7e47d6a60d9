#include "reconcilers/admission/admission.hpp"

#include <algorithm>
#include <array>
#include <expected>
#include <span>
#include <utility>
#include <vector>

#include "api/names.hpp"
#include "kube/json_object.hpp"
#include "reconcilers/admission/admission_review.hpp"
#include "reconcilers/declarations/evaluate.hpp"
#include "reconcilers/declarations/pod_spec.hpp"
#include "reconcilers/declarations/verdict.hpp"
#include "scheduler_config/managed.hpp"
#include "text/text.hpp"

namespace reconcilers {
namespace {

namespace on_demand = kube::on_demand;
using namespace reviews;

constexpr std::string_view mirror_annotation = "kubernetes.io/config.mirror";
struct pod_review {
  envelope about;
  bool there = false, mirror = false;
  std::string scheduler_label;
  declarations::pod_spec spec;
};

void read_pod(on_demand::value pod, pod_review& pod_review) {
  declarations::pod_amounts amounts;  // metadata and spec come in any order
  on_demand::each_member(pod, [&](std::string_view key, on_demand::value field) {
    if (key == "spec") {
      pod_review.spec = declarations::read_pod_spec(field);
    } else if (key == "metadata") {
      on_demand::each_member(field, [&](std::string_view name, on_demand::value part) {
        const bool labels = name == "labels";
        if (!labels && name != "annotations") return;
        on_demand::each_member(part, [&](std::string_view key_of, on_demand::value value) {
          if (quota::is_pod_amount(key_of, labels)) amounts.emplace_back(key_of, on_demand::text_or(value));
          if (labels && key_of == api::names::scheduler_label) pod_review.scheduler_label = on_demand::text_or(value);
          pod_review.mirror = pod_review.mirror || (!labels && key_of == mirror_annotation);
        });
      });
    }
  });
  pod_review.spec.amounts = std::move(amounts);
}

understood<pod_review> read_pod_review(std::string_view review, std::string_view path) {
  on_demand::document of_its_own;
  pod_review out;
  auto about = read(parser_for(review, of_its_own), review, [&](bool old, on_demand::value value) {
    if (old) return;
    out.there = true;
    read_pod(value, out);
  });
  if (!about) return std::unexpected(std::move(about.error()));
  if (auto fits = is_about(*about, "Pod", path); !fits) return std::unexpected(std::move(fits.error()));
  if (about->operation == "CREATE" && about->sub_resource.empty() && !out.there)
    return std::unexpected("not an AdmissionReview: request.object is missing");
  out.about = std::move(*about);
  return out;
}

/// A new pod that is people's. The configuration leaves the others out already; this is for one that does not.
bool everyday(const pod_review& review, const pod_admission& pod_admission) {
  const auto& about = review.about;
  return about.operation == "CREATE" && about.sub_resource.empty() && !review.mirror &&
         about.ns != pod_admission.own_namespace && !api::names::is_system(about.ns);
}

/// Whether rules apply to it at all.
bool concerned(const pod_review& review, const pod_admission& pod_admission) {
  return pod_admission.mode != enforcement::disabled && everyday(review, pod_admission);
}

/// Whether it is for our scheduler: it has no node yet, names no one else's, and asks for what is given out there.
bool sent(const pod_review& review, const pod_admission& pod_admission) {
  const auto& spec = review.spec;
  const bool ours_to_name = spec.scheduler_name.empty() || spec.scheduler_name == "default-scheduler" ||
                            spec.scheduler_name == api::names::scheduler_name;
  if (!pod_admission.sends || !everyday(review, pod_admission) || !spec.complete || !ours_to_name ||
      !spec.node_name.empty() || review.scheduler_label == "ignore")
    return false;
  return std::ranges::any_of(spec.containers, [&](const kube::container& container) {
    return std::ranges::any_of(container.limits, [&](const auto& limit) {
      return limit.second > 0 &&
             (scheduler_config::managed_key_of(limit.first) || pod_admission.rules.find(limit.first));
    });
  });
}

bool tolerates_isolation(const declarations::toleration& toleration) {
  return toleration.op == "Exists" && (toleration.key.empty() || toleration.key == api::names::accelerator_taint) &&
         (toleration.effect.empty() || toleration.effect == "NoSchedule");
}

void append_add(std::string& output, std::string_view path, std::string_view value) {
  output += output.empty() ? '[' : ',';
  output += R"({"op":"add","path":")";
  append_escaped(output, path);
  output += R"(","value":")";
  append_escaped(output, value);
  output += "\"}";
}

/// `key` as one part of a JSON pointer.
std::string pointer_part(std::string_view key) {
  std::string out;
  for (const char c : key) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

void append_fills(std::string& out, const declarations::ruling& ruling, const declarations::pod_spec& spec) {
  for (const auto* entry : {"/resources/limits/", "/resources/requests/"}) {
    for (const auto& fill : ruling.fills)
      append_add(out, spec.path(fill.container) + entry + pointer_part(fill.key), std::to_string(fill.amount));
  }
  if (!ruling.runtime_class.empty()) append_add(out, "/spec/runtimeClassName", ruling.runtime_class);
}

void append_scheduler(std::string& out, const declarations::pod_spec& spec) {
  if (spec.scheduler_name != api::names::scheduler_name)
    append_add(out, "/spec/schedulerName", api::names::scheduler_name);
  if (std::ranges::any_of(spec.tolerations, tolerates_isolation)) return;
  const auto toleration =
      R"({"key":")" + std::string(api::names::accelerator_taint) + R"(","operator":"Exists","effect":"NoSchedule"})";
  out += out.empty() ? '[' : ',';
  out += spec.has_tolerations ? R"({"op":"add","path":"/spec/tolerations/-","value":)" + toleration + "}"
                              : R"({"op":"add","path":"/spec/tolerations","value":[)" + toleration + "]}";
}

}  // namespace

review_answer mutate_pod(std::string_view review, const pod_admission& pod_admission) {
  const auto pod = read_pod_review(review, mutate_pods_route.path);
  if (!pod) return malformed(pod.error());
  decision out;
  if (pod_admission.mode == enforcement::deny && concerned(*pod, pod_admission))
    append_fills(out.patch, declarations::evaluate(pod_admission.rules, pod->spec, {.judge = false}), pod->spec);
  if (sent(*pod, pod_admission)) append_scheduler(out.patch, pod->spec);
  if (!out.patch.empty()) out.patch += ']';
  return answer(pod->about.uid, out);
}

}  // namespace reconcilers
