#pragma once
// Drives a watch_machine by hand: a clock that moves when told, answers made of names and versions, a store behind it.
// One line of a test is one event. `log` says what the machine handed out since the last look.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "controller/store.hpp"
#include "kube/frame.hpp"
#include "kube/json_object.hpp"
#include "kube/status.hpp"
#include "kube/watch_machine.hpp"

namespace rig {

using namespace std::chrono_literals;
using ms = std::chrono::milliseconds;

/// A pod of which only spec.content is kept.
struct probe : kube::object {
  std::string content;
  static const kube::resource& of() { return kube::resources::pods; }
  static constexpr kube::encoding wire = kube::encoding::json;
  static kube::result<probe> decode(std::string_view bytes) {
    return kube::on_demand::decode<probe>(bytes, kube::keep_none,
                                          [](probe& probe, std::string_view key, kube::on_demand::value field) {
                                            if (key == "content") probe.content = kube::on_demand::text_or(field);
                                          });
  }
  friend bool operator==(const probe&, const probe&) = default;
};

struct item {
  std::string name, version, content = "x";
};

inline std::string json_of(const item& item) {
  return R"({"kind":"Pod","metadata":{"name":")" + item.name + R"(","resourceVersion":")" + item.version +
         R"("},"content":")" + item.content + R"("})";
}

inline std::string frame(std::string_view type, std::string_view object) {
  return R"({"type":")" + std::string(type) + R"(","object":)" + std::string(object) + "}";
}

inline std::string status(int code, std::string_view reason, std::string_view more = "") {
  return R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":"m","reason":")" + std::string(reason) +
         R"(","code":)" + std::to_string(code) + std::string(more) + "}";
}

class machine {
 public:
  explicit machine(kube::watch_settings settings = with_watch_list(true))
      : machine_(kube::resources::pods, settings, [this] { return jitter; }) {
    store.observe([this](const probe* before, const probe* after) {
      changes.push_back((before ? after ? "~" : "-" : "+") + (after ? after : before)->key.name);
    });
  }
  static kube::watch_settings with_watch_list(bool enabled) {
    kube::watch_settings settings;
    settings.wire = kube::encoding::json;
    settings.watch_list = enabled;
    return settings;
  }

  // --- requests
  kube::watch_step step() { return machine_.next(now); }
  /// Waits as long as the machine wants, then its request; `waited` says how long that was.
  kube::request request() {
    auto next = step();
    waited = 0ms;
    if (next.action == kube::watch_step::kind::wait) {
      waited = next.wait;
      now += next.wait;
      next = step();
    }
    EXPECT_NE(next.action, kube::watch_step::kind::wait);
    opened_ = false;
    return next.send;
  }
  /// The name of the request that is due: "list", "watch-list" or "watch <version>".
  std::string asks() {
    const auto made = request();
    if (!made.target.contains("watch=true"))
      return "list" + (query(made, "continue").empty() ? "" : " " + query(made, "continue"));
    if (made.target.contains("sendInitialEvents=true")) return "watch-list";
    return "watch " + query(made, "resourceVersion");
  }
  static std::string query(const kube::request& made, std::string_view name) {
    const std::string key = std::string(name) + "=";
    for (std::size_t index = made.target.find('?'); index != std::string::npos;
         index = made.target.find('&', index + 1)) {
      const auto part = std::string_view(made.target).substr(index + 1);
      if (part.starts_with(key)) return std::string(part.substr(key.size(), part.find('&') - key.size()));
    }
    return {};
  }

  // --- answers
  void page(std::string_view version, const std::vector<item>& items, std::string_view next = "") {
    std::string body = R"({"kind":"PodList","metadata":{"resourceVersion":")" + std::string(version) +
                       R"(","continue":")" + std::string(next) + R"("},"items":[)";
    for (const auto& item : items) body += (body.ends_with('[') ? "" : ",") + json_of(item);
    raw_page(body + "]}");
  }
  void raw_page(const std::string& body) {
    machine_.on_list_page(body, now, [this](kube::store_op op) { apply(op); });
  }
  void added(const item& item) { frame_in(frame("ADDED", json_of(item))); }
  void modified(const item& item) { frame_in(frame("MODIFIED", json_of(item))); }
  void deleted(const item& item) { frame_in(frame("DELETED", json_of(item))); }
  void bookmark(std::string_view version, bool ends = false) {
    frame_in(frame("BOOKMARK", R"({"kind":"Pod","metadata":{"resourceVersion":")" + std::string(version) + R"(")" +
                                   (ends ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "") + "}}"));
  }
  void stream_error(int code, std::string_view reason, std::string_view more = "") {
    frame_in(frame("ERROR", status(code, reason, more)));
  }
  void frame_in(const std::string& bytes) {
    if (!std::exchange(opened_, true)) apply(machine_.on_watch_open(now));
    apply(machine_.on_frame(bytes, now));
  }
  void closes(ms after = 10s) {
    now += after;
    machine_.on_watch_closed(now);
  }
  void fails(kube::errc code, std::optional<std::chrono::seconds> retry_after = {}) {
    machine_.on_error({code, 0, "test", retry_after}, now);
  }
  /// A WatchList of nothing: "synced at `version`".
  void syncs(std::string_view version, const std::vector<item>& items = {}) {
    EXPECT_EQ(asks(), "watch-list");
    for (const auto& item : items) added(item);
    bookmark(version, true);
    log.clear();
  }

  // --- what came of it
  /// What was handed out since the last look.
  std::string took() { return std::exchange(log, {}); }
  std::vector<std::string> changed() { return std::exchange(changes, {}); }
  std::string content() const {
    std::vector<std::string> names;
    for (const auto& entry : store.all())
      names.push_back(entry.key.name + "@" + std::to_string(entry.resource_version));
    std::ranges::sort(names);
    std::string all;
    for (const auto& name : names) all += (all.empty() ? "" : " ") + name;
    return all;
  }
  kube::watch_machine& operator*() { return machine_; }
  kube::watch_machine* operator->() { return &machine_; }

  ms now = 1000s;
  ms waited = 0ms;
  double jitter = 0;
  controller::store<probe> store;
  std::string log;
  std::vector<std::string> changes;

 private:
  void apply(kube::store_op op) {
    static constexpr std::string_view names[] = {"", "begin", "put", "erase", "commit", "restart"};
    const auto name = names[static_cast<int>(op.action)];
    if (name.empty()) return;
    log += (log.empty() ? "" : " ") + std::string(name);
    using kind = kube::store_op::kind;
    if (op.action == kind::begin) store.begin();
    if (op.action == kind::commit) store.commit();
    if (op.action != kind::put && op.action != kind::erase) return;
    auto object = probe::decode(op.object);
    ASSERT_TRUE(object) << object.error().message << " " << op.object;
    log += "(" + object->key.name + ")";
    if (op.action == kind::put) store.put(std::move(*object));
    if (op.action == kind::erase) store.erase(*object);
  }

  bool opened_ = false;
  kube::watch_machine machine_;
};

}  // namespace rig
