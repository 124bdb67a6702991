// The parts of a daemon's state that several server.* methods report.
#pragma once

#include <string>
#include <vector>

#include "gateway/services.hpp"
#include "store/read/reader.hpp"

namespace muniment::gateway::methods {

// Returns the current faults of the daemon as sentences.
std::vector<std::string> degradations(Services& services, const store::LogStatus& log);

// Returns the text of server.metrics. `reader` reads the sums from Postgres; if it is nullptr, they are omitted.
std::string metrics_text(Services& services, store::Reader* reader);

}  // namespace muniment::gateway::methods
