// Implements the command disk, which shows what uses space: the folders of the data folder, and the parts of the
// database.
#include <fmt/format.h>
#include <sys/stat.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <filesystem>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/sql/query.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

struct Place {
  std::string_view path;  // below the data folder
  std::string_view what;
};

constexpr Place places[] = {
    {"postgres", "the private Postgres: the next rows but pg_wal are parts of it"},
    {"postgres/pg_wal", "Postgres' write-ahead log, at most about 4 GiB"},
    {"artifacts/runs", "files of runs, spilled bodies and states"},
    {"artifacts/uploads", "interrupted uploads, a day"},
    {"archive", "bodies that audit archive moved out of the database"},
    {"tiles", "the tree of the log"},
    {"index", "search indexes, which can be rebuilt"},
    {"models", "sentence encoder"},
    {"munimentd.log", "the daemon's log"},
};

struct Space {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
};

void add_file(const fs::path& path, Space& space) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return;
  space.bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
  ++space.files;
}

Space space_of(const fs::path& path) {
  Space space;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    add_file(path, space);
    return space;
  }
  fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) add_file(at->path(), space);
  return space;
}

class DiskTable {
 public:
  explicit DiskTable(Session& session) : session_(session) {}

  void add(const std::string& name, std::uint64_t bytes, std::uint64_t count, std::string_view what) {
    if (session_.options.json) {
      json::Writer row;
      row.begin_object().member("name", name).member("bytes", static_cast<std::int64_t>(bytes));
      session_.out().json_line(
          row.member("count", static_cast<std::int64_t>(count)).member("what", what).end_object().text());
    } else {
      table_.add({name, human_size(bytes), grouped(count), std::string(what)});
    }
  }
  void print() const {
    if (!session_.options.json) table_.print(session_.out());
  }

 private:
  Session& session_;
  Table table_{{"name", "size", "count", "what"}, {3}};
};

constexpr const char* parts_sql =
    "SELECT what, sum(size_bytes)::bigint, sum(row_count)::bigint FROM report.storage_report WHERE what <> 'artifacts' "
    "GROUP BY what ORDER BY what";

Status add_database(Session& session, DiskTable& table) {
  ASSIGN_OR_RETURN(const std::string uri, database_uri(session));
  ASSIGN_OR_RETURN(SqlConnection connection,
                   SqlConnection::open(uri, std::chrono::seconds(limits::report_seconds_default)));
  RETURN_IF_ERROR(connection.start(parts_sql));
  SqlRow row;
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, connection.next(row));
    if (!more) return success();
    const auto number = [&](std::size_t at) {
      return static_cast<std::uint64_t>(parse_decimal(row[at].value_or("0")).value_or(0));
    };
    const bool events = row[0] == "events";
    table.add(events ? "database: events" : "database: other tables", number(1), number(2),
              events ? "events with their indexes; the count is that of the planner"
                     : "tables that can be rebuilt, snapshots and checkpoints");
  }
}

Status show_disk(Session& session, const NoOptions&) {
  RETURN_IF_ERROR(session.find_place());
  ASSIGN_OR_RETURN(const Config config, session.config());
  std::error_code error;
  if (!fs::is_directory(config.data, error))
    return Error(Errc::not_found, config.data + ": no such data folder. Name it with --data");
  DiskTable table(session);
  for (const Place& place : places) {
    const fs::path path = fs::path(config.data) / place.path;
    if (!fs::exists(path, error)) continue;
    const Space space = space_of(path);
    table.add(std::string(place.path), space.bytes, space.files, place.what);
    if (place.path != "postgres") continue;
    if (const Status added = add_database(session, table); !added)
      fmt::print(stderr, "muniment: the parts of the database are not shown: {}\n",
                 escape_for_terminal(added.error().message));
  }
  if (!config.database.empty()) RETURN_IF_ERROR(add_database(session, table));
  table.print();
  return success();
}

}  // namespace

void add_disk_command(CLI::App& app, Session& session) {
  add_command<NoOptions>(session, app, "disk", "Show what uses space", nullptr, show_disk);
}

}  // namespace muniment::cli
