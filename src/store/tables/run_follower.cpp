#include "store/tables/run_follower.hpp"

#include <map>
#include <optional>

#include "store/tables/run_row.hpp"

namespace muniment::store {
RunFollower::RunFollower(Options options, const Tail& tail) : Follower("run", {"run.*"}, std::move(options), tail) {}

Result<FollowedRows> RunFollower::apply(const std::vector<EventPtr>& events, Reader& reader) {
  std::map<std::int64_t, std::optional<RunRow>> rows;
  for (const EventPtr& event : events) {
    auto found = rows.find(event->run_no);
    if (found == rows.end()) {
      std::optional<RunRow> before = RunRow();
      if (event->type != "run.started") {
        ASSIGN_OR_RETURN(before, reader.run_by_no(event->run_no));
      }
      found = rows.emplace(event->run_no, std::move(before)).first;
    }
    if (!found->second) continue;  // the run _log has no row
    apply_to_row(*found->second, *event);
  }
  FollowedRows followed;
  for (auto& [run_no, row] : rows) {
    if (row) followed.runs.push_back(*std::move(row));
  }
  return followed;
}

}  // namespace muniment::store
