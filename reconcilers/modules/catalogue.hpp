#pragma once
// The catalogue: everything that is particular to one way of offering cards. A module is a name, the label values that
// ask for it, the resources it advertises, what it needs of a node, and one pure function from the policy to the
// objects it needs, and a reason for each privilege of theirs. Adding one is one file and one line in catalogue.cpp. A
// policy may add modules of its own (custom.cpp) and choose names of resources; `offer` is the catalogue as a policy
// has it.

#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "kube/resource.hpp"
#include "quota/inventory.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "text/phrase.hpp"

namespace reconcilers::modules {

/// What the objects of a module depend on besides the policy.
struct facts {
  std::string ns;         ///< where they are made: the operator's own namespace
  std::string own_image;  ///< the operator's image, for plugins that are part of it
  /// The AcceleratorPolicy that owns them, so that they go with it even when we are gone.
  std::string policy_name, policy_uid;
  std::string image_registry = {};  ///< for images that the policy does not name; empty: each keeps its own
  std::string module = {};          ///< whose objects are made; set by intents_of
  std::string node_set = {};        ///< for which node set; empty: for the nodes of none
};

/// What a module needs of a node, compared with its labels (GPU Feature Discovery). A missing label is no failure.
struct node_needs {
  std::span<const std::string_view> architectures;
  int compute_capability = 0;  ///< 10 x major + minor, 0: any
  int cuda = 0;                ///< 100 x major + minor of the newest runtime the driver supports, 0: any
  bool mig = true;             ///< may cards be cut by MIG?
  int containerd_below = 0;    ///< the tested image fails on this major version and on newer ones; 0: on none
};

/// What keeps pods on one card apart. It is never shown as stronger than it is.
using quota::isolation;

/// How a new version of the plugin comes to the nodes. Every DaemonSet is OnDelete and one driver (rollouts.hpp) goes
/// from node to node, so that there is one way and one place where it halts. Never by surge: two plugins on a node
/// would take each other's socket from the kubelet, and a card would be given out twice.
struct rollout {
  enum class strategy : std::uint8_t {
    always,     ///< running containers do not need the plugin: node after node, whatever runs there
    when_idle,  ///< they do: a node is skipped while a pod holds the module's resources
    by_hand,    ///< the person who deletes the plugin pod decides
  };
  strategy method = strategy::always;
  std::int32_t min_ready_seconds = 0;
  std::string_view reason;
  std::string_view source = {};  ///< where the reason can be read
};

/// One thing of a module that a policy may set, in spec.modules.<name>.settings. Values are text.
struct setting {
  enum class kind : std::uint8_t {
    flag,      ///< true, false
    number,    ///< whole, `minimum` to `maximum`
    decimal,   ///< above 0, at most `maximum`
    word,      ///< one of `words`
    words,     ///< some of `words`, separated by commas
    resource,  ///< name of an extended resource
    name,      ///< of a Kubernetes object
    text,      ///< anything in one line
  };
  std::string_view name;
  kind type = kind::text;
  std::string_view fallback = {};  ///< its value where the policy has none
  std::span<const std::string_view> words = {};
  std::int64_t minimum = 0, maximum = 0;
};

/// Why a plugin may do what a plain container may not.
struct privilege {
  std::string_view container;  ///< empty: the whole pod
  /// "privileged", "add NAME", "hostPID", "hostNetwork", "hostIPC", "hostPort", "token" (of a ServiceAccount),
  /// "read PATH", "write PATH", "share PATH" (mounts made inside appear on the host), "root" (no user is set).
  std::string_view permission;
  std::string_view reason;
};
inline constexpr std::string_view kubelet_registration =
    "the kubelet's registration socket is there, and plugins put theirs next to it (device plugin API)";

/// A label that users of another product have on their nodes already. It asks for the module where that is on; where it
/// is off the node is the other product's.
struct product_label {
  std::string_view key, value, product;
  std::string_view refusal = {};  ///< the key of why the module cannot grant it; empty where it can
  bool is_vague = false;          ///< people have such a label for purposes of their own, too
};
/// Of product_label: the other product kept shares apart, and the module as the policy has it may not.
inline constexpr std::string_view no_isolation = "intent.label_no_isolation";

struct module_type {
  std::string_view name;
  std::string_view title;
  std::span<const std::string_view> label_values;  ///< of nvidia-device-enable, lower case
  std::span<const std::string_view> resources;     ///< the first one says that the plugin works
  /// Those of `resources` that stay in the node's status when the plugin goes: the plugin wrote them there itself, and
  /// a kubelet takes back only what was registered with it.
  std::span<const std::string_view> left_behind = {};
  std::string_view daemon_set;  ///< the name people look for
  node_needs needs;
  /// Without the labels and annotations that all our objects have. Every setting in `spec` is known and legal.
  std::vector<nlohmann::json> (*objects)(const module_spec& spec, const facts& known) = nullptr;

