// Checks that a file is exactly one Zstandard frame (RFC 8878), as a bundle must be. Decompressors continue after the
// end of a frame, so many files could otherwise have the same content.
#pragma once

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::verify {

// Errors: corrupt, with the deviation; unavailable if the file cannot be read. The content is not examined.
Status check_one_frame(const Fd& file, std::int64_t size_bytes);

}  // namespace muniment::verify
