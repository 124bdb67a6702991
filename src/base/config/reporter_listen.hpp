// Checks the configuration keys reporter_* together: the TCP address of the private Postgres for analysts, and their
// networks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config/config.hpp"
#include "base/config/listen_address.hpp"
#include "base/result.hpp"

namespace muniment {

struct ReporterListen {
  ListenAddress place;
  std::vector<std::string> clients;  // networks in the syntax of pg_hba.conf; the machine itself if none is set
};

// nullopt: analysts cannot connect over TCP. Errors: invalid_argument, with the expected form; conflict with an
// external database.
Result<std::optional<ReporterListen>> reporter_listen_of(const Config& config);

}  // namespace muniment
