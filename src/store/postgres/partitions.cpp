// Implements partitions.hpp. migrations/0007_archive.sql creates a partition.
#include "store/postgres/partitions.hpp"

#include "store/read/pq.hpp"

namespace muniment::store {

Result<std::int64_t> ensure_partitions(Connection& connection, std::int16_t log_no, std::int64_t next_seq,
                                       std::int64_t partition_bits) {
  // A repetition after a lost connection is harmless, because existing partitions are kept.
  return guarded(connection, "making partitions of the log", [&] {
    query(
        connection, "make_log_head",
        "INSERT INTO log_head (log_no, log_id, partition_bits) VALUES ($1, gen_random_uuid(), $2) ON CONFLICT DO NOTHING",
        Params().integer(log_no).integer(partition_bits));
    for (const std::int64_t ahead : {0, 1}) {
      query(connection, "make_event_partition",
            "SELECT make_event_partition($1, ($2::bigint >> event_partition_bits($1)) + $3)",
            Params().integer(log_no).integer(next_seq).integer(ahead));
    }
    return integer_of(query(connection, "events_per_partition", "SELECT 1::bigint << event_partition_bits($1)",
                            Params().integer(log_no))[0][0]);
  });
}

Result<std::pair<std::int16_t, bool>> newest_log(Connection& connection) {
  return guarded(connection, "looking for the newest log", [&] {
    const pqxx::result rows = query(
        connection, "newest_log",
        "SELECT log_no, EXISTS (SELECT FROM event e WHERE e.log_no = h.log_no) FROM log_head h ORDER BY 1 DESC LIMIT 1",
        Params());
    return rows.empty() ? std::pair<std::int16_t, bool>{0, false}
                        : std::pair{static_cast<std::int16_t>(integer_of(rows[0][0])), text_of(rows[0][1]) == "t"};
  });
}

}  // namespace muniment::store
