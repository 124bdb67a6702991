#include "store/logs/own_database.hpp"

#include <fmt/format.h>

#include "base/config/config.hpp"
#include "base/files/file.hpp"
#include "base/process/libpq_environment.hpp"
#include "base/text.hpp"
#include "store/append/written_end.hpp"
#include "store/logs/log_place.hpp"
#include "store/read/pq.hpp"

namespace muniment::store {
namespace {

constexpr std::size_t uri_bytes_max = 8192;

// Returns the URI that the last daemon of this folder used; empty if it is unknown.
std::string last_database(const std::string& data) {
  const auto text = read_file(data + "/database.uri", uri_bytes_max);
  return text ? text->substr(0, text->find('\n')) : std::string();
}

}  // namespace

std::string database_name(const std::string& uri) {
  return uri.starts_with(private_postgres_uri) ? "the private Postgres" : without_password(uri);
}

Status check_database_choice(const std::string& data, const std::string& database) {
  const std::string last = last_database(data);
  if (!database.empty() || last.empty() || last.starts_with(private_postgres_uri)) return success();
  const std::string name = database_name(last);
  return Error(
      Errc::conflict,
      fmt::format(
          "the log of {0} is in the database {1}, and no database is configured. Give --database {2}, or set database in "
          "{0}/muniment.toml. A new log in a private Postgres needs another folder: --data DIR. See docs/runbook.md#wrong_database",
          data, name, shell_word(name)));
}

Status check_holds_own_log(Connection& connection, const std::string& data, std::int16_t log_no) {
  ASSIGN_OR_RETURN(const auto written, WrittenEnd::find(log_folder(data, log_no) + "/keys"));
  if (!written) return success();
  const std::string log_id = written->log_id.text();
  ASSIGN_OR_RETURN(
      const bool holds, guarded(connection, "looking for the log of " + data, [&] {
        if (query(connection, "log_head_exists", "SELECT FROM pg_class WHERE oid = to_regclass('public.log_head')",
                  Params())
                .empty())
          return false;
        return !query(connection, "log_named", "SELECT FROM log_head WHERE log_id = $1", Params().text(log_id)).empty();
      }));
  if (holds) return success();
  const std::string last = last_database(data);
  return Error(
      Errc::conflict,
      fmt::format(
          "the database {} does not hold the log {} of {}{}. Set database to the one that does. A log in another database "
          "needs another folder: --data DIR. See docs/runbook.md#wrong_database",
          database_name(connection.impl().uri), log_id, data,
          last.empty() ? "" : fmt::format(", which was last in {}", database_name(last))));
}

}  // namespace muniment::store
