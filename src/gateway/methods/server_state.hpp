// What more than one of the server.* methods says of the daemon.
#pragma once

#include <string>
#include <vector>

#include "gateway/services.hpp"

namespace muniment::gateway::methods {

// What is known of Postgres without asking it: by the append thread and by whoever read last.
StoreHealth::State database_state(Services& services, const store::LogStatus& log);
// What does not work as it should, in sentences.
std::vector<std::string> degradations(Services& services, const StoreHealth::State& database);

}  // namespace muniment::gateway::methods
