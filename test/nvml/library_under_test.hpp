#pragma once
// The built library as a foreign program loads it, and a fixture in a folder of its own that a test may change.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "abi_mig.hpp"

namespace nvml_test {

using nlohmann::json;
using nvml::device;
using nvml::return_code;

/// Looks the function up by name and calls it.
template <class... Arguments>
return_code call(const char* name, Arguments... arguments) {
  static void* const library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  using function = return_code (*)(Arguments...);
  const auto address = library ? reinterpret_cast<function>(dlsym(library, name)) : nullptr;
  EXPECT_NE(address, nullptr) << name << ": " << (library ? "no such function" : dlerror());
  return address ? address(arguments...) : nvml::function_not_found;
}

/// One value that a device function returns; a failed call fails the test.
template <class Value>
Value value(const char* name, device card) {
  Value out{};
  EXPECT_EQ(call(name, card, &out), nvml::success) << name;
  return out;
}

std::string text(const char* name, device card);
device card_at(unsigned index);
/// The card's MIG device.
device mig_at(device card, unsigned index);

/// A fixture of test/nvml/fixtures in a temporary folder; QM_NVML_FIXTURE names it while this lives.
class node {
 public:
  explicit node(const std::string& name);
  ~node();
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  /// Replaces the file as tests of a running program do: a new file is renamed over the old one.
  void replace(const json& content);
  void replace(const std::string& content);
  /// The fixture without the facts of models.
  json content() const;

  std::filesystem::path folder;
};

/// A node with the library initialised.
class session {
 public:
  explicit session(const std::string& name);
  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  nvml_test::node node;
};

struct outcome {
  int code;
  std::string output;
};
/// Our nvidia-smi on the current fixture.
outcome smi(const std::string& arguments);

}  // namespace nvml_test
