// Confines a command of a blind workflow: the command sees only the folders of its view, in its own mount, process,
// network, IPC and host name namespaces, as an unprivileged user without capabilities. Landlock limits what it may
// change in the view. A seccomp notifier reports accesses outside the view; the view itself enforces them.
//
// All functions run in a forked child with one thread, before exec.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace muniment::cli {

struct View {
  std::vector<std::string> reads;   // absolute paths of files and folders; missing ones are skipped
  std::vector<std::string> writes;  // absolute paths of folders
  bool network = false;             // keeps the network of the caller
  std::int64_t tmp_bytes_max = 0;   // size of the private /tmp and /dev/shm together
};

// Returns the folders of the system that every command can read: programs, libraries, and /etc.
std::vector<std::string> system_view();

// User of confined commands if the caller is root: nobody.
inline constexpr uid_t confined_uid = 65534;

// Enters new namespaces; the next child is process 1 of its own process namespace. Returns the failed step, or an empty
// text; errno has the reason.
std::string enter_namespaces(const View& view);

// Builds the view below `root`, an empty folder, and makes it the root of the process. Call in process 1. Returns as
// above.
std::string enter_view(const View& view, const std::string& root);

// Enters new namespaces for processes and mounts only; the next child is process 1. Returns as above.
std::string enter_own_processes();

// Mounts a file system of at most `bytes_max` bytes in memory at `folder`, which only the processes of the namespace
// see, and /proc. Call in process 1. Returns as above.
std::string mount_private(const std::string& folder, std::int64_t bytes_max);

// Drops the user, all capabilities and the right to gain them. Returns as above.
std::string drop_privileges();

// Limits writing to the writable folders of the view, and signals and abstract sockets to the command's own processes.
// Call after drop_privileges. Returns the ABI of Landlock. Errors: unavailable.
Result<int> restrict_changes(const View& view);

// Installs the filter with a notifier. Returns its descriptor, or -1: errno has the reason, and nothing is installed.
int install_notifier();

// Installs the filter without a notifier: it refuses calls by their arguments, and records nothing. Returns false if
// the kernel does not permit it.
bool install_filter();

}  // namespace muniment::cli
