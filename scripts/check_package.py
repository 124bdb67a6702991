#!/usr/bin/env python3
"""Installs the Debian package on a clean Debian 12 in a chroot and tests it: the daemon as its user, the command line as a
member of the group, the manual, completion, removal and purging. Requires root, debootstrap and the mirror of apt.

    scripts/check_package.py DEB [ROOT]     ROOT: folder that keeps the clean root for later runs
"""
from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Iterator

SUITE = "bookworm"
SOCKET = "/run/muniment/munimentd.sock"
STARTED = time.monotonic()
# Equivalent of munimentd.socket and munimentd.service: root and the group own the socket, the daemon runs as its own user.
AS_SYSTEMD = f"""
import grp, os, pwd, socket
os.makedirs("/run/muniment", 0o755, exist_ok=True)
listening = socket.socket(socket.AF_UNIX)
listening.bind("{SOCKET}")
os.chown("{SOCKET}", 0, grp.getgrnam("muniment").gr_gid)
os.chmod("{SOCKET}", 0o660)
listening.listen(64)
os.dup2(listening.fileno(), 3)
os.set_inheritable(3, True)
user = pwd.getpwnam("muniment")
os.setgroups([user.pw_gid]); os.setgid(user.pw_gid); os.setuid(user.pw_uid); os.umask(0o077)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv("/usr/bin/munimentd", ["munimentd", "--config", "/etc/muniment/muniment.toml"])
"""


def say(text: str) -> None:
    print(f"check_package: {time.monotonic() - STARTED:6.1f} s  {text}", flush=True)


