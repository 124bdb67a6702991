#include "store/checkpoint_notes.hpp"

#include "store/pq.hpp"

namespace muniment::store {

Status store_note(Connection& connection, std::int16_t log_no, std::int64_t size, const std::string& note, Time now) {
  return guarded(connection, "storing a signed checkpoint", [&] {
    pqxx::work work(*connection.impl().link);
    query(connection, work, "checkpoint_note_put",
          "INSERT INTO checkpoint_note (log_no, size, note, recorded_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
          Params().integer(log_no).integer(size).text(note).time(now));
    work.commit();
    return Done{};
  });
}

}  // namespace muniment::store
