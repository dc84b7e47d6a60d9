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

spdlog::level::level_enum to_spdlog(level level) {
  return static_cast<spdlog::level::level_enum>(static_cast<int>(level) + static_cast<int>(spdlog::level::debug));
}

constexpr std::string_view names[] = {"debug", "info", "warn", "error"};
std::string_view name_of(level level) { return names[static_cast<std::size_t>(level)]; }

/// The time in front of what `write` has laid out.
std::unique_ptr<spdlog::formatter> formatter_of(format style) {
  constexpr auto utc = spdlog::pattern_time_type::utc;
  constexpr auto text = "%Y-%m-%dT%H:%M:%S.%eZ %v", json = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v})";
  return std::make_unique<spdlog::pattern_formatter>(style == format::json ? json : text, utc, "\n");
}

class descriptor_sink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit descriptor_sink(int fd) : sink_(fd) {}
  bool drained() {
    const std::lock_guard hold(mutex_);
    return sink_.flush();
  }
  std::uint64_t dropped() {
    const std::lock_guard hold(mutex_);
    return sink_.dropped();
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& line) override {
    spdlog::memory_buf_t text;
    formatter_->format(line, text);
    sink_.write(std::string(text.data(), text.size()));
  }
  void flush_() override { sink_.flush(); }

 private:
  log_sink sink_;
};

struct target {
  format style = format::text;
  std::shared_ptr<descriptor_sink> descriptor;
  std::shared_ptr<spdlog::logger> logger;
};

std::shared_ptr<spdlog::logger> logger_over(spdlog::sink_ptr sink, format format, level level) {
  sink->set_formatter(formatter_of(format));
  auto made = std::make_shared<spdlog::logger>("quartermaster", std::move(sink));
  made->set_level(to_spdlog(level));
  made->set_error_handler([](const std::string&) {});  // a log that cannot be written is no reason to stop
  return made;
}

/// Never destroyed: code that runs at exit may log.
target& current() {
  static target* const only = [] {
    auto* made = new target;
    made->descriptor = std::make_shared<descriptor_sink>(2);
    made->logger = logger_over(made->descriptor, format::text, level::info);
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
  text::append_escaped(out, text);
  if (quote) out += '"';
}

void append_value(std::string& out, const value& is, format style) {
  std::visit(
      [&](const auto& v) {
        using type = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<type, std::string_view>) {
          append_text(out, v, style == format::json || !bare_word(v));
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

void write(level level, std::string_view message, fields fields) {
  const target& target = current();
  if (!target.logger->should_log(to_spdlog(level))) return;
  auto line = target.style == format::json ? fmt::format(R"("level":"{}","msg":)", name_of(level))
                                           : fmt::format("{:<5} ", name_of(level));
  append_text(line, message, target.style == format::json);
  for (const auto& f : fields) {
    line += target.style == format::json ? ",\"" : " ";
    text::append_escaped(line, f.name);
    line += target.style == format::json ? "\":" : "=";
    append_value(line, f.is, target.style);
  }
  target.logger->log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

void configure(format format, level level, int fd) {
  target& target = current();
  target.style = format;
  target.descriptor = std::make_shared<descriptor_sink>(fd);
  target.logger = logger_over(target.descriptor, format, level);
}

bool parse_level(std::string_view text, level& out) {
  const auto* const match = std::ranges::find(names, text);
  if (match == std::end(names)) return false;
  out = static_cast<level>(match - std::begin(names));
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

capture::capture(format format) : state_(std::make_unique<state>()) {
  target& target = current();
  state_->before_as = std::exchange(target.style, format);
  state_->before = std::exchange(target.logger, logger_over(state_->taken, format, level::debug));
}
capture::~capture() {
  current().style = state_->before_as;
  current().logger = state_->before;
}
const std::vector<std::string>& capture::lines() const { return state_->taken->lines; }
bool capture::contains(std::string_view text) const {
  return std::ranges::any_of(lines(), [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

}  // namespace controller::log
