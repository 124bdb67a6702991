"""Tests of `muniment doctor`: each finding is caused for real, reported, and names a remedy and an existing section of the runbook."""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import unittest
from typing import Any, Iterator, Optional

from support import BUILD, ROOT, Daemon, DaemonCase, main, wait_until

RUNBOOK = ROOT / "docs" / "runbook.md"
# Selects the instance; test_advice.py checks that every command includes it.
PLACE = re.compile(r"muniment (?:--(?:data|config|socket|database) \S+ )+")

# Library that reports a false clock and kernel, for findings that cannot be caused on a whole machine.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
int clock_gettime(clockid_t which, struct timespec *now) {
  int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int done = real(which, now);
  const char *shift = getenv("SHIM_CLOCK_S");
  if (shift && which == CLOCK_REALTIME) now->tv_sec += atol(shift);
  return done;
}
long syscall(long number, ...) {
  long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  va_list rest;
  va_start(rest, number);
  long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long), d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
  va_end(rest);
  if (getenv("SHIM_NO_LANDLOCK") && number == 444) { errno = ENOSYS; return -1; }
  return real(number, a, b, c, d, e, f);
}
"""


def anchors() -> set[str]:
    return {line[3:].strip() for line in RUNBOOK.read_text().splitlines() if line.startswith("## ")}


class Doctor:
    """Runs the doctor on a data folder."""

    def __init__(self, daemon: Daemon):
        self.daemon = daemon
        self.home = daemon.folder / "home"
        self.home.mkdir()

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MUNIMENT_", "XDG_"))}
        return {**kept, "HOME": str(self.home)}

    def run(self, *words: str, config: str = "", env: Optional[dict[str, str]] = None) -> tuple[int, list[dict[str, str]]]:
        place = [] if "--data" in words else ["--data", str(self.daemon.data)]
        arguments = [str(BUILD / "muniment"), *place, "--json", *words]
        if config:
            (self.daemon.folder / "doctor.toml").write_text(config)
            arguments += ["--config", str(self.daemon.folder / "doctor.toml")]
        done = subprocess.run([*arguments, "doctor"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
                              env={**self.environment(), **(env or {})})
        assert done.returncode in (0, 1), done.stderr
        report = json.loads(done.stdout)
        findings = report["findings"]
        assert report["broken"] == sum(finding["level"] == "broken" for finding in findings)
        assert report["warnings"] == sum(finding["level"] == "warning" for finding in findings)
        assert done.returncode == (1 if report["broken"] else 0), "the exit code does not fit what was found"
        return done.returncode, findings


class DoctorCase(unittest.TestCase):
    doctor: Doctor

    def finds(self, level: str, subject: str, text: str, fix: str, anchor: str, *words: str, config: str = "", env: Optional[dict[str, str]] = None) -> None:
        """Expects exactly one such finding, with its remedy and its section of the runbook."""
        code, findings = self.doctor.run(*words, config=config, env=env)
        found = [finding for finding in findings if finding["subject"] == subject and finding["level"] == level and re.search(text, finding["text"])]
        self.assertEqual(len(found), 1, f"{subject}, {level}: {text}\n" + json.dumps(findings, indent=1))
        self.assertIn(fix, PLACE.sub("muniment ", found[0]["fix"]) if "--data" not in fix else found[0]["fix"])
        self.assertEqual(found[0]["doc"], f"docs/runbook.md#{anchor}")
        self.assertIn(anchor, anchors())
        if level == "broken":
            self.assertEqual(code, 1)

    def subjects(self, level: str, *words: str, **more: Any) -> set[str]:
        return {finding["subject"] for finding in self.doctor.run(*words, **more)[1] if finding["level"] == level}


class Running(DoctorCase, DaemonCase):
    config = "disk_reserve_bytes = 1\ndisk_reserve_percent = 0\n"

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.doctor = Doctor(cls.daemon)

    def psql(self, sql: str) -> list[list[str]]:
        return self.daemon.sql(sql)

    def test_a_daemon_that_is_well(self) -> None:
        self.followed()
        code, findings = self.doctor.run(config=self.config)
        self.assertEqual(code, 0)
        warned = {finding["subject"] for finding in findings if finding["level"] != "ok"}
        # Missing from every new log, or a limitation of this machine.
        self.assertLessEqual(warned, {"backup", "key", "sandbox", "inodes"}, findings)
        looked = {finding["subject"] for finding in findings}
        self.assertLessEqual({"config", "data", "disk", "munimentd", "postgres", "cluster", "socket", "followers", "runs", "database", "clock", "artifacts"}, looked)

    def test_space(self) -> None:
        self.finds("broken", "disk", "artifacts over 64 KiB are refused", "du -x", "disk", config='disk_reserve_bytes = "1000 TiB"\n')
        free = os.statvfs(self.daemon.data).f_bavail * os.statvfs(self.daemon.data).f_frsize
        self.finds("warning", "disk", "reserved", "du -x", "disk", config=f"disk_reserve_bytes = {free * 3 // 4}\ndisk_reserve_percent = 0\n")

    def test_settings(self) -> None:
        self.finds("broken", "config", 'unknown key "wokers".*Did you mean "workers"', "muniment config check", "configuration", config="wokers = 3\n")

    def test_a_folder_that_is_open_to_everybody(self) -> None:
        self.addCleanup(self.daemon.data.chmod, self.daemon.data.stat().st_mode & 0o777)
        self.daemon.data.chmod(0o777)
        self.finds("broken", "data", "is accessible to all users", f"chmod o-rwx {self.daemon.data}", "data_folder")

    def test_a_socket_that_is_open_to_everybody(self) -> None:
        os.chmod(self.daemon.socket, 0o666)
        self.addCleanup(os.chmod, self.daemon.socket, 0o600)
        self.finds("warning", "socket", "is accessible to all users", "chmod 600", "access")

    def test_a_key_that_others_may_read(self) -> None:
        self.finds("warning", "key", "has no key", "muniment audit key init", "checkpoints")
        key = self.daemon.data / "keys" / "log.key"
        key.write_text("not really one")
        self.addCleanup(key.unlink)
        key.chmod(0o640)
        self.finds("broken", "secrets", "the private key .* is readable by other users", f"chmod 600 {key}", "checkpoints")

    def test_a_key_that_is_gone(self) -> None:
        public = self.daemon.data / "keys" / "log.pub"
        public.write_text("")
        self.addCleanup(public.unlink)
        self.finds("broken", "key", "log.key is missing: nothing newer is signed", f"restore {public.with_name('log.key')}", "checkpoints")

    def test_files_with_passwords(self) -> None:
        secret = self.daemon.folder / "password"
        secret.write_text("x")
        secret.chmod(0o644)
        self.finds("broken", "secrets", "redis_password_file .* is readable by other users", f"chmod 600 {secret}", "configuration",
                   config=f'redis_password_file = "{secret}"\n')
        secret.chmod(0o600)
        self.assertNotIn("secrets", self.subjects("broken", config=f'redis_password_file = "{secret}"\n'))
        self.finds("broken", "secrets", "embed_key_file .* cannot be read", "ls -l", "configuration", config='embed_key_file = "/nowhere/key"\n')
        self.finds("broken", "secrets", "which contains a password, .* is readable", "chmod 600", "configuration",
                   config='database = "postgresql://user:secret@127.0.0.1:1/none"\n')

    def test_a_file_that_no_event_names(self) -> None:
        stored = self.client.put(self.run_id, b"known", mime_type="text/plain")
        stranger = (self.daemon.data / "artifacts" / stored["path"]).parent / "stranger\x1b[2J.txt"
        stranger.write_bytes(b"?")
        self.addCleanup(stranger.unlink)
        self.assertNotIn("artifacts", self.subjects("warning"), "one that is just being put is none")
        for path in (stranger, self.daemon.data / "artifacts" / stored["path"]):
            os.utime(path, (time.time() - 120, time.time() - 120))
        self.finds("warning", "artifacts", r"1 of \d+ files are not named by an event: runs/.*/stranger\\x1b\[2J", "muniment-verify", "unknown_file")

    def test_strangers_among_the_staged(self) -> None:
        stranger = self.daemon.data / "artifacts" / "staging" / "readme"
        stranger.write_bytes(b"?")
        self.addCleanup(stranger.unlink)
        self.finds("warning", "staged", "readme in .*staging: unknown files, not created by an upload", "ls -la", "staged_file")

    def test_writes_that_were_not_finished(self) -> None:
        left = self.daemon.data / "keys/.last_signed.0123456789abcdef.tmp"
        left.parent.mkdir(exist_ok=True)
        left.write_text("half")
        self.addCleanup(left.unlink)
        self.assertNotIn("unfinished", self.subjects("note"))   # it may still be in progress
        later = {**self.shim(), "SHIM_CLOCK_S": "61"}
        self.finds("note", "unfinished", "incomplete files left behind: .*last_signed", f"rm {left}", "unfinished", env=later)

    def test_a_follower_that_does_not_move(self) -> None:
        self.followed()
        with self.session("BEGIN; LOCK TABLE report_run IN ACCESS EXCLUSIVE MODE"):
            self.note()
            wait_until(lambda: self.psql("SELECT count(*) FROM pg_locks WHERE relation = 'report_run'::regclass AND NOT granted") != [["0"]],
                       "the follower waits for the table")
            self.finds("warning", "follower", "report is .* events? behind and does not advance", "muniment status", "follower")
        self.followed()
        self.assertNotIn("follower", self.subjects("warning"))

    @contextlib.contextmanager
    def session(self, sql: str) -> Iterator[None]:
        """Opens a connection of another client, with a transaction in progress."""
        with subprocess.Popen(["psql", "-X", "-q", self.call("server.status")["database"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as psql:
            assert psql.stdin is not None and psql.stdout is not None
            psql.stdin.write(sql + ";\n\\echo ready\n")
            psql.stdin.flush()
            self.assertEqual(psql.stdout.readline(), "ready\n")
            try:
                yield
            finally:
                psql.stdin.close()

    def test_a_halted_run(self) -> None:
        stored = self.client.put(self.run_id, b"soon gone", mime_type="text/plain")
        (self.daemon.data / "artifacts" / stored["path"]).unlink()
        self.call("pointer.resolve", pointers=[f"artifact://{self.run_id}/{stored['artifact_id']}"], critical=True, run_id=self.run_id)
        self.finds("warning", "runs", f"{self.run_id} is halted", f"muniment recover {self.run_id}", "run_halted")
        (self.daemon.data / "artifacts" / stored["path"]).write_bytes(b"soon gone")
        self.call("run.end", run_id=self.run_id, outcome="abandoned")

    def test_a_migration_of_a_newer_program_and_one_that_is_missing(self) -> None:
        self.psql("INSERT INTO schema_migration (number, name, sha256) VALUES (9999, '9999_future.sql', repeat('0', 64))")
        try:
            self.finds("broken", "schema", "9999_future.sql belongs to a newer Muniment", "muniment --version", "version")
        finally:
            self.psql("DELETE FROM schema_migration WHERE number = 9999")
        [[kept]] = self.psql("WITH gone AS (DELETE FROM schema_migration WHERE number = 9 RETURNING *) SELECT row_to_json(gone) FROM gone")
        try:
            self.finds("warning", "schema", "1 migrations are pending", "muniment up", "version")
        finally:
            self.psql(f"INSERT INTO schema_migration SELECT * FROM json_populate_record(null::schema_migration, $json${kept}$json$)")
        self.psql("UPDATE schema_migration SET sha256 = reverse(sha256) WHERE number = 9")
        try:
            self.finds("broken", "schema", "0009.* differs from the applied version", "git checkout", "version")
        finally:
            self.psql("UPDATE schema_migration SET sha256 = reverse(sha256) WHERE number = 9")

    def test_a_server_that_is_not_durable(self) -> None:
        self.psql("ALTER SYSTEM SET synchronous_commit = off")
        try:
            self.finds("broken", "cluster", "turns synchronous_commit off", "remove that line", "not_durable")
            self.psql("ALTER SYSTEM RESET synchronous_commit")
            self.psql("ALTER SYSTEM SET full_page_writes = off")
            self.psql("SELECT pg_reload_conf()")
            wait_until(lambda: self.psql("SHOW full_page_writes") == [["off"]], "the setting is in force")
            self.finds("broken", "database", "full_page_writes is off", "ALTER SYSTEM SET full_page_writes = on", "not_durable")
        finally:
            self.psql("ALTER SYSTEM RESET synchronous_commit")
            self.psql("ALTER SYSTEM SET full_page_writes = on")
            self.psql("SELECT pg_reload_conf()")

    def test_events_that_wait_in_a_spool(self) -> None:
        hook = {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "hello", "cwd": "/", "transcript_path": "/nowhere"}
        nobody = self.daemon.folder / "nobody.sock"
        recorded = subprocess.run([BUILD / "muniment", "--socket", str(nobody), "--data", str(self.daemon.data), "--no-autostart", "record", "claude-code"],
                                  input=json.dumps(hook), text=True, capture_output=True, env=self.doctor.environment(), timeout=120, check=False)
        spools = list((self.doctor.home / ".local/state/muniment/spool").glob("*"))
        self.assertEqual(len(spools), 1, recorded.stderr)
        self.addCleanup(shutil.rmtree, spools[0])
        self.finds("warning", "spool", "1 events of recorders are pending", "--flush", "spool", "--socket", str(nobody))
        waiting = next(spools[0].glob("*.json"))
        waiting.rename(f"{waiting}.refused")
        self.finds("warning", "spool", "1 events of recorders were permanently refused", "ls ", "spool", "--socket", str(nobody))

    def test_the_age_of_the_newest_backup(self) -> None:
        self.finds("warning", "backup", "no backup of this data folder is recorded", "muniment backup DIR", "backup")
        backups = self.daemon.folder / "backups"
        subprocess.run([BUILD / "muniment", "--data", str(self.daemon.data), "backup", str(backups)], check=True, capture_output=True, timeout=120,
                       env=self.doctor.environment())
        note = self.daemon.data / "last_backup"
        self.addCleanup(note.unlink)
        self.assertNotIn("backup", self.subjects("warning"))
        said = json.loads(note.read_text())
        self.assertTrue(pathlib.Path(said["path"]).is_dir())
        note.write_text(json.dumps({**said, "made_at": "2020-01-01T00:00:00Z"}))
        self.finds("warning", "backup", "the newest is .* old", f"muniment backup {backups}", "backup")
        note.write_text(json.dumps({**said, "path": f"{backups}/generations/gone"}))
        self.finds("warning", "backup", "the newest is .* old: .*/gone, which is now missing", "muniment backup DIR", "backup")

    def test_a_log_that_nobody_keeps_small(self) -> None:
        log = self.daemon.data / "munimentd.log"
        self.addCleanup(log.unlink)
        with open(log, "wb") as file:
            file.truncate(129 << 20)
        self.finds("warning", "log", "129.0 MiB.*it is not rotated", "truncate", "daemon_log")
        with open(log, "wb") as file:
            file.truncate(128 << 20)
        self.assertNotIn("log", self.subjects("warning"))

    def shim(self) -> dict[str, str]:
        source, library = self.daemon.folder / "shim.c", self.daemon.folder / "shim.so"
        if not library.exists():
            source.write_text(SHIM)
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True, timeout=120)
        return {"LD_PRELOAD": str(library), "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}

    def test_a_clock_that_was_set_back(self) -> None:
        self.note()
        env = {**self.shim(), "SHIM_CLOCK_S": "-86400"}
        self.finds("warning", "clock", r"(23 h 59 min|1 d 0 h) behind the last event of the log", "timedatectl", "clock", env=env)
        self.finds("warning", "clock", r"(23 h 59 min|1 d 0 h) behind the clock of Postgres", "timedatectl", "clock", env=env)
        self.finds("warning", "clock", r"(59 min|1 h 0 min) .*ahead of the clock of Postgres", "timedatectl", "clock", env={**self.shim(), "SHIM_CLOCK_S": "3600"})

    def test_a_kernel_without_landlock(self) -> None:
        self.finds("warning", "sandbox", "no Landlock", "/sys/kernel/security/lsm", "sandbox", env={**self.shim(), "SHIM_NO_LANDLOCK": "1"})

    def test_it_reads_for_people_too(self) -> None:
        done = subprocess.run([BUILD / "muniment", "--data", str(self.daemon.data), "doctor"], capture_output=True, text=True, timeout=120, check=True,
                              env=self.doctor.environment())
        self.assertIn("! backup     no backup of this data folder is recorded", done.stdout)
        self.assertIn(f"             fix: muniment --data {self.daemon.data} backup DIR   (docs/runbook.md#backup)", done.stdout)


class Restarting(DoctorCase, DaemonCase):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.doctor = Doctor(cls.daemon)

    def test_a_search_child_that_was_started_again(self) -> None:
        [child] = [pid for pid in pathlib.Path("/proc").glob("[0-9]*") if self.is_search_child(pid)]
        os.kill(int(child.name), 9)
        wait_until(lambda: "muniment_search_restarts_total 1\n" in self.call("server.metrics")["text"], "it is started again")
        self.finds("warning", "search", "the search child was restarted 1 times", "muniment status", "search")

    def is_search_child(self, folder: pathlib.Path) -> bool:
        with contextlib.suppress(OSError, IndexError):
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            assert self.daemon.process is not None
            return parent == self.daemon.process.pid and b"--search-child" in (folder / "cmdline").read_bytes()
        return False


class Witnessed(DoctorCase):
    def test_a_keeper_that_is_behind(self) -> None:
        daemon = Daemon(config='witnesses = "folder:/proc/nowhere"\n')
        self.addCleanup(daemon.destroy)
        daemon.start()
        self.doctor = Doctor(daemon)
        subprocess.run([BUILD / "muniment", "--data", str(daemon.data), "audit", "key", "init", "-o", str(daemon.folder / "log.pub")], check=True, capture_output=True,
                       timeout=120, env=self.doctor.environment())
        wait_until(lambda: "witness" in self.subjects("warning"), "it is noticed")
        self.finds("warning", "witness", r"folder:/proc/nowhere has 0 of \d+ signed events", "muniment status", "witnesses")
        self.finds("warning", "witness", "checkpoints outside, folder:/proc/nowhere", "muniment status", "witnesses")


class Down(DoctorCase):
    """A data folder whose daemon has ended; the doctor does not start one."""

    daemon: Daemon

    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.daemon.destroy)
        cls.daemon.start()
        cls.daemon.stop()
        cls.doctor = Doctor(cls.daemon)

    def tearDown(self) -> None:
        self.assertFalse(pathlib.Path(self.daemon.socket).exists(), "the doctor started a daemon")
        self.assertIsNone(self.daemon.postgres_pid())

    def test_it_is_said(self) -> None:
        self.finds("warning", "socket", "no daemon is running", "muniment up", "not_running")
        self.finds("note", "database", "not checked: the private Postgres is not running", "muniment up", "not_running")
        self.assertNotIn("broken", {finding["level"] for finding in self.doctor.run()[1]})

    def test_a_folder_that_is_not_there(self) -> None:
        self.finds("warning", "data", "No such file", "muniment up", "data_folder", "--data", str(self.daemon.folder / "nowhere"))
        self.assertFalse((self.daemon.folder / "nowhere").exists())
        file = self.daemon.folder / "file"
        file.write_text("")
        self.finds("broken", "data", "is not a folder", "--data DIR", "data_folder", "--data", str(file))

    def test_a_socket_that_is_none(self) -> None:
        file = self.daemon.folder / "not-a-socket"
        file.write_text("")
        self.finds("broken", "socket", "is not a socket", "ls -l", "access", "--socket", str(file))

    def test_a_major_version_that_is_not_installed(self) -> None:
        version = self.daemon.data / "postgres" / "PG_VERSION"
        before = version.read_text()
        version.write_text("9\n")
        self.addCleanup(version.write_text, before)
        self.finds("broken", "cluster", "created by Postgres 9, which is not installed", "postgresql-9", "version")

    def test_a_server_whose_program_was_replaced(self) -> None:
        cluster = self.daemon.data / "postgres"
        program = self.daemon.folder / "postgres-program"
        shutil.copy("/bin/sleep", program)
        with subprocess.Popen([str(program), "60"], cwd=cluster) as old:
            program.unlink()
            pidfile = cluster / "postmaster.pid"
            pidfile.write_text(f"{old.pid}\n{cluster}\n0\n5432\n{cluster}\n\n0\nready\n")
            try:
                self.finds("warning", "postgres", "was replaced", "muniment down && muniment up", "version")
            finally:
                pidfile.unlink()
                old.kill()

    def test_a_database_that_does_not_answer(self) -> None:
        self.finds("broken", "database", "does not answer", "psql", "unavailable", "--database", "postgresql://nobody@127.0.0.1:1/none")

    def test_what_an_ended_daemon_left_behind(self) -> None:
        staged = self.daemon.data / "artifacts" / "staging" / "01900000-0000-4000-8000-000000000001"
        staged.write_bytes(b"half")
        self.addCleanup(staged.unlink)
        self.finds("warning", "staged", "1 uploads were interrupted", "muniment up", "staged_file")
        for folder, subject, anchor in (("redactions", "erasure", "erasure"), ("halts", "halts", "run_halted")):
            journal = self.daemon.data / folder / "1"
            journal.parent.mkdir(exist_ok=True)
            journal.write_text("{}")
            self.addCleanup(journal.unlink)
            self.finds("warning", subject, "1 .*the next start", "muniment up", anchor)

    def test_writes_that_were_not_finished(self) -> None:
        for name, fix in (("tiles/.new", "muniment up"), ("keys/.last_signed.0123456789abcdef.tmp", "rm ")):
            left = self.daemon.data / name
            left.parent.mkdir(exist_ok=True)
            left.write_text("half")
            self.finds("note", "unfinished", re.escape(left.name), fix, "unfinished")
            left.unlink()
        for name in ("keys/.x; rm -rf y.tmp", "keys/notes.tmp"):   # the daemon does not create such names, and no remedy mentions them
            (self.daemon.data / name).write_text("")
            self.addCleanup((self.daemon.data / name).unlink)
        self.assertNotIn("unfinished", self.subjects("note"))

    def test_a_restore_that_did_not_end(self) -> None:
        mark = self.daemon.data / "restoring"
        mark.write_text("from nowhere\n")
        self.addCleanup(mark.unlink)
        keys = self.daemon.data / "keys"   # a separate finding, which only a new folder resolves
        keys.mkdir(exist_ok=True)
        self.finds("broken", "restore", "failed.*needs an empty folder", f"mv {self.daemon.data} {self.daemon.data}.broken && muniment restore DIR", "backup")
        self.assertEqual(self.subjects("broken") - {"disk", "inodes"}, {"restore"})
        self.assertLessEqual({finding["subject"] for finding in self.doctor.run()[1]}, {"config", "data", "disk", "inodes", "restore"})

    def test_a_log_that_was_restored(self) -> None:
        mark = self.daemon.data / "restored.json"
        self.addCleanup(mark.unlink)
        mark.write_text("not JSON")
        self.finds("broken", "restore", "restored.json", "ls -l", "backup")

    def test_few_inodes(self) -> None:
        disk = self.daemon.folder / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,nr_inodes=500,mode=0700", "tmpfs", str(disk)], check=True)
        self.addCleanup(lambda: subprocess.run(["umount", str(disk)], check=True))
        self.finds("broken", "inodes", "file creation will fail soon", "du --inodes", "disk", "--data", str(disk))


class Anchors(unittest.TestCase):
    def test_every_place_that_is_named_is_there(self) -> None:
        there = anchors()
        named: dict[str, str] = {}
        for path in [*(ROOT / "src").rglob("*.[ch]pp"), *(ROOT / "adapters").rglob("*.[ch]pp"), *(ROOT / "verify").rglob("*.[ch]pp"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]:
            text = path.read_text()
            for anchor in [*re.findall(r"runbook\.md#(?!p\d)([a-z_-]+)", text), *re.findall(r'runbook\("([a-z_-]+)"\)', text)]:
                named[anchor] = str(path)
        self.assertGreater(len(named), 20)
        self.assertEqual({anchor: path for anchor, path in named.items() if anchor not in there}, {})

    def test_every_halting_error_has_its_place(self) -> None:
        # Src/gateway/request/reply_lines.cpp uses error codes as anchors.
        self.assertLessEqual({"corrupt", "system_error", "run_halted"}, anchors())


if __name__ == "__main__":
    main()
