// Starts the shared server and copies its template database.
#include "support/postgres_fixture.hpp"

#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <pqxx/pqxx>
#include <stdexcept>

#include "store/postgres/migrations.hpp"
#include "store/postgres/private_postgres.hpp"
#include "store/read/connection.hpp"

namespace muniment::test {

namespace {

struct Server {
  TemporaryFolder folder;
  std::unique_ptr<store::PrivatePostgres> postgres;

  std::string uri(const std::string& database) const {
    std::string out = postgres->uri();
    return out.replace(out.find("/muniment?"), 10, "/" + database + "?");
  }
};

// The template is the server's database `muniment`, to which no client stays connected, as Postgres
// requires of a template.
Server& server() {
  static Server instance;
  if (!instance.postgres) {
    auto started = store::PrivatePostgres::start({instance.folder.path(), std::chrono::seconds(60), {}});
    if (!started) throw std::runtime_error(started.error().message);
    instance.postgres = std::move(*started);
    store::Connection connection(instance.postgres->uri(), store::DatabaseRole::login);
    const Status migrated = store::migrate(connection, store::embedded_migrations());
    if (!migrated) throw std::runtime_error(migrated.error().message);
  }
  return instance;
}

std::string create_database(const std::string& origin) {
  static std::atomic<int> count{0};
  const std::string name = "test_" + std::to_string(++count);
  run_sql(server().uri("postgres"), "CREATE DATABASE " + name + " TEMPLATE " + origin);
  return server().uri(name);
}

}  // namespace

std::string shared_data_dir() {
  server();
  return server().folder.path();
}

std::string fresh_database() {
  server();
  return create_database("muniment");
}

std::string empty_database() { return create_database("template0"); }

void run_sql(const std::string& uri, const std::string& sql) {
  pqxx::connection connection(uri);
  pqxx::nontransaction(connection).exec(sql);
}

std::string ask_sql(const std::string& uri, const std::string& sql) {
  pqxx::connection connection(uri);
  const pqxx::result rows = pqxx::nontransaction(connection).exec(sql);
  return rows.empty() || rows[0][0].is_null() ? "" : rows[0][0].c_str();
}

}  // namespace muniment::test
