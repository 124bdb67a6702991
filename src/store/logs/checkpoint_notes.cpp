#include "store/logs/checkpoint_notes.hpp"

#include "store/read/pq.hpp"

namespace muniment::store {

Result<std::vector<std::string>> read_newest_notes(Connection& connection, std::int16_t log_no, std::int64_t size_max) {
  return guarded(connection, "reading signed checkpoints", [&] {
    std::vector<std::string> notes;
    for (const pqxx::row& row :
         query(connection, "checkpoint_notes_newest",
               "SELECT note FROM checkpoint_note WHERE log_no = $1 AND size <= $2 ORDER BY size DESC LIMIT 8",
               Params().integer(log_no).integer(size_max))) {
      notes.push_back(text_of(row[0]));
    }
    return notes;
  });
}

Status store_note(Connection& connection, std::int16_t log_no, std::int64_t size, const std::string& note, Time now) {
  return guarded(connection, "storing a signed checkpoint", [&] {
    pqxx::work work(*connection.impl().link);
    query(
        connection, work, "checkpoint_note_put",
        "INSERT INTO checkpoint_note (log_no, size, note, recorded_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        Params().integer(log_no).integer(size).text(note).time(now));
    work.commit();
    return Done{};
  });
}

}  // namespace muniment::store
