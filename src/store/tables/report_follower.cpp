#include "store/tables/report_follower.hpp"

#include "store/read/pq.hpp"
#include "store/tables/followed_rows.hpp"
#include "store/tables/report_fold.hpp"

namespace muniment::store {

// Follows all events, because every event counts for its run.
ReportFollower::ReportFollower(Options options, const Tail& tail)
    : Follower("report", {"*"}, std::move(options), tail) {}

Result<FollowedRows> ReportFollower::apply(const std::vector<EventPtr>& events, Reader& reader) {
  const auto keys = ended_keys(events);
  ASSIGN_OR_RETURN(OpenSpans open, guarded(reader.connection(), "looking for what events end", [&] {
                     pqxx::nontransaction work(*reader.connection().impl().link);
                     return open_spans(reader.connection(), work, reader.log_no(), keys);
                   }));
  FollowedRows rows;
  rows.report = fold_report(events, std::move(open));
  return rows;
}

}  // namespace muniment::store
