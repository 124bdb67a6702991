// Implements postgres_cluster.hpp.
#include "store/postgres/postgres_cluster.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "base/crypto/sha256.hpp"
#include "store/postgres/server_user.hpp"

namespace muniment::store {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t socket_path_bytes_max = 107;
constexpr int orphans_wait_s_max = 10;  // time for the children of a killed postmaster to notice and exit
constexpr std::string_view socket_name = "/.s.PGSQL.";
constexpr std::size_t port_digits_max = 5;
constexpr int port_without_tcp = 5432;  // port in the name of the Unix socket, independent of PGPORT
constexpr const char* programs_root = "/usr/lib/postgresql";

// These settings do not weaken durability: fsync, synchronous_commit and full_page_writes keep their defaults, and the
// daemon refuses to start if one is off.
constexpr std::string_view settings_text = R"(# Written by munimentd at each start: do not edit.
# Put your own settings into postgresql.conf, after the line that includes this file.
unix_socket_permissions = 0700
max_connections = 50
shared_buffers = 128MB
jit = off
wal_buffers = 16MB
max_wal_size = 4GB
checkpoint_timeout = 15min
timezone = 'UTC'
log_timezone = 'UTC'
# The log must not contain the content of events: no statements and no failing rows.
log_error_verbosity = terse
log_min_error_statement = panic
log_checkpoints = off
)";

std::string read_text(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::optional<int> number_in(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return {};
  return value;
}

// Major versions under /usr/lib/postgresql that include a server, the newest first.
std::vector<int> installed_majors() {
  std::vector<int> majors;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(programs_root, error)) {
    const auto major = number_in(entry.path().filename().string());
    if (major && fs::exists(entry.path() / "bin" / "postgres", error)) majors.push_back(*major);
  }
  std::sort(majors.rbegin(), majors.rend());
  return majors;
}

std::string programs_of(int major) { return std::string(programs_root) + "/" + std::to_string(major) + "/bin"; }

// Returns the folder of programs that `pg_config` reports, for a Postgres not installed by Debian.
Result<std::string> programs_by_pg_config() {
  for (const char* folder : {"/usr/bin", "/usr/local/bin", "/usr/local/pgsql/bin"}) {
    auto finished = run_to_end({{std::string(folder) + "/pg_config", "--bindir"}, {}});
    if (!finished || finished->exit_status != 0) continue;
    std::string found = finished->output.substr(0, finished->output.find('\n'));
    if (access((found + "/postgres").c_str(), X_OK) == 0) return found;
  }
  return Error(Errc::not_found,
               "no Postgres server on this machine (searched /usr/lib/postgresql/*/bin and "
               "pg_config). Install it: apt-get install postgresql, or set database = "
               "\"postgresql://…\" to use a server on another machine.");
}

Error other_major(const std::string& cluster, int major, int ours) {
  const std::string had = std::to_string(major);
  const std::string has = std::to_string(ours);
  const std::string old = cluster + "." + had;
  const std::string as_user = geteuid() == 0 ? "runuser -u muniment -- " : "";
  return Error(Errc::conflict,
               cluster + " was made by Postgres " + had + "; this machine has Postgres " + has +
                   ".\nInstall the one it was made with:\n  apt-get install postgresql-" + had +
                   "\nor upgrade it (both must be installed):\n  mv " + cluster + " " + old + "\n  " +
                   (geteuid() == 0 ? "install -d -m 700 -o muniment -g muniment " : "mkdir -m 700 ") + cluster +
                   " && cd " + cluster + "\n  " + as_user + programs_of(ours) + "/initdb -D " + cluster +
                   " -U muniment -E UTF8 --no-locale --data-checksums --auth-local=trust "
                   "--auth-host=reject\n  " +
                   as_user + programs_of(ours) + "/pg_upgrade -U muniment -b " + programs_of(major) + " -B " +
                   programs_of(ours) + " -d " + old + " -D " + cluster +
                   "\n  echo \"include_if_exists = 'muniment.conf'\" >> " + cluster + "/postgresql.conf");
}

