#pragma once
// What the library keeps in a process: how often it was initialised, the fixture as last read, and the handles it gave
// out. All of it is behind one lock; a call works on the reading it took at its start.

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "agent/cards/nvml_abi.hpp"
#include "fixture.hpp"

namespace nvml {

enum class handle_kind { card, mig_device, gpu_instance, compute_instance };

/// A handle stays valid until the process ends; what it names may be lost. `uuid` is the card's, also for its
/// instances.
struct handle {
  handle_kind kind = handle_kind::card;
  std::string uuid;
  unsigned gpu_instance = no_instance;
  unsigned compute_instance = no_instance;
  auto operator<=>(const handle&) const = default;
};

/// The error code that a call ends with.
struct failure {
  return_code code;
};

class session {
 public:
  static session& instance();

  return_code start();
  return_code stop();
  /// The fixture as it is now. Throws failure: uninitialized, driver_not_loaded, or unknown for a broken fixture.
  std::shared_ptr<const fixture> current();
  /// UUIDs of the cards that were there at the first nvmlInit; a card's place in it is its NVML index.
  std::vector<std::string> cards();

  const handle* intern(const handle& wanted);
  bool knows(const handle* handle);

  /// Settings that calls changed (compute and persistence mode). They live as long as the process.
  void set(const std::string& uuid, const std::string& key, nlohmann::json value);
  nlohmann::json setting(const std::string& uuid, const std::string& key);

 private:
  void hang();
  std::shared_ptr<const fixture> look();

  std::mutex lock_;
  int users_ = 0;
  std::string path_;
  std::shared_ptr<const fixture> fixture_;
  std::vector<std::string> cards_;
  std::set<handle> handles_;
  std::map<std::pair<std::string, std::string>, nlohmann::json> settings_;
};

}  // namespace nvml
