#include "kube/request.hpp"

#include <nlohmann/json.hpp>

#include "kube/percent.hpp"

namespace kube {
namespace {

/// Appends "?name=value&name=value" in the order of the calls; empty values are left out.
class query {
 public:
  explicit query(std::string& target) : target_(target) {}

  query& add(std::string_view name, std::string_view value) {
    if (value.empty()) return *this;
    target_ += first_ ? '?' : '&';
    first_ = false;
    target_ += name;
    target_ += '=';
    append_percent_encoded(target_, value);
    return *this;
  }
  query& flag(std::string_view name, bool set) { return add(name, set ? "true" : ""); }

 private:
  std::string& target_;
  bool first_ = true;
};

std::string_view media_type(encoding format) {
  return format == encoding::protobuf ? "application/vnd.kubernetes.protobuf" : "application/json";
}

/// A lease is read and written on its own connection: leadership must not wait behind a list.
lane lane_of(const resource& type) {
  return type.plural == resources::leases.plural && type.group == resources::leases.group ? lane::lease : lane::unary;
}

/// Text that is not UTF-8 cannot be sent as JSON; the API server would refuse it, we replace it.
std::string dump(const nlohmann::json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

request with_body(method verb, std::string target, const resource& type, std::string_view content_type,
                  const nlohmann::json& body) {
  request made;
  made.verb = verb;
  made.target = std::move(target);
  made.channel = lane_of(type);
  made.content_type = content_type;
  made.body = dump(body);
  return made;
}

void add_write_options(std::string& target, const write_options& options, bool force) {
  query(target)
      .add("fieldManager", options.field_manager)
      .flag("force", force)
      .add("dryRun", options.dry_run ? "All" : "")
      .add("fieldValidation", options.strict ? "Strict" : "");
}

request apply_to(const resource& type, const object_key& key, std::string_view subresource,
                 const nlohmann::json& object, const write_options& options) {
  std::string target = path_of(type, key.ns, key.name, subresource);
  add_write_options(target, options, options.force);
  return with_body(method::patch, std::move(target), type, "application/apply-patch+yaml", object);
}

nlohmann::json to_json(const preconditions& only_if) {
  nlohmann::json made = nlohmann::json::object();
  if (!only_if.uid.empty()) made["uid"] = only_if.uid;
  if (!only_if.resource_version.empty()) made["resourceVersion"] = only_if.resource_version;
  return made;
}

std::string_view to_string(propagation propagation) {
  switch (propagation) {
    case propagation::background:
      return "Background";
    case propagation::foreground:
      return "Foreground";
    case propagation::orphan:
      return "Orphan";
  }
  return "Background";
}

}  // namespace

request get_request(const resource& type, const object_key& key, encoding accept) {
  request made;
  made.target = path_of(type, key.ns, key.name);
  made.accept = media_type(accept);
  made.channel = lane_of(type);
  return made;
}

request list_page(const resource& type, const list_options& options) {
  request made;
  made.target = path_of(type, options.ns);
  made.accept = media_type(options.accept);
  // A continue token carries the version it belongs to; the server refuses both together.
  const bool first = options.continue_token.empty();
  query(made.target)
      .add("labelSelector", options.label_selector)
      .add("fieldSelector", options.field_selector)
      .add("limit", options.limit > 0 ? std::to_string(options.limit) : "")
      .add("continue", options.continue_token)
      .add("resourceVersion", first ? options.resource_version : "")
      .add("resourceVersionMatch", first ? options.resource_version_match : "");
  return made;
}

request watch_from(const resource& type, const watch_options& options) {
  request made;
  made.target = path_of(type, options.ns);
  made.accept = media_type(options.accept);
  if (options.accept == encoding::protobuf) made.accept += ";stream=watch";
  made.channel = lane::watch;
  made.silence = options.silence;
  query(made.target)
      .flag("watch", true)
      .flag("allowWatchBookmarks", true)
      .add("labelSelector", options.label_selector)
      .add("fieldSelector", options.field_selector)
      .add("resourceVersion", options.resource_version)
      .add("resourceVersionMatch", options.send_initial_events ? "NotOlderThan" : "")
      .flag("sendInitialEvents", options.send_initial_events)
      .add("timeoutSeconds", options.timeout.count() > 0 ? std::to_string(options.timeout.count()) : "");
  return made;
}

request create_request(const resource& type, std::string_view ns, const nlohmann::json& object,
                       const write_options& options) {
  std::string target = path_of(type, ns);
  add_write_options(target, options, false);
  return with_body(method::post, std::move(target), type, "application/json", object);
}

request replace_request(const resource& type, const object_key& key, const nlohmann::json& object,
                        const write_options& options) {
  std::string target = path_of(type, key.ns, key.name);
  add_write_options(target, options, false);
  return with_body(method::put, std::move(target), type, "application/json", object);
}

request apply_request(const resource& type, const object_key& key, const nlohmann::json& object,
                      const write_options& options) {
  return apply_to(type, key, {}, object, options);
}

request apply_status_request(const resource& type, const object_key& key, const nlohmann::json& object,
                             const write_options& options) {
  return apply_to(type, key, "status", object, options);
}

request patch_request(const resource& type, const object_key& key, patch_kind kind, const nlohmann::json& patch,
                      std::string_view subresource, const write_options& options) {
  std::string target = path_of(type, key.ns, key.name, subresource);
  add_write_options(target, options, false);
  return with_body(method::patch, std::move(target), type,
                   kind == patch_kind::json ? "application/json-patch+json" : "application/merge-patch+json", patch);
}

request remove_request(const resource& type, const object_key& key, const preconditions& only_if,
                       propagation propagation, bool dry_run) {
  nlohmann::json body{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", to_string(propagation)}};
  if (auto conditions = to_json(only_if); !conditions.empty()) body["preconditions"] = std::move(conditions);
  if (dry_run) body["dryRun"] = {"All"};
  return with_body(method::del, path_of(type, key.ns, key.name), type, "application/json", body);
}

request bind_request(const object_key& pod, std::string_view node, const preconditions& only_if,
                     const nlohmann::json& annotations) {
  nlohmann::json metadata = to_json(only_if);
  metadata["name"] = pod.name;
  metadata["namespace"] = pod.ns;
  if (!annotations.is_null() && !annotations.empty()) metadata["annotations"] = annotations;
  const nlohmann::json body{{"apiVersion", "v1"},
                            {"kind", "Binding"},
                            {"metadata", std::move(metadata)},
                            {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}}}};
  return with_body(method::post, path_of(resources::pods, pod.ns, pod.name, "binding"), resources::pods,
                   "application/json", body);
}

request evict_request(const object_key& pod, const preconditions& only_if, std::optional<std::chrono::seconds> grace,
                      bool dry_run) {
  nlohmann::json options = nlohmann::json::object();
  if (auto conditions = to_json(only_if); !conditions.empty()) options["preconditions"] = std::move(conditions);
  if (grace) options["gracePeriodSeconds"] = grace->count();
  if (dry_run) options["dryRun"] = {"All"};
  nlohmann::json body{
      {"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", {{"name", pod.name}, {"namespace", pod.ns}}}};
  if (!options.empty()) body["deleteOptions"] = std::move(options);
  return with_body(method::post, path_of(resources::pods, pod.ns, pod.name, "eviction"), resources::pods,
                   "application/json", body);
}

}  // namespace kube
