// Implements connection.hpp and pq.hpp.
#include "store/read/connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <charconv>

#include "base/log.hpp"
#include "store/read/pq.hpp"

namespace muniment::store {

namespace {

// Sets everything that affects the text of a result, so that the server's configuration cannot change it. The timeout
// frees the server of an abandoned statement; it is not a deadline.
constexpr const char* session_settings =
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;"
    "SET timezone = 'UTC'; SET datestyle = 'ISO'; SET bytea_output = 'hex';"
    "SET client_encoding = 'UTF8'; SET search_path = public; SET jit = off;"
    "SET standard_conforming_strings = on; SET client_min_messages = warning;"
    "SET statement_timeout = '120s'; SET idle_in_transaction_session_timeout = '300s'";

// The role is set last. A reporter can change its limits, but must do so deliberately.
std::string role_settings(DatabaseRole role) {
  switch (role) {
    case DatabaseRole::login: return "";
    case DatabaseRole::writer: return "; SELECT set_config('role', muniment_role('writer'), false)";
    // The statements of a follower concern few rows of large tables. While the statistics are those of an empty table,
    // the planner would read all of a table.
    case DatabaseRole::follower: return "; SET enable_seqscan = off" + role_settings(DatabaseRole::writer);
    case DatabaseRole::redactor: return "; SELECT set_config('role', muniment_role('redactor'), false)";
    case DatabaseRole::reporter:
      return "; SET search_path = report, public; SET statement_timeout = '30s'; SET default_transaction_read_only = on"
             "; SELECT set_config('role', muniment_role('reporter'), false)";
  }
  return "";
}

std::string with_defaults(std::string uri) {
  const bool is_uri = uri.starts_with("postgres://") || uri.starts_with("postgresql://");
  for (const auto& [key, value] : {std::pair("connect_timeout", "5"), std::pair("application_name", "muniment")}) {
    if (uri.find(key) != std::string::npos) continue;
    uri += is_uri ? (uri.find('?') == std::string::npos ? "?" : "&") : " ";
    uri += std::string(key) + "=" + value;
  }
  return uri;
}

// Example: "ERROR:  relation …\nLINE 1: …" → "relation …".
std::string first_line(std::string text) {
  text.resize(std::min(text.find('\n'), text.size()));
  for (const std::string_view prefix : {"ERROR:", "FATAL:", "PANIC:"}) {
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
  }
  text.erase(0, text.find_first_not_of(' '));
  return text;
}

// Classifies an SQLSTATE (appendix A of Postgres) as transient, as damage, or as neither.
Errc code_of_state(std::string_view state) {
  const std::string_view kind = state.substr(0, 2);
  if (state == "57014" || state == "55P03" || state == "25P03") return Errc::unavailable;
  if (kind == "08" || kind == "53" || kind == "57" || kind == "40") return Errc::unavailable;
  // P0002: a position within the log is missing (migrations/0001_log.sql).
  if (kind == "22" || kind == "XX" || state == "P0002") return Errc::corrupt;
  return Errc::system_error;
}

[[noreturn]] void bad_value(const pqxx::field& field) {
  throw pqxx::conversion_error(std::string("column ") + field.name() + " holds a value that is out of range");
}

}  // namespace

// A message such as "WARNING:  canceling wait for …\nDETAIL:  …", in the server's language.
bool Warnings::operator()(const char message[]) noexcept {
  try {
    last_ = message;
    last_.resize(std::min(last_.find('\n'), last_.size()));
    const std::size_t text = last_.find(":  ");
    if (text != std::string::npos) last_.erase(0, text + 3);
    log_warning("Postgres warns", {{"message", last_}});
  } catch (const std::exception&) {
    last_ = "a warning";  // short enough to need no allocation
  }
  return false;  // suppresses other output
}

void Connections::give_up() {
  given_up_.store(true, std::memory_order_release);
  const std::lock_guard lock(mutex_);
  for (Connection* connection : all_) connection->interrupt();
}

void Connections::add(Connection* connection) {
  const std::lock_guard lock(mutex_);
  all_.insert(connection);
}

void Connections::remove(Connection* connection) {
  const std::lock_guard lock(mutex_);
  all_.erase(connection);
}

Connection::Connection(std::string uri, DatabaseRole role, std::shared_ptr<Connections> among)
    : impl_(std::make_unique<Impl>(std::move(uri), role, std::move(among))) {
  if (impl_->among) impl_->among->add(this);
}

Connection::~Connection() {
  if (impl_->among) impl_->among->remove(this);
}

void Connection::Impl::close() {
  {
    const std::lock_guard lock(mutex);
    socket = -1;
  }
  prepared.clear();
  warnings.reset();
  link.reset();
}

Status Connection::ensure_open() {
  Impl& impl = *impl_;
  if (impl.interrupted.exchange(false)) impl.close();
  const auto given_up = [&] { return impl.among && impl.among->given_up(); };
  const Error stopping(Errc::unavailable, "the daemon is stopping, and Postgres does not answer");
  if (given_up()) return stopping;
  if (impl.link && impl.link->is_open()) return success();
  impl.close();
  try {
    impl.link = std::make_unique<pqxx::connection>(with_defaults(impl.uri));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    impl.link->inhibit_reactivation(true);
#pragma GCC diagnostic pop
    // A server that accepts a connection may still not answer. From here on `interrupt` can end the wait.
    {
      const std::lock_guard lock(impl.mutex);
      impl.socket = impl.link->sock();
    }
    if (!given_up() && !impl.interrupted)
      pqxx::nontransaction(*impl.link).exec(session_settings + role_settings(impl.role));
    impl.warnings = std::make_unique<Warnings>(*impl.link);
  } catch (const pqxx::insufficient_privilege& failure) {
    impl.close();
    return Error(Errc::denied, "Postgres: " + first_line(failure.what()) + ". See docs/runbook.md (roles)");
  } catch (const std::exception& failure) {
    impl.close();
    if (!given_up() && !impl.interrupted)
      return Error(Errc::unavailable, "Postgres does not answer: " + first_line(failure.what()));
  }
  if (!given_up() && !impl.interrupted) return success();
  impl.close();
  return given_up() ? stopping : Error(Errc::unavailable, "Postgres did not answer in time");
}

void Connection::interrupt() {
  const std::lock_guard lock(impl_->mutex);
  impl_->interrupted = true;
  if (impl_->socket >= 0) shutdown(impl_->socket, SHUT_RDWR);
}

Error error_of_exception(Connection& connection, std::string_view doing) {
  const std::string context = std::string(doing) + ": ";
  const auto& link = connection.impl().link;
  if (connection.impl().interrupted) {
    connection.impl().close();
    return {Errc::unavailable, context + "Postgres did not answer in time"};
  }
  const bool lost = link && !link->is_open();
  try {
    throw;
  } catch (const pqxx::broken_connection& failure) {
    connection.impl().close();
    return {Errc::unavailable, context + "the connection to Postgres broke: " + first_line(failure.what())};
  } catch (const pqxx::sql_error& failure) {
    if (lost) connection.impl().close();
    return {lost ? Errc::unavailable : code_of_state(failure.sqlstate()), context + first_line(failure.what())};
  } catch (const pqxx::argument_error& failure) {
    return {Errc::invalid_argument, context + failure.what()};
  } catch (const pqxx::conversion_error& failure) {
    return {Errc::corrupt, context + failure.what()};
  } catch (const std::exception& failure) {
    if (lost) connection.impl().close();
    return {lost ? Errc::unavailable : Errc::system_error, context + failure.what()};
  }
}

std::string array_literal(const std::vector<std::string>& values) {
  std::string array = "{";
  for (const std::string& value : values) {
    if (array.size() > 1) array += ',';
    array += '"';
    for (const char byte : value) {
      if (byte == '"' || byte == '\\') array += '\\';
      array += byte;
    }
    array += '"';
  }
  return array + "}";
}

Params& Params::text(std::string_view value) {
  if (value.find('\0') != std::string_view::npos) {
    throw pqxx::argument_error("a text with a NUL byte cannot be looked up");
  }
  values_.emplace_back(value);
  return *this;
}

Params& Params::text_or_null(const std::optional<std::string>& value) {
  if (value) return text(std::string_view(*value));
  values_.emplace_back(std::nullopt);
  return *this;
}

Params& Params::uuid_or_null(const std::optional<Uuid>& value) {
  return text_or_null(value ? std::optional(value->text()) : std::nullopt);
}

Params& Params::texts(const std::vector<std::string>& values) { return text(array_literal(values)); }

Params& Params::uuids(const std::vector<Uuid>& values) {
  std::vector<std::string> texts;
  for (const Uuid& value : values) texts.push_back(value.text());
  return this->texts(texts);
}

Params& Params::integers(const std::vector<std::int64_t>& values) {
  std::string array = "{";
  for (const std::int64_t value : values) {
    if (array.size() > 1) array += ',';
    array += std::to_string(value);
  }
  return text(array + "}");
}

Params& Params::append(const Params& more) {
  values_.insert(values_.end(), more.values_.begin(), more.values_.end());
  return *this;
}

std::vector<const char*> Params::pointers() const {
  std::vector<const char*> out;
  for (const auto& value : values_) out.push_back(value ? value->c_str() : nullptr);
  return out;
}

pqxx::result query(Connection& connection, pqxx::transaction_base& transaction, std::string_view name,
                   std::string_view sql, const Params& params) {
  Connection::Impl& impl = connection.impl();
  const std::string statement(name);
  auto known = impl.prepared.find(name);
  if (known == impl.prepared.end()) {
    impl.link->prepare(statement, std::string(sql));
    known = impl.prepared.emplace(statement, &metrics::process().statements.of(name)).first;
  }
  const metrics::Timer timer(*known->second);
  return transaction.exec_prepared(statement, pqxx::prepare::make_dynamic_params(params.pointers()));
}

pqxx::result query(Connection& connection, std::string_view name, std::string_view sql, const Params& params) {
  pqxx::nontransaction transaction(*connection.impl().link);
  return query(connection, transaction, name, sql, params);
}

std::int64_t integer_of(const pqxx::field& field) {
  std::int64_t value = 0;
  const char* const end = field.c_str() + field.size();
  const auto [rest, error] = std::from_chars(field.c_str(), end, value);
  if (field.is_null() || error != std::errc() || rest != end) {
    bad_value(field);
  }
  return value;
}

std::string text_of(const pqxx::field& field) {
  if (field.is_null()) bad_value(field);
  return std::string(field.c_str(), field.size());
}

std::optional<std::string> text_if(const pqxx::field& field) {
  if (field.is_null()) return {};
  return text_of(field);
}

Time time_of(const pqxx::field& field) { return Time{integer_of(field)}; }

std::optional<Time> time_if(const pqxx::field& field) {
  if (field.is_null()) return {};
  return time_of(field);
}

Uuid uuid_of(const pqxx::field& field) {
  const auto value = parse_uuid(std::string_view(field.c_str(), field.size()));
  if (!value) bad_value(field);
  return *value;
}

std::optional<Uuid> uuid_if(const pqxx::field& field) {
  if (field.is_null()) return {};
  return uuid_of(field);
}

Hash hex_hash_of(const pqxx::field& field) {
  const auto value = hash_from_hex(std::string_view(field.c_str(), field.size()));
  if (!value) bad_value(field);
  return *value;
}

Hash hash_of(const pqxx::field& field) {
  const std::string_view text(field.c_str(), field.size());  // \x and the digits
  const auto value = text.starts_with("\\x") ? hash_from_hex(text.substr(2)) : std::nullopt;
  if (!value) bad_value(field);
  return *value;
}

std::optional<Hash> hash_if(const pqxx::field& field) {
  if (field.is_null()) return {};
  return hash_of(field);
}

}  // namespace muniment::store
