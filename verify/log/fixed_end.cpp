#include "verify/log/fixed_end.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "verify/log/log.hpp"
#include "verify/postgres/postgres.hpp"
#include "verify/signed/checkpoint_file.hpp"
#include "verify/signed/note_files.hpp"

namespace muniment::verify {
namespace {

constexpr std::chrono::milliseconds given_to_sign{2'000}, look_every{50};

// Advisory lock that the writer of a log holds while it runs; 1836412521 is Muniment's class id.
constexpr std::string_view writer_lock =
    "SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()"
    " WHERE l.locktype = 'advisory' AND l.classid = 1836412521 AND l.objid = {} AND l.objsubid = 2 AND l.granted";

// Returns the size of the largest checkpoint of this log in the daemon's files; 0: none.
Result<std::int64_t> size_in_files(const NotePlaces& places, const Uuid& log_id) {
  const NotePlaces own{places.data, places.tiles, {}, {}, {}};
  ASSIGN_OR_RETURN(const KeptFiles kept, read_kept_files(own));
  std::int64_t size = 0;
  for (const KeptNote& note : kept.notes) {
    const auto file = parse_checkpoint_file(note.text);
    if (file && file->note && file->checkpoint.origin.ends_with("/" + log_id.text()))
      size = std::max(size, file->checkpoint.size);
  }
  return size;
}

Result<std::int64_t> size_in_database(Connection& connection, std::int64_t log_no) {
  ASSIGN_OR_RETURN(const auto there, connection.integer("SELECT 1 WHERE to_regclass('checkpoint_note') IS NOT NULL"));
  if (!there) return std::int64_t{0};
  ASSIGN_OR_RETURN(const auto size,
                   connection.integer(fmt::format("SELECT max(size) FROM checkpoint_note WHERE log_no = {}", log_no)));
  return size.value_or(0);
}

}  // namespace

Result<FixedEnd> fix_end(const Options& options) {
  ASSIGN_OR_RETURN(Connection connection, Connection::open(options.uri));
  std::vector<std::int64_t> others;
  auto log = find_log(connection, options.log_no, others);
  if (!log) return log.error().code == Errc::not_found ? Result<FixedEnd>(FixedEnd{}) : Result<FixedEnd>(log.error());
  FixedEnd end;
  end.upto = log->upto;
  const std::string held = fmt::format(fmt::runtime(writer_lock), log->log_no);
  const auto give_up = std::chrono::steady_clock::now() + given_to_sign;
  for (;;) {
    ASSIGN_OR_RETURN(const auto lock, connection.integer(held));
    end.live = lock.has_value();
    ASSIGN_OR_RETURN(const std::int64_t filed, size_in_files(options.notes, log->log_id));
    ASSIGN_OR_RETURN(const std::int64_t stored, size_in_database(connection, log->log_no));
    const std::int64_t size = std::max(filed, stored);
    // If nothing was ever signed, no signer runs and waiting is useless.
    if (size == 0 || size > end.upto || !end.live || std::chrono::steady_clock::now() >= give_up) return end;
    std::this_thread::sleep_for(look_every);
  }
}

}  // namespace muniment::verify
