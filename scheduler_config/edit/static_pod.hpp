#pragma once
// The manifest of a kube-scheduler that a kubelet runs as a static pod (kube-scheduler.yaml), next to the configuration
// it is started with. The way kubeadm writes it is what people edit.

#include <string>
#include <string_view>
#include <vector>

#include "scheduler_config/flags/command_line.hpp"
#include "scheduler_config/judge/verdict.hpp"

namespace scheduler_config {

/// Views into a document, which must outlive it.
struct static_pod {
  struct mount {
    std::string path;     ///< in the container
    bool backed = false;  ///< there is a volume of that name
  };

  const text::yaml::node* root = nullptr;
  const text::yaml::node* container = nullptr;
  bool runs_scheduler = false;  ///< by a name in it; a scheduler of one's own has the word in its name, too
  std::string image;
  text::yaml::place image_at;
  command_line line;
  std::vector<mount> mounts;

  /// Null where it is not given.
  const flag* find(std::string_view name) const;
  bool mounted(std::string_view file) const;
};

/// Is it a Pod, and not a configuration? Then what is in it that we look at; empty: no container either.
bool is_pod(const document& document);
static_pod read_static_pod(const document& document);

/// Those its flags name.
std::vector<opened_file> opened_files(const static_pod& static_pod);

/// "36" of "registry.k8s.io/kube-scheduler:v1.36.3"; 0: the tag does not say.
int minor_of_image(std::string_view image);

/// SHA-256 of the file's bytes, in hexadecimal.
std::string checksum_of(std::string_view text);

/// Findings in the manifest; of a Pod that runs no kube-scheduler other_program alone. `config` may be null: then what
/// it says of files is not known.
findings judge_static_pod(const document& manifest, const document* config, const server& server = {});

}  // namespace scheduler_config
