// A wall clock that a test can move, to be preloaded. WALL_CLOCK_FILE names a file of eight bytes: how many seconds the wall clock
// of the process is ahead of the machine's. Monotonic clocks are left alone, as they are when a real one is stepped.
//
// Debian's libfaketime does this too, but ends every program that is built with AddressSanitizer.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t* ahead;

__attribute__((constructor)) static void begin(void) {
  const char* path = getenv("WALL_CLOCK_FILE");
  const int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  void* map = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (map == MAP_FAILED) _exit(121);
  ahead = map;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  const long failed = syscall(SYS_clock_gettime, clock, now);
  if (!failed && ahead && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *ahead;
  return (int)failed;
}

time_t time(time_t* copy) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (copy) *copy = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  struct timespec exact;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}