  isolation isolates = isolation::none;  ///< unless `isolates_with` says otherwise
  rollout rolls_out = {};
  std::span<const setting> settings = {};
  /// Where they depend on the settings; null where they do not.
  std::vector<std::string> (*resources_with)(const module_spec& spec) = nullptr;
  /// Beginnings of names that the plugin may advertise instead of `resources`, and next to them ("nvidia.com/mig-"), as
  /// the policy has it. One resource of such a name says that the plugin works, too.
  std::span<const std::string_view> prefixes = {};
  std::vector<std::string> (*prefixes_with)(const module_spec& spec) = nullptr;
  isolation (*isolates_with)(const module_spec& spec) = nullptr;
  /// What it declares in the namespace of declarations (publish.hpp).
  std::vector<nlohmann::json> (*declarations)(const module_spec& spec, const facts& known) = nullptr;
  /// Does the plugin give each container the cards of its pod's placement? Null: it chooses by itself.
  bool (*follows_placement)(const module_spec& spec) = nullptr;
  std::span<const privilege> privileges = {};  ///< of all that its settings can ask for
  std::span<const product_label> labels = {};
};

/// Ends the mark of a template (api::names::template_annotation) whose plugin follows placements.
inline constexpr std::string_view placement_mark = ".placement";

/// Slices of cards that MIG has cut, one resource a profile (NVIDIA/k8s-device-plugin, strategy mixed).
inline constexpr std::string_view mig_prefix = "nvidia.com/mig-";

/// May the plugin of this module advertise that resource?
bool advertises(const module_type& module, std::string_view resource);
/// Does `name` begin with one of `module.prefixes` without being one of `module.resources`?
bool has_prefix(const module_type& module, std::string_view name);

/// The modules that are built in, in the order in which they are shown.
std::span<const module_type> catalogue();
/// Null for any other name.
const module_type* find(std::string_view name);
/// The module that advertises this resource; null when none does.
const module_type* advertiser(std::string_view resource);
/// "pgpu, vgpu and mps".
std::string names_for_people();

/// spec.modules of a policy.
using module_specs = std::map<std::string, module_spec, std::less<>>;

/// The node label that asks for a module by one of its `label_values`.
inline constexpr std::string_view mode_label = "nvidia-device-enable";

/// The catalogue as one policy has it: resources as its settings name them, and a row for each module of its own.
/// Immutable; the rows live as long as it.
class offer {
 public:
  /// Without a policy.
  offer() : offer(module_specs()) {}
  explicit offer(const module_specs& modules);
  offer(const offer&) = delete;
  offer& operator=(const offer&) = delete;

  std::span<const module_type> rows() const { return rows_; }
  const module_type* find(std::string_view name) const;
  const module_type* advertiser(std::string_view resource) const;
  /// The module whose cards a resource of that vendor stands for although no module names it (a MIG slice, a name that
  /// a configuration gave): `serving` where the vendor is its own, else the first of that vendor. Null: no module's.
  const module_type* of_vendor(std::string_view resource, const module_type* serving) const;
  /// Will a kubelet take this resource back when the plugin of its module goes?
  bool goes_with_its_plugin(std::string_view resource) const;
  /// The node labels by which modules of the policy's own are asked for.
  std::vector<label_alias> aliases() const { return aliases_; }
  /// What a module of the policy's own has in common with a row before it, and may not: a resource, a DaemonSet, the
  /// label that asks for it. Its label then asks for nothing. Empty: nothing.
  text::phrase conflict_of(std::string_view name) const;

 private:
  std::string_view keep(std::string text);
  std::span<const std::string_view> keep(const std::vector<std::string>& texts);
  void add(const std::string& name, const module_specs& modules);
  text::phrase conflict_of(const module_type& row, const std::optional<label_alias>& alias,
                           const module_specs& modules) const;

  std::vector<module_type> rows_;
  std::deque<std::string> texts_;
  std::deque<std::vector<std::string_view>> lists_;
  std::vector<label_alias> aliases_;
  std::map<std::string, text::phrase, std::less<>> conflicts_;  ///< by module
};

/// That of the policy; the catalogue alone where there is none, or it was made by hand.
const offer& offered_by(const accelerator_policy* policy);

/// A part of a policy that cannot be used, for people: which, its value, what is allowed.
struct invalid_policy : std::runtime_error {
  explicit invalid_policy(text::phrase sentence)
      : std::runtime_error(words_of(sentence, text::language::en)), message(std::move(sentence)) {}
  text::phrase message;
};

isolation isolation_of(const module_type& type, const module_spec& spec);
/// The module's, unless the policy says otherwise (spec.modules.<name>.rollout).
rollout rollout_of(const module_type& type, const module_spec& spec);

/// One object as it is applied.
struct intent {
  const kube::resource* type = nullptr;
  kube::object_key key;
  std::string module;
  std::string hash;     ///< of the whole intent; also in its annotation state.quartermaster.io/applied
  std::string body;     ///< JSON
  bool adopt = false;   ///< take over an object of that name that someone else made
  bool yields = false;  ///< an object of that name that someone else made is left as it is
};

/// The complete objects of one module, in the order they are applied. Throws invalid_policy, or
/// nlohmann::json::exception where a part of the policy is not what the API server's schema promises.
std::vector<intent> intents_of(const module_type& type, const module_spec& spec, const facts& known);
/// What the module declares, in namespace `ns`. Throws as above.
std::vector<intent> declarations_of(const module_type& type, const module_spec& spec, const facts& known,
                                    const std::string& ns);

/// Every DaemonSet of its plugin: one, and one for each node set.
std::vector<std::string> daemon_sets_of(const module_type& type, const module_spec& spec);

/// Their types, in the order they are applied.
std::span<const kube::resource* const> object_types();

extern const module_type pgpu, vgpu, mps, hami, share, gpushare;

}  // namespace reconcilers::modules
