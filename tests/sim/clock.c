/* Shifts the wall clock of a daemon under test, by LD_PRELOAD. The file $MUNIMENT_CLOCK contains one 64-bit number, the
 * shift in seconds. The other clocks are unchanged. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t* off;

__attribute__((constructor)) static void begin(void) {
  const char* path = getenv("MUNIMENT_CLOCK");
  const int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file >= 0) {
    void* shared = mmap(NULL, sizeof *off, PROT_READ, MAP_SHARED, file, 0);
    if (shared != MAP_FAILED) off = shared;
    close(file);
  }
  unsetenv("LD_PRELOAD");   /* Postgres uses the machine's clock */
}

int clock_gettime(clockid_t which, struct timespec* now) {
  const int status = (int)syscall(SYS_clock_gettime, which, now);
  if (status == 0 && which == CLOCK_REALTIME && off) now->tv_sec += *off;
  return status;
}
