// Translates SWE-agent trajectories (.traj): a JSON object of environment, trajectory (action, observation, response,
// state, thought), history (role, content, agent …) and info (exit status, submission, model statistics). A trajectory
// entry becomes a step.
//
// Every string of the source is kept byte for byte, in the body of an event or, from 8 KiB up, as
// an artifact; so are fields that this importer does not know, in "x_source".
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "cli/import/source.hpp"

namespace muniment::cli {

inline constexpr std::string_view swe_agent_format = "swe-agent";

// Errors: invalid_argument if the file is not such a trajectory; those of the sink.
Status import_swe_agent(const SourceFile& file, ImportSink& sink);

}  // namespace muniment::cli
