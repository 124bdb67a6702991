// Whether a file is one Zstandard frame and nothing else (RFC 8878): what a bundle is. Decompressors go on behind the
// end of a frame, and so would give one content to many files.
#pragma once

#include "base/files/file.hpp"
#include "base/result.hpp"

namespace muniment::verify {

// Errors: corrupt, with what is there instead; unavailable when it cannot be read. The content is not looked at.
Status check_one_frame(const Fd& file, std::int64_t size_bytes);

}  // namespace muniment::verify
