#include "agent/facts/kubelet.hpp"

#include <array>
#include <string_view>

namespace agent::facts {
namespace {

constexpr std::size_t most_bytes = 256 << 10;

/// Flags go before the file: kubeadm's, Debian's, Red Hat's.
constexpr std::array flag_files{"/var/lib/kubelet/kubeadm-flags.env", "/etc/default/kubelet", "/etc/sysconfig/kubelet"};
/// kubeadm's, OpenShift's, those of EKS.
constexpr std::array setting_files{"/var/lib/kubelet/config.yaml", "/etc/kubernetes/kubelet.conf",
                                   "/etc/kubernetes/kubelet/config.json",
                                   "/etc/kubernetes/kubelet/kubelet-config.json"};

/// The word behind a key: `cgroupDriver: systemd`, `"cgroupDriver":"systemd"`, `--cgroup-driver=systemd`. Not in
/// comments.
std::string_view word_behind(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line = line.substr(0, line.find('#'));
    const auto index = line.find(key);
    if (index == std::string_view::npos) continue;
    line.remove_prefix(index + key.size());
    constexpr std::string_view separators = " \t\"':=";
    line.remove_prefix(std::min(line.find_first_not_of(separators), line.size()));
    return line.substr(0, line.find_first_of(" \t\r\"',}"));
  }
  return {};
}

std::string systemd_of(std::string_view driver) {
  return driver == "systemd" ? "true" : driver == "cgroupfs" ? "false" : "";
}

}  // namespace

std::string kubelet_systemd(const files& node) {
  const auto first_word = [&](const auto& paths, std::string_view key) -> std::string {
    for (const auto* path : paths) {
      const auto text = node.text(path, most_bytes);
      if (!text || !*text) continue;
      if (auto systemd = systemd_of(word_behind(**text, key)); !systemd.empty()) return systemd;
    }
    return {};
  };
  const auto flag = first_word(flag_files, "--cgroup-driver");
  return flag.empty() ? first_word(setting_files, "cgroupDriver") : flag;
}

}  // namespace agent::facts
