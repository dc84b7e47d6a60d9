#pragma once
// Requests are built here, purely, and sent elsewhere (kube/transport.hpp). Every builder is a function of its
// arguments.

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "kube/resource.hpp"

namespace kube {

enum class method { get, post, put, patch, del };

/// Which connections a request may use. A lane never waits for another (docs/architecture.md, "Three lanes").
enum class lane { watch, unary, lease };

/// What we ask the server to speak. Built-ins are read as protobuf; custom resources have JSON only.
enum class encoding { json, protobuf };

struct request {
  method verb = method::get;
  std::string target;  ///< path and query
  std::string accept = "application/json";
  std::string content_type;  ///< empty without a body
  std::string body;
  lane channel = lane::unary;
  /// Whole-request deadline; zero means the lane's default (unary 30 s, lease 5 s, watch none).
  std::chrono::milliseconds deadline{0};
  /// Streams only: no byte for this long ends the stream with errc::timeout. Zero: none.
  std::chrono::milliseconds silence{0};
  /// Asked right before the bytes go out, after every wait for a place, a credential and a connection. False: they do
  /// not go out (errc::cancelled). Empty: always true.
  std::function<bool()> allowed;
  /// Streams only: the head of a 200 is here; the first bytes of the body may be long in coming. Must not throw.
  std::function<void()> opened;

  request() = default;
};

struct list_options {
  std::string ns;
  std::string label_selector, field_selector;
  int limit = 500;  ///< objects a page; 0: no limit
  std::string continue_token;
  std::string resource_version;        ///< "" most recent, "0" any cached
  std::string resource_version_match;  ///< "", "Exact", "NotOlderThan"
  encoding accept = encoding::protobuf;

  list_options() = default;
};

struct watch_options {
  std::string ns;
  std::string label_selector, field_selector;
  std::string resource_version;
  bool send_initial_events = false;  ///< WatchList: synthetic ADDED events, then a bookmark that ends them
  std::chrono::seconds timeout{0};   ///< server side; client-go asks for a random 5-10 min
  std::chrono::milliseconds silence{0};
  encoding accept = encoding::protobuf;

  watch_options() = default;
};

struct write_options {
  std::string field_manager = "quartermaster";
  bool force = false;    ///< apply: take fields over from other managers
  bool dry_run = false;  ///< dryRun=All
  bool strict = true;    ///< fieldValidation=Strict

  write_options() = default;
};

enum class patch_kind { json, merge };

/// Preconditions of a delete or a binding; an empty string is "not checked".
struct preconditions {
  std::string uid;
  std::string resource_version;

  preconditions() = default;
};

enum class propagation { background, foreground, orphan };

request get_request(const resource& type, const object_key& key, encoding accept = encoding::json);
request list_page(const resource& type, const list_options& options);
request watch_from(const resource& type, const watch_options& options);
request create_request(const resource& type, std::string_view ns, const nlohmann::json& object,
                       const write_options& options = write_options());
/// PUT with the object's own metadata.resourceVersion as precondition.
request replace_request(const resource& type, const object_key& key, const nlohmann::json& object,
                        const write_options& options = write_options());
/// Server-side apply of a whole intent. Creates the object when it is missing: only for objects that are ours.
request apply_request(const resource& type, const object_key& key, const nlohmann::json& object,
                      const write_options& options = write_options());
request apply_status_request(const resource& type, const object_key& key, const nlohmann::json& object,
                             const write_options& options = write_options());
/// `subresource` may be empty. A JSON patch carries its own `test` operations.
request patch_request(const resource& type, const object_key& key, patch_kind kind, const nlohmann::json& patch,
                      std::string_view subresource = {}, const write_options& options = write_options());
request remove_request(const resource& type, const object_key& key, const preconditions& only_if,
                       propagation propagation = propagation::background, bool dry_run = false);
/// POST pods/binding. `annotations` (may be null) are merged into the pod by the API server in the same transaction.
request bind_request(const object_key& pod, std::string_view node, const preconditions& only_if,
                     const nlohmann::json& annotations);
/// POST pods/eviction (policy/v1). 429 means a PodDisruptionBudget says no.
request evict_request(const object_key& pod, const preconditions& only_if,
                      std::optional<std::chrono::seconds> grace = std::nullopt, bool dry_run = false);

}  // namespace kube
