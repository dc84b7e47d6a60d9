#pragma once
// Judges the declarations: each of our ConfigMaps gets its verdict as an annotation and, when the words change, an
// event. Its data is never touched. The rules are in this folder (pure); here is only what to look at and what to
// write.
//
// Fed by two or three stores, because a selector has no "or" over label keys: one a label domain and one for device
// configurations (declarations::names). An object in several of them is one object: its newest version counts. A write
// carries the uid and resourceVersion that were judged; the faster writer wins and we look again.

#include <map>
#include <string>
#include <vector>

#include "api/compiled_rules.hpp"
#include "api/owned_object.hpp"
#include "controller/reconciler.hpp"
#include "controller/recorder.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/projections/config_map.hpp"
#include "reconcilers/declarations/registry.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace reconcilers {

class custom_resource final : public controller::reconciler {
 public:
  using config_maps = controller::store<kube::config_map>;

  /// Everything given must outlive this. Observes the stores, so it must be made before the observers that call
  /// `affected_by`.
  custom_resource(std::vector<config_maps*> stores, kube::client& client, controller::recorder& events,
                  declarations::parse_settings settings = declarations::parse_settings(),
                  controller::store<api::owned_runtime_class>* runtime_classes = nullptr,
                  controller::store<api::compiled_rules>* compiled = nullptr);
  custom_resource(const custom_resource&) = delete;
  custom_resource& operator=(const custom_resource&) = delete;

  std::string_view name() const override { return "custom-resource"; }
  kube::task<controller::action> reconcile(kube::object_key key) override;

  /// What to look at again after a change of one ConfigMap, as a store's observer sees it (either may be null): itself,
  /// and where its content changed, every declaration that shares its key or group or names it.
  std::vector<kube::object_key> affected_by(const kube::config_map* before, const kube::config_map* after) const;

  /// RuntimeClasses came or went: the declarations to judge again.
  std::vector<kube::object_key> affected_by(const api::owned_runtime_class* before,
                                            const api::owned_runtime_class* after) const;

  /// The compiled rules changed: the declarations whose rules came or went, because a refused one says whether what was
  /// accepted before stays in force.
  std::vector<kube::object_key> affected_by(const api::compiled_rules* before, const api::compiled_rules* after) const;

  /// Every declaration has been seen.
  bool synced() const;
  const declarations::registry& registry() const { return registry_; }
  /// The node labels that device configurations declare.
  std::vector<declarations::device_config> devices() const { return registry_.devices(); }
  declarations::judgement judge(const kube::object_key& key) const { return registry_.judge(key); }

 private:
  /// A verdict we left on an object that is no longer ours to judge.
  struct leftover {
    std::string uid, text;
  };

  const kube::config_map* newest(const kube::object_key& key) const;
  void take_in(const kube::config_map* before, const kube::config_map* after);
  struct outcome {
    bool written = false;
    controller::action next;
  };
  kube::task<outcome> write(const kube::config_map& now, std::string text);
  kube::task<controller::action> clean_up(kube::object_key key);

  void take_in_runtime_classes();
  void take_in(const api::compiled_rules* now);
  bool kept(const declarations::judgement& refused) const;

  std::vector<config_maps*> stores_;
  controller::store<api::owned_runtime_class>* runtime_classes_;
  controller::store<api::compiled_rules>* compiled_;
  std::vector<kube::object_key> sources_;  ///< the ConfigMaps the compiled rules came from, sorted
  kube::client& client_;
  controller::recorder& events_;
  declarations::registry registry_;
  std::map<kube::object_key, leftover> leftovers_;
};

/// The ConfigMap as parse.hpp reads it; valid as long as `config_map`.
declarations::config_map_view view_of(const kube::config_map& config_map);
/// Did a change of one ConfigMap touch what is judged? Our own annotation does not.
bool is_other_content(const kube::config_map* before, const kube::config_map* after);
/// The label of a device configuration that is sound, as one that asks for the mode of the device's name.
label_alias alias_of(const declarations::device_config& config);

}  // namespace reconcilers
