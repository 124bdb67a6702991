// Wraps libpqxx for the files of store/; only this header includes it. Statements are named and prepared on first use;
// parameters and results are text. `guarded` converts exceptions to errors.
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

// Receives messages of Postgres that accompany a result; the sessions request only warnings.
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
  const std::shared_ptr<Connections> among;  // nullptr: not registered
  std::unique_ptr<pqxx::connection> link;    // nullptr: not open
  std::unique_ptr<Warnings> warnings;        // of `link`; destroyed before it
  std::map<std::string, metrics::Histogram*, std::less<>>
      prepared;      // keys: names; values: histograms of their durations
  std::mutex mutex;  // guards `socket`, which `interrupt` reads
  int socket = -1;
  std::atomic<bool> interrupted{false};
};

// Formats a text[] for Postgres.
std::string array_literal(const std::vector<std::string>& values);

// The parameters of one statement, in order. A text with a NUL byte, which Postgres cannot store, is reported as
// invalid_argument.
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

// Runs one prepared statement in its own transaction; throws. `name` identifies the text `sql` during the session.
pqxx::result query(Connection& connection, std::string_view name, std::string_view sql, const Params& params);
// Runs one prepared statement in an open transaction; throws.
pqxx::result query(Connection& connection, pqxx::transaction_base& transaction, std::string_view name,
                   std::string_view sql, const Params& params);

// SQL text for a timestamp column as exact microseconds since 1970.
#define MUNIMENT_MICROS(column) "(extract(epoch FROM " column ") * 1000000)::bigint"

// Return a column's value. A value out of range throws, and `guarded` reports it as `corrupt`.
std::int64_t integer_of(const pqxx::field& field);
std::string text_of(const pqxx::field& field);
std::optional<std::string> text_if(const pqxx::field& field);  // nullopt for NULL
Time time_of(const pqxx::field& field);                        // column of MUNIMENT_MICROS
std::optional<Time> time_if(const pqxx::field& field);
Uuid uuid_of(const pqxx::field& field);
std::optional<Uuid> uuid_if(const pqxx::field& field);
Hash hash_of(const pqxx::field& field);  // bytea, 32 bytes
std::optional<Hash> hash_if(const pqxx::field& field);
Hash hex_hash_of(const pqxx::field& field);  // text, 64 digits

// Converts the current exception: unavailable if the server is gone or overloaded, corrupt for unreadable data,
// otherwise system_error. Closes a lost connection.
Error error_of_exception(Connection& connection, std::string_view doing);

// Runs `work`, which may throw, once, on a connection that must be open. For work that must not be repeated or that
// needs the state of its session.
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

// Runs `work` on an open connection. Only for reads: if the connection was lost, it is reopened and `work` runs once
// more, so that a restarted server causes no error.
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

// Like `guarded`, for commits that are reported as done. A COMMIT whose wait for the standbys was cancelled succeeds
// with only a warning, but a failover could lose it; therefore it is reported as unavailable.
template <typename Work>
Status committed(Connection& connection, std::string_view doing, Work work) {
  if (const auto& warnings = connection.impl().warnings) warnings->take();
  RETURN_IF_ERROR(guarded(connection, doing, work));
  const std::string warning = connection.impl().warnings ? connection.impl().warnings->take() : std::string();
  if (warning.empty()) return success();
  return Error(Errc::unavailable, std::string(doing) + ": Postgres warns: " + warning);
}

// Prevents erasures in this log until the transaction ends; waits for a running erasure (erasure.cpp).
void hold_erasures(Connection& connection, pqxx::transaction_base& work, std::int16_t log_no);

}  // namespace muniment::store
