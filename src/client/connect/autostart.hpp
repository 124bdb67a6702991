// Starts and stops an embedded daemon. There is no pid file: the kernel reports the process that listens on the socket.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/config/config.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// Finds munimentd in the folder of this program or in PATH. Errors: not_found.
Result<std::string> find_daemon();

// Starts a detached munimentd that logs to <data>/munimentd.log, and waits until it answers. `inputs` are passed on, so
// that it reads the same configuration. Errors: unavailable, with the last lines of its log.
Result<std::int32_t> start_daemon(const Config& config, const ConfigInputs& inputs, bool continue_restored = false);

// Sends SIGTERM and waits for the exit. Errors: deadline_exceeded if the daemon still runs after `patience`.
Status stop_daemon(std::int32_t pid, std::chrono::milliseconds patience);

}  // namespace muniment::cli
