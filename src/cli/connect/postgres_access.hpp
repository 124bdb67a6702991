// Postgres that was not reached by a command that reads it itself: whether this user may not, or whether it is away.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace muniment::cli {

struct UnreachedPostgres {
  std::string words;            // libpq's
  std::string host, port;       // as libpq took them: a folder of Unix sockets, or a name
  bool needs_password = false;  // it was asked for one, and there is none
};

// `instead`: what somebody who may not can do, a sentence. Errors: denied, with who may; otherwise unavailable.
Error not_reached(const UnreachedPostgres& postgres, std::string_view instead);

}  // namespace muniment::cli
