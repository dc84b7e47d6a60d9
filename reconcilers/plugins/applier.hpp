#pragma once
// Keeps our objects as they are wanted: there when they should be, put back when others change or delete them, gone
// when no one wants them. It does not know what a policy is; reconcilers/plugins/policy does not know how this is done.
//
// Nothing is written that is there already. What we applied is remembered by the mark the server puts on a change (a
// generation, or a fingerprint of the content); after a restart, and whenever the mark moves, the object is read and
// compared first. So a settled cluster sees no write, a restart none, and an edit by others is put back at most twice a
// second however often it comes.

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/names.hpp"
#include "api/owned_object.hpp"
#include "controller/clock.hpp"
#include "controller/recorder.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/projections/config_map.hpp"
#include "kube/projections/daemon_set.hpp"
#include "kube/projections/deployment.hpp"
#include "reconcilers/modules/catalogue.hpp"
#include "text/phrase.hpp"

namespace reconcilers {

class applier {
 public:
  /// `daemon_sets` holds all of our namespace; the next three may hold only what carries our label.
  struct stores {
    controller::store<kube::daemon_set>& daemon_sets;
    controller::store<api::owned_service>& services;
    controller::store<api::owned_service_account>& service_accounts;
    controller::store<api::owned_config_map>& config_maps;
    /// Declarations and device configurations, of us and of others; one object may be in several.
    std::vector<controller::store<kube::config_map>*> declared;
    controller::store<kube::deployment>* deployments = nullptr;  ///< null: none of the objects is one
  };
  /// Which objects are ours: where they are (elsewhere nothing is looked at), and the label they carry, whose value
  /// says what they are of.
  struct places {
    std::string ns;        ///< our own namespace
    std::string declared;  ///< that of the declarations
    std::string_view mark = api::names::module_label;
    std::string_view called = "module ";  ///< for people, before that value
  };
  /// What came of one object.
  struct outcome {
    bool settled = false;  ///< it is as wanted
    std::string problem;   ///< CamelCase, when a person has to do something: ForeignObject, Refused, Forbidden
    text::phrase message;
    std::optional<controller::milliseconds> again_in;
    std::optional<kube::error> failed;  ///< to be tried again with back-off
  };
  using identity = std::pair<std::string_view, kube::object_key>;  ///< kind and key

  /// Everything given must outlive this.
  applier(stores stores, kube::client& client, controller::recorder& events, places places,
          std::function<controller::milliseconds()> now);
  applier(const applier&) = delete;
  applier& operator=(const applier&) = delete;

  bool synced() const;
  /// Carries our label, where our objects are.
  bool is_ours(const kube::object& object) const;
  /// What others declare: keys of resources, node labels as "key=value", and names of the ConfigMaps.
  std::set<std::string, std::less<>> declared_by_others() const;
  /// Events are about `about`.
  kube::task<outcome> ensure(modules::intent want, controller::object_reference about);
  /// Deletes what is ours and neither kept nor of one of these modules.
  kube::task<outcome> prune(std::set<identity> kept, std::set<std::string> spared_modules,
                            controller::object_reference about);

 private:
  /// An object as its store shows it.
  struct live_object {
    const kube::object* object = nullptr;
    std::uint64_t mark = 0;  ///< moves when someone changes what we may have an opinion about
    std::uint64_t version() const { return object ? object->resource_version : 0; }
  };
  /// Our last word about an object.
  struct last_write {
    std::string hash;
    kube::uid id;
    std::uint64_t version = 0;
    std::uint64_t mark = 0;
    bool mark_known = false;
    controller::milliseconds looked{0}, wrote{-1'000'000};
  };
  struct victim {
    const kube::resource* type = nullptr;
    kube::object_key key;
    std::string uid, module;
  };

  std::string whose(std::string_view module) const { return std::string(places_.called) + std::string(module); }
  live_object look(const kube::resource& type, const kube::object_key& key) const;
  const kube::config_map* declaration(const kube::object_key& key) const;
  bool at_peace(const modules::intent& want, const live_object& is, last_write& spoken) const;
  kube::task<outcome> compare(modules::intent want, controller::object_reference about);
  kube::task<outcome> write(modules::intent want, controller::object_reference about, nlohmann::json live);
  kube::task<outcome> take_over(modules::intent want, controller::object_reference about, nlohmann::json live);
  kube::task<outcome> hand_over(modules::intent want, controller::object_reference about, nlohmann::json live);
  kube::task<outcome> make_room(modules::intent want, std::string uid);
  void remember(const modules::intent& want, const nlohmann::json& live);
  std::vector<victim> victims(const std::set<identity>& kept, const std::set<std::string>& spared) const;

  stores stores_;
  kube::client& client_;
  controller::recorder& events_;
  places places_;
  std::function<controller::milliseconds()> now_;
  std::map<identity, last_write> spoken_;
};

}  // namespace reconcilers
