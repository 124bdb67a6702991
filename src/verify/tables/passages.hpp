// The bytes of passages: each span of a revision's text has the hash that its document.revised event says, which the
// rows of the table chunk were compared with.
#pragma once

#include "base/result.hpp"
#include "verify/files/files.hpp"

namespace muniment::verify {

Status check_passages(const FileWork& work, unsigned jobs);

}  // namespace muniment::verify
