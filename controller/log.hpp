#pragma once
// The log: a constant message and key=value fields, one line a record, text or JSON. error: someone must act; warn:
// retried or degraded; info: state changed. Never object content, never tokens. spdlog is behind it. A blocked reader
// never blocks us: what the pipe does not take is kept up to a bound, then the oldest lines are dropped and counted.
// The one process-wide object of the program, because everything logs; tests take the lines with `log::capture`.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace controller::log {

enum class level { debug, info, warn, error };
enum class format { text, json };

/// The value of a field; text is borrowed for the call.
using value = std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool>;

struct field {
  std::string_view name;
  value is;

  template <class T>
  field(std::string_view key, const T& content) : name(key), is(convert(content)) {}

 private:
  template <class T>
  static value convert(const T& content) {
    if constexpr (std::is_same_v<T, bool>) {
      return content;
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<double>(content);
    } else if constexpr (std::is_unsigned_v<T>) {
      return static_cast<std::uint64_t>(content);
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<std::int64_t>(content);
    } else {
      return std::string_view(content);
    }
  }
};
using fields = std::initializer_list<field>;

void write(level level, std::string_view message, fields fields = {});
inline void debug(std::string_view message, fields fields = {}) { write(level::debug, message, fields); }
inline void info(std::string_view message, fields fields = {}) { write(level::info, message, fields); }
inline void warn(std::string_view message, fields fields = {}) { write(level::warn, message, fields); }
inline void error(std::string_view message, fields fields = {}) { write(level::error, message, fields); }

/// Before the first line; the default is text, info, file descriptor 2 (stdout belongs to what a command prints).
void configure(format format, level level, int fd = 2);
/// "debug", "info", "warn", "error".
bool parse_level(std::string_view text, level& level);

/// Tries to write what is still kept; called by the loop every second and before the process ends. True when nothing is
/// left.
bool flush();
/// Lines that were never written, since the start.
std::uint64_t dropped();

/// Takes the lines instead of the descriptor, from level debug on, as long as it lives. For tests.
class capture {
 public:
  explicit capture(format style = format::text);
  ~capture();
  capture(const capture&) = delete;
  capture& operator=(const capture&) = delete;
  /// Without the line end.
  const std::vector<std::string>& lines() const;
  bool contains(std::string_view text) const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace controller::log
