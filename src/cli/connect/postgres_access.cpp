#include "cli/connect/postgres_access.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace muniment::cli {
namespace {

// libpq reports this only as a message that depends on the locale, so the socket is checked directly.
bool is_closed_socket(const UnreachedPostgres& postgres) {
  if (!postgres.host.starts_with('/')) return false;
  const std::string socket = fmt::format("{}/.s.PGSQL.{}", postgres.host, postgres.port);
  return ::faccessat(AT_FDCWD, socket.c_str(), W_OK, AT_EACCESS) != 0 && errno == EACCES;
}

}  // namespace

Error not_reached(const UnreachedPostgres& postgres, std::string_view instead) {
  if (is_closed_socket(postgres)) {
    return {
        Errc::denied,
        fmt::format(
            "no permission to open the database (uid {}): only root and the owner of the data folder may use its socket folder, {}. {}",
            ::geteuid(), postgres.host, instead)};
  }
  std::string_view words = postgres.words;
  while (words.ends_with('\n')) words.remove_suffix(1);
  if (postgres.needs_password) {
    return {
        Errc::denied,
        fmt::format(
            "the database requires a password and none was given: {}. Put it in the configuration or in PGPASSFILE. {}",
            words, instead)};
  }
  return {Errc::unavailable, fmt::format("connecting to Postgres: {}", words)};
}

}  // namespace muniment::cli
