#!/usr/bin/env python3
"""Runs a program under the restrictions of a systemd unit, as far as they can be applied without systemd.

    under_unit.py UNIT [--user UID] -- PROGRAM ARGUMENT…

Applied: User= (as --user), NoNewPrivileges, UMask, LimitNOFILE, SystemCallFilter, MemoryDenyWriteExecute,
RestrictAddressFamilies and RestrictNamespaces. Not applied: the mounts (ProtectSystem and its like), which need systemd.
"""
from __future__ import annotations

import argparse
import ctypes
import errno
import os
import pathlib
import resource
import socket
import subprocess
import sys

ALLOW = 0x7FFF0000
EQ, MASKED_EQ = 4, 7
PROT_WRITE, PROT_EXEC, SHM_EXEC = 2, 4, 0o100000
# The namespaces of RestrictNamespaces=: cgroup, ipc, net, mnt, pid, user, uts.
NAMESPACES = (0x02000000, 0x08000000, 0x40000000, 0x00020000, 0x20000000, 0x10000000, 0x04000000)
PR_SET_NO_NEW_PRIVS = 38


class Compare(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("operator", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


class Filter:
    """A seccomp filter. The first filter that refuses a call wins, so that each rule of the unit is a separate filter."""

    def __init__(self, otherwise: int) -> None:
        self.library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
        self.library.seccomp_init.restype = ctypes.c_void_p
        self.library.seccomp_init.argtypes = [ctypes.c_uint32]
        self.library.seccomp_rule_add_array.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint,
                                                        ctypes.POINTER(Compare)]
        self.library.seccomp_load.argtypes = [ctypes.c_void_p]
        self.context = self.library.seccomp_init(otherwise)

    def rule(self, action: int, call: str, *compares: Compare) -> None:
        number = self.library.seccomp_syscall_resolve_name(call.encode())
        if number < 0:
            return   # a call of another architecture
        array = (Compare * max(1, len(compares)))(*compares)
        failed = self.library.seccomp_rule_add_array(self.context, action, number, len(compares), array)
        if failed not in (0, -errno.EACCES):   # EACCES: the rule equals the default action
            raise OSError(-failed, f"{call}: {os.strerror(-failed)}")

    def load(self) -> None:
        if failed := self.library.seccomp_load(self.context):
            raise OSError(-failed, os.strerror(-failed))


def refuse(number: int) -> int:
    return 0x00050000 | number


def calls_of(group: str) -> set[str]:
    """Returns the calls in @group according to systemd-analyze."""
    found: set[str] = set()
    text = subprocess.run(["systemd-analyze", "syscall-filter", group], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines()[1:]:
        word = line.strip()
        if word.startswith("@"):
            found |= calls_of(word)
        elif word and not word.startswith("#"):
            found.add(word)
    return found


def settings_of(unit: pathlib.Path) -> dict[str, list[str]]:
    settings: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            key, value = line.split("=", 1)
            settings.setdefault(key, []).append(value)
    return settings


def call_filter(words: list[str]) -> Filter:
    allowed: set[str] = set()
    for word in words:
        if word.startswith("~"):
            raise ValueError("only lists of allowed values are supported")
        allowed |= calls_of(word) if word.startswith("@") else {word}
    filter = Filter(refuse(errno.EPERM))
    for call in sorted(allowed):
        filter.rule(ALLOW, call)
    return filter


def memory_filter() -> Filter:
    filter, both = Filter(ALLOW), PROT_WRITE | PROT_EXEC
    filter.rule(refuse(errno.EPERM), "mmap", Compare(2, MASKED_EQ, both, both))
    for call in ("mprotect", "pkey_mprotect"):
        filter.rule(refuse(errno.EPERM), call, Compare(2, MASKED_EQ, PROT_EXEC, PROT_EXEC))
    filter.rule(refuse(errno.EPERM), "shmat", Compare(2, MASKED_EQ, SHM_EXEC, SHM_EXEC))
    return filter


def family_filter(families: list[str]) -> Filter:
    filter = Filter(ALLOW)
    known = {getattr(socket, name) for name in families}
    for family in set(range(50)) - known:
        filter.rule(refuse(errno.EAFNOSUPPORT), "socket", Compare(0, EQ, family, 0))
    return filter


def namespace_filter() -> Filter:
    filter = Filter(ALLOW)
    filter.rule(refuse(errno.ENOSYS), "clone3")   # a filter cannot read its flags
    for flag in NAMESPACES:
        filter.rule(refuse(errno.EPERM), "clone", Compare(0, MASKED_EQ, flag, flag))
        filter.rule(refuse(errno.EPERM), "unshare", Compare(0, MASKED_EQ, flag, flag))
    filter.rule(refuse(errno.EPERM), "setns")
    return filter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("unit", type=pathlib.Path)
    parser.add_argument("--user", type=int)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    settings = settings_of(arguments.unit)
    words = " ".join(settings["SystemCallFilter"]).split()
    families = " ".join(settings["RestrictAddressFamilies"]).split()
    filters = [memory_filter(), family_filter(families), namespace_filter(), call_filter(words)]
    # The limit of a container may be lower.
    files = min(int(settings["LimitNOFILE"][-1]), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    os.umask(int(settings["UMask"][-1], 8))
    if arguments.user is not None:
        os.setgroups([])
        os.setresgid(arguments.user, arguments.user, arguments.user)
        os.setresuid(arguments.user, arguments.user, arguments.user)
    ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for filter in filters:
        filter.load()
    if os.environ.get("LISTEN_FDS"):
        os.environ["LISTEN_PID"] = str(os.getpid())
    os.execv(arguments.command[0], arguments.command)


if __name__ == "__main__":
    sys.exit(main())
