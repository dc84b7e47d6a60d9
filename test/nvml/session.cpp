#include "session.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

namespace nvml {
namespace {

bool is_loaded(const fixture& fixture) { return fixture.node.contains("driver") && !fixture.node["driver"].is_null(); }

// A driver whose kernel module is of another version than the library, as after an upgrade without a reboot.
bool is_mismatched(const fixture& fixture) {
  const auto& driver = fixture.node["driver"];
  return driver.contains("kernel_module") && driver["kernel_module"] != driver["version"];
}

}  // namespace

session& session::instance() {
  static auto* const shared = new session;  // never destroyed: threads may call until the process has ended
  return *shared;
}

std::shared_ptr<const fixture> session::look() {
  const auto path = fixture_path();
  const bool is_same = fixture_ && path == path_ && std::ranges::all_of(fixture_->files, [](const file_identity& file) {
                         return file == identity(file.path);
                       });
  if (!is_same) {
    path_ = path;
    fixture_ = std::make_shared<const fixture>(read_fixture(path));
    if (!fixture_->fault.empty()) std::fprintf(stderr, "libnvidia-ml stand-in: %s\n", fixture_->fault.c_str());
  }
  return fixture_;
}

// As a call into a driver that hangs: it comes back when the fixture says so.
void session::hang() {
  for (;;) {
    {
      const std::scoped_lock hold(lock_);
      const auto now = look();
      if (!now->fault.empty() || !now->node.value("hangs", false)) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

return_code session::start() {
  hang();
  const std::scoped_lock hold(lock_);
  const auto now = look();
  if (!now->fault.empty()) return unknown;
  if (!is_loaded(*now)) return driver_not_loaded;
  if (is_mismatched(*now)) return version_mismatch;
  if (users_++ > 0) return success;
  cards_.clear();
  for (const auto& card : now->node["cards"])
    if (!card.value("lost", false)) cards_.push_back(card["uuid"]);
  return success;
}

return_code session::stop() {
  const std::scoped_lock hold(lock_);
  if (users_ == 0) return uninitialized;
  --users_;
  return success;
}

std::shared_ptr<const fixture> session::current() {
  hang();
  const std::scoped_lock hold(lock_);
  if (users_ == 0) throw failure{uninitialized};
  auto now = look();
  if (!now->fault.empty()) throw failure{unknown};
  if (!is_loaded(*now)) throw failure{driver_not_loaded};
  return now;
}

std::vector<std::string> session::cards() {
  const std::scoped_lock hold(lock_);
  return cards_;
}

const handle* session::intern(const handle& wanted) {
  const std::scoped_lock hold(lock_);
  return &*handles_.insert(wanted).first;
}

bool session::knows(const handle* handle) {
  const std::scoped_lock hold(lock_);
  return std::ranges::any_of(handles_, [handle](const auto& known) { return &known == handle; });
}

void session::set(const std::string& uuid, const std::string& key, nlohmann::json value) {
  const std::scoped_lock hold(lock_);
  settings_[{uuid, key}] = std::move(value);
}

nlohmann::json session::setting(const std::string& uuid, const std::string& key) {
  const std::scoped_lock hold(lock_);
  const auto setting = settings_.find({uuid, key});
  return setting == settings_.end() ? nlohmann::json() : setting->second;
}

}  // namespace nvml
