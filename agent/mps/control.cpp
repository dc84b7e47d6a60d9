#include "agent/mps/control.hpp"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <utility>

#include "text/text.hpp"

namespace agent::mps {
namespace {

using text::trimmed;

std::optional<double> number_at(std::string_view& text) {
  double out = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (problem != std::errc() || !std::isfinite(out) || out < 0) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return out;
}

std::unexpected<problem> unreadable(std::string_view command, std::string_view answer) {
  return std::unexpected("the MPS control daemon answers \"" + kube::last_line(std::string(answer)) + "\" to \"" +
                         std::string(command) + "\"");
}

}  // namespace

std::string text_of(const ceilings& limits) {
  return std::to_string(limits.cores) + " % and " + std::to_string(limits.memory_mib) + " MiB";
}

std::optional<std::int32_t> percentage_in(std::string_view answer) {
  auto text = trimmed(answer);
  const auto out = number_at(text);
  if (!out || !text.empty() || *out > 100) return {};
  return static_cast<std::int32_t>(std::lround(*out));
}

std::optional<std::int64_t> memory_mib_in(std::string_view answer) {
  auto text = trimmed(answer);
  const auto out = number_at(text);
  if (!out || text.size() != 1 || *out > 1e9) return {};
  const double scale = text == "G" ? 1024 : text == "M" ? 1 : 0;
  if (scale == 0) return {};
  return std::llround(*out * scale);
}

std::optional<std::vector<unsigned>> processes_in(std::string_view answer) {
  std::vector<unsigned> out;
  for (auto text = trimmed(answer); !text.empty(); text = trimmed(text)) {
    unsigned number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc() || number == 0) return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.empty() && text.front() != '\n') return {};
    out.push_back(number);
  }
  return out;
}

kube::program control::program(std::vector<std::string> arguments, std::string input) const {
  kube::program out{.command = std::move(arguments), .input = std::move(input)};
  out.command.insert(out.command.begin(), options_.program);
  out.environment = {{"CUDA_MPS_PIPE_DIRECTORY", pipe_folder()},
                     {"CUDA_MPS_LOG_DIRECTORY", options_.folder + "/log"},
                     {"CUDA_VISIBLE_DEVICES", options_.card},
                     // Their values would be the limits of the daemon's environment, which are no ceilings.
                     {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", std::nullopt},
                     {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", std::nullopt}};
  return out;
}

std::expected<kube::running_program, problem> control::start() const {
  std::error_code wrong;
  for (const auto* name : {"/pipe", "/log"}) {
    const auto path = options_.folder + name;
    std::filesystem::create_directories(path, wrong);
    if (wrong) return std::unexpected("cannot make the folder " + path + ": " + wrong.message());
  }
  // Clients of any user find the sockets; only the owner writes here.
  std::filesystem::permissions(pipe_folder(), std::filesystem::perms(0755), wrong);
  auto out = kube::running_program::start(program({"-f", "-multiuser-server"}, {}));
  if (!out) return std::unexpected(options_.program + ": " + out.error());
  return std::move(*out);
}

answer_of<std::string> control::command(std::string text, std::chrono::milliseconds deadline) const {
  const auto called = text;
  auto end = co_await kube::run(program({}, std::move(text) + "\n"), deadline);
  if (!end) co_return std::unexpected(options_.program + " (" + called + "): " + end.error().message);
  if (end->status == 0) co_return std::move(end->output);
  auto words = kube::last_line(end->output.empty() ? std::move(end->complaints) : std::move(end->output));
  co_return std::unexpected(words.empty() ? options_.program + " " + kube::end_in_words(end->status) : words);
}

answer_of<void> control::nothing(std::string text) const {
  const auto called = text;
  const auto answer = co_await command(std::move(text));
  if (!answer) co_return std::unexpected(answer.error());
  if (!trimmed(*answer).empty()) co_return unreadable(called, *answer);
  co_return std::expected<void, problem>();
}

answer_of<std::vector<unsigned>> control::processes(std::string text) const {
  const auto answer = co_await command(text);
  if (!answer) co_return std::unexpected(answer.error());
  auto out = processes_in(*answer);
  if (!out) co_return unreadable(text, *answer);
  co_return std::move(*out);
}

answer_of<std::vector<unsigned>> control::servers() const { return processes("get_server_list"); }

answer_of<std::vector<unsigned>> control::clients_of(unsigned server) const {
  return processes("get_client_list " + std::to_string(server));
}

answer_of<void> control::terminate(unsigned server, unsigned client) const {
  const auto text = "terminate_client " + std::to_string(server) + " " + std::to_string(client);
  const auto answer = co_await command(text, options_.end_deadline);
  if (!answer) co_return std::unexpected(answer.error());
  if (trimmed(*answer) != "0") co_return unreadable(text, *answer);
  co_return std::expected<void, problem>();
}

answer_of<std::string> control::status_of(unsigned server) const {
  const auto answer = co_await command("get_server_status " + std::to_string(server));
  if (!answer) co_return std::unexpected(answer.error());
  co_return std::string(trimmed(*answer));
}

answer_of<void> control::set_default(ceilings limits) const {
  // Its answer is the percentage that counts now, not the one that was given: `defaults` reads both.
  const auto cores = co_await command("set_default_active_thread_percentage " + std::to_string(limits.cores));
  if (!cores) co_return std::unexpected(cores.error());
  co_return co_await nothing("set_default_device_pinned_mem_limit 0 " + std::to_string(limits.memory_mib) + "M");
}

answer_of<void> control::set(unsigned server, ceilings limits) const {
  const auto number = std::to_string(server);
  const auto cores = co_await command("set_active_thread_percentage " + number + " " + std::to_string(limits.cores));
  if (!cores) co_return std::unexpected(cores.error());
  co_return co_await nothing("set_device_pinned_mem_limit " + number + " 0 " + std::to_string(limits.memory_mib) + "M");
}

answer_of<ceilings> control::read(std::string cores, std::string memory) const {
  ceilings out;
  const auto percentage = co_await command(cores);
  if (!percentage) co_return std::unexpected(percentage.error());
  const auto read_cores = percentage_in(*percentage);
  if (!read_cores) co_return unreadable(cores, *percentage);
  const auto pinned = co_await command(memory);
  if (!pinned) co_return std::unexpected(pinned.error());
  if (trimmed(*pinned).empty()) co_return std::unexpected("the MPS control daemon has no limit of memory");
  const auto read_memory = memory_mib_in(*pinned);
  if (!read_memory) co_return unreadable(memory, *pinned);
  out.cores = *read_cores, out.memory_mib = *read_memory;
  co_return out;
}

answer_of<ceilings> control::defaults() const {
  return read("get_default_active_thread_percentage", "get_default_device_pinned_mem_limit 0");
}

answer_of<ceilings> control::limits_of(unsigned server) const {
  const auto number = std::to_string(server);
  return read("get_active_thread_percentage " + number, "get_device_pinned_mem_limit " + number + " 0");
}

}  // namespace agent::mps
