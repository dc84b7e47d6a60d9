// How cards come into containers: runtime, toolkit, CDI, cgroups, and the kubelet's sockets.

#include <algorithm>

#include "agent/facts/judge.hpp"
#include "agent/facts/runtime.hpp"
#include "agent/facts/runtime_files.hpp"
#include "text/list.hpp"

namespace agent::facts {
namespace {

judgement toolkit_judgement(const machine_facts& node) {
  if (!node.toolkit) return unknown(node.toolkit.error());
  const auto& found = *node.toolkit;
  const std::string oldest(entry_of(check::container_toolkit).version);
  if (found != "missing" && version_parts(found) >= version_parts(oldest)) return {check_state::ok, found};
  return {check_state::failed, found, {check_cause::toolkit_too_old, {{"needed", oldest}}}};
}

/// Of k3s, k0s or MicroK8s; nothing: of none of them.
std::optional<api::check_advice> advice_of_distribution(const container_runtime& runtime) {
  for (const auto& name : runtime.names)
    if (const auto advice = distribution_advice(name)) return advice;
  return std::nullopt;
}

api::check_advice advice_of(const container_runtime& runtime, const runtime_defect& defect) {
  const auto advice = defect.advice();
  if (!defect.is_repairable()) return advice;
  return advice_of_distribution(runtime).value_or(runtime.is_linked ? api::check_advice::replace_link : advice);
}

/// Where another runtime is the default.
api::check_advice advice_of_default(const container_runtime& runtime) {
  return advice_of_distribution(runtime).value_or(runtime.is_linked ? api::check_advice::replace_link
                                                                    : api::check_advice::set_default);
}

judgement advised(check_state state, const std::string& found, check_cause cause, api::check_advice advice) {
  return {state, found, {cause, {{"advice", std::string(to_string(advice))}}}};
}

judgement runtime_judgement(const machine_facts& node) {
  if (!node.runtime) return unknown(node.runtime.error());
  const auto& runtime = *node.runtime;
  const auto found = text::joined(runtime.names);
  if (!runtime.default_runtime)
    return {state_of(runtime.default_runtime.error().code), {}, runtime.default_runtime.error()};
  if (!node.has_program) return unknown(node.has_program.error());
  const auto distribution = advice_of_distribution(runtime);
  if (const auto defect = defect_of(runtime.settings, node.has_program)) {
    // Pods run with other cgroups than the kubelet's, and come and go.
    using kind = runtime_defect::kind;
    const bool is_usable =
        defect->type == kind::cgroups || defect->type == kind::other_cgroups || defect->type == kind::by_version;
    const auto advice = advice_of(runtime, *defect);
    return {is_usable ? check_state::warning : check_state::failed, {}, cause_of(*defect, found, advice)};
  }
  const bool has_containerd = std::ranges::find(runtime.names, "containerd") != runtime.names.end();
  if (distribution && has_containerd) return {check_state::warning, found, {check_cause::two_containerd}};
  return {check_state::ok, found};
}

/// Whether a pod gets cards that it did not ask for. NVIDIA's README: https://github.com/NVIDIA/k8s-device-plugin
judgement visible_devices_judgement(const machine_facts& node) {
  if (!node.runtime) return unknown(node.runtime.error());
  if (!node.runtime->default_runtime) return unknown(node.runtime->default_runtime.error());
  if (!node.runtime->has_nvidia) return {check_state::ok, {}, {check_cause::environment_without_runtime}};
  if (!node.has_program) return unknown(node.has_program.error());
  if (!*node.has_program) return unknown({check_cause::runtime_program_absent});
  if (!node.reads_environment) return unknown(node.reads_environment.error());
  if (*node.reads_environment == false) return {check_state::ok, {}, {check_cause::environment_closed}};
  return {check_state::warning, {}, {check_cause::environment_open, {{"path", toolkit_config(*node.runtime)}}}};
}

bool has_cdi(const machine_facts& node) {
  if (!node.runtime || node.runtime->uses_cdi != true || !node.cdi) return false;
  return std::ranges::any_of(*node.cdi, &cdi_spec::is_complete);
}

judgement default_runtime_judgement(const machine_facts& node) {
  if (!node.runtime) return unknown(node.runtime.error());
  const auto& runtime = *node.runtime;
  if (!runtime.default_runtime) {
    const auto& error = runtime.default_runtime.error();
    if (state_of(error.code) == check_state::unknown) return unknown(error);
    return advised(check_state::warning, "unknown", check_cause::default_broken, api::check_advice::correct_file);
  }
  const auto& found = *runtime.default_runtime;
  const auto distribution = advice_of_distribution(runtime);
  const auto defect = defect_of(runtime.settings, node.has_program);
  const bool is_broken = defect && defect->is_repairable();
  if (is_nvidia_default(runtime.settings) && !is_broken) return {check_state::ok, found};
  if (is_nvidia_default(runtime.settings))
    return advised(check_state::warning, found, check_cause::default_broken, advice_of(runtime, *defect));
  if (const auto* stray = stray_default(runtime.settings); stray && !distribution) {
    explained_cause cause{check_cause::default_misplaced,
                          {{"path", stray->path},
                           {"line", std::to_string(stray->line)},
                           {"key", stray->key},
                           {"table", stray->table},
                           {"advice", std::string(to_string(advice_of_default(runtime)))}}};
    if (!stray->since.empty()) {
      cause.code = check_cause::default_since;
      cause.parameters.push_back({"since", stray->since});
    }
    return {check_state::warning, found, std::move(cause)};
  }
  if (has_cdi(node)) return {check_state::ok, "cdi"};
  if (runtime.has_nvidia && !distribution) return {check_state::warning, found, {check_cause::default_other}};
  if (runtime.has_nvidia)
    return advised(check_state::warning, found, check_cause::default_other_written, *distribution);
  return advised(check_state::warning, found, check_cause::default_without_nvidia, advice_of_default(runtime));
}

judgement cdi_judgement(const machine_facts& node, const std::string& driver) {
  if (!node.cdi) return unknown(node.cdi.error());
  for (const auto& spec : *node.cdi) {
    if (!spec.is_complete) return {check_state::failed, {}, {check_cause::cdi_incomplete, {{"path", spec.path}}}};
    const bool is_old =
        !driver.empty() && !spec.drivers.empty() && std::ranges::find(spec.drivers, driver) == spec.drivers.end();
    if (is_old)
      return {check_state::failed,
              {},
              {check_cause::cdi_other_driver,
               {{"path", spec.path}, {"drivers", text::abridged(spec.drivers)}, {"driver", driver}}}};
    if (!node.devices) continue;
    for (const auto& device : spec.devices)
      if (!node.devices->contains(device))
        return {check_state::failed,
                {},
                {check_cause::cdi_device_missing, {{"path", spec.path}, {"device", "/dev/" + device}}}};
  }
  if (!node.cdi->empty() && node.runtime && node.runtime->uses_cdi == false)
    return {check_state::warning, {}, {check_cause::cdi_switched_off}};
  if (node.cdi->empty()) return {check_state::ok, "none"};
  std::vector<std::string> paths;
  for (const auto& spec : *node.cdi) paths.push_back(spec.path);
  return {check_state::ok, text::abridged(paths)};
}

judgement cgroup_judgement(const machine_facts& node) {
  if (!node.cgroup) return unknown(node.cgroup.error());
  return {check_state::ok, *node.cgroup};
}

/// Where the driver has limits of memory by cgroup.
judgement limits_judgement(const machine_facts& node) {
  if (!node.cgroup) return unknown(node.cgroup.error());
  if (*node.cgroup == "v2") return {check_state::ok, node.module_version};
  return {check_state::warning, {}, {check_cause::limits_need_cgroup_v2, {{"driver", node.module_version}}}};
}

judgement socket_judgement(const fact<bool>& socket, const std::string& path, check_cause missing) {
  if (!socket) return unknown(socket.error());
  if (*socket) return {check_state::ok, path};
  return {check_state::failed, {}, {missing, {{"path", path}}}};
}

}  // namespace

void judge_containers(const machine_facts& node, std::vector<row>& rows) {
  add(rows, check::container_toolkit, toolkit_judgement(node));
  add(rows, check::container_runtime, runtime_judgement(node));
  add(rows, check::default_runtime, default_runtime_judgement(node));
  add(rows, check::visible_devices, visible_devices_judgement(node));
  add(rows, check::cdi, cdi_judgement(node, node.module_version));
  add(rows, check::cgroup, cgroup_judgement(node));
  if (version_parts(node.module_version) >= version_parts(entry_of(check::memory_limits).version))
    add(rows, check::memory_limits, limits_judgement(node));
  const std::string folder = "/var/lib/kubelet/";
  add(rows, check::kubelet_device_plugins,
      socket_judgement(node.device_plugin_socket, folder + "device-plugins/kubelet.sock",
                       check_cause::plugin_socket_missing));
  add(rows, check::kubelet_pod_resources,
      socket_judgement(node.pod_resources_socket, folder + "pod-resources/kubelet.sock",
                       check_cause::pods_socket_missing));
}

}  // namespace agent::facts
