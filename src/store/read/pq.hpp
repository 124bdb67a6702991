// libpqxx for the files of store/, and for nobody else: it is the only header that includes it.
// Statements are named and prepared when first used; parameters are text, results are text; and
// `guarded` is the edge at which exceptions become errors.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/crypto/sha256.hpp"
#include "base/ids.hpp"
#include "base/metrics.hpp"
#include "base/result.hpp"
#include "store/read/connection.hpp"

namespace muniment::store {

// What Postgres says beside an answer: the sessions ask for warnings alone.
class Warnings final : public pqxx::errorhandler {
 public:
  explicit Warnings(pqxx::connection& link) : pqxx::errorhandler(link) {}
  bool operator()(const char message[]) noexcept override;
  std::string take() { return std::exchange(last_, {}); }

 private:
  std::string last_;
};

struct Connection::Impl {
  Impl(std::string database_uri, DatabaseRole as, std::shared_ptr<Connections> others)
      : uri(std::move(database_uri)), role(as), among(std::move(others)) {}
  ~Impl() { close(); }
  void close();

  const std::string uri;
  const DatabaseRole role;
  const std::shared_ptr<Connections> among;                          // nullptr: of no daemon
  std::unique_ptr<pqxx::connection> link;                            // nullptr: not open
  std::unique_ptr<Warnings> warnings;                                // of `link`, and gone before it
  std::map<std::string, metrics::Histogram*, std::less<>> prepared;  // by name, with where its time is kept
  std::mutex mutex;                                                  // guards `socket`, which `interrupt` reads
  int socket = -1;
  std::atomic<bool> interrupted{false};
};

// A text[] as Postgres writes one.
std::string array_literal(const std::vector<std::string>& values);

// The parameters of one statement, in order. A text with a NUL byte, which Postgres cannot hold, is
// an invalid_argument of whoever called.
class Params {
 public:
  Params& text(std::string_view value);
  Params& text_or_null(const std::optional<std::string>& value);
  Params& integer(std::int64_t value) { return text(std::to_string(value)); }
  Params& uuid(const Uuid& value) { return text(value.text()); }
  Params& uuid_or_null(const std::optional<Uuid>& value);
  Params& time(Time value) { return text(format_time(value)); }
  Params& texts(const std::vector<std::string>& values);      // text[]
  Params& uuids(const std::vector<Uuid>& values);             // uuid[]
  Params& integers(const std::vector<std::int64_t>& values);  // bigint[]
  Params& append(const Params& more);
  std::vector<const char*> pointers() const;

 private:
  std::vector<std::optional<std::string>> values_;
};

// One prepared statement in a transaction of its own; throws. `name` names the text `sql` for as long
// as the session lasts.
pqxx::result query(Connection& connection, std::string_view name, std::string_view sql, const Params& params);
// The same within an open transaction.
pqxx::result query(Connection& connection, pqxx::transaction_base& transaction, std::string_view name,
                   std::string_view sql, const Params& params);

// SQL text for a timestamp column as microseconds since 1970, exactly.
#define MUNIMENT_MICROS(column) "(extract(epoch FROM " column ") * 1000000)::bigint"

// A column's value. A value that does not fit throws, and is `corrupt` at the edge.
std::int64_t integer_of(const pqxx::field& field);
std::string text_of(const pqxx::field& field);
std::optional<std::string> text_if(const pqxx::field& field);  // nullopt for NULL
Time time_of(const pqxx::field& field);                        // of MUNIMENT_MICROS
std::optional<Time> time_if(const pqxx::field& field);
Uuid uuid_of(const pqxx::field& field);
std::optional<Uuid> uuid_if(const pqxx::field& field);
Hash hash_of(const pqxx::field& field);  // bytea, 32 bytes
std::optional<Hash> hash_if(const pqxx::field& field);
Hash hex_hash_of(const pqxx::field& field);  // text, 64 digits

// What the exception that is being handled means: unavailable when the server is gone or too busy,
// corrupt for data that cannot be read, system_error for the rest. A lost connection is closed.
Error error_of_exception(Connection& connection, std::string_view doing);

// Runs `work`, which may throw, once, on a connection that must be open: for what must not be
// repeated or needs what its session holds.
template <typename Work>
auto once(Connection& connection, std::string_view doing, Work work) -> Result<std::invoke_result_t<Work>> {
  if (!connection.impl().link) {
    return Error(Errc::unavailable, std::string(doing) + ": the connection to Postgres is closed");
  }
  try {
    return work();
  } catch (const std::exception&) {
    return error_of_exception(connection, doing);
  }
}

// Runs `work` on an open connection. Reads only: when the connection turns out to have been lost, it
// is opened again and `work` runs once more, so that a restarted server is not an error.
template <typename Work>
auto guarded(Connection& connection, std::string_view doing, Work work) -> Result<std::invoke_result_t<Work>> {
  const bool was_open = connection.impl().link != nullptr && !connection.impl().interrupted;
  RETURN_IF_ERROR(connection.ensure_open());
  auto result = once(connection, doing, work);
  const bool lost = was_open && !connection.impl().link && !connection.impl().interrupted;
  if (result || !lost) return result;
  RETURN_IF_ERROR(connection.ensure_open());
  return once(connection, doing, work);
}

// As `guarded`, for work that commits what is then told as done. A COMMIT whose wait for the standbys was cancelled
// succeeds, with a warning and nothing else: what it committed can be lost at a failover, and that is unavailable.
template <typename Work>
Status committed(Connection& connection, std::string_view doing, Work work) {
  if (const auto& warnings = connection.impl().warnings) warnings->take();
  RETURN_IF_ERROR(guarded(connection, doing, work));
  const std::string warning = connection.impl().warnings ? connection.impl().warnings->take() : std::string();
  if (warning.empty()) return success();
  return Error(Errc::unavailable, std::string(doing) + ": Postgres warns: " + warning);
}

// Until the transaction ends nothing of this log is erased; waits for an erasure that is under way (erasure.cpp).
void hold_erasures(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no);

}  // namespace muniment::store
