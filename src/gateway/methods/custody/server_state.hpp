// What more than one of the server.* methods says of the daemon.
#pragma once

#include <string>
#include <vector>

#include "gateway/services.hpp"
#include "store/read/reader.hpp"

namespace muniment::gateway::methods {

// What does not work as it should, in sentences.
std::vector<std::string> degradations(Services& services, const store::LogStatus& log);

// What server.metrics answers. `reader`: for the sums that only Postgres knows; nullptr: they are left out.
std::string metrics_text(Services& services, store::Reader* reader);

}  // namespace muniment::gateway::methods
