// The follower "run": keeps the table `run` (docs/format.md, Rows).
#pragma once

#include <optional>

#include "store/follower.hpp"

namespace muniment::store {

// What `event`, a run.* event, makes of its run's row; nullopt in, run.started makes it.
void fold_run_row(std::optional<RunRow>& row, const events::Event& event);

class RunFollower final : public Follower {
 public:
  RunFollower(Options options, const Tail& tail);
  ~RunFollower() override { stop(); }

 protected:
  Result<FollowedRows> apply(const std::vector<EventPtr>& events, Reader& reader) override;
};

}  // namespace muniment::store
