// Implements the command sql, which queries the views of schema report as the role reporter.
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/config/reporter_listen.hpp"
#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/sql/query.hpp"

namespace muniment::cli {
namespace {

struct SqlOptions {
  std::optional<std::string> query;
  std::string file;
  std::string timeout;
  bool csv = false;
  bool uri = false;
};

void declare_sql(CLI::App& command, SqlOptions& options) {
  command.add_option("-c,--command", options.query, "Query (default: standard input; psql on a terminal)")
      ->type_name("QUERY");
  command.add_option("-f,--file", options.file, "File with the query; - is standard input")->type_name("FILE");
  command
      .add_option("--timeout", options.timeout,
                  fmt::format("Time limit: 90s, 10min, 2h (default {} s)", limits::report_seconds_default))
      ->type_name("TIME");
  command.add_flag("--csv", options.csv, "Print CSV; --json prints one object per line");
  command.add_flag("--uri", options.uri, "Print a URI for another program with the same role and limits");
}

// "90", "90s", "10min", "2h"
Result<std::chrono::seconds> time_of(const std::string& text) {
  if (text.empty()) return std::chrono::seconds(limits::report_seconds_default);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_decimal(text.substr(0, digits));
  const std::string unit = text.substr(digits);
  std::int64_t factor = 0;
  if (unit.empty() || unit == "s") factor = 1;
  if (unit == "m" || unit == "min") factor = 60;
  if (unit == "h") factor = 3600;
  if (!number || factor == 0 || *number < 1 || *number > limits::report_seconds_max / factor) {
    return Error(Errc::invalid_argument,
                 fmt::format("--timeout {}: give a time from 1s to {}, such as 90s, 10min or 2h", text,
                             seconds_text(std::chrono::seconds(limits::report_seconds_max))));
  }
  return std::chrono::seconds(*number * factor);
}

class Sql {
 public:
  Sql(Session& session, const SqlOptions& options) : session_(session), options_(options) {}

  Status run() {
    if (options_.csv && session_.options.json) return Error(Errc::invalid_argument, "--csv or --json, not both");
    if (options_.query && !options_.file.empty()) return Error(Errc::invalid_argument, "-c or -f, not both");
    ASSIGN_OR_RETURN(const std::chrono::seconds limit, time_of(options_.timeout));
    std::string query;
    if (!options_.uri && !interactive()) {
      ASSIGN_OR_RETURN(query, the_query());
    }
    ASSIGN_OR_RETURN(const std::string uri, database_uri(session_));
    ASSIGN_OR_RETURN(SqlConnection connection, SqlConnection::open(uri, limit));
    if (options_.uri) return print_uri(connection);
    if (interactive()) return become_psql(connection);
    return print_query(session_, connection, query,
                       session_.options.json ? SqlForm::json
                       : options_.csv        ? SqlForm::csv
                                             : SqlForm::table);
  }

 private:
  bool interactive() const { return !options_.query && options_.file.empty() && ::isatty(STDIN_FILENO) != 0; }

  Result<std::string> the_query() const {
    std::string query;
    if (options_.query) {
      query = *options_.query;
    } else if (options_.file.empty() || options_.file == "-") {
      ASSIGN_OR_RETURN(query, read_input(STDIN_FILENO, "standard input", limits::sql_query_bytes_max));
    } else {
      ASSIGN_OR_RETURN(query, read_input(options_.file, limits::sql_query_bytes_max));
    }
    if (query.size() > limits::sql_query_bytes_max) {
      return Error(Errc::too_large, fmt::format("a query has at most {}", human_size(limits::sql_query_bytes_max)));
    }
    if (query.find('\0') != std::string::npos) return Error(Errc::invalid_argument, "the query contains a zero byte");
    if (query.find_first_not_of(" \t\r\n;") == std::string::npos)
      return Error(Errc::invalid_argument, "the query is missing: pass it with -c, or in a file with -f");
    return query;
  }

  Status print_uri(const SqlConnection& connection) {
    session_.out().line(connection.uri());
    ASSIGN_OR_RETURN(const Config config, session_.config());
    ASSIGN_OR_RETURN(const auto listen, reporter_listen_of(config));
    if (listen && ::isatty(STDERR_FILENO) != 0) {
      fmt::print(stderr, "over TCP, with the password of {}: postgresql://reporter@{}/muniment\n",
                 config.reporter_password_file, listen->place.text());
    }
    return success();
  }

  // Passes the connection parameters in the environment, since other users can read a command line.
  static Status become_psql(const SqlConnection& connection) {
    for (const auto& [name, value] : connection.environment()) {
      if (::setenv(name.c_str(), value.c_str(), 1) != 0)
        return Error(Errc::system_error, std::string("setting ") + name + ": " + std::strerror(errno));
    }
    const char* const words[] = {"psql", nullptr};
    ::execvp("psql", const_cast<char* const*>(words));
    return Error(
        Errc::not_found,
        fmt::format(
            "psql cannot be started ({}). Install it: apt-get install postgresql-client; or give a query: muniment sql -c 'SELECT …'",
            std::strerror(errno)));
  }

  Session& session_;
  const SqlOptions& options_;
};

Status run_sql(Session& session, const SqlOptions& options) { return Sql(session, options).run(); }

}  // namespace

void add_sql_command(CLI::App& app, Session& session) {
  add_command<SqlOptions>(session, app, "sql", "Query the views of schema report, read-only (docs/sql.md)", declare_sql,
                          run_sql);
}

}  // namespace muniment::cli
