// An artifact's bytes, to a file or a pipe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/connect/client.hpp"
#include "cli/show/output.hpp"

namespace muniment::cli {

// Raw, a slice at a time: the bytes [offset, offset + length), fewer where the artifact ends.
Status copy_artifact(Client& client, std::string_view artifact_id, std::int64_t offset, std::int64_t length,
                     int descriptor);

// The same into the file `path`; "" and "-" are standard output, which must not be a terminal.
Status save_artifact(Client& client, const Output& out, std::string_view artifact_id, std::int64_t offset,
                     std::int64_t length, const std::string& path);

}  // namespace muniment::cli
