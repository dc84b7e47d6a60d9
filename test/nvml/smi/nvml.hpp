#pragma once
// The library as nvidia-smi sees it: opened at run time and read only through NVML's functions.

#include <optional>
#include <string>
#include <vector>

#include "agent/cards/nvml_abi.hpp"

namespace smi {

using nvml::device;
using nvml::return_code;

/// The program ends with this message and exit code (those of NVIDIA's manual page for nvidia-smi).
struct end {
  int code;
  std::string message;
};

class library {
 public:
  library();  // loads and initialises; throws end
  ~library();
  library(const library&) = delete;
  library& operator=(const library&) = delete;

  /// Calls the function; function_not_found when the library has none of that name.
  template <class... Arguments>
  return_code call(const char* name, Arguments... arguments) const {
    using function = return_code (*)(Arguments...);
    const auto address = reinterpret_cast<function>(symbol(name));
    return address ? address(arguments...) : nvml::function_not_found;
  }

  std::string text_of(return_code code) const;
  /// The text or number of a device function, or nothing where it is not supported. Throws end when the card is lost.
  std::optional<std::string> text(const char* name, device card) const;
  template <class Number>
  std::optional<Number> number(const char* name, device card) const {
    Number value{};
    const auto code = call(name, card, &value);
    check(code, card);
    return code ? std::nullopt : std::optional<Number>(value);
  }
  std::string system_text(const char* name) const;
  std::string cuda() const;  // "12.4"
  std::vector<device> cards() const;
  nvml::pci_info pci(device card) const;

 private:
  void* symbol(const char* name) const;
  void check(return_code code, device card) const;

  void* handle_ = nullptr;
};

}  // namespace smi
