// Confines a child process that handles hostile bytes: even a compromised library in it cannot reach anything that the
// policy does not grant.
//
// The child enters it once, early, while it has one thread: the kernel's rules (Landlock, seccomp) apply to the calling
// thread and to threads that it starts. Kernels differ and containers refuse parts of it, so that `enter_sandbox`
// reports which rules apply; a policy names those that it requires.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace muniment {

// Rules of Landlock. They apply to the calling thread and to what it starts; no_new_privs must be set.
struct FileRules {
  std::vector<std::string> read_only;   // folders with their content, and files; missing ones are skipped
  std::vector<std::string> read_write;  // folders; each must exist
  std::vector<std::string> terminals;  // folders whose devices may also be controlled (ioctl); missing ones are skipped
  bool programs = false;               // permits to execute files, and to create links, FIFOs and sockets
  bool network = false;                // permits TCP
};

// Returns the ABI of the rules that apply: as much as the kernel has. Errors: unavailable without Landlock.
Result<int> confine_files(const FileRules& rules);

struct SandboxPolicy {
  FileRules files;
  bool threads = false;                      // permits threads; other processes are never permitted
  bool paths = true;                         // permits calls that name a file; Landlock decides which files
  std::int64_t address_space_bytes_max = 0;  // 0: no separate limit
  std::int64_t cpu_seconds_max = 0;          // 0: none
  std::int64_t open_files_max = 1'024;
  bool needs_file_rules = false;   // fails without Landlock
  bool needs_call_filter = false;  // fails without seccomp
};

// The rules that apply from now on.
struct SandboxReport {
  int landlock_abi = 0;        // 0: no rules for files
  bool network_rules = false;  // Landlock's own (ABI 4); the call filter also refuses sockets
  bool call_filter = false;    // seccomp
  bool capabilities_dropped = false;
  std::vector<std::string> missing;  // "Landlock: Operation not supported"
};

// Errors: unavailable if a required rule cannot be applied, and the child must then exit; conflict if other threads run
// already.
Result<SandboxReport> enter_sandbox(const SandboxPolicy& policy);

// Returns the system files that every program reads: shared libraries, character sets, time zones.
std::vector<std::string> system_files();

// Ends the child with the thread that started it, not with its process: that thread must outlive it. Returns false if
// the parent has ended already.
bool end_with_parent(pid_t parent);

// Closes every descriptor from `first` on.
void close_descriptors_from(int first);

namespace sandbox {

// Installs the allowlist of system calls (sandbox_calls.cpp). Other calls fail with EPERM.
Status filter_calls(bool threads, bool paths);

}  // namespace sandbox

}  // namespace muniment
