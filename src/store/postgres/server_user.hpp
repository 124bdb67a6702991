// Chooses the user of the private Postgres. Postgres refuses to run as root, so a root daemon uses the system user
// `muniment` and ensures that this user can reach the cluster: a closed parent folder that belongs to root gets one ACL
// entry (`user:muniment:--x`, which permits only passing through). Folders of other users are never changed; the error
// then names the command to run.
#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "store/postgres/child_process.hpp"

namespace muniment::store {

// Returns nullopt if the daemon is not root; the server then runs as the daemon's user. An existing cluster that does
// not belong to root keeps its owner.
Result<std::optional<Identity>> server_user(const std::string& cluster);

// Makes every parent folder of `cluster` passable for `user`. Returns the folders that were changed.
Result<std::vector<std::string>> open_way(const std::string& cluster, const Identity& user);

// Changes the owner of a cluster that root copied or restored to `user`, and closes it to others, because Postgres
// would refuse it otherwise. Does nothing if the cluster has its owner.
Status take_from_root(const std::string& cluster, const Identity& user);

// Changes the owner of `path` and everything in it to `user`.
Status give_to(const std::string& path, const Identity& user);

}  // namespace muniment::store
