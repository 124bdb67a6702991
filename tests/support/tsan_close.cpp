// Replaces a system call of libuv by close(), in munimentd under the thread sanitizer. libuv closes a socket by a
// direct system call, which the sanitizer does not intercept: the descriptor would still seem to be that of accept4,
// and the next file with the same number would seem to race with it.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

extern "C" long syscall(long number, ...) noexcept {
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  if (number == SYS_close) return ::close(static_cast<int>(arguments[0]));
  register long fourth asm("r10") = arguments[3];
  register long fifth asm("r8") = arguments[4];
  register long sixth asm("r9") = arguments[5];
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]), "r"(fourth), "r"(fifth),
                 "r"(sixth)
               : "rcx", "r11", "memory");
  if (result >= -4095 && result < 0) {
    errno = static_cast<int>(-result);
    return -1;
  }
  return result;
}
