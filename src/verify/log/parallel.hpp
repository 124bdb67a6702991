// A few threads that do the same work on different parts.
#pragma once

#include <functional>

#include "base/result.hpp"

namespace muniment::verify {

// Runs work(0) … work(jobs − 1), each on its own thread; the first error, once all have ended.
Status in_parallel(unsigned jobs, const std::function<Status(unsigned job)>& work);

}  // namespace muniment::verify
