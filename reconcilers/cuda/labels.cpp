#include "reconcilers/cuda/labels.hpp"

#include <nlohmann/json.hpp>

#include "api/memory.hpp"
#include "reconcilers/cuda/facts.hpp"
#include "text/text.hpp"

namespace reconcilers::cuda {
namespace {

using nlohmann::json;

constexpr auto major_path = "/metadata/labels/cuda-major-version";
constexpr auto minor_path = "/metadata/labels/cuda-minor-version";
constexpr auto annotation_path = "/metadata/annotations/state.quartermaster.io~1cuda-labels";
constexpr auto former_path = "/metadata/annotations/quartermaster.io~1cuda-labels";

json value_of(std::optional<std::string_view> text) { return text ? json(*text) : json(); }

/// What we wrote last stands under the former key; the next write removes it.
bool under_former_key(const kube::node& node) {
  return node.annotations.contains(api::former_key(names::written_annotation));
}

json operation(const char* op, const char* path, json value) {
  return {{"op", op}, {"path", path}, {"value", std::move(value)}};
}

}  // namespace

label_step labels_for(const kube::node& node) {
  const auto found = facts_of(node).found;
  const auto major = node.labels.find(keys::cuda_major), minor = node.labels.find(keys::cuda_minor);
  const auto written = api::remembered(node.annotations, names::written_annotation);
  label_step out;
  if (!major && !minor) {
    // Ours, and both taken away: someone tidied up; what was found is written again.
    if (found) out.write = found;
    out.take_back = !found && written;
    return out;
  }
  const auto says = std::string(major.value_or("")) + "." + std::string(minor.value_or(""));
  const bool is_owned = written && *written == says;
  if (!is_owned) {
    if (found && says != to_string(*found))
      out.disagreement = "labels cuda-major-version and cuda-minor-version say CUDA " + text::shown(says) +
                         ", and nvidia.com/cuda.runtime-version.* says " + to_string(*found) +
                         "; someone else wrote the former, so they are left as they are: correct or remove them";
    return out;
  }
  if (!found)
    out.take_back = true;
  else if (says != to_string(*found) || under_former_key(node))
    out.write = found;
  return out;
}

json patch_of(const kube::node& node, const label_step& step) {
  json out = json::array();
  if (step.idle()) return out;
  const auto major = node.labels.find(keys::cuda_major), minor = node.labels.find(keys::cuda_minor);
  const auto written = api::remembered(node.annotations, names::written_annotation);
  out.push_back(operation("test", "/metadata/uid", node.id.to_string()));
  // A `test` for null is true where the member is absent.
  out.push_back(operation("test", major_path, value_of(major)));
  out.push_back(operation("test", minor_path, value_of(minor)));
  if (step.take_back) {
    if (major) out.push_back({{"op", "remove"}, {"path", major_path}});
    if (minor) out.push_back({{"op", "remove"}, {"path", minor_path}});
    if (written) out.push_back({{"op", "remove"}, {"path", under_former_key(node) ? former_path : annotation_path}});
    return out;
  }
  // A node has labels and annotations of its kubelet, so that the maps are there.
  out.push_back(operation("add", major_path, std::to_string(step.write->major)));
  out.push_back(operation("add", minor_path, std::to_string(step.write->minor)));
  out.push_back(operation("add", annotation_path, to_string(*step.write)));
  if (under_former_key(node)) out.push_back({{"op", "remove"}, {"path", former_path}});
  return out;
}

}  // namespace reconcilers::cuda
