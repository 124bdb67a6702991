// Checks of Postgres for doctor: the programs, the cluster on disk, the server if it answers, and the files that its
// rows name.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include "base/config/standbys.hpp"
#include "base/files/file.hpp"
#include "base/limits.hpp"
#include "base/process/libpq_environment.hpp"
#include "base/text.hpp"
#include "cli/backup/archive.hpp"
#include "cli/doctor/doctor.hpp"
#include "store/logs/log_place.hpp"
#include "store/logs/own_database.hpp"
#include "store/postgres/database_facts.hpp"
#include "store/postgres/postgres_cluster.hpp"

namespace muniment::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t database_uri_bytes_max = 64 * 1024;
constexpr std::int64_t clock_micros_max = 1'000'000;
constexpr std::size_t paths_at_once = 2'000;
constexpr std::int64_t put_seconds_max = 60;  // a younger file may belong to an upload in progress

// Debian installs the server programs of each major version in a separate folder.
std::vector<std::string> installed_majors() {
  std::vector<std::string> majors;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", failed)) {
    const fs::path programs = entry.path() / "bin";
    if (::access((programs / "postgres").c_str(), X_OK) == 0 && ::access((programs / "initdb").c_str(), X_OK) == 0) {
      majors.push_back(entry.path().filename().string());
    }
  }
  std::ranges::sort(majors);
  return majors;
}

void look_at_durability(Findings& findings, const std::string& folder) {
  for (const char* name : {"/postgresql.conf", "/postgresql.auto.conf"}) {
    std::ifstream file(folder + name);
    for (std::string line; std::getline(file, line);) {
      std::erase_if(line, [](char c) { return c == ' ' || c == '\''; });
      for (const std::string_view setting : store::durable_settings) {
        if (!line.starts_with(std::string(setting) + "=off")) continue;
        findings.broken("cluster", fmt::format("{}{} turns {} off: acks would not be durable", folder, name, setting),
                        fmt::format("remove that line from {}{}", folder, name), runbook("not_durable"));
      }
    }
  }
}

void look_at_running(Findings& findings, const store::RunningServer& server) {
  std::error_code failed;
  const std::string program = fs::read_symlink(fmt::format("/proc/{}/exe", server.pid), failed).string();
  if (failed || !program.ends_with(" (deleted)")) return;
  findings.warn(
      "postgres",
      fmt::format("the program of the running server (pid {}) was replaced: functions not yet loaded will fail",
                  server.pid),
      "muniment down && muniment up", runbook("version"));
}

void look_at_migrations(Findings& findings, const store::DatabaseFacts& facts) {
  for (const std::string& name : facts.unknown_migrations) {
    findings.broken("schema", "migration " + escape_for_terminal(name) + " belongs to a newer Muniment",
                    "muniment --version", runbook("version"));
  }
  for (const std::string& name : facts.edited_migrations) {
    findings.broken("schema", "migration " + name + " differs from the applied version",
                    "git checkout migrations/" + name, runbook("version"));
  }
  if (!facts.missing_migrations.empty()) {
    findings.warn("schema",
                  fmt::format("{} migrations are pending: the next start of munimentd applies them",
                              facts.missing_migrations.size()),
                  "muniment down && muniment up", runbook("version"));
  }
}

void look_at_clock(Findings& findings, const store::DatabaseFacts& facts) {
  const Time now = Clock().now();
  const std::int64_t behind = facts.last_recorded_at.micros - now.micros;
  const std::int64_t apart = facts.now.micros - now.micros;
  if (behind > clock_micros_max) {
    findings.warn(
        "clock",
        fmt::format(
            "the clock is {} behind the last event of the log, at {}: the order is correct but times are unreliable",
            human_duration(behind), format_time(facts.last_recorded_at)),
        "timedatectl status", runbook("clock"));
  }
  if (std::abs(apart) > clock_micros_max) {
    findings.warn("clock",
                  fmt::format("the clock is {} {} the clock of Postgres", human_duration(std::abs(apart)),
                              apart > 0 ? "behind" : "ahead of"),
                  "timedatectl status", runbook("clock"));
  }
  if (behind <= clock_micros_max && std::abs(apart) <= clock_micros_max)
    findings.well("clock", "agrees with Postgres and is past the last event of the log");
}

