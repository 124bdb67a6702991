// Runs the same work on several threads, each on its own part.
#pragma once

#include <functional>

#include "base/result.hpp"

namespace muniment::verify {

// Runs work(0) … work(jobs − 1), each on its own thread. Returns the first error after all threads have ended.
Status in_parallel(unsigned jobs, const std::function<Status(unsigned job)>& work);

}  // namespace muniment::verify
