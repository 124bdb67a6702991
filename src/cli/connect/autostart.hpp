// Starting and stopping an embedded daemon. There is no pid file: the kernel names the process
// that listens on the socket.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/config/config.hpp"
#include "base/result.hpp"

namespace muniment::cli {

// munimentd: beside this program, else in PATH. Errors: not_found.
Result<std::string> find_daemon();

// Starts munimentd, detached, with its messages in <data>/munimentd.log, and waits until it
// answers. `inputs` are handed on, so that it reads the same configuration. Errors: unavailable,
// with the last lines of its log.
Result<std::int32_t> start_daemon(const Config& config, const ConfigInputs& inputs, bool continue_restored = false);

// SIGTERM, and waits for its end. Errors: deadline_exceeded when it still runs after `patience`.
Status stop_daemon(std::int32_t pid, std::chrono::milliseconds patience);

}  // namespace muniment::cli
