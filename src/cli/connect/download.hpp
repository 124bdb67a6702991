// Writes the bytes of an artifact to a file or a pipe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "client/connect/client.hpp"
#include "client/output.hpp"

namespace muniment::cli {

// Writes the bytes [offset, offset + length), fewer if the artifact is shorter, one slice per request.
Status copy_artifact(Client& client, std::string_view artifact_id, std::int64_t offset, std::int64_t length,
                     int descriptor);

// Writes the bytes to the file `path`; "" and "-" are standard output. A terminal receives them
// escaped.
Status save_artifact(Client& client, const Output& out, std::string_view artifact_id, std::int64_t offset,
                     std::int64_t length, const std::string& path);

}  // namespace muniment::cli
