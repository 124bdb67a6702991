// Writes the parts of command.start and command.end: the command line, the environment and the output.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/files/file.hpp"
#include "base/json/json.hpp"
#include "base/result.hpp"
#include "client/connect/session.hpp"

namespace muniment::cli {

// Run and step of a recorded command.
struct CommandPlace {
  Session& session;
  const std::string& run_id;
  const std::string& step;
};

// Writes argv. Stores a very long command line as an artifact, and its beginning in the event.
Status write_arguments(const CommandPlace& place, json::Writer& params, const std::vector<std::string>& arguments);

// Writes the variables that are recorded. `environment` is NULL-terminated, like environ.
void write_environment(json::Writer& params, const char* const* environment);

// Stores the output as an artifact and writes its member `stream`; nothing if the output is empty. With `scrub`, the
// stored copy contains no obvious secrets, and their number is added to `scrubbed`. `stored` receives the artifact's
// id.
Status write_output(const CommandPlace& place, json::Writer& params, const std::string& command_id, const char* stream,
                    const Fd& output, bool scrub, std::size_t& scrubbed, std::string* stored = nullptr);

}  // namespace muniment::cli
