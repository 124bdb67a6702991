// One message of a binary COPY (Postgres, "Binary Format" of COPY): whoever holds the server may send any bytes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::verify {

using CopyFields = std::vector<std::optional<std::string_view>>;  // of one row; nullopt: NULL

// Reads the row of a message, which begins with the header of the COPY when it is the first; the fields point
// into it. False: it is the trailer. Errors: unavailable for what is not one whole row.
Result<bool> parse_copy_row(std::string_view message, bool first, CopyFields& fields);

}  // namespace muniment::verify
