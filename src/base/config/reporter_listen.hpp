// Where the private Postgres lets analysts in, and from where: the keys reporter_* of the configuration, held together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/config/config.hpp"
#include "base/result.hpp"

namespace muniment {

struct ReporterListen {
  std::string address;  // a number, without brackets: 127.0.0.1, ::1, 0.0.0.0
  std::uint16_t port = 0;
  std::vector<std::string> clients;  // networks, as pg_hba.conf writes them; the machine itself where nothing is said

  std::string text() const;  // "127.0.0.1:5433", "[::1]:5433"
};

// nullopt: nobody is let in. Errors: invalid_argument, with what to write instead; conflict with an external database.
Result<std::optional<ReporterListen>> reporter_listen_of(const Config& config);

}  // namespace muniment