Status write_text(const std::string& file, std::string_view text, const std::optional<Identity>& user, int flags) {
  const Fd fd(open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600));
  const bool written = fd.open() && write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       (!user || fchown(fd.get(), user->uid, user->gid) == 0) && fsync(fd.get()) == 0;
  if (!written) return Error(Errc::system_error, "writing " + file + ": " + errno_text(errno));
  return success();
}

Status make_durable(const std::string& folder) {
  const Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.open() || fsync(fd.get()) != 0) {
    return Error(Errc::system_error, "syncing " + folder + ": " + errno_text(errno));
  }
  return success();
}

// Accepts an existing folder only if it belongs to the server's user and is closed to others: any user can create a
// folder in /tmp, and a server on its socket could be hostile.
Status private_folder(const std::string& path, uid_t uid, gid_t gid, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0) {
    if (chmod(path.c_str(), mode) == 0 && (geteuid() != 0 || chown(path.c_str(), uid, gid) == 0)) {
      return success();
    }
    return Error(Errc::system_error, "making " + path + ": " + errno_text(errno));
  }
  struct stat about {};
  if (errno != EEXIST || lstat(path.c_str(), &about) != 0) {
    return Error(Errc::system_error, "making " + path + ": " + errno_text(errno));
  }
  if (!S_ISDIR(about.st_mode) || about.st_uid != uid || (about.st_mode & 022) != 0) {
    return Error(Errc::denied,
                 path + " must be a folder of uid " + std::to_string(uid) + " that only it may write to. Remove it.");
  }
  return success();
}

bool fits_a_socket(const std::string& folder) {
  // Quotes, commas and white space are special in unix_socket_directories.
  const bool plain = std::all_of(folder.begin(), folder.end(), [](unsigned char byte) {
    return byte > ' ' && byte != '"' && byte != ',' && byte != '\\' && byte != 0x7f;
  });
  return plain && folder.size() + socket_name.size() + port_digits_max <= socket_path_bytes_max;
}

// Returns whether the process works in the cluster, which is the current folder of all Postgres processes.
bool works_in(pid_t pid, const std::string& cluster) {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/" + std::to_string(pid) + "/cwd", error);
  if (error) return false;
  return fs::equivalent(folder, cluster, error);
}

bool anybody_works_in(const std::string& cluster) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const auto pid = number_in(entry.path().filename().string());
    if (pid && works_in(*pid, cluster)) return true;
  }
  return false;
}

}  // namespace

Result<std::optional<int>> cluster_major(const std::string& cluster) {
  std::error_code error;
  if (!fs::exists(cluster + "/PG_VERSION", error)) {
    if (fs::exists(cluster, error) && !fs::is_empty(cluster, error)) {
      return Error(Errc::system_error, cluster +
                                           " is not empty and holds no PG_VERSION: it is not a "
                                           "Postgres cluster. Move it away.");
    }
    return std::optional<int>();
  }
  const auto major = number_in(read_text(cluster + "/PG_VERSION"));
  if (!major) return Error(Errc::system_error, cluster + "/PG_VERSION cannot be read");
  return major;
}

Result<std::string> find_postgres_programs(const std::string& cluster) {
  ASSIGN_OR_RETURN(const auto made_by, cluster_major(cluster));
  const std::vector<int> majors = installed_majors();
  if (majors.empty()) return programs_by_pg_config();
  if (!made_by && majors.front() >= postgres_major_min) return programs_of(majors.front());
  if (!made_by) {
    return Error(Errc::not_found, "Postgres " + std::to_string(majors.front()) + " is too old; Muniment needs " +
                                      std::to_string(postgres_major_min) + " or newer.");
  }
  const bool have = std::find(majors.begin(), majors.end(), *made_by) != majors.end();
  if (!have || *made_by < postgres_major_min) return other_major(cluster, *made_by, majors.front());
  return programs_of(*made_by);
}

