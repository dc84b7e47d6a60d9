#include "test/agent/static_pod/system_calls.hpp"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

namespace {

int count = 0, nth = 0, number = 0;
bool armed = false;

bool fails() {
  if (!armed || ++count != nth) return false;
  if (number == 0) ::_exit(9);
  errno = number;
  return true;
}

}  // namespace

namespace system_calls {

void fail(int index, int error_code) {
  count = 0;
  nth = index;
  number = error_code;
  armed = true;
}
void kill_at(int index) { fail(index, 0); }
int stop() {
  armed = false;
  return count;
}

}  // namespace system_calls

extern "C" {

int __real_openat(int, const char*, int, ...);
ssize_t __real_write(int, const void*, size_t);
int __real_fsync(int);
int __real_fchmod(int, mode_t);
int __real_renameat(int, const char*, int, const char*);
int __real_unlinkat(int, const char*, int);
int __real_mkdirat(int, const char*, mode_t);

int __wrap_openat(int folder, const char* name, int flags, ...) {
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  return fails() ? -1 : __real_openat(folder, name, flags, mode);
}
ssize_t __wrap_write(int file, const void* bytes, size_t size) {
  return fails() ? -1 : __real_write(file, bytes, size);
}
int __wrap_fsync(int file) { return fails() ? -1 : __real_fsync(file); }
int __wrap_fchmod(int file, mode_t mode) { return fails() ? -1 : __real_fchmod(file, mode); }
int __wrap_renameat(int old_folder, const char* old, int new_folder, const char* name) {
  return fails() ? -1 : __real_renameat(old_folder, old, new_folder, name);
}
int __wrap_unlinkat(int folder, const char* name, int flags) {
  return fails() ? -1 : __real_unlinkat(folder, name, flags);
}
int __wrap_mkdirat(int folder, const char* name, mode_t mode) {
  return fails() ? -1 : __real_mkdirat(folder, name, mode);
}

}  // extern "C"
