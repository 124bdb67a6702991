#include "base/process/user.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <iterator>

namespace muniment {
namespace {

// Capabilities that permit next to nothing; containers rarely have the first two.
constexpr unsigned guards[] = {CAP_BLOCK_SUSPEND, CAP_WAKE_ALARM, CAP_AUDIT_WRITE};

// Returns the first that the data permits; the last if none.
unsigned guard_in(const __user_cap_data_struct* data) {
  for (const unsigned guard : guards) {
    if ((data[guard / 32].permitted >> (guard % 32) & 1U) != 0) return guard;
  }
  return guards[std::size(guards) - 1];
}

bool change_capabilities(auto change) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  const unsigned guard = guard_in(data);
  change(data, data[guard / 32], 1U << (guard % 32), guard);
  return ::syscall(SYS_capset, &header, data) == 0;
}

}  // namespace

bool become_user(uid_t uid, gid_t gid, std::span<const gid_t> groups) {
  ::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
  if (::setgroups(groups.size(), groups.data()) != 0 || ::setresgid(gid, gid, gid) != 0 ||
      ::setresuid(uid, uid, uid) != 0)
    return false;
  return uid == 0 || change_capabilities([](auto& all, auto& word, std::uint32_t bit, unsigned) {
           const std::uint32_t kept = word.permitted & bit;
           for (auto& each : all) each = {};
           word.permitted = kept;
         });
}

UntraceableChildren::UntraceableChildren() {
  unsigned guard = 0;
  raised_ = ::geteuid() != 0 && change_capabilities([&](auto&, auto& word, std::uint32_t bit, unsigned which) {
              word.inheritable |= bit;
              guard = which;
            }) &&
            ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, guard, 0, 0) == 0;
}

UntraceableChildren::~UntraceableChildren() {
  if (raised_) change_capabilities([](auto&, auto& word, std::uint32_t bit, unsigned) { word.inheritable &= ~bit; });
}

}  // namespace muniment
