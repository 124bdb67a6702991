#include "verify/log/parallel.hpp"

#include <optional>
#include <thread>
#include <vector>

namespace muniment::verify {

Status in_parallel(unsigned jobs, const std::function<Status(unsigned)>& work) {
  std::vector<std::optional<Status>> outcomes(jobs);
  {
    std::vector<std::jthread> threads;
    for (unsigned job = 0; job < jobs; ++job) {
      threads.emplace_back([&outcomes, &work, job] { outcomes[job] = work(job); });
    }
  }
  for (std::optional<Status>& outcome : outcomes) {
    if (!outcome->ok()) return std::move(*outcome).error();
  }
  return success();
}

}  // namespace muniment::verify
