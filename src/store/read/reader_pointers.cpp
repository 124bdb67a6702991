// Implements reads of the pointer catalogue by run, which recovery uses.
#include "store/read/reader_impl.hpp"

namespace muniment::store {
namespace {

std::vector<PointerRow> pointer_rows(const pqxx::result& found) {
  std::vector<PointerRow> rows;
  for (const pqxx::row& row : found)
    rows.push_back({text_of(row[0]), text_of(row[1]), uuid_of(row[2]), text_of(row[3]), integer_of(row[4])});
  return rows;
}

}  // namespace

Result<std::vector<PointerRow>> Reader::pointers_of_run(std::string_view run_id, std::optional<std::string> after,
                                                        std::size_t limit) {
  return guarded(impl_->connection, "listing what a run depends on", [&] {
    Params params = impl_->params();
    params.text(run_id).text_or_null(after).integer(static_cast<std::int64_t>(limit));
    return pointer_rows(
        query(impl_->connection, "pointers_of_run",
              "SELECT pointer, needed_by, needed_id, run_id, seq FROM pointer WHERE log_no = $1 AND run_id = $2 "
              "AND ($3::text IS NULL OR pointer > $3) ORDER BY pointer, needed_by, needed_id LIMIT $4",
              params));
  });
}

Result<std::vector<PointerRow>> Reader::pointers_needed_by(const Uuid& evidence_id) {
  return guarded(impl_->connection, "listing what evidence depends on", [&] {
    return pointer_rows(query(impl_->connection, "pointers_needed_by",
                              "SELECT pointer, needed_by, needed_id, run_id, seq FROM pointer WHERE log_no = $1 AND "
                              "needed_id = $2 AND needed_by = 'evidence' ORDER BY pointer, run_id",
                              impl_->params().uuid(evidence_id)));
  });
}

}  // namespace muniment::store
