// Manages the private Postgres on disk: the programs that serve it, the creation of its cluster, its settings, and its
// postmaster.pid. private_postgres.hpp starts and supervises the server.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/config/reporter_listen.hpp"
#include "base/result.hpp"
#include "store/postgres/child_process.hpp"

namespace muniment::store {

inline constexpr int postgres_major_min = 15;

// Returns the folder with the `postgres` and `initdb` for `cluster`: those of the major version of an existing cluster,
// otherwise the newest. Errors: conflict if the cluster has a version that this machine cannot run, with the commands
// that upgrade it; not_found.
Result<std::string> find_postgres_programs(const std::string& cluster);

// Returns the version in PG_VERSION; nullopt: there is no cluster yet. Errors: system_error.
Result<std::optional<int>> cluster_major(const std::string& cluster);

// Creates the cluster under a temporary name and renames it, so that an incomplete one is never used.
Status make_cluster(const std::string& cluster, const std::string& programs, const std::optional<Identity>& user);

// Writes muniment.conf, which postgresql.conf includes: the settings of Muniment, which later versions may change.
// Settings after the include belong to the operator. With `reporter` the server also listens there, and
// reporter_hba.conf admits only the role reporter. Returns whether anything changed, because a running server has not
// read the change.
Result<bool> write_settings(const std::string& cluster, const std::string& programs,
                            const std::optional<Identity>& user, const std::optional<ReporterListen>& reporter);

// Returns the server's only port, which is also part of the name of its Unix socket.
int port_of(const std::optional<ReporterListen>& reporter);

// Checks whether the server can listen at this address now. Errors: conflict, invalid_argument, denied; each names the
// remedy.
Status can_listen(const ReporterListen& reporter);

// Returns the folder for the server's socket, created if missing: the cluster's own, or a short one under the runtime
// folder if the path would exceed the 107 bytes of a Unix socket's address.
Result<std::string> socket_folder(const std::string& cluster, const std::optional<Identity>& user);

// Content of postmaster.pid of a server that runs in this cluster now; nullopt: none runs.
struct RunningServer {
  pid_t pid = 0;
  std::string socket_folder;
  bool ready = false;  // accepts connections
};
std::optional<RunningServer> running_server(const std::string& cluster);

// Removes the locks (postmaster.pid and the socket's) of a server that has ended. Postgres would refuse to start if
// another program has its process number by now. Waits for the children of a killed server to end. Does nothing while a
// process still works in the cluster.
void remove_stale_locks(const std::string& cluster, const std::string& socket_folder, int port);

// Path of the server's log, and its last lines for an error message.
std::string server_log(const std::string& cluster);
std::string last_lines(const std::string& file, int lines);

}  // namespace muniment::store
