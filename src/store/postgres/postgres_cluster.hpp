// The private Postgres on disk: which programs of the machine serve it, how its cluster is made, its
// settings, and what its postmaster.pid says. Starting and supervising it is private_postgres.hpp.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/config/reporter_listen.hpp"
#include "base/result.hpp"
#include "store/postgres/child_process.hpp"

namespace muniment::store {

inline constexpr int postgres_major_min = 15;

// The folder that holds the `postgres` and `initdb` to use for `cluster`: the cluster's own major
// version if there is one on disk already, otherwise the newest. Errors: conflict when the cluster is of a
// version that this machine cannot run, with the commands that upgrade it; not_found.
Result<std::string> find_postgres_programs(const std::string& cluster);

// The version in PG_VERSION; nullopt: there is no cluster yet. Errors: system_error.
Result<std::optional<int>> cluster_major(const std::string& cluster);

// Makes the cluster: beside its place, then renamed, so that a half-made one is never taken for one.
Status make_cluster(const std::string& cluster, const std::string& programs, const std::optional<Identity>& user);

// Writes muniment.conf, which postgresql.conf includes: what Muniment sets, and may set anew with a
// later version. What stands after the include is the operator's. With `reporter` the server listens
// there too, and reporter_hba.conf lets the role reporter in and nobody else. Says whether anything
// changed: a server that runs already has not read it.
Result<bool> write_settings(const std::string& cluster, const std::string& programs,
                            const std::optional<Identity>& user, const std::optional<ReporterListen>& reporter);

// A server has one port, also in the name of its Unix socket.
int port_of(const std::optional<ReporterListen>& reporter);

// Whether the server could listen there now. Errors: conflict, invalid_argument, denied; each says what to do.
Status can_listen(const ReporterListen& reporter);

// The folder for the server's socket: the cluster's own, or a short one under the runtime folder
// when the path would pass the 107 bytes that a Unix socket may have. Made if missing.
Result<std::string> socket_folder(const std::string& cluster, const std::optional<Identity>& user);

// postmaster.pid of a server that runs in this cluster now. nullopt: none does.
struct RunningServer {
  pid_t pid = 0;
  std::string socket_folder;
  bool ready = false;  // takes connections
};
std::optional<RunningServer> running_server(const std::string& cluster);

// Removes the locks (postmaster.pid and the socket's) of a server that is gone: their number may be
// another program's by now, and Postgres alone would refuse to start because of it. Waits for the
// children of a killed server to end; does nothing while any process still works in the cluster.
void remove_stale_locks(const std::string& cluster, const std::string& socket_folder, int port);

// The server's log, and its last lines for an error message.
std::string server_log(const std::string& cluster);
std::string last_lines(const std::string& file, int lines);

}  // namespace muniment::store
