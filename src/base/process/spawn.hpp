// Starts a child of the daemon: the same program with an option for its mode, and with exactly the given descriptors.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment {

// The running program, even after an upgrade replaced its file: both ends of a channel always have the same version.
inline constexpr const char* this_program = "/proc/self/exe";

// Descriptor 3 in the child is the first of `handed_over`, and so on; 0 is /dev/null.
inline constexpr int first_handed_over = 3;

struct ChildCommand {
  std::vector<std::string> argv;
  std::vector<int> handed_over;
  bool keeps_stderr = true;  // otherwise it goes to /dev/null
};

// A child process; the destructor kills it and waits for it.
class Child {
 public:
  Child() = default;
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;

  pid_t pid() const { return pid_; }
  const Fd& exited() const { return pidfd_; }  // readable once it has ended
  void kill() const;
  // A description of its end: "exit status 3", "signal 11 (Segmentation fault)". Waits for the end.
  struct Ending {
    int signal = 0;  // 0: it exited by itself
    std::string text;
  };
  Ending wait();
  bool wait_until(Deadline deadline) const;  // returns whether it has ended

 private:
  friend Result<Child> spawn(const ChildCommand& command);
  pid_t pid_ = -1;
  Fd pidfd_;
};

// Errors: unavailable. The child ends with the calling thread (see end_with_parent).
Result<Child> spawn(const ChildCommand& command);

}  // namespace muniment