void look_at_facts(Findings& findings, const store::DatabaseFacts& facts, const std::string& named) {
  look_at_migrations(findings, facts);
  if (facts.unsafe) findings.broken("database", facts.unsafe->why, facts.unsafe->fix, runbook("not_durable"));
  if (facts.connections * 10 > facts.connections_max * 9) {
    findings.warn("database", fmt::format("{} of {} connections are in use", facts.connections, facts.connections_max),
                  "SELECT * FROM pg_stat_activity", runbook("unavailable"));
  }
  if (!facts.unsafe)
    findings.well(
        "database",
        fmt::format("{}Postgres {}, {} events, {} of {} connections", named, escape_for_terminal(facts.server_version),
                    grouped(static_cast<std::uint64_t>(facts.events)), facts.connections, facts.connections_max));
  look_at_clock(findings, facts);
}

// The files under artifacts/runs: paths relative to the artifact root, the number of files that an upload in progress
// may still name, and whether the listing is complete.
struct Walked {
  std::vector<std::string> paths;
  std::set<std::string> young;
  bool whole = true;
};

Walked walk_artifacts(const std::string& root) {
  Walked walked;
  std::error_code failed;
  const std::int64_t now = Clock().now().micros / 1'000'000;
  fs::recursive_directory_iterator entry(root + "/runs", fs::directory_options::skip_permission_denied, failed);
  for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
    struct stat status {};
    if (::lstat(entry->path().c_str(), &status) != 0 || S_ISDIR(status.st_mode)) continue;
    if (walked.paths.size() == limits::files_examined_max) {
      walked.whole = false;
      break;
    }
    walked.paths.push_back(entry->path().string().substr(root.size() + 1));
    if (now - status.st_mtime < put_seconds_max) walked.young.insert(walked.paths.back());
  }
  walked.whole = walked.whole && (!failed || failed == std::errc::no_such_file_or_directory);
  return walked;
}

void look_at_unknown_files(Findings& findings, const Config& config, store::Connection& connection) {
  const std::string root = config.data + "/artifacts";
  const Walked walked = walk_artifacts(root);
  std::vector<std::string> unknown;
  for (std::size_t from = 0; from < walked.paths.size(); from += paths_at_once) {
    const std::size_t to = std::min(from + paths_at_once, walked.paths.size());
    auto found = store::paths_without_row(connection, {walked.paths.begin() + static_cast<std::ptrdiff_t>(from),
                                                       walked.paths.begin() + static_cast<std::ptrdiff_t>(to)});
    if (!found) return findings.warn("artifacts", found.error().message, "muniment status", runbook("unavailable"));
    unknown.insert(unknown.end(), found->begin(), found->end());
  }
  const auto in_flight = std::erase_if(unknown, [&](const std::string& path) { return walked.young.contains(path); });
  const std::string looked = fmt::format("{}{} {}", walked.whole ? "" : "the first ", grouped(walked.paths.size()),
                                         walked.paths.size() == 1 ? "file" : "files");
  if (unknown.empty()) {
    return findings.well("artifacts",
                         looked + (in_flight == 0 ? ", each named by an event"
                                                  : fmt::format(", {} of them too new to be named yet", in_flight)));
  }
  findings.warn("artifacts",
                fmt::format("{} of {} are not named by an event: {}{}", unknown.size(), looked,
                            escape_for_terminal(unknown.front()), unknown.size() > 1 ? ", …" : ""),
                "muniment-verify --unsigned-ok --data " + config.data, runbook("unknown_file"));
}

