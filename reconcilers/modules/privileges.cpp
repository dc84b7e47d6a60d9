#include "reconcilers/modules/privileges.hpp"

#include <nlohmann/json.hpp>
#include <set>

namespace reconcilers::modules {
namespace {

using nlohmann::json;

/// Of the product's own plugin, in every module that has it.
constexpr privilege own_plugin_reasons[] = {
    {"quartermaster-device-plugin", "write /var/lib/kubelet/device-plugins", kubelet_registration},
    {"quartermaster-device-plugin", "root", "those folders belong to root"},
    {"quartermaster-device-plugin", "read /var/lib/kubelet/pod-resources",
     "the kubelet's socket says which container has which device"},
    {"quartermaster-device-plugin", "write /run/cdi", "by a file there the runtime gives one container its cards"},
};
/// And where it gives out shares.
constexpr privilege own_shares_reasons[] = {
    {"quartermaster-device-plugin", "read /run/quartermaster/mps",
     "asks the program that keeps MPS which cards are in order, and for the ceilings of a share"},
    {"quartermaster-mps", "privileged",
     "sets the compute mode of cards to EXCLUSIVE_PROCESS, and the driver's limits of memory for cgroups of pods"},
    {"quartermaster-mps", "root", "as above; and only root sets limits of a control daemon"},
    {"quartermaster-mps", "write /run/quartermaster/mps",
     "pipes and logs of the daemons, of which client pods mount the pipes of one card"},
};
/// Of a policy's own module; all else that its pods may do stands in the policy, and nowhere but there.
constexpr privilege custom_reasons[] = {
    {"device-plugin", "write /var/lib/kubelet/device-plugins", kubelet_registration},
    {"device-plugin", "root", "that folder belongs to root"},
};

bool flag(const json& object, const char* name) { return object.is_object() && object.value(name, false); }

void add_mounts(const json& container, const json& pod, const std::string& prefix, std::set<std::string>& out) {
  for (const auto& mount : container.value("volumeMounts", json::array())) {
    for (const auto& volume : pod.value("volumes", json::array())) {
      if (volume.at("name") != mount.at("name") || !volume.contains("hostPath")) continue;
      const auto path = volume.at("hostPath").at("path").get<std::string>();
      out.insert(prefix + (flag(mount, "readOnly") ? "read " : "write ") + path);
      if (mount.value("mountPropagation", "None") == "Bidirectional") out.insert(prefix + "share " + path);
    }
  }
}

void add_container(const json& container, const json& pod, std::set<std::string>& out) {
  const auto prefix = container.at("name").get<std::string>() + ": ";
  const auto context = container.value("securityContext", json::object());
  if (flag(context, "privileged")) out.insert(prefix + "privileged");
  const auto capabilities = context.value("capabilities", json::object());
  for (const auto& capability : capabilities.value("add", json::array()))
    out.insert(prefix + "add " + capability.get<std::string>());
  const auto dropped = capabilities.value("drop", json::array());
  if (!flag(context, "privileged") && std::ranges::find(dropped, json("ALL")) == dropped.end())
    out.insert(prefix + "add (the runtime's default set)");
  if (!flag(context, "runAsNonRoot")) out.insert(prefix + "root");
  for (const auto& port : container.value("ports", json::array())) {
    if (port.contains("hostPort")) out.insert(prefix + "hostPort");
  }
  add_mounts(container, pod, prefix, out);
}

}  // namespace

std::vector<privilege> privileges_of(const module_type& module) {
  std::vector<privilege> out(module.privileges.begin(), module.privileges.end());
  if (!module.follows_placement) return out;
  out.insert(out.end(), std::begin(own_plugin_reasons), std::end(own_plugin_reasons));
  if (module.isolates != isolation::exclusive)
    out.insert(out.end(), std::begin(own_shares_reasons), std::end(own_shares_reasons));
  return out;
}

std::span<const privilege> privileges_of_custom_modules() { return custom_reasons; }

std::vector<std::string> privileges_in(const json& pod) {
  std::set<std::string> out;
  for (const auto* name : {"hostPID", "hostNetwork", "hostIPC"}) {
    if (flag(pod, name)) out.insert(name);
  }
  if (pod.value("automountServiceAccountToken", true)) out.insert("token");
  for (const auto* group : {"initContainers", "containers"}) {
    for (const auto& container : pod.value(group, json::array())) add_container(container, pod, out);
  }
  return {out.begin(), out.end()};
}

}  // namespace reconcilers::modules
