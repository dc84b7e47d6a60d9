// The static C++ library of Debian 12 needs five names that C libraries before 2.36 do not have. They are defined here,
// hidden in this library, so it also loads where the C library is 2.31. symbols_test.sh finds a sixth one.
#include <dlfcn.h>
#include <link.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace {

// The loaded object that contains the address, and its table for stack unwinding.
int match(dl_phdr_info* info, size_t, void* argument) {
  auto& wanted = *static_cast<dl_find_object*>(argument);
  const auto address = reinterpret_cast<ElfW(Addr)>(wanted.dlfo_map_start);
  const ElfW(Phdr)* table = nullptr;
  bool is_inside = false;
  for (unsigned index = 0; index < info->dlpi_phnum; ++index) {
    const auto& header = info->dlpi_phdr[index];
    const auto start = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && address >= start && address < start + header.p_memsz) is_inside = true;
    if (header.p_type == PT_GNU_EH_FRAME) table = &header;
  }
  if (!is_inside || !table) return 0;
  wanted.dlfo_eh_frame = reinterpret_cast<void*>(info->dlpi_addr + table->p_vaddr);
  return 1;
}

}  // namespace

extern "C" {

char __libc_single_threaded = 0;

int _dl_find_object(void* address, dl_find_object* result) noexcept {
  *result = {};
  result->dlfo_map_start = address;
  return dl_iterate_phdr(match, result) == 1 ? 0 : -1;
}

int fstat64(int file, struct stat64* result) noexcept { return static_cast<int>(syscall(SYS_fstat, file, result)); }

int pthread_once(pthread_once_t* control, void (*function)()) {
  constexpr int fresh = 0, running = 1, done = 2;
  std::atomic_ref state(*control);
  for (int expected = fresh; !state.compare_exchange_strong(expected, running); expected = fresh) {
    if (expected == done) return 0;
    sched_yield();
  }
  function();
  state = done;
  return 0;
}

// Only its address is used: it says that the process can have threads.
int __pthread_key_create(pthread_key_t*, void (*)(void*)) noexcept { return EAGAIN; }
}