class Root:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    def run(self, *command: str, text_in: str = "", status: int = 0) -> str:
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "HOME": "/root"}
        done = subprocess.run(["chroot", str(self.folder), *command], input=text_in, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=env, timeout=600)
        if done.returncode != status:
            sys.exit(f"{done.stdout}\ncheck_package: {' '.join(command)} ended with {done.returncode}, not {status}")
        return done.stdout

    def apt(self, *words: str) -> str:
        # The root need not survive a crash.
        return self.run("apt-get", "-qq", "-y", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0", "-o", "Dpkg::Options::=--force-unsafe-io", *words)

    def make(self) -> None:
        if not (self.folder / "etc/debian_version").exists():
            mirror = os.environ.get("MUNIMENT_MIRROR", "http://deb.debian.org/debian")
            done = subprocess.run(["debootstrap", "--variant=minbase", SUITE, str(self.folder), mirror], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0:
                sys.exit(f"{done.stdout}\ncheck_package: debootstrap failed")
        for file in ("/etc/resolv.conf", *map(str, pathlib.Path("/etc/apt/apt.conf.d").glob("*proxy*"))):
            if pathlib.Path(file).exists():
                shutil.copy(file, f"{self.folder}{file}")
        # No service is started, since a chroot has no init; this script starts the processes itself.
        policy = self.folder / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)

    @contextlib.contextmanager
    def mounted(self) -> Iterator[None]:
        places = [("proc", "proc"), ("tmpfs", "dev/shm"), ("tmpfs", "run")]
        for kind, place in places:
            (self.folder / place).mkdir(exist_ok=True)
            subprocess.run(["mount", "-t", kind, kind, str(self.folder / place)], check=True)
        try:
            yield
        finally:
            for _, place in reversed(places):
                subprocess.run(["umount", "-l", str(self.folder / place)], check=False)


def expect(what: str, text: str, wanted: str) -> None:
    if wanted not in text:
        sys.exit(f"check_package: {what}: {wanted!r} is missing from\n{text}")
    say(f"{what}: {' '.join(wanted.split())}")


def use(root: Root) -> None:
    """Uses the package as different users; `ann` is a member of the group, `bob` is not."""
    for user in ("ann", "bob"):
        root.run("sh", "-c", f"getent passwd {user} || adduser --quiet --disabled-password --gecos {user} {user}")
    root.run("adduser", "--quiet", "ann", "muniment")
    expect("the configuration", root.run("stat", "-c", "%U:%G %a", "/etc/muniment/muniment.toml"), "root:muniment 640")
    expect("the data folder", root.run("stat", "-c", "%U:%G %a", "/var/lib/muniment"), "muniment:muniment 700")
    daemon = subprocess.Popen(["chroot", str(root.folder), "python3", "-c", AS_SYSTEMD], stdout=subprocess.DEVNULL,
                              stderr=open(root.folder / "tmp/daemon.log", "wb"))
    try:
        as_ann, as_bob = ("runuser", "-u", "ann", "--"), ("runuser", "-u", "bob", "--")
        until = time.monotonic() + 60
        while not (root.folder / SOCKET[1:]).exists() and time.monotonic() < until and daemon.poll() is None:
            time.sleep(0.05)
        expect("a member starts a run", root.run(*as_ann, "muniment", "run", "start", "--id", "r1", "--agent", "mason"), "r1")
        expect("and appends", root.run(*as_ann, "muniment", "event", "append", "--run", "r1", "x.test.noted", '{"a":1}'), "run_seq 1")
        uid = next(line.split(":")[2] for line in (root.folder / "etc/passwd").read_text().splitlines() if line.startswith("muniment:"))
        expect("the daemon's user", pathlib.Path(f"/proc/{daemon.pid}/status").read_text(), f"\nUid:\t{uid}\t{uid}\t{uid}")
        expect("root sees it", root.run("muniment", "status"), f"socket     {SOCKET}")
        expect("a user outside the group", root.run(*as_bob, "env", f"MUNIMENT_SOCKET={SOCKET}", "muniment", "run", "list", status=1),
               "adduser USER muniment")
        expect("the verifier", root.run("muniment-verify", "--unsigned-ok"), "CONSISTENT")
        expect("Python", root.run(*as_ann, "python3", "-c", "import muniment\nwith muniment.connect('" + SOCKET +
                                  "') as c: print(c.call('run.get', run_id='r1')['run']['agent'])"), "mason")
        completed = root.run(*as_ann, "bash", "-c", "source /usr/share/bash-completion/completions/muniment; COMP_WORDS=(muniment run show ''); "
                             "COMP_CWORD=3; _muniment_complete; echo ${COMPREPLY[@]}")
        expect("completion", completed, "r1")
    finally:
        daemon.terminate()
        if daemon.wait(60) != 0:
            sys.exit((root.folder / "tmp/daemon.log").read_text() + "\ncheck_package: munimentd did not stop cleanly")
    say("it stopped cleanly")


def check(root: Root, deb: pathlib.Path) -> None:
    shutil.copy(deb, root.folder / "tmp")
    root.run("sh", "-c", "dpkg --purge muniment && rm -rf /var/lib/muniment")   # left by an earlier check in a kept root
    root.apt("update")
    say("apt lists are up to date")
    root.run("debconf-set-selections", text_in="man-db man-db/auto-update boolean false\n")
    # Without these, Debian creates an unneeded cluster.
    clusters = root.folder / "etc/postgresql-common/createcluster.d"
    clusters.mkdir(parents=True, exist_ok=True)
    (clusters / "none.conf").write_text("create_main_cluster = false\n")
    root.apt("install", f"/tmp/{deb.name}", "python3", "man-db", "groff-base")
    expect("installed", root.run("dpkg-query", "-W", "-f", "${db:Status-Abbrev}", "muniment"), "ii")
    expect("version", root.run("muniment", "--version"), deb.name.split("_")[1])
    page = root.run("sh", "-c", "man muniment | col -b 2>/dev/null || man muniment")
    expect("manual", page, "muniment run start")
    use(root)
    root.apt("remove", "muniment")
    expect("removed; the log remains", " ".join(path.name for path in (root.folder / "var/lib/muniment").iterdir()), "postgres")
    expect("and its configuration", root.run("ls", "/etc/muniment"), "muniment.toml")
    expect("purged without consent", root.run("dpkg", "--purge", "muniment"), "the log remains in /var/lib/muniment")
    root.apt("install", f"/tmp/{deb.name}")
    root.run("debconf-set-selections", text_in="muniment muniment/purge-data boolean true\n")
    root.run("dpkg", "--purge", "muniment")
    if (root.folder / "var/lib/muniment").exists() or (root.folder / "etc/muniment").exists():
        sys.exit("check_package: purged with consent, but files are left")
    say("purged with consent: no files are left")


def main() -> None:
    if os.geteuid() != 0 or len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    kept = len(sys.argv) == 3
    folder = pathlib.Path(sys.argv[2]).resolve() if kept else pathlib.Path(tempfile.mkdtemp(prefix="muniment-root-"))
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    root = Root(folder)
    try:
        root.make()
        say(f"a clean {SUITE} in {folder}")
        with root.mounted():
            check(root, pathlib.Path(sys.argv[1]))
    finally:
        if not kept and not any(str(folder) in line for line in pathlib.Path("/proc/mounts").read_text().splitlines()):
            shutil.rmtree(folder)
    say("whole")


if __name__ == "__main__":
    main()
