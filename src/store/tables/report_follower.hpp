// Implements the follower "report", which maintains the tables behind the views of schema `report`.
#pragma once

#include "store/tables/follower.hpp"

namespace muniment::store {

class ReportFollower final : public Follower {
 public:
  ReportFollower(Options options, const Tail& tail);
  ~ReportFollower() override { stop(); }

 protected:
  Result<FollowedRows> apply(const std::vector<EventPtr>& events, Reader& reader) override;
};

}  // namespace muniment::store
