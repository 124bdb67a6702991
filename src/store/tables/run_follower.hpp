// Implements the follower "run", which maintains the table `run` (docs/format.md, Rows).
#pragma once

#include "store/tables/follower.hpp"

namespace muniment::store {

class RunFollower final : public Follower {
 public:
  RunFollower(Options options, const Tail& tail);
  ~RunFollower() override { stop(); }

 protected:
  Result<FollowedRows> apply(const std::vector<EventPtr>& events, Reader& reader) override;
};

}  // namespace muniment::store
