// Starting a child of this daemon: the same program again, told by an option what it is to be, with
// the descriptors that it is given and no others.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::retrieval {

// The program that runs, even after its file was replaced by an upgrade: both sides of a channel are
// then of one version, always.
inline constexpr const char* this_program = "/proc/self/exe";

// Descriptor 3 in the child is the first of `handed_over`, and so on; 0 is /dev/null.
inline constexpr int first_handed_over = 3;

struct ChildCommand {
  std::vector<std::string> argv;
  std::vector<int> handed_over;
  bool keeps_stderr = true;  // otherwise it goes to /dev/null
};

// A child process that is killed, and waited for, when this goes.
class Child {
 public:
  Child() = default;
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;

  pid_t pid() const { return pid_; }
  const Fd& exited() const { return pidfd_; }  // readable once it has ended
  void kill() const;
  // How it ended, in words: "exit status 3", "signal 11 (Segmentation fault)"; waits for that.
  struct Ending {
    int signal = 0;  // 0: it exited by itself
    std::string text;
  };
  Ending wait();
  bool wait_until(Deadline deadline) const;  // whether it has ended

 private:
  friend Result<Child> spawn(const ChildCommand& command);
  pid_t pid_ = -1;
  Fd pidfd_;
};

// Errors: unavailable. The child ends with the calling thread (see end_with_parent).
Result<Child> spawn(const ChildCommand& command);

}  // namespace muniment::retrieval
