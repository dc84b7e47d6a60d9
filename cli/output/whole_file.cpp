#include "cli/output/whole_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace cli {
namespace {

namespace files = std::filesystem;

/// SIGINT and what else asks for an end come after the file, not in its middle.
class end_put_off {
 public:
  end_put_off() {
    sigset_t ends;
    sigemptyset(&ends);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, number);
    pthread_sigmask(SIG_BLOCK, &ends, &before_);
  }
  end_put_off(const end_put_off&) = delete;
  end_put_off& operator=(const end_put_off&) = delete;
  ~end_put_off() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

/// @return 0, or errno
int write_all(std::string_view text, const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return errno;
  int failure = 0;
  while (!text.empty() && failure == 0) {
    const auto size = ::write(file, text.data(), text.size());
    if (size >= 0)
      text.remove_prefix(static_cast<std::size_t>(size));
    else if (errno != EINTR)
      failure = errno;
  }
  if (::close(file) != 0 && failure == 0) failure = errno;
  return failure;
}

}  // namespace

void outlive_size_limit() {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGXFSZ, &action, nullptr);
}

int write_whole_file(std::string_view text, const std::string& path) {
  std::error_code ignored;
  const auto type = files::status(path, ignored).type();
  if (type != files::file_type::not_found && type != files::file_type::regular) return write_all(text, path);
  const auto target = files::is_symlink(path, ignored) ? files::weakly_canonical(path, ignored).string() : path;
  const auto part = target + ".part";
  const end_put_off whole;
  int failure = write_all(text, part);
  if (failure == 0 && std::rename(part.c_str(), target.c_str()) != 0) failure = errno;
  if (failure != 0) files::remove(part, ignored);
  return failure;
}

}  // namespace cli
