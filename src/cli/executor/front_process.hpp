// Facts about the process of a front, as the kernel reports them in /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace muniment::cli {

// The state that the children of a process inherit from it.
struct FrontState {
  mode_t umask = 022;
  std::uint64_t ignored = 0, blocked = 0;  // signals; bit 0 is signal 1
};
// Returns nullopt for a process that has ended or whose facts are hidden.
std::optional<FrontState> front_state(pid_t front);

// Returns whether the process belongs to the foreground job of its terminal.
bool in_foreground(pid_t front);

// Returns the reason why the executor must not run commands for the process: it has fewer rights than the executor, or
// different files, processes or networks, so that the executor would lead it out of its confinement. Empty: it may.
std::string_view confinement_of(pid_t front);

}  // namespace muniment::cli
