#include "controller/log.hpp"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "controller/log_sink.hpp"
#include "text/escape.hpp"

namespace controller::log {
namespace {

spdlog::level::level_enum to_spdlog(level at) {
  return static_cast<spdlog::level::level_enum>(static_cast<int>(at) + static_cast<int>(spdlog::level::debug));
}

constexpr std::string_view names[] = {"debug", "info", "warn", "error"};
std::string_view name_of(level at) { return names[static_cast<std::size_t>(at)]; }

/// The time in front of what `write` has laid out.
std::unique_ptr<spdlog::formatter> formatter_of(format as) {
  constexpr auto utc = spdlog::pattern_time_type::utc;
  constexpr auto text = "%Y-%m-%dT%H:%M:%S.%eZ %v", json = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v})";
  return std::make_unique<spdlog::pattern_formatter>(as == format::json ? json : text, utc, "\n");
}

class descriptor_sink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit descriptor_sink(int fd) : to_(fd) {}
  bool drained() {
    const std::lock_guard hold(mutex_);
    return to_.flush();
  }
  std::uint64_t dropped() {
    const std::lock_guard hold(mutex_);
    return to_.dropped();
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& line) override {
    spdlog::memory_buf_t text;
    formatter_->format(line, text);
    to_.write(std::string(text.data(), text.size()));
  }
  void flush_() override { to_.flush(); }

 private:
  log_sink to_;
};

struct target {
  format as = format::text;
  std::shared_ptr<descriptor_sink> descriptor;
  std::shared_ptr<spdlog::logger> to;
};

std::shared_ptr<spdlog::logger> logger_over(spdlog::sink_ptr sink, format as, level from) {
  sink->set_formatter(formatter_of(as));
  auto made = std::make_shared<spdlog::logger>("quartermaster", std::move(sink));
  made->set_level(to_spdlog(from));
  made->set_error_handler([](const std::string&) {});  // a log that cannot be written is no reason to stop
  return made;
}

/// Never destroyed: code that runs at exit may log.
target& current() {
  static target* const only = [] {
    auto* made = new target;
    made->descriptor = std::make_shared<descriptor_sink>(2);
    made->to = logger_over(made->descriptor, format::text, level::info);
    return made;
  }();
  return *only;
}

bool bare_word(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\'; });
}

void append_text(std::string& out, std::string_view text, bool quote) {
  if (quote) out += '"';
  append_escaped(out, text);
  if (quote) out += '"';
}

void append_value(std::string& out, const value& is, format as) {
  std::visit(
      [&](const auto& v) {
        using type = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<type, std::string_view>) {
          append_text(out, v, as == format::json || !bare_word(v));
        } else if constexpr (std::is_same_v<type, double>) {
          if (std::isfinite(v))
            fmt::format_to(std::back_inserter(out), "{}", v);
          else
            out += "null";
        } else {
          fmt::format_to(std::back_inserter(out), "{}", v);
        }
      },
      is);
}

}  // namespace

void write(level at, std::string_view message, fields of) {
  const target& to = current();
  if (!to.to->should_log(to_spdlog(at))) return;
  auto line =
      to.as == format::json ? fmt::format(R"("level":"{}","msg":)", name_of(at)) : fmt::format("{:<5} ", name_of(at));
  append_text(line, message, to.as == format::json);
  for (const auto& f : of) {
    line += to.as == format::json ? ",\"" : " ";
    append_escaped(line, f.name);
    line += to.as == format::json ? "\":" : "=";
    append_value(line, f.is, to.as);
  }
  to.to->log(to_spdlog(at), spdlog::string_view_t(line.data(), line.size()));
}

void configure(format as, level from, int fd) {
  target& to = current();
  to.as = as;
  to.descriptor = std::make_shared<descriptor_sink>(fd);
  to.to = logger_over(to.descriptor, as, from);
}

bool parse_level(std::string_view text, level& into) {
  const auto* const at = std::ranges::find(names, text);
  if (at == std::end(names)) return false;
  into = static_cast<level>(at - std::begin(names));
  return true;
}

bool flush() { return current().descriptor->drained(); }
std::uint64_t dropped() { return current().descriptor->dropped(); }

struct capture::state {
  class sink : public spdlog::sinks::base_sink<std::mutex> {
   public:
    std::vector<std::string> lines;

   protected:
    void sink_it_(const spdlog::details::log_msg& line) override {
      spdlog::memory_buf_t text;
      formatter_->format(line, text);
      lines.emplace_back(text.data(), text.size() - 1);
    }
    void flush_() override {}
  };
  std::shared_ptr<sink> taken = std::make_shared<sink>();
  format before_as;
  std::shared_ptr<spdlog::logger> before;
};

capture::capture(format as) : state_(std::make_unique<state>()) {
  target& to = current();
  state_->before_as = std::exchange(to.as, as);
  state_->before = std::exchange(to.to, logger_over(state_->taken, as, level::debug));
}
capture::~capture() {
  current().as = state_->before_as;
  current().to = state_->before;
}
const std::vector<std::string>& capture::lines() const { return state_->taken->lines; }
bool capture::contains(std::string_view text) const {
  return std::ranges::any_of(lines(), [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

}  // namespace controller::log
