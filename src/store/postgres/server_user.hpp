// The user that the private Postgres runs as. Postgres refuses to run as root, so a root daemon
// uses the system user `muniment`, and makes sure that this user can reach the cluster: a closed
// folder on the way that belongs to root gets one ACL entry (`user:muniment:--x`, pass through and
// nothing else). Folders of other users are never touched; the error then says what to run.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "store/postgres/child_process.hpp"

namespace muniment::store {

// nullopt: the daemon is not root, and the server runs as the daemon's own user. A cluster that
// exists already and belongs to somebody other than root keeps its owner.
Result<std::optional<Identity>> server_user(const std::string& cluster);

// Makes every folder above `cluster` passable for `user`. Returns the folders that were opened.
Result<std::vector<std::string>> open_way(const std::string& cluster, const Identity& user);

// A cluster that root copied or restored belongs to root, and Postgres would refuse it: it is given
// to `user`, closed to others. Does nothing to one that has its owner.
Status take_from_root(const std::string& cluster, const Identity& user);

// Gives `path` and everything in it to `user`.
Status give_to(const std::string& path, const Identity& user);

}  // namespace muniment::store
