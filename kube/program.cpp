#include "kube/program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/this_coro.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "kube/wait_list.hpp"

namespace kube {
namespace {

constexpr std::size_t largest_output = 1 << 20;

std::vector<std::string> environment_of(const program& program) {
  std::vector<std::string> out;
  for (char** line = ::environ; line && *line; ++line) {
    const std::string_view entry(*line);
    if (!program.environment.contains(std::string(entry.substr(0, entry.find('='))))) out.emplace_back(entry);
  }
  for (const auto& [name, value] : program.environment)
    if (value) out.push_back(name + "=" + *value);
  return out;
}

using process_file = boost::asio::posix::stream_descriptor;

/// Wakes who waits in the list once the file is readable. It is closed with what is returned, which is not open where
/// there is no file.
boost::asio::awaitable<process_file> watched(int file, std::shared_ptr<wait_list> end) {
  process_file out(co_await boost::asio::this_coro::executor);
  boost::system::error_code problem;
  if (file >= 0) out.assign(file, problem);
  if (problem) ::close(file);
  if (out.is_open())
    out.async_wait(process_file::wait_read, [end = std::move(end)](boost::system::error_code canceled) {
      if (!canceled) end->notify_all();
    });
  co_return out;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

/// A file without a name, closed with its owner.
class running_program::memory_file {
 public:
  explicit memory_file(const char* name) : fd_(::memfd_create(name, MFD_CLOEXEC)) {}
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;
  ~memory_file() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const { return fd_; }
  bool put(std::string_view text) const {
    return ::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
           ::lseek(fd_, 0, SEEK_SET) == 0;
  }
  std::string text() const {
    struct stat about{};
    if (::fstat(fd_, &about) != 0) return {};
    std::string all(std::min(static_cast<std::size_t>(about.st_size), largest_output), '\0');
    const auto size = ::pread(fd_, all.data(), all.size(), 0);
    all.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return all;
  }

 private:
  int fd_;
};

running_program::running_program()
    : output_(std::make_unique<memory_file>("program-out")),
      complaints_(std::make_unique<memory_file>("program-err")) {}
running_program::running_program(running_program&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      has_group_(other.has_group_),
      output_(std::move(other.output_)),
      complaints_(std::move(other.complaints_)) {}
running_program& running_program::operator=(running_program&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(has_group_, other.has_group_);
  std::swap(output_, other.output_);
  std::swap(complaints_, other.complaints_);
  return *this;
}
running_program::~running_program() {
  if (pid_ <= 0) return;
  signal(SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

std::expected<running_program, std::string> running_program::start(const program& program) {
  running_program out;
  const memory_file input("program-in");
  if (out.output_->fd() < 0 || out.complaints_->fd() < 0 || input.fd() < 0 || !input.put(program.input))
    return std::unexpected(std::string("memfd_create: ") + std::strerror(errno));
  auto args = program.command;
  auto variables = environment_of(program);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (!program.has_terminal) {
    posix_spawn_file_actions_adddup2(&files, input.fd(), 0);
    posix_spawn_file_actions_adddup2(&files, out.complaints_->fd(), 2);
  }
  posix_spawn_file_actions_adddup2(&files, out.output_->fd(), 1);
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  out.has_group_ = !program.has_terminal;
  if (out.has_group_) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int failed = ::posix_spawnp(&out.pid_, args.front().c_str(), &files, &attributes, pointers_to(args).data(),
                                    pointers_to(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed == 0) return out;
  out.pid_ = -1;
  return std::unexpected(failed == ENOENT ? std::string("not found") : std::string(std::strerror(failed)));
}

std::optional<int> running_program::ended() {
  if (pid_ <= 0) return 0;
  int status = 0;
  const auto got = ::waitpid(pid_, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return std::nullopt;
  pid_ = -1;
  return got < 0 ? 0 : status;  // someone else reaped it: the output decides
}

int running_program::end_file() const { return pid_ > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)) : -1; }

void running_program::signal(int number) const {
  if (pid_ > 0) ::kill(has_group_ ? -pid_ : pid_, number);
}

std::string running_program::output() const { return output_->text(); }
std::string running_program::complaints() const { return complaints_->text(); }

std::string last_line(std::string text) {
  while (!text.empty() && std::strchr(" \t\r\n", text.back())) text.pop_back();
  if (const auto cut = text.rfind('\n'); cut != std::string::npos) text.erase(0, cut + 1);
  if (text.size() > 300) text = text.substr(0, 300) + "...";
  return text;
}

std::string end_in_words(int status) {
  if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
  return "failed with exit code " + std::to_string(WEXITSTATUS(status));
}

namespace {

bool handled_by(int number, void (*handler)(int)) {
  struct sigaction about{};
  return ::sigaction(number, nullptr, &about) == 0 && about.sa_handler == handler;
}

/// What ends this process while a program runs would leave the program alone: it is in a group of its own, which Ctrl-C
/// of a terminal does not reach. Signals that are ignored stay so.
class end_of_process {
 public:
  end_of_process(const boost::asio::any_io_executor& executor, std::shared_ptr<wait_list> waiting)
      : signals_(executor) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP})
      if (!handled_by(number, SIG_IGN)) signals_.add(number);
    signals_.async_wait(
        [number = number_, waiting = std::move(waiting)](const boost::system::error_code& failed, int received) {
          if (failed) return;
          *number = received;
          waiting->notify_all();
        });
  }
  bool is_near() const { return *number_ != 0; }
  /// As it would have ended, unless someone else waits for this signal.
  void come() {
    signals_.clear();
    if (handled_by(*number_, SIG_DFL)) ::raise(*number_);
  }

 private:
  boost::asio::signal_set signals_;
  std::shared_ptr<int> number_ = std::make_shared<int>(0);
};

}  // namespace

task<program_end> run(program program, std::chrono::milliseconds limit) {
  using namespace std::chrono_literals;
  using clock = std::chrono::steady_clock;
  const auto end = std::make_shared<wait_list>();  // of the program, or of this process
  end_of_process process_end(co_await boost::asio::this_coro::executor, end);
  auto running = running_program::start(program);
  if (!running) co_return config_error(running.error());
  const auto process = co_await watched(running->end_file(), end);
  const auto deadline = clock::now() + limit;
  std::optional<int> status;
  for (auto pause = 2ms; !(status = running->ended()); pause = std::min(pause * 2, 50ms)) {
    if (clock::now() >= deadline)
      co_return std::unexpected(error{errc::timeout,
                                      0,
                                      "has not ended after " +
                                          std::to_string(std::chrono::ceil<std::chrono::seconds>(limit).count()) +
                                          " s and was killed",
                                      {}});
    if (process_end.is_near()) {
      running = std::unexpected(std::string());  // killed, and what it has started
      process_end.come();
      co_return std::unexpected(error{errc::cancelled, 0, "was ended together with this program", {}});
    }
    const auto until = process.is_open() ? deadline : std::min(deadline, clock::now() + pause);
    const auto woken = co_await wait_list::wait(end, until);
    if (woken == woken::by_cancellation) co_return std::unexpected(error{errc::cancelled, 0, "cancelled", {}});
  }
  co_return program_end{*status, running->output(), running->complaints()};
}

}  // namespace kube
