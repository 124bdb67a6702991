// A process that gives up being root, and children that the new user cannot trace.
#pragma once

#include <sys/types.h>

#include <span>

namespace muniment {

// Makes this process, which is root's, one of the user, for good. Returns false if the system refuses.
bool become_user(uid_t uid, gid_t gid, std::span<const gid_t> groups);

// The kernel lets no process trace another that has a capability which it lacks. After `become_user`, the programs that
// this thread starts in the scope have such a capability, one that permits next to nothing; without it, no effect.
class UntraceableChildren {
 public:
  UntraceableChildren();
  ~UntraceableChildren();
  UntraceableChildren(const UntraceableChildren&) = delete;
  UntraceableChildren& operator=(const UntraceableChildren&) = delete;

 private:
  bool raised_ = false;
};

}  // namespace muniment
