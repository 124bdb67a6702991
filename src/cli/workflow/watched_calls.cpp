#include "cli/workflow/watched_calls.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>

#include <string>

namespace muniment::cli {
namespace {

using Kind = CallKind;

constexpr WatchedCall calls[] = {
    {SYS_openat, "openat", Kind::path_at, Access::open},
    {SYS_openat2, "openat2", Kind::path_at, Access::open},
    {SYS_execve, "execve", Kind::path, Access::execute},
    {SYS_execveat, "execveat", Kind::path_at, Access::execute},
    {SYS_newfstatat, "newfstatat", Kind::path_at, Access::look},
    {SYS_statx, "statx", Kind::path_at, Access::look},
    {SYS_readlinkat, "readlinkat", Kind::path_at, Access::look},
    {SYS_faccessat, "faccessat", Kind::path_at, Access::look},
    {SYS_faccessat2, "faccessat2", Kind::path_at, Access::look},
    {SYS_truncate, "truncate", Kind::path},
    {SYS_linkat, "linkat", Kind::two_paths_at},
    {SYS_renameat2, "renameat2", Kind::two_paths_at},
    {SYS_unlinkat, "unlinkat", Kind::path_at},
#ifdef SYS_open  // the calls of older architectures
    {SYS_open, "open", Kind::path, Access::open},
    {SYS_creat, "creat", Kind::path, Access::open},
    {SYS_stat, "stat", Kind::path, Access::look},
    {SYS_lstat, "lstat", Kind::path, Access::look},
    {SYS_readlink, "readlink", Kind::path, Access::look},
    {SYS_access, "access", Kind::path, Access::look},
    {SYS_link, "link", Kind::two_paths},
    {SYS_rename, "rename", Kind::two_paths},
    {SYS_unlink, "unlink", Kind::path},
#endif
#ifdef SYS_renameat
    {SYS_renameat, "renameat", Kind::two_paths_at},
#endif
    {SYS_connect, "connect", Kind::address},
    {SYS_socket, "socket", Kind::family},
    {SYS_socketpair, "socketpair", Kind::family},
    {SYS_clone, "clone", Kind::namespaces},
    {SYS_ptrace, "ptrace"},
    {SYS_process_vm_readv, "process_vm_readv"},
    {SYS_process_vm_writev, "process_vm_writev"},
    {SYS_process_madvise, "process_madvise"},
    {SYS_pidfd_getfd, "pidfd_getfd"},
    {SYS_kcmp, "kcmp"},
    {SYS_mount, "mount"},
    {SYS_umount2, "umount2"},
    {SYS_mount_setattr, "mount_setattr"},
    {SYS_open_tree, "open_tree"},
    {SYS_move_mount, "move_mount"},
    {SYS_fsopen, "fsopen"},
    {SYS_fsconfig, "fsconfig"},
    {SYS_fsmount, "fsmount"},
    {SYS_fspick, "fspick"},
    {SYS_pivot_root, "pivot_root"},
    {SYS_chroot, "chroot"},
    {SYS_unshare, "unshare"},
    {SYS_setns, "setns"},
    {SYS_open_by_handle_at, "open_by_handle_at"},
    {SYS_bpf, "bpf"},
    {SYS_perf_event_open, "perf_event_open"},
    {SYS_userfaultfd, "userfaultfd"},
    {SYS_io_uring_setup, "io_uring_setup"},
    {SYS_io_uring_enter, "io_uring_enter"},
    {SYS_io_uring_register, "io_uring_register"},
    {SYS_keyctl, "keyctl"},
    {SYS_add_key, "add_key"},
    {SYS_request_key, "request_key"},
    {SYS_kexec_load, "kexec_load"},
    {SYS_init_module, "init_module"},
    {SYS_finit_module, "finit_module"},
    {SYS_delete_module, "delete_module"},
    {SYS_quotactl, "quotactl"},
    {SYS_swapon, "swapon"},
    {SYS_swapoff, "swapoff"},
    {SYS_reboot, "reboot"},
};

constexpr int families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

}  // namespace

std::span<const WatchedCall> watched_calls() { return calls; }

std::span<const int> permitted_families() { return families; }

std::string family_name(int family) {
  switch (family) {
    case AF_ALG: return "AF_ALG";
    case AF_BLUETOOTH: return "AF_BLUETOOTH";
    case AF_CAN: return "AF_CAN";
    case AF_KEY: return "AF_KEY";
    case AF_PACKET: return "AF_PACKET";
    case AF_RDS: return "AF_RDS";
    case AF_TIPC: return "AF_TIPC";
    case AF_VSOCK: return "AF_VSOCK";
    case AF_XDP: return "AF_XDP";
    default: return "family " + std::to_string(family);
  }
}

}  // namespace muniment::cli
