#pragma once
// The manifest of a kube-scheduler that a kubelet runs as a static pod (kube-scheduler.yaml), beside the configuration
// it is started with. The way kubeadm writes it is what people edit.

#include <string>
#include <string_view>
#include <vector>

#include "scheduler_config/judge/verdict.hpp"

namespace reconcilers::scheduler_config {

/// Views into a document, which must outlive it.
struct static_pod {
  struct flag {
    std::string text;  ///< as it stands there
    yaml::place at;
    std::string name, value;  ///< without dashes; "--config X" and "--config=X" alike
    bool one_dash = false;    ///< "-config=X"
  };
  struct mount {
    std::string path;     ///< in the container
    bool backed = false;  ///< there is a volume of that name
  };

  const yaml::node* root = nullptr;
  const yaml::node* container = nullptr;
  std::string image;
  yaml::place image_at;
  std::vector<flag> flags;
  std::vector<mount> mounts;

  /// Null where it is not given.
  const flag* find(std::string_view name) const;
  bool mounted(std::string_view file) const;
};

/// Is it a Pod, and not a configuration? Then what is in it that we look at; empty: no container either.
bool is_pod(const document& of);
static_pod read_static_pod(const document& of);

/// Those its flags name.
std::vector<opened_file> opened_files(const static_pod& of);

/// "36" of "registry.k8s.io/kube-scheduler:v1.36.3"; 0: the tag does not say.
int minor_of_image(std::string_view image);

/// SHA-256 of the file's bytes, in hexadecimal.
std::string checksum_of(std::string_view text);

/// Findings in the manifest. `config` may be null: then what it says of files is not known.
findings judge_static_pod(const document& manifest, const document* config, const server& on = {});

}  // namespace reconcilers::scheduler_config