Status make_cluster(const std::string& cluster, const std::string& programs, const std::optional<Identity>& user) {
  const std::string fresh = cluster + ".new";
  std::error_code error;
  fs::remove_all(fresh, error);
  if (mkdir(fresh.c_str(), 0700) != 0) {
    return Error(Errc::system_error, "making " + fresh + ": " + errno_text(errno));
  }
  if (user) RETURN_IF_ERROR(give_to(fresh, *user));
  ASSIGN_OR_RETURN(const Finished finished,
                   run_to_end({{programs + "/initdb", "-D", fresh, "-U", "muniment", "-E", "UTF8", "--no-locale",
                                "--data-checksums", "--auth-local=trust", "--auth-host=reject", "--no-instructions"},
                               user}));
  if (finished.exit_status != 0) {
    return Error(Errc::system_error,
                 programs + "/initdb failed (exit " + std::to_string(finished.exit_status) + "): " + finished.output);
  }
  RETURN_IF_ERROR(write_text(fresh + "/postgresql.conf", "\ninclude_if_exists = 'muniment.conf'\n", user, O_APPEND));
  fs::remove(cluster, error);  // an empty folder prepared for the cluster
  if (rename(fresh.c_str(), cluster.c_str()) != 0) {
    return Error(Errc::system_error, "renaming " + fresh + ": " + errno_text(errno));
  }
  return make_durable(fs::path(cluster).parent_path().string());
}

namespace {

std::string quoted_setting(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += c;
    quoted += c;
  }
  return quoted + "'";
}

// Permits any user over the socket, whose folder is closed to others, and over TCP only the role reporter with its
// password.
std::string access_rules(const ReporterListen& reporter) {
  std::string text =
      "# Written by munimentd at each start: do not edit. Other connections are refused.\n"
      "local  all       all       trust\n";
  for (const std::string& network : reporter.clients)
    text += "host   muniment  reporter  " + network + "  scram-sha-256\n";
  return text;
}

// Returns whether the file was written; a file with this content is left alone.
Result<bool> replace_file(const std::string& file, const std::string& text, const std::optional<Identity>& user) {
  if (read_text(file) == text) return false;
  RETURN_IF_ERROR(write_text(file + ".new", text, user, O_TRUNC));
  if (rename((file + ".new").c_str(), file.c_str()) != 0) {
    return Error(Errc::system_error, "writing " + file + ": " + errno_text(errno));
  }
  RETURN_IF_ERROR(make_durable(fs::path(file).parent_path().string()));
  return true;
}

}  // namespace

int port_of(const std::optional<ReporterListen>& reporter) {
  return reporter ? reporter->place.port : port_without_tcp;
}

Status can_listen(const ReporterListen& reporter) {
  const std::string setting = "reporter_listen = \"" + reporter.place.text() + "\": ";
  const std::string runbook = " See docs/runbook.md (reporter).";
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failed =
          getaddrinfo(reporter.place.address.c_str(), std::to_string(reporter.place.port).c_str(), &hints, &found);
      failed != 0) {
    return Error(Errc::invalid_argument, setting + gai_strerror(failed));
  }
  const Fd probe(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &on,
             sizeof on);  // Postgres does so too: earlier connections do not block the port
  const int bound = bind(probe.get(), found->ai_addr, found->ai_addrlen);
  const int why = errno;
  freeaddrinfo(found);
  if (bound == 0) return success();
  if (why == EADDRINUSE) {
    return Error(Errc::conflict,
                 setting + "another program has this port (ss -ltnp 'sport = :" + std::to_string(reporter.place.port) +
                     "' shows which). Give another port, or end that program." + runbook);
  }
  if (why == EADDRNOTAVAIL) {
    return Error(Errc::invalid_argument,
                 setting + "this machine has no such address (ip address shows those that it has)." + runbook);
  }
  if (why == EACCES)
    return Error(Errc::denied, setting + "a port below 1024 requires root. Give a higher one." + runbook);
  return Error(Errc::system_error, setting + errno_text(why) + runbook);
}

