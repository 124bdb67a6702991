// Checks of the disk and the kernel for doctor.
#include <fmt/format.h>
#include <linux/seccomp.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/text.hpp"
#include "cli/doctor/doctor.hpp"

namespace muniment::cli {
namespace {

constexpr std::uint64_t inodes_few = 1'000;  // each artifact and each Postgres relation needs one
constexpr std::uint64_t inodes_scarce = 20'000;
constexpr unsigned landlock_version_flag = 1;  // LANDLOCK_CREATE_RULESET_VERSION: query only

void look_at_inodes(Findings& findings, const struct statvfs& disk, const std::string& place) {
  if (disk.f_files == 0) return;  // btrfs and others allocate inodes on demand
  const std::uint64_t free = disk.f_favail;
  const std::string text = fmt::format("{} of {} inodes free", grouped(free), grouped(disk.f_files));
  const std::string fix = fmt::format("du --inodes -x -d 2 {}", place);
  if (free < inodes_few) {
    findings.broken("inodes", text + ": file creation will fail soon", fix, runbook("disk"));
  } else if (free < inodes_scarce && free < disk.f_files / 20) {
    findings.warn("inodes", text, fix, runbook("disk"));
  } else {
    findings.well("inodes", text);
  }
}

}  // namespace

void look_at_disk(Findings& findings, const Config& config) {
  std::filesystem::path place = config.data;
  std::error_code failed;
  while (!std::filesystem::exists(place, failed) && place.has_relative_path()) place = place.parent_path();
  struct statvfs disk {};
  if (::statvfs(place.c_str(), &disk) != 0) {
    return findings.broken("disk", fmt::format("{}: {}", place.string(), std::strerror(errno)), "df " + place.string(),
                           runbook("disk"));
  }
  const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  const std::uint64_t total = std::uint64_t{disk.f_blocks} * disk.f_frsize;
  const std::uint64_t share = total / 100 * static_cast<std::uint64_t>(config.disk_reserve_percent);
  const std::uint64_t reserve = std::max(static_cast<std::uint64_t>(config.disk_reserve_bytes), share);
  const std::string text =
      fmt::format("{} of {} free, {} reserved", human_size(free), human_size(total), human_size(reserve));
  const std::string fix = fmt::format("du -x -d 2 -h {}", place.string());
  if (free < reserve) {
    findings.broken("disk", text + ": artifacts over 64 KiB are refused", fix, runbook("disk"));
  } else if (free < 2 * reserve) {
    findings.warn("disk", text, fix, runbook("disk"));
  } else {
    findings.well("disk", text);
  }
  look_at_inodes(findings, disk, place.string());
}

// Checks the sandbox of the search child; without it the child runs with less isolation.
void look_at_sandbox(Findings& findings) {
  const long landlock = ::syscall(SYS_landlock_create_ruleset, nullptr, std::size_t{0}, landlock_version_flag);
  const std::uint32_t action = SECCOMP_RET_ERRNO;
  const bool seccomp = ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
  if (landlock > 0 && seccomp)
    return findings.well("sandbox", fmt::format("Landlock (ABI {}) and seccomp confine the search child", landlock));
  findings.warn(
      "sandbox",
      fmt::format("the kernel offers {}{}: the search child is less confined", landlock > 0 ? "" : "no Landlock",
                  seccomp        ? ""
                  : landlock > 0 ? "no seccomp"
                                 : " and no seccomp"),
      "cat /sys/kernel/security/lsm", runbook("sandbox"));
}

}  // namespace muniment::cli
