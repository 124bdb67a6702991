// The sandbox of a child that works on bytes which somebody hostile may have chosen: what it was not
// given it cannot reach, whatever a library in it is made to do.
//
// Entered once, early, by the child itself, while it has one thread: the kernel's rules (Landlock,
// seccomp) hold for the thread that takes them on and for those that it starts. Kernels differ and
// containers refuse some of it, so `enter_sandbox` answers what really holds; a policy says what it
// will not live without.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace muniment {

struct SandboxPolicy {
  std::vector<std::string> read_only;   // folders with all below them, and files; one that is not there is passed over
  std::vector<std::string> read_write;  // folders; each must be there
  bool threads = false;                 // whether it may start threads; other processes never
  std::int64_t address_space_bytes_max = 0;  // 0: no limit of its own
  std::int64_t cpu_seconds_max = 0;          // 0: none
  std::int64_t open_files_max = 1'024;
  bool needs_file_rules = false;   // fails where Landlock does not hold …
  bool needs_call_filter = false;  // … and where seccomp does not
};

// What holds from now on.
struct SandboxReport {
  int landlock_abi = 0;        // 0: no rules for files
  bool network_rules = false;  // Landlock's own (ABI 4); the call filter refuses sockets anyway
  bool call_filter = false;    // seccomp
  bool capabilities_dropped = false;
  std::vector<std::string> missing;  // "Landlock: Operation not supported"
};

// Errors: unavailable, where what the policy needs cannot be had, and then the child must end;
// conflict, where there are threads already.
Result<SandboxReport> enter_sandbox(const SandboxPolicy& policy);

// What every program reads of the system that it runs on: shared libraries, character sets, time zones.
std::vector<std::string> system_files();

// The child ends with the thread that started it, not with its process: that thread must outlive
// it. True unless the parent is gone already.
bool end_with_parent(pid_t parent);

// Closes every descriptor from `first` on.
void close_descriptors_from(int first);

namespace sandbox {

// The allowlist of system calls (sandbox_calls.cpp). What is not on it fails with EPERM.
Status filter_calls(bool threads);

}  // namespace sandbox

}  // namespace muniment
