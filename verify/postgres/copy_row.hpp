// Parses one message of a binary COPY (Postgres, "Binary Format" of COPY). A hostile server may send any bytes.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace muniment::verify {

using CopyFields = std::vector<std::optional<std::string_view>>;  // fields of one row; nullopt: NULL

// Parses the row of a message, which begins with the header of the COPY if it is the `first` one. The fields point into
// the message. Returns false for the trailer. Errors: unavailable unless the message is exactly one row.
Result<bool> parse_copy_row(std::string_view message, bool first, CopyFields& fields);

}  // namespace muniment::verify
