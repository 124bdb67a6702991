// Implements server_user.hpp. It writes the ACL as the kernel's extended attribute, because the package `acl` may not
// be installed.
#include "store/postgres/server_user.hpp"

#include <endian.h>
#include <grp.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

namespace muniment::store {

namespace {

constexpr const char* user_name = "muniment";
constexpr const char* acl_attribute = "system.posix_acl_access";

template <typename Lookup>
std::optional<Identity> looked_up(Lookup lookup) {
  std::array<char, 16384> buffer;
  passwd entry{};
  passwd* found = nullptr;
  if (lookup(&entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return {};
  return Identity{found->pw_uid, found->pw_gid, found->pw_name};
}

std::optional<Identity> user_named(const char* name) {
  return looked_up([name](passwd* entry, char* buffer, std::size_t size, passwd** found) {
    return getpwnam_r(name, entry, buffer, size, found);
  });
}

std::optional<Identity> user_numbered(uid_t uid) {
  return looked_up([uid](passwd* entry, char* buffer, std::size_t size, passwd** found) {
    return getpwuid_r(uid, entry, buffer, size, found);
  });
}

Result<Identity> made_user() {
  const std::string advice =
      "; create it: useradd --system --user-group --no-create-home --home-dir /nonexistent --shell "
      "/usr/sbin/nologin muniment";
  std::string answer;
  // Daemons that start at the same time retry, because useradd refuses while /etc/passwd is locked.
  for (int attempt = 0; attempt < 20; ++attempt) {
    auto finished = run_to_end({{"/usr/sbin/useradd", "--system", "--user-group", "--no-create-home", "--home-dir",
                                 "/nonexistent", "--shell", "/usr/sbin/nologin", user_name},
                                {}});
    if (auto user = user_named(user_name)) return *user;
    answer = finished ? finished->output : finished.error().message;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return Error(Errc::system_error, "the system user muniment is missing and useradd failed: " + answer + advice);
}

using AclEntry = posix_acl_xattr_entry;
constexpr auto no_id = static_cast<uid_t>(ACL_UNDEFINED_ID);

AclEntry acl_entry(int tag, mode_t permissions, uid_t id = no_id) {
  AclEntry entry{};
  entry.e_tag = htole16(static_cast<std::uint16_t>(tag));
  entry.e_perm = htole16(static_cast<std::uint16_t>(permissions & 7));
  entry.e_id = htole32(id);
  return entry;
}

// Returns the folder's ACL, derived from its mode if it has none.
std::vector<AclEntry> acl_of(const std::string& folder, mode_t mode) {
  std::array<char, 4096> bytes;
  const ssize_t size = getxattr(folder.c_str(), acl_attribute, bytes.data(), bytes.size());
  if (size <= static_cast<ssize_t>(sizeof(posix_acl_xattr_header))) {
    return {acl_entry(ACL_USER_OBJ, mode >> 6), acl_entry(ACL_GROUP_OBJ, mode >> 3), acl_entry(ACL_MASK, mode >> 3),
            acl_entry(ACL_OTHER, mode)};
  }
  const std::size_t length = static_cast<std::size_t>(size) - sizeof(posix_acl_xattr_header);
  std::vector<AclEntry> entries(length / sizeof(AclEntry));
  std::memcpy(entries.data(), bytes.data() + sizeof(posix_acl_xattr_header), entries.size() * sizeof(AclEntry));
  return entries;
}

bool let_through(const std::string& folder, mode_t mode, uid_t uid) {
  std::vector<AclEntry> entries = acl_of(folder, mode);
  std::erase_if(entries,
                [&](const AclEntry& entry) { return le16toh(entry.e_tag) == ACL_USER && le32toh(entry.e_id) == uid; });
  for (AclEntry& entry : entries) {
    if (le16toh(entry.e_tag) == ACL_MASK) entry.e_perm |= htole16(ACL_EXECUTE);
  }
  entries.push_back(acl_entry(ACL_USER, ACL_EXECUTE, uid));
  // The kernel requires entries ordered by tag, and named users by id; the numbers of the tags are in that order.
  std::sort(entries.begin(), entries.end(), [](const AclEntry& a, const AclEntry& b) {
    return std::pair(le16toh(a.e_tag), le32toh(a.e_id)) < std::pair(le16toh(b.e_tag), le32toh(b.e_id));
  });
  posix_acl_xattr_header header{};
  header.a_version = htole32(POSIX_ACL_XATTR_VERSION);
  std::string value(sizeof header + entries.size() * sizeof(AclEntry), '\0');
  std::memcpy(value.data(), &header, sizeof header);
  std::memcpy(value.data() + sizeof header, entries.data(), entries.size() * sizeof(AclEntry));
  return setxattr(folder.c_str(), acl_attribute, value.data(), value.size(), 0) == 0;
}

std::vector<std::string> folders_above(const std::string& path) {
  std::vector<std::string> folders;
  for (auto folder = std::filesystem::absolute(path).parent_path();; folder = folder.parent_path()) {
    folders.insert(folders.begin(), folder.string());
    if (folder == folder.root_path()) return folders;
  }
}

// Returns the index of the first folder that `user` cannot pass, or folders.size(). A child process tests this as that
// user, because only the kernel knows the effect of all modes, ACLs and mounts.
std::size_t first_closed(const std::vector<std::string>& folders, const Identity& user) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (setgroups(1, &user.gid) != 0 || setresgid(user.gid, user.gid, user.gid) != 0 ||
        setresuid(user.uid, user.uid, user.uid) != 0) {
      _exit(0);
    }
    std::size_t index = 0;
    while (index < folders.size() && access(folders[index].c_str(), X_OK) == 0) ++index;
    _exit(static_cast<int>(std::min<std::size_t>(index, 255)));
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? static_cast<std::size_t>(WEXITSTATUS(status)) : 0;
}

}  // namespace

Result<std::optional<Identity>> server_user(const std::string& cluster) {
  struct stat about {};
  const bool exists = stat(cluster.c_str(), &about) == 0;
  if (geteuid() != 0) {
    if (exists && about.st_uid != geteuid()) {
      return Error(Errc::denied, cluster + " belongs to uid " + std::to_string(about.st_uid) + ", this daemon is uid " +
                                     std::to_string(geteuid()) + ". Start it as that user, or as root.");
    }
    return std::optional<Identity>();
  }
  if (exists && about.st_uid != 0) {
    auto owner = user_numbered(about.st_uid);
    if (!owner) owner = Identity{about.st_uid, about.st_gid, std::to_string(about.st_uid)};
    return owner;
  }
  if (auto user = user_named(user_name)) return user;
  ASSIGN_OR_RETURN(Identity made, made_user());
  return std::optional(std::move(made));
}

Result<std::vector<std::string>> open_way(const std::string& cluster, const Identity& user) {
  const std::vector<std::string> folders = folders_above(cluster);
  std::vector<std::string> opened;
  for (;;) {
    const std::size_t index = first_closed(folders, user);
    if (index >= folders.size()) return opened;
    const std::string& folder = folders[index];
    struct stat about {};
    const bool known = stat(folder.c_str(), &about) == 0;
    const bool tried = !opened.empty() && opened.back() == folder;
    if (!known || tried || about.st_uid != 0 || !let_through(folder, about.st_mode, user.uid)) {
      return Error(Errc::denied, "Postgres runs as " + user.name + ", which cannot pass through " + folder + " to " +
                                     cluster + ". Permit it: setfacl -m u:" + user.name + ":x " + folder +
                                     " (or chmod o+x), or choose another --data folder.");
    }
    opened.push_back(folder);
  }
}

Status take_from_root(const std::string& cluster, const Identity& user) {
  struct stat about {};
  if (stat(cluster.c_str(), &about) != 0 || about.st_uid != 0) return success();
  RETURN_IF_ERROR(give_to(cluster, user));
  if (chmod(cluster.c_str(), 0700) != 0) {
    return Error(Errc::system_error, "chmod " + cluster + ": " + errno_text(errno));
  }
  return success();
}

Status give_to(const std::string& path, const Identity& user) {
  std::error_code error;
  if (lchown(path.c_str(), user.uid, user.gid) != 0) {
    return Error(Errc::system_error, "chown " + path + ": " + errno_text(errno));
  }
  if (!std::filesystem::is_directory(std::filesystem::symlink_status(path))) return success();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path, error)) {
    if (lchown(entry.path().c_str(), user.uid, user.gid) != 0) {
      return Error(Errc::system_error, "chown " + entry.path().string() + ": " + errno_text(errno));
    }
  }
  if (error) return Error(Errc::system_error, "reading " + path + ": " + error.message());
  return success();
}

}  // namespace muniment::store
