// Facts about the process of a front, as the kernel reports them.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/files/file.hpp"

namespace muniment::cli {

// Returns a descriptor of the process at the other end of the socket; not open if it has ended.
Fd process_of_peer(int connection, pid_t peer);
// Returns whether the process of the descriptor has not ended: its number still names it.
bool is_alive(const Fd& process);

// The state that the children of a process inherit from it.
struct FrontState {
  mode_t umask = 022;
  std::uint64_t ignored = 0, blocked = 0;  // signals; bit 0 is signal 1
  std::array<rlimit, RLIM_NLIMITS> limits{};
  int nice = 0;
  cpu_set_t processors{};
};
// Returns nullopt for a process that has ended or whose facts are hidden.
std::optional<FrontState> front_state(pid_t front);
// Gives this process that state.
void inherit(const FrontState& state);

// Returns whether the process belongs to the foreground job of its terminal.
bool in_foreground(pid_t front);

// Returns the reason why the executor must not run commands for the process: it has fewer rights than the executor, or
// different files, processes or networks, so that the executor would lead it out of its confinement. Empty: it may.
std::string_view confinement_of(pid_t front);

// Moves this process into the control group of the front, whose limits then hold for both. Returns whether both are in
// the same groups.
bool join_group_of(pid_t front);

}  // namespace muniment::cli
