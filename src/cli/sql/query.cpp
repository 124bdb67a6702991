#include "cli/sql/query.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace muniment::cli {
namespace {

Status wait_for_views(SqlConnection& connection) {
  ASSIGN_OR_RETURN(const auto behind, connection.wait());
  if (!behind) {
    fmt::print(stderr, "muniment: the lag of the views is unknown: the daemon is older than this program\n");
  } else if (*behind > 0) {
    fmt::print(stderr,
               "muniment: the views are {} {} behind the log: the result lacks the newest events (report.lag)\n",
               grouped(static_cast<std::uint64_t>(*behind)), *behind == 1 ? "event" : "events");
  }
  return success();
}

}  // namespace

Result<std::string> database_uri(Session& session) {
  const auto client = session.running_client();
  ASSIGN_OR_RETURN(const Config config, session.config());
  const bool is_its_own =
      !session.names_only_socket();  // otherwise the configuration may belong to a different instance
  if (is_its_own && !config.database.empty())
    return config.database;  // includes the password, which the daemon does not report
  if (!client) return client.error();
  ASSIGN_OR_RETURN(const Message status, (*client)->call("server.status", "{}"));
  return status.result()["database"].string_or("");
}

Status print_query(Session& session, SqlConnection& connection, const std::string& query, SqlForm form) {
  RETURN_IF_ERROR(wait_for_views(connection));
  RETURN_IF_ERROR(connection.start(query));
  SqlRows rows(session.out(), form);
  SqlRow row;
  for (;;) {
    auto more = connection.next(row);
    if (!more && rows.count() > 0) {
      rows.finish(connection.columns());
      Error error = std::move(more).error();
      error.message += fmt::format(". The {} rows above are incomplete", grouped(rows.count()));
      return error;
    }
    if (!more) return std::move(more).error();
    if (!*more) break;
    rows.add(connection.columns(), row);
    if (session.out().failed()) return Error(Errc::unavailable, "the output could not be written");
  }
  rows.finish(connection.columns());
  return session.out().failed() ? Status(Error(Errc::unavailable, "the output could not be written")) : success();
}

Result<std::string> sql_text(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return Error(Errc::invalid_argument, "a value contains a zero byte");
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') quoted += '\'';
    quoted += c;
  }
  return quoted + "'";
}

}  // namespace muniment::cli
