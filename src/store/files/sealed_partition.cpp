#include "store/files/sealed_partition.hpp"

#include "store/read/reader_impl.hpp"

namespace muniment::store {

Result<std::optional<SealedPartition>> sealed_partition(Reader& reader, std::optional<std::int64_t> number) {
  return guarded(reader.connection(), "looking for a full partition", [&]() -> std::optional<SealedPartition> {
    const pqxx::result rows = query(
        reader.connection(), "sealed_partition",
        "SELECT n, n << event_partition_bits($1), ((n + 1) << event_partition_bits($1)) - 1, a.number IS NOT NULL "
        "FROM generate_series(0, ((SELECT coalesce(max(seq), 0) + 1 FROM event WHERE log_no = $1) >> event_partition_bits($1)) - 1) n "
        "LEFT JOIN archived_partition a ON a.log_no = $1 AND a.number = n "
        "WHERE CASE WHEN $2::bigint IS NULL THEN a.number IS NULL ELSE n = $2::bigint END ORDER BY n LIMIT 1",
        Params().integer(reader.log_no()).text_or_null(number ? std::optional(std::to_string(*number)) : std::nullopt));
    if (rows.empty()) return std::nullopt;
    return SealedPartition{integer_of(rows[0][0]), integer_of(rows[0][1]), integer_of(rows[0][2]),
                           text_of(rows[0][3]) == "t"};
  });
}

Result<std::int64_t> full_partitions(Reader& reader) {
  return guarded(reader.connection(), "counting the full partitions", [&]() -> std::int64_t {
    return integer_of(
        query(reader.connection(), "full_partitions",
              "SELECT (SELECT coalesce(max(seq), 0) + 1 FROM event WHERE log_no = $1) >> event_partition_bits($1)",
              Params().integer(reader.log_no()))[0][0]);
  });
}

Result<std::optional<std::string>> held_run(Reader& reader, const SealedPartition& partition) {
  return guarded(reader.connection(), "looking for legal holds", [&]() -> std::optional<std::string> {
    const pqxx::result rows = query(
        reader.connection(), "held_run",
        "SELECT coalesce(r.run_id, (SELECT body ->> 'run_id' FROM event WHERE log_no = $1 AND run_no = held.run_no AND run_seq = 0), held.run_no::text) FROM (SELECT DISTINCT ON (run_no) run_no, body ->> 'legal_hold' AS hold FROM event "
        "WHERE log_no = $1 AND type = 'run.annotated' AND body -> 'legal_hold' IS NOT NULL ORDER BY run_no, run_seq DESC) held "
        "LEFT JOIN run r ON r.log_no = $1 AND r.run_no = held.run_no WHERE held.hold = 'true' "
        "AND EXISTS (SELECT FROM event WHERE log_no = $1 AND run_no = held.run_no AND seq BETWEEN $2 AND $3) LIMIT 1",
        Params().integer(reader.log_no()).integer(partition.first_seq).integer(partition.last_seq));
    return rows.empty() ? std::nullopt : std::optional(text_of(rows[0][0]));
  });
}

Status take_bodies_out(Connection& redactor, std::int16_t log_no, std::int64_t number, std::chrono::seconds wait) {
  const std::string doing = "taking the bodies of partition " + std::to_string(number) + " out of the database";
  RETURN_IF_ERROR(redactor.ensure_open());
  try {
    query(redactor, "archive_event_partition", "SELECT archive_event_partition($1, $2, make_interval(secs => $3))",
          Params().integer(log_no).integer(number).integer(wait.count()));
    return success();
  } catch (const pqxx::unique_violation&) {
    return Error(Errc::conflict, "partition " + std::to_string(number) + " is archived already");
  } catch (const std::exception&) {
    return error_of_exception(redactor, doing);
  }
}

}  // namespace muniment::store
