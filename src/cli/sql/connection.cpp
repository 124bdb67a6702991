#include "cli/sql/connection.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <charconv>

#include "base/ids.hpp"
#include "base/limits.hpp"
#include "base/process/libpq_environment.hpp"
#include "base/text.hpp"
#include "cli/connect/postgres_access.hpp"

namespace muniment::cli {

struct SqlFree {  // outside the unnamed namespace, since SqlConnection::Impl, declared in a header, uses it
  void operator()(PGresult* result) const { PQclear(result); }
  void operator()(PGconn* connection) const { PQfinish(connection); }
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
  void operator()(char* text) const { PQfreemem(text); }
};
using SqlResult = std::unique_ptr<PGresult, SqlFree>;

namespace {

constexpr std::string_view reporter_login = "reporter";   // exists in a private Postgres
constexpr std::string_view undefined_function = "42883";  // returned by a database of an older daemon

// Maps the types of Postgres' pg_type.dat.
SqlKind kind_of(Oid type) {
  switch (type) {
    case 16: return SqlKind::boolean;
    case 20:
    case 21:
    case 23:
    case 26:
    case 700:
    case 701:
    case 1700: return SqlKind::number;
    case 114:
    case 3802: return SqlKind::json;
    default: return SqlKind::text;
  }
}

std::string known_text(const char* text) { return text == nullptr ? std::string() : text; }

std::string trimmed(const char* words) {
  std::string_view text(words == nullptr ? "" : words);
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return std::string(text);
}

Error unavailable(std::string_view doing, PGconn* connection) {
  return {Errc::unavailable, fmt::format("{}: {}", doing, trimmed(PQerrorMessage(connection)))};
}

// Returns "-c name=value" for libpq's `options`.
std::string option(std::string_view name, std::string_view value) {
  std::string text = fmt::format("-c {}=", name);
  for (const char c : value) {
    if (c == ' ' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

// Converts a character offset (from 1) in the query to line and column.
std::string place_in(std::string_view query, std::string_view offset) {
  std::size_t characters = 0;
  std::from_chars(offset.data(), offset.data() + offset.size(), characters);
  if (characters == 0) return "";
  std::size_t line = 1;
  std::size_t column = 1;
  for (const char c : query) {
    if ((static_cast<unsigned char>(c) & 0xC0U) == 0x80) continue;
    if (--characters == 0) break;
    ++column;
    if (c == '\n') {
      ++line;
      column = 1;
    }
  }
  return fmt::format("line {}, column {}: ", line, column);
}

}  // namespace

std::string seconds_text(std::chrono::seconds time) {
  const auto seconds = time.count();
  if (seconds >= 3600 && seconds % 3600 == 0) return fmt::format("{} h", seconds / 3600);
  if (seconds >= 60 && seconds % 60 == 0) return fmt::format("{} min", seconds / 60);
  return fmt::format("{} s", seconds);
}

struct SqlConnection::Impl {
  std::unique_ptr<PGconn, SqlFree> link;
  std::vector<std::pair<std::string, std::string>> parameters;  // names as in libpq
  std::chrono::seconds limit{};
  std::string role;  // role assumed after the login; empty: the login is a reporter
  std::string query;
  std::vector<SqlColumn> columns;
  SqlResult result;  // the current row

  Status read_parameters(const std::string& uri);
  std::string* parameter(std::string_view name);
  Status connect();
  Status execute(const char* sql) const;
  Error failure(const PGresult* failed) const;
  void take_columns();
  std::string options() const;
};

Status SqlConnection::Impl::read_parameters(const std::string& uri) {
  char* problem = nullptr;
  const std::unique_ptr<PQconninfoOption, SqlFree> parsed(PQconninfoParse(uri.c_str(), &problem));
  const std::unique_ptr<char, SqlFree> words(problem);
  if (!parsed) return Error(Errc::invalid_argument, "the database's URI: " + trimmed(problem));
  for (const PQconninfoOption* each = parsed.get(); each->keyword != nullptr; ++each) {
    if (each->val != nullptr) parameters.emplace_back(each->keyword, each->val);
  }
  if (uri.starts_with(private_postgres_uri)) *parameter("user") = reporter_login;
  return success();
}

std::string* SqlConnection::Impl::parameter(std::string_view name) {
  for (auto& [key, value] : parameters) {
    if (key == name) return &value;
  }
  return nullptr;
}

Status SqlConnection::Impl::connect() {
  std::vector<const char*> keys;
  std::vector<const char*> values;
  for (const auto& [key, value] : parameters) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  for (const auto& [key, value] : {std::pair("connect_timeout", "10"), std::pair("application_name", "muniment sql"),
                                   std::pair("client_encoding", "UTF8")}) {
    keys.push_back(key);
    values.push_back(value);
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  link.reset(PQconnectdbParams(keys.data(), values.data(), 0));
  if (PQstatus(link.get()) != CONNECTION_OK) {
    return not_reached(
        {PQerrorMessage(link.get()), known_text(PQhost(link.get())), known_text(PQport(link.get())),
         PQconnectionNeedsPassword(link.get()) != 0},
        "Other users may connect over TCP as reporter with its password if the owner allows it: docs/sql.md (From other programs)");
  }
  PQsetNoticeProcessor(
      link.get(), [](void*, const char*) {}, nullptr);
  const std::string* user = parameter("user");
  if (user == nullptr || *user != reporter_login) {
    const SqlResult taken(PQexec(link.get(), "SELECT set_config('role', public.muniment_role('reporter'), false)"));
    if (PQresultStatus(taken.get()) != PGRES_TUPLES_OK) {
      return Error(Errc::denied,
                   fmt::format("this login may not assume the role reporter: {}. See docs/runbook.md (roles)",
                               trimmed(PQresultErrorField(taken.get(), PG_DIAG_MESSAGE_PRIMARY))));
    }
    role = PQgetvalue(taken.get(), 0, 0);
  }
  return execute(
      "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED; SET search_path = report, public, pg_temp; SET timezone = 'UTC'; SET datestyle = 'ISO'; SET intervalstyle = 'postgres'; "
      "SET bytea_output = 'hex'; SET extra_float_digits = 1; SET client_connection_check_interval = '2s'");
}

Status SqlConnection::Impl::execute(const char* sql) const {
  const SqlResult done(PQexec(link.get(), sql));
  const ExecStatusType status = PQresultStatus(done.get());
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return success();
  return failure(done.get());
}

// Converts an error of Postgres to a message with the next step.
Error SqlConnection::Impl::failure(const PGresult* failed) const {
  const char* const field = PQresultErrorField(failed, PG_DIAG_SQLSTATE);
  const std::string_view state = field == nullptr ? "" : field;
  if (state.empty()) return unavailable("reading Postgres", link.get());
  std::string message = trimmed(PQresultErrorField(failed, PG_DIAG_MESSAGE_PRIMARY));
  if (state == "57014") {
    return {
        Errc::deadline_exceeded,
        fmt::format("the query exceeded its time limit of {} and was cancelled ({}). Raise the limit: --timeout 10min",
                    seconds_text(limit), message)};
  }
  if (state == "53400") {
    return {
        Errc::over_budget,
        fmt::format("{}: the query sorts or joins too much data. Narrow it; see docs/runbook.md (reporter)", message)};
  }
  if (state == "42601" && message.find("multiple commands") != std::string::npos) {
    return {Errc::invalid_argument,
            "only one statement is allowed. For several: psql \"$(muniment sql --uri)\" -f FILE"};
  }
  const char* const position = PQresultErrorField(failed, PG_DIAG_STATEMENT_POSITION);
  message = (position == nullptr ? "" : place_in(query, position)) + message;
  const bool changes_view = state == "55000";  // its hint suggests a trigger
  for (const int more : {PG_DIAG_MESSAGE_DETAIL, PG_DIAG_MESSAGE_HINT}) {
    const char* const text = PQresultErrorField(failed, more);
    if (text != nullptr && !changes_view) message += fmt::format(". {}", trimmed(text));
  }
  if (state == "42501" || state == "25006" || changes_view) {
    return {
        Errc::denied,
        message + ". A reporter may only read the views of schema report, the table artifact and the view artifacts"};
  }
  const std::string_view kind = state.substr(0, 2);
  const bool passes = kind == "08" || kind == "53" || kind == "57" || kind == "40" || kind == "55";
  return {passes ? Errc::unavailable : Errc::invalid_argument, message};
}

void SqlConnection::Impl::take_columns() {
  const int count = PQnfields(result.get());
  for (int i = 0; i < count; ++i) columns.push_back({PQfname(result.get(), i), kind_of(PQftype(result.get(), i))});
}

std::string SqlConnection::Impl::options() const {
  std::string text;
  for (const auto& [key, value] : parameters) {
    if (key == "options") text = value + " ";
  }
  text += option("statement_timeout", fmt::format("{}s", limit.count())) + " " +
          option("default_transaction_read_only", "on") + " " +
          option("default_transaction_isolation", "read committed") + " " + option("search_path", "report,public");
  if (!role.empty()) text += " " + option("role", role);
  return text;
}

SqlConnection::SqlConnection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SqlConnection::SqlConnection(SqlConnection&&) noexcept = default;
SqlConnection& SqlConnection::operator=(SqlConnection&&) noexcept = default;
SqlConnection::~SqlConnection() = default;

Result<SqlConnection> SqlConnection::open(const std::string& uri, std::chrono::seconds limit) {
  auto impl = std::make_unique<Impl>();
  impl->limit = limit;
  ignore_libpq_variables(uri);
  RETURN_IF_ERROR(impl->read_parameters(uri));
  RETURN_IF_ERROR(impl->connect());
  return SqlConnection(std::move(impl));
}

Result<std::optional<std::int64_t>> SqlConnection::wait() {
  const SqlResult waited(PQexec(impl_->link.get(), "SELECT report.wait()"));
  if (PQresultStatus(waited.get()) == PGRES_TUPLES_OK)
    return std::optional(parse_decimal(PQgetvalue(waited.get(), 0, 0)));
  const char* const state = PQresultErrorField(waited.get(), PG_DIAG_SQLSTATE);
  if (state != nullptr && std::string_view(state) == undefined_function) return std::optional<std::int64_t>();
  return impl_->failure(waited.get());
}

// The extended protocol accepts one statement, so a query cannot end the transaction and run another.
Status SqlConnection::start(const std::string& query) {
  Impl& impl = *impl_;
  RETURN_IF_ERROR(impl.execute(fmt::format("SET statement_timeout = '{}s'", impl.limit.count()).c_str()));
  RETURN_IF_ERROR(impl.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"));
  impl.query = query;
  if (PQsendQueryParams(impl.link.get(), query.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0) != 1 ||
      PQsetSingleRowMode(impl.link.get()) != 1) {
    return unavailable("asking Postgres", impl.link.get());
  }
  return success();
}

const std::vector<SqlColumn>& SqlConnection::columns() const { return impl_->columns; }

Result<bool> SqlConnection::next(SqlRow& row) {
  Impl& impl = *impl_;
  impl.result.reset(PQgetResult(impl.link.get()));
  if (!impl.result) return false;
  const PGresult* const result = impl.result.get();
  switch (PQresultStatus(result)) {
    case PGRES_SINGLE_TUPLE:
    case PGRES_TUPLES_OK:
      if (impl.columns.empty()) impl.take_columns();
      break;
    case PGRES_COMMAND_OK:
    case PGRES_EMPTY_QUERY: return false;
    case PGRES_COPY_OUT:
    case PGRES_COPY_IN:
    case PGRES_COPY_BOTH:
      return Error(Errc::invalid_argument, "COPY is not supported; pass only the SELECT, with --csv");
    case PGRES_BAD_RESPONSE:
    case PGRES_NONFATAL_ERROR:
    case PGRES_FATAL_ERROR:
    case PGRES_PIPELINE_SYNC:
    case PGRES_PIPELINE_ABORTED: return impl.failure(result);
  }
  if (PQntuples(result) == 0) return false;  // no more rows
  row.clear();
  for (int i = 0; i < PQnfields(result); ++i) {
    if (PQgetisnull(result, 0, i) != 0)
      row.emplace_back();
    else
      row.emplace_back(std::string_view(PQgetvalue(result, 0, i), static_cast<std::size_t>(PQgetlength(result, 0, i))));
  }
  return true;
}

std::string SqlConnection::uri() const {
  std::string user;
  std::string password;
  std::string database;
  std::string host;
  std::string port;
  std::string query;
  for (const auto& [key, value] : impl_->parameters) {
    if (key == "user")
      user = percent_encode(value);
    else if (key == "password")
      password = ":" + percent_encode(value);
    else if (key == "dbname")
      database = percent_encode(value);
    else if (key == "host" && !value.starts_with('/') && value.find(',') == std::string::npos)
      host = value;
    else if (key == "port" && value.find(',') == std::string::npos)
      port = value;
    else if (key != "options")
      query += fmt::format("{}={}&", key, percent_encode(value));
  }
  if (host.empty() && !port.empty())
    query += "port=" + std::exchange(port, "") + "&";  // a socket path cannot be followed by a port
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return fmt::format("postgresql://{}{}{}{}{}/{}?{}options={}", user, password, user.empty() ? "" : "@", host,
                     port.empty() ? "" : ":" + port, database, query, percent_encode(impl_->options()));
}

std::vector<std::pair<std::string, std::string>> SqlConnection::environment() const {
  std::vector<std::pair<std::string, std::string>> variables;
  const std::unique_ptr<PQconninfoOption, SqlFree> known(PQconndefaults());
  for (const PQconninfoOption* each = known.get(); each != nullptr && each->keyword != nullptr; ++each) {
    const std::string* const value = impl_->parameter(each->keyword);
    if (each->envvar != nullptr && value != nullptr && std::string_view(each->keyword) != "options")
      variables.emplace_back(each->envvar, *value);
  }
  variables.emplace_back("PGOPTIONS", impl_->options());
  return variables;
}

}  // namespace muniment::cli
