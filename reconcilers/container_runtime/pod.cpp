#include "reconcilers/container_runtime/pod.hpp"

#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "controller/coded_message.hpp"
#include "kube/json_text.hpp"
#include "kube/resource.hpp"
#include "reconcilers/modules/plugin.hpp"
#include "text/text.hpp"

namespace reconcilers::container_runtime {
namespace {

using nlohmann::json;

constexpr std::string_view programs = "/usr/bin";
constexpr int deadline_seconds = 300;
constexpr std::size_t longest_answer = 1024;

std::string folder_of(std::string_view runtime) { return "/etc/" + std::string(runtime); }

json container_for(std::string_view runtime, const pod_facts& known) {
  auto context = modules::confined();
  context["readOnlyRootFilesystem"] = true;
  context["runAsUser"] = context["runAsGroup"] = 0;
  return {{"name", part},
          {"image", known.image},
          {"args", {"agent", "fix-runtime", "--in-pod", "--set-default", "--runtime", runtime}},
          {"resources", {{"requests", {{"cpu", "10m"}, {"memory", "16Mi"}}}}},
          {"securityContext", std::move(context)},
          {"volumeMounts",
           {modules::mount("runtime", folder_of(runtime), false), modules::mount("programs", programs, true)}}};
}

/// Blanks at the end go, and lines become parts of one sentence.
std::string in_one_line(std::string_view text) {
  std::string out;
  for (text = text::trimmed(text); !text.empty();) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    (out += out.empty() ? "" : "; ") += line;
  }
  return text::shown(out, longest_answer);
}

}  // namespace

json pod_for(std::string_view node, std::string_view runtime, const pod_facts& known) {
  const auto& owner = kube::resources::accelerator_policies;
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", pod_name},
            {"namespace", known.ns},
            {"labels",
             {{"app.kubernetes.io/name", pod_name},
              {api::names::managed_by_label, api::names::managed_by},
              {api::names::part_label, part}}},
            {"annotations", {{api::names::applied_annotation, known.wish}}},
            {"ownerReferences", json::array({{{"apiVersion", owner.api_version()},
                                              {"kind", owner.kind},
                                              {"name", known.policy_name},
                                              {"uid", known.policy_uid},
                                              {"controller", true}}})}}},
          {"spec",
           {{"nodeName", node},
            {"restartPolicy", "Never"},
            {"activeDeadlineSeconds", deadline_seconds},
            {"terminationGracePeriodSeconds", 5},
            {"serviceAccountName", pod_name},
            {"automountServiceAccountToken", false},
            {"enableServiceLinks", false},
            {"priorityClassName", "system-node-critical"},
            {"tolerations", json::array({{{"operator", "Exists"}}})},
            {"containers", json::array({container_for(runtime, known)})},
            {"volumes",
             {modules::host_path("runtime", folder_of(runtime), "Directory"),
              modules::host_path("programs", programs, "Directory")}}}}};
}

text::phrase answer_of(const json& pod) {
  const std::string ended = "/status/containerStatuses/0/state/terminated/";
  for (const auto& place :
       {ended + "message", std::string("/status/message"), ended + "reason", std::string("/status/reason")}) {
    const auto text = kube::text_at(pod, place);
    // `agent fix-runtime --in-pod` writes an object with its code (controller/coded_message.hpp).
    const auto coded = json::parse(text, nullptr, false);
    auto answer = coded.is_object() ? controller::message_of(coded) : text::phrase();
    if (!answer.arguments.empty()) return answer;
    if (auto line = in_one_line(coded.is_object() ? answer.key : text); !line.empty()) return line;
  }
  return {"status.runtimes.no_answer"};
}

std::string line_of(const text::phrase& answer) { return in_one_line(text::message_text(answer)); }

}  // namespace reconcilers::container_runtime
