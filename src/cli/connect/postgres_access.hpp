// Explains why a command that reads Postgres directly could not connect: missing permission, or no server.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment::cli {

struct UnreachedPostgres {
  std::string words;            // message of libpq
  std::string host, port;       // host as interpreted by libpq: a folder of Unix sockets or a name
  bool needs_password = false;  // the server asked for a password and none was given
};

// Explains the failure. `instead` is a sentence with an alternative for users without permission. Errors: denied if
// permission is missing, otherwise unavailable.
Error not_reached(const UnreachedPostgres& postgres, std::string_view instead);

}  // namespace muniment::cli