// Checks only that the files exist; backup and muniment-verify check their contents against the rows.
void look_at_archive(Findings& findings, const Config& config, const std::string& uri, std::int16_t log_no) {
  const auto partitions = archived_partitions(uri, log_no);
  if (!partitions)
    return findings.warn("archive", partitions.error().message, "muniment status", runbook("unavailable"));
  std::size_t looked = 0, missing = 0;
  std::string first;
  for (const ArchivedPartition& partition : *partitions) {
    for (std::int64_t file = partition.first_file; file <= partition.last_file && looked < limits::files_examined_max;
         ++file, ++looked) {
      const std::string path = archived_path(partition.log_no, file);
      struct stat status {};
      if (::lstat((config.data + "/" + path).c_str(), &status) == 0) continue;
      if (errno != ENOENT && errno != ENOTDIR) {
        return findings.warn("archive",
                             fmt::format("{}/{}: {}", config.data, path, std::generic_category().message(errno)),
                             fmt::format("ls -ld {}/{}", config.data, path), runbook("archive"));
      }
      if (++missing == 1) first = path;
    }
  }
  if (looked == 0) return;
  const std::string text =
      fmt::format("{}{} of archived bodies", looked == limits::files_examined_max ? "the first " : "",
                  many(static_cast<std::int64_t>(looked), "file", "files"));
  if (missing == 0) return findings.well("archive", text + ", none is missing");
  findings.broken("archive",
                  fmt::format("{} of {} {} missing: {}{}. There is no other copy of these bodies", grouped(missing),
                              text, missing == 1 ? "is" : "are", first, missing > 1 ? ", …" : ""),
                  fmt::format("restore it from a backup: DIR/generations/NAME/data/{}", first), runbook("archive"));
}

}  // namespace

void look_at_programs(Findings& findings, const Config& config) {
  if (!config.database.empty()) return;
  const std::vector<std::string> majors = installed_majors();
  if (majors.empty()) {
    findings.broken("postgres", "the server's programs are not under /usr/lib/postgresql", "scripts/setup",
                    runbook("setup"));
  } else {
    findings.well("postgres", "version " + majors.back());
  }
  const std::string folder = config.data + "/postgres";
  std::ifstream version(folder + "/PG_VERSION");
  std::string major;
  if (!std::getline(version, major)) return;
  if (std::ranges::find(majors, major) == majors.end()) {
    major = escape_for_terminal(preview(major, 20));
    findings.broken("cluster", fmt::format("created by Postgres {}, which is not installed", major),
                    "sudo apt-get install postgresql-" + major, runbook("version"));
  } else {
    findings.well("cluster", "created by Postgres " + major);
  }
  look_at_durability(findings, folder);
  if (const auto server = store::running_server(folder)) look_at_running(findings, *server);
}

void look_at_database(Findings& findings, const Config& config) {
  if (const Status choice = store::check_database_choice(config.data, config.database); !choice)
    return findings.broken("database", choice.error().message, "muniment up --database URI", runbook("wrong_database"));
  std::string uri = config.database;
  if (uri.empty()) {
    const auto text = read_file(config.data + "/database.uri", database_uri_bytes_max);
    if (!text || !store::running_server(config.data + "/postgres")) {
      return findings.note("database", "not checked: the private Postgres is not running", "muniment up",
                           runbook("not_running"));
    }
    uri = text->substr(0, text->find('\n'));
  }
  ignore_libpq_variables(uri);
  store::Connection connection(uri, store::DatabaseRole::login);
  const auto log_no = store::read_log_no(config.data);
  const auto standbys = standbys_of(config);
  auto facts =
      store::read_database_facts(connection, log_no ? *log_no : std::int16_t{1}, standbys ? *standbys : Standbys{});
  if (!facts) {
    return findings.broken("database", facts.error().message,
                           config.database.empty() ? "muniment status" : "psql DATABASE -c 'SELECT 1'",
                           runbook("unavailable"));
  }
  look_at_facts(findings, *facts, config.database.empty() ? "" : store::database_name(uri) + ": ");
  if (!config.database.empty() && log_no) {
    if (const Status holds = store::check_holds_own_log(connection, config.data, *log_no); !holds)
      findings.broken("database", holds.error().message, "muniment config print", runbook("wrong_database"));
  }
  if (facts->has_log) look_at_unknown_files(findings, config, connection);
  if (facts->has_log && facts->missing_migrations.empty() && log_no) look_at_archive(findings, config, uri, *log_no);
}

}  // namespace muniment::cli
