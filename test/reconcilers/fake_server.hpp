#pragma once
// A small API server for reconcilers that apply: objects by path, uid, resourceVersion and generation as the real one
// moves them, server-side apply for one owner (what it sets replaces, what others set next to it stays), JSON patch
// with `test`, merge patch with a resourceVersion, delete with a UID precondition, status apart from the rest. Every
// change is handed to every watcher.

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "test/reconcilers/recording_transport.hpp"

namespace reconcilers {

class fake_server {
 public:
  using json = nlohmann::json;

  recording_transport transport;
  std::map<std::string, json> objects;  ///< by path
  /// Path, and the object as it is now; null when it is gone, then `last` is what it was.
  std::function<void(const std::string& path, const json& now, const json& last)> watch;
  /// Answers before we do; an empty optional lets us.
  std::function<std::optional<kube::response>(const kube::request&)> interfere;

  fake_server() {
    transport.answer = [this](const kube::request& request) -> kube::result<kube::response> {
      if (interfere) {
        if (auto answer = interfere(request)) return *answer;
      }
      return serve(request);
    };
  }

  /// By another hand: a new object, or a new content.
  const json& put(const std::string& path, json object) {
    const auto match = objects.find(path);
    return store(path, match == objects.end() ? json() : match->second, std::move(object));
  }
  void erase(const std::string& path) {
    const auto last = objects.at(path);
    objects.erase(path);
    if (watch) watch(path, json(), last);
  }
  /// "PATCH apply /api/..." of every request that changes something, in order; `verb path` without the query.
  std::vector<std::string> writes() const {
    std::vector<std::string> out;
    for (const auto& request : transport.sent) {
      if (request.verb != kube::method::get) out.push_back(verb_of(request) + " " + path_of_target(request.target));
    }
    return out;
  }
  std::vector<std::string> reads() const {
    std::vector<std::string> out;
    for (const auto& request : transport.sent) {
      if (request.verb == kube::method::get) out.push_back(path_of_target(request.target));
    }
    return out;
  }
  void forget() { transport.sent.clear(); }
  std::uint64_t version() const { return version_; }

  static std::string verb_of(const kube::request& request) {
    if (request.verb == kube::method::del) return "delete";
    if (request.content_type.starts_with("application/apply")) return "apply";
    if (request.content_type.starts_with("application/json-patch") || merges(request)) return "patch";
    return request.verb == kube::method::post ? "create" : "put";
  }
  static std::string path_of_target(const std::string& target) { return target.substr(0, target.find('?')); }

 private:
  static bool merges(const kube::request& request) {
    return request.content_type.starts_with("application/merge-patch");
  }
  const json& store(const std::string& path, const json& before, json object) {
    auto& metadata = object["metadata"];
    const auto number = std::to_string(100'000 + ++made_);
    if (before.is_null()) {
      if (!metadata.contains("uid")) metadata["uid"] = "00000000-0000-4000-8000-000000" + number;
      metadata["generation"] = 1;
    } else {
      metadata["uid"] = before["metadata"]["uid"];
      const bool same = before.value("spec", json()) == object.value("spec", json());
      metadata["generation"] = before["metadata"]["generation"].get<int>() + (same ? 0 : 1);
    }
    const bool unchanged = !before.is_null() && without_version(before) == without_version(object);
    metadata["resourceVersion"] = unchanged ? before["metadata"]["resourceVersion"] : json(std::to_string(++version_));
    objects[path] = std::move(object);
    if (watch && !unchanged) watch(path, objects[path], before);
    return objects[path];
  }
  static json without_version(json object) {
    object["metadata"].erase("resourceVersion");
    return object;
  }
  static void merge(json& object, const json& patch) {
    for (const auto& [key, value] : patch.items()) {
      if (value.is_object() && object.contains(key) && object[key].is_object())
        merge(object[key], value);
      else
        object[key] = value;
    }
  }

  kube::response serve(const kube::request& request) {
    auto path = path_of_target(request.target);
    const bool status = path.ends_with("/status");
    if (status) path.resize(path.size() - 7);
    if (path == "/api/v1/pods") return recording_transport::answered(200, all_pods());
    const auto match = objects.find(path);
    const auto before = match == objects.end() ? json() : match->second;
    if (before.is_null() && (verb_of(request) != "apply" || status || request.verb == kube::method::get))
      return recording_transport::refused(404, "NotFound");
    if (request.verb == kube::method::get) return recording_transport::answered(200, before);
    const auto body = request.body.empty() ? json() : json::parse(request.body);
    if (request.verb == kube::method::del) return remove(path, body);
    auto now = before.is_null() ? json::object() : before;
    if (verb_of(request) == "apply") {
      const auto uid = body.value("/metadata/uid"_json_pointer, json());
      if (!uid.is_null() && uid != now.value("/metadata/uid"_json_pointer, json()))
        return recording_transport::refused(409, "Conflict");
      if (status)
        now["status"] = applied_status(before, body);
      else
        merge(now, body);
    } else if (merges(request)) {
      for (const auto* expected : {"/metadata/resourceVersion", "/metadata/uid"}) {
        const json::json_pointer field(expected);
        if (body.contains(field) && body.at(field) != now.at(field))
          return recording_transport::refused(409, "Conflict");
      }
      now.merge_patch(body);
    } else {
      try {
        now = now.patch(with_null_tests(body, now));
      } catch (const json::exception&) {
        return recording_transport::refused(422, "Invalid");
      }
    }
    return recording_transport::answered(200, store(path, before, now));
  }
  json all_pods() const {
    auto items = json::array();
    for (const auto& [path, object] : objects)
      if (path.contains("/pods/")) items.push_back(object);
    return {{"items", std::move(items)}};
  }
  /// What the agent reported stays when the operator applies.
  static json applied_status(const json& before, const json& body) {
    auto now = body.value("status", json::object());
    for (const auto* field : {"cards", "driver"}) {
      const json::json_pointer path(std::string("/status/") + field);
      if (!before.is_null() && before.contains(path) && !now.contains(field)) now[field] = before.at(path);
    }
    return now;
  }
  kube::response remove(const std::string& path, const json& options) {
    const auto uid = options.value("/preconditions/uid"_json_pointer, json());
    if (!uid.is_null() && uid != objects.at(path)["metadata"]["uid"])
      return recording_transport::refused(409, "Conflict");
    erase(path);
    return recording_transport::answered(200, json::object());
  }
  /// The API server takes `test` for null of an absent member as true; nlohmann does not.
  static json with_null_tests(const json& patch, const json& object) {
    auto out = json::array();
    for (const auto& entry : patch) {
      const bool null_test = entry["op"] == "test" && entry["value"].is_null();
      if (!null_test || object.contains(json::json_pointer(entry["path"].get<std::string>()))) out.push_back(entry);
    }
    return out;
  }

  std::uint64_t version_ = 1000;
  int made_ = 0;
};

}  // namespace reconcilers
