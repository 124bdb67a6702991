// Checks the bytes of passages: each span of a revision's text has the hash in its document.revised event. The rows of
// the table chunk, compared with that event elsewhere, supply the spans.
#pragma once

#include "base/result.hpp"
#include "verify/files/files.hpp"

namespace muniment::verify {

Status check_passages(const FileWork& work, unsigned jobs);

}  // namespace muniment::verify