Result<bool> write_settings(const std::string& cluster, const std::string& programs,
                            const std::optional<Identity>& user, const std::optional<ReporterListen>& reporter) {
  const std::string rules = cluster + "/reporter_hba.conf";
  std::string text(settings_text);
  text += "listen_addresses = " + quoted_setting(reporter ? reporter->place.address : "") + "\n";
  bool changed = false;
  if (reporter) {
    text += "port = " + std::to_string(reporter->place.port) + "\nhba_file = " + quoted_setting(rules) + "\n";
    ASSIGN_OR_RETURN(changed, replace_file(rules, access_rules(*reporter), user));
  }
  // Debian builds Postgres with lz4. Other builds may lack it, and a server that does not support the value does not
  // start.
  if (programs.starts_with(programs_root)) text += "default_toast_compression = lz4\n";
  ASSIGN_OR_RETURN(const bool settings_changed, replace_file(cluster + "/muniment.conf", text, user));
  return changed || settings_changed;
}

Result<std::string> socket_folder(const std::string& cluster, const std::optional<Identity>& user) {
  if (fits_a_socket(cluster)) return cluster;
  const uid_t uid = user ? user->uid : geteuid();
  const gid_t gid = user ? user->gid : getegid();
  const char* session = std::getenv("XDG_RUNTIME_DIR");
  std::string base = "/tmp/muniment-" + std::to_string(geteuid());
  if (geteuid() == 0) {
    base = "/run/muniment";
  } else if (session != nullptr && session[0] == '/' && fits_a_socket(session + std::string(26, 'x'))) {
    base = std::string(session) + "/muniment";
  }
  // The daemon owns the parent folder; the server's user only needs to pass through it.
  RETURN_IF_ERROR(private_folder(base, geteuid(), getegid(), geteuid() == 0 ? 0711 : 0700));
  const std::string folder = base + "/" + to_hex(sha256(cluster)).substr(0, 16);
  RETURN_IF_ERROR(private_folder(folder, uid, gid, 0700));
  return folder;
}

std::optional<RunningServer> running_server(const std::string& cluster) {
  // The lines of postmaster.pid: pid, data folder, start, port, socket folder, address, shared memory, status.
  std::istringstream lines(read_text(cluster + "/postmaster.pid"));
  std::vector<std::string> fields;
  for (std::string line; std::getline(lines, line);) fields.push_back(line);
  const auto pid = fields.empty() ? std::nullopt : number_in(fields[0]);
  if (!pid || *pid <= 0 || !works_in(*pid, cluster)) return {};
  RunningServer server;
  server.pid = *pid;
  if (fields.size() > 4) server.socket_folder = fields[4].substr(0, fields[4].find(','));
  server.ready = fields.size() > 7 && fields[7].starts_with("ready");
  return server;
}

void remove_stale_locks(const std::string& cluster, const std::string& socket_folder, int port) {
  for (int i = 0; anybody_works_in(cluster); ++i) {
    if (i == orphans_wait_s_max * 10) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  std::error_code error;
  fs::remove(cluster + "/postmaster.pid", error);
  fs::remove(socket_folder + std::string(socket_name) + std::to_string(port) + ".lock", error);
}

std::string server_log(const std::string& cluster) { return cluster + "/server.log"; }

std::string last_lines(const std::string& file, int lines) {
  std::string text = read_text(file);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::size_t begin = text.size();
  for (int line = 0; line < lines && begin != std::string::npos && begin > 0; ++line) {
    begin = text.rfind('\n', begin - 1);
  }
  return begin == std::string::npos || begin == 0 ? text : text.substr(begin + 1);
}

}  // namespace muniment::store
