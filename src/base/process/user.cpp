#include "base/process/user.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace muniment {
namespace {

// Permits to keep the machine from suspending. No program of Debian asks for it.
constexpr unsigned guard = CAP_BLOCK_SUSPEND;

bool change_capabilities(auto change) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  change(data, data[guard / 32], 1U << (guard % 32));
  return ::syscall(SYS_capset, &header, data) == 0;
}

}  // namespace

bool become_user(uid_t uid, gid_t gid, std::span<const gid_t> groups) {
  ::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
  if (::setgroups(groups.size(), groups.data()) != 0 || ::setresgid(gid, gid, gid) != 0 ||
      ::setresuid(uid, uid, uid) != 0)
    return false;
  return uid == 0 || change_capabilities([](auto& all, auto& word, std::uint32_t bit) {
           const std::uint32_t kept = word.permitted & bit;
           for (auto& each : all) each = {};
           word.permitted = kept;
         });
}

UntraceableChildren::UntraceableChildren() {
  raised_ = ::geteuid() != 0 &&
            change_capabilities([](auto&, auto& word, std::uint32_t bit) { word.inheritable |= bit; }) &&
            ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, guard, 0, 0) == 0;
}

UntraceableChildren::~UntraceableChildren() {
  if (raised_) change_capabilities([](auto&, auto& word, std::uint32_t bit) { word.inheritable &= ~bit; });
}

}  // namespace muniment
