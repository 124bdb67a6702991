// See partitions.hpp; how a partition is made stands in migrations/0001_log.sql.
#include "store/partitions.hpp"

#include "base/limits.hpp"
#include "store/pq.hpp"

namespace muniment::store {

Status ensure_partitions(Connection& connection, std::int16_t log_no, std::int64_t next_seq) {
  const std::int64_t current = next_seq / limits::events_per_partition;
  for (const std::int64_t number : {current, current + 1}) {
    // Repeating it after a lost connection is harmless: what is there is left as it is.
    RETURN_IF_ERROR(guarded(connection, "making a partition of the log", [&] {
      query(connection, "make_event_partition", "SELECT make_event_partition($1, $2)",
            Params().integer(log_no).integer(number));
      return Done{};
    }));
  }
  return success();
}

}  // namespace muniment::store
