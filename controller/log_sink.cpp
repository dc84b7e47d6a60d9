#include "controller/log_sink.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace controller {

log_sink::log_sink(int fd, std::size_t bound) : fd_(fd), bound_(bound) {
  struct stat status{};
  if (fstat(fd, &status) != 0) return;
  socket_ = S_ISSOCK(status.st_mode);
  if (!S_ISFIFO(status.st_mode) && isatty(fd) == 0)
    return;  // a regular file never blocks, and a second offset would overwrite
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int again = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (again < 0) return;
  fd_ = again;
  own_ = true;
}

log_sink::~log_sink() {
  flush();
  if (own_) close(fd_);
}

long log_sink::try_write(const char* bytes, std::size_t size) {
  for (;;) {
    const ssize_t wrote = socket_ ? send(fd_, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) : ::write(fd_, bytes, size);
    if (wrote >= 0) return wrote;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
  }
}

void log_sink::write(std::string line) {
  kept_bytes_ += line.size();
  kept_.push_back(std::move(line));
  flush();
  // A line that was begun stays: half a line would spoil the next one too.
  const std::size_t begun = written_of_first_ > 0 ? 1 : 0;
  while (kept_bytes_ > bound_ && kept_.size() > begun) {
    const auto oldest = kept_.begin() + static_cast<std::ptrdiff_t>(begun);
    kept_bytes_ -= oldest->size();
    kept_.erase(oldest);
    ++dropped_;
  }
}

bool log_sink::flush() {
  while (!kept_.empty()) {
    const std::string& line = kept_.front();
    const long wrote = try_write(line.data() + written_of_first_, line.size() - written_of_first_);
    if (wrote == 0) return false;
    if (wrote < 0) ++dropped_;
    if (wrote > 0) written_of_first_ += static_cast<std::size_t>(wrote);
    if (wrote > 0 && written_of_first_ < line.size()) continue;
    kept_bytes_ -= line.size();
    written_of_first_ = 0;
    kept_.pop_front();
  }
  return true;
}

}  // namespace controller
