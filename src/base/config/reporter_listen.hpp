// Where the private Postgres lets analysts in, and from where: the keys reporter_* of the configuration, held together.
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
  std::vector<std::string> clients;  // networks, as pg_hba.conf writes them; the machine itself where nothing is said
};

// nullopt: nobody is let in. Errors: invalid_argument, with what to write instead; conflict with an external database.
Result<std::optional<ReporterListen>> reporter_listen_of(const Config& config);

}  // namespace muniment
