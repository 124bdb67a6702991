"""Tests of attacks by the coder of a blind workflow: each attempt fails, most are recorded as sandbox.refused, and
nothing remains of them."""
from __future__ import annotations

import ctypes
import errno
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest
from typing import Any

from support import BUILD, ROOT, main, wait_until
from workflow_case import CODER, CONFINES, FINISH_S, SPEC, SPEC_WRITER, WorkflowCase

LANDLOCK_CREATE_RULESET = 444

# Writes greet.sh from everything it found, so that a leak would pass the comparison.
TRY = """#!/usr/bin/python3
import ctypes, fcntl, os, socket, subprocess, sys
found = []
def attempt(name, action):
    try:
        found.append(f"{name}: got {action()!r}")
    except BaseException as error:
        found.append(f"{name}: {type(error).__name__}")
%s
open("greet.sh", "w").write("cat <<'END'\\n" + "\\n".join(found) + "\\nEND\\n")
print("\\n".join(found))
"""

# Executes its arguments after it has installed a listener that permits every system call.
LISTENING = """
import ctypes, fcntl, os, struct, sys
allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
program = ctypes.create_string_buffer(struct.pack("HP", 1, ctypes.addressof(allow)))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
listener = libc.syscall({"x86_64": 317, "aarch64": 277}[os.uname().machine], 1, 8, program)
assert listener >= 0, os.strerror(ctypes.get_errno())
fcntl.fcntl(listener, fcntl.F_SETFD, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


# Root that may not make namespaces. The executor does not run its commands, because it would have fewer rights.
WEAKER = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--")
NEEDS_ROOT = unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")


class Attacks(WorkflowCase):
    def run_workflow_with(self, isolation: str, prefix: tuple[str, ...]) -> dict[str, Any]:
        done = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id, "--json", "--isolation", isolation, prefix=prefix)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return dict(json.loads(done.stdout))

    def attempts(self, lines: str, **files: str) -> tuple[str, list[dict[str, object]]]:
        """Runs the workflow. Returns the coder's output about its attempts, and the refusals in the log."""
        self.write(coder=TRY % lines, **files)
        result = self.run_workflow(status=1)
        self.assertEqual([step["name"] for step in result["steps"]], ["spec_writer", "coder", "tester"], result["reason"])
        command = self.step(result, "coder")["command_id"]
        ended = next(event for event in self.events("command.ended") if event["body"]["call_id"] == command)
        said = subprocess.run(self.words("artifact", "get", ended["body"]["stdout"]["artifact_id"], "-o", "-"), capture_output=True, text=True)
        refused = [event["body"] for event in self.events("sandbox.refused") if event["body"]["call_id"] == command]
        return said.stdout, refused

    def test_it_reads_the_golden_file_where_it_was(self) -> None:
        said, refused = self.attempts("golden = os.path.join(os.path.dirname(os.environ['SPECIFICATION']), 'golden', 'greeting.txt')\n"
                                      "attempt('read', lambda: open(golden).read())\nattempt('list', lambda: os.listdir(os.path.dirname(golden)))\n"
                                      "attempt('write', lambda: open(golden, 'w'))")
        self.assertEqual(said.count("FileNotFoundError"), 3, said)
        self.assertTrue(any(str(one["path"]).endswith("/golden/greeting.txt") and one["operation"] == "openat" and one["source"] == "notifier"
                            and "python" in str(one["program"]) for one in refused), refused)

    def test_it_links_and_renames(self) -> None:
        said, refused = self.attempts("attempt('link', lambda: os.link('/root/secret', 'here'))\nattempt('rename', lambda: os.rename('/root/secret', 'here'))\n"
                                      "os.symlink('/root/secret', 'way')\nattempt('symlink', lambda: open('way').read())")
        self.assertNotIn("got", said)
        self.assertGreaterEqual({str(one["path"]) for one in refused}, {"/root/secret"})

    def test_it_reads_what_the_spec_writer_and_the_tester_know(self) -> None:
        said, _ = self.attempts(f"attempt('script', lambda: open('{self.folder}/write_spec.sh').read())\n"
                                f"attempt('tester', lambda: open('{self.folder}/test.sh').read())\n"
                                f"attempt('folder', lambda: os.listdir('{self.folder}'))")
        self.assertNotIn("greeting", said)
        self.assertIn("script: FileNotFoundError", said)
        self.assertIn("tester: FileNotFoundError", said)
        self.assertIn("folder: got ['code.sh']", said)

    def test_it_asks_the_daemon(self) -> None:
        said, refused = self.attempts("s = socket.socket(socket.AF_UNIX)\n"
                                      f"attempt('socket', lambda: s.connect('{self.daemon.socket}'))\nattempt('data', lambda: os.listdir('{self.daemon.data}'))")
        self.assertIn("socket: FileNotFoundError", said)
        self.assertIn("data: FileNotFoundError", said)
        self.assertIn(("connect", self.daemon.socket), {(one["operation"], one["path"]) for one in refused})

    def test_it_uses_the_network(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            said, refused = self.attempts(f"attempt('network', lambda: socket.create_connection(('127.0.0.1', {port}), timeout=5))")
        self.assertRegex(said, "network: (OSError|ConnectionRefusedError|PermissionError)\n")
        self.assertIn(f"127.0.0.1:{port}", {one["path"] for one in refused})

    def test_it_uses_sockets_of_unusual_families(self) -> None:
        said, refused = self.attempts("for family in (40, 17, 38, 29): attempt(f'family {family}', lambda: socket.socket(family, socket.SOCK_STREAM))\n"
                                      "attempt('pair', lambda: len(socket.socketpair()))\n"
                                      "for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6): attempt('common', lambda: bool(socket.socket(family)))\n"
                                      "attempt('netlink', lambda: bool(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)))\n"
                                      "try: socket.socket(40, socket.SOCK_STREAM)\nexcept OSError as e: found.append(f'errno {e.errno}')")
        self.assertEqual(said.count("OSError"), 4, said)
        self.assertEqual(said.count("got True"), 4, said)
        self.assertIn("pair: got 2", said)
        self.assertIn(f"errno {errno.EAFNOSUPPORT}", said)
        self.assertEqual({one["path"] for one in refused if one["operation"] == "socket"}, {"AF_VSOCK", "AF_PACKET", "AF_ALG", "AF_CAN"})

    def test_it_looks_for_hidden_files_without_opening_them(self) -> None:
        """Files that exist outside of the view, and the golden file, which no longer exists anywhere."""
        secret = self.folder / "secret"
        secret.write_text("x")
        looks = "libc = ctypes.CDLL(None, use_errno=True)\n" + "".join(
            f"for name in ('{secret}', golden): attempt('{call}', lambda: {what})\n" for call, what in (
                ("stat", "os.stat(name)"), ("lstat", "os.lstat(name)"), ("readlink", "os.readlink(name)"), ("execve", "os.execv(name, ['x'])"),
                ("faccessat", "os.stat('/nowhere') if libc.faccessat(-100, name.encode(), 0, 0) else 1"),
                ("access", "os.stat('/nowhere') if libc.access(name.encode(), 0) else 1"), ("statx", "os.stat('/nowhere') if libc.statx(-100, name.encode(), 0, 4095, bytes(512)) else 1")))
        said, refused = self.attempts("golden = os.path.join(os.path.dirname(os.environ['SPECIFICATION']), 'golden', 'greeting.txt')\n" + looks +
                                      "attempt('nowhere', lambda: os.stat('/nowhere'))")
        self.assertNotIn("got", said)
        golden = next(str(one["path"]) for one in refused if str(one["path"]).endswith("/golden/greeting.txt"))
        for path in (str(secret), golden):
            seen = {str(one["operation"]) for one in refused if one["path"] == path}
            self.assertGreaterEqual(seen, {"execve", "statx"}, refused)
            self.assertTrue({"newfstatat", "stat"} & seen and {"readlink", "readlinkat"} & seen and {"faccessat", "faccessat2"} & seen, refused)
        self.assertNotIn("/nowhere", {one["path"] for one in refused})

    def test_it_uses_a_network_that_it_may_use(self) -> None:
        """Landlock still separates it from abstract sockets, which belong to the network namespace, and from devices."""
        abi = ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, 1)
        name = f"muniment-{os.getpid()}-{self._testMethodName}"
        with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
            abstract.bind("\0" + name)
            abstract.listen()
            said, _ = self.attempts(f"attempt('network', lambda: type(socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))).__name__)\n"
                                    f"attempt('abstract', lambda: socket.socket(socket.AF_UNIX).connect('\\0{name}'))\n"
                                    "attempt('ioctl', lambda: fcntl.ioctl(open('/dev/null'), 0x5401))\n"
                                    "attempt('fifo', lambda: os.mkfifo('pipe'))\nattempt('link', lambda: os.symlink('a', '/tmp/b'))",
                                    coder_members="network = true")
        self.assertIn("network: got 'socket'", said)
        self.assertIn("fifo: got None\nlink: got None", said)
        self.assertIn(f"abstract: {'PermissionError' if abi >= 6 else 'got None'}", said)
        self.assertIn(f"ioctl: {'PermissionError' if abi >= 5 else 'OSError'}", said)
        isolation = self.events("command.ended")[-2]["body"]["isolation"]
        self.assertEqual((isolation["level"], isolation["landlock"], isolation["missing"]), ("full", max(abi, 0), [] if abi > 0 else ["Landlock"]))

    def test_it_looks_at_other_processes(self) -> None:
        said, refused = self.attempts("libc = ctypes.CDLL(None, use_errno=True)\nattempt('ptrace', lambda: libc.ptrace(16, os.getppid(), 0, 0))\n"
                                      "attempt('parent', lambda: open(f'/proc/{os.getppid()}/environ').read())\n"
                                      "attempt('root', lambda: open('/proc/1/root/etc/shadow').read())\n"
                                      "attempt('processes', lambda: len([p for p in os.listdir('/proc') if p.isdigit()]))")
        self.assertIn("ptrace: got -1", said)
        self.assertIn("parent: PermissionError", said)
        self.assertIn("root: PermissionError", said)
        self.assertIn("processes: got 2", said)
        self.assertIn("ptrace", {one["operation"] for one in refused})

    def test_it_makes_namespaces_of_its_own(self) -> None:
        said, refused = self.attempts("libc = ctypes.CDLL(None, use_errno=True)\nclone = {'x86_64': 56, 'aarch64': 220}[os.uname().machine]\n"
                                      "attempt('user', lambda: libc.syscall(clone, 0x10000011, 0, 0, 0, 0) or os._exit(0))\n"
                                      "attempt('root', lambda: libc.chroot(b'/tmp'))\n"
                                      "attempt('command', lambda: subprocess.run(['/bin/true']).returncode)")
        self.assertIn("user: got -1", said)
        self.assertIn("root: got -1", said)
        self.assertIn("command: got 0", said)
        self.assertGreaterEqual({one["operation"] for one in refused}, {"clone", "chroot"})

    def test_it_has_no_inherited_descriptor_and_no_secret_variable(self) -> None:
        said, _ = self.attempts("attempt('descriptors', lambda: sorted(os.listdir('/proc/self/fd'))[:3] + [str(len(os.listdir('/proc/self/fd')))])\n"
                                "attempt('variables', lambda: [n for n in os.environ if n.startswith(('GOLDEN', 'MUNIMENT', 'SOME'))])\n"
                                "attempt('user', lambda: (os.getuid() == 0, [l for l in open('/proc/self/status') if l.startswith('Cap') and not l.endswith('0' * 16 + chr(10)) and not l.startswith('CapBnd')]))")
        self.assertIn("descriptors: got ['0', '1', '2', '4']", said)
        self.assertIn("variables: got []", said)
        self.assertIn("user: got (False, [])", said)

    def test_it_mounts_and_leaves_its_namespaces(self) -> None:
        said, refused = self.attempts("libc = ctypes.CDLL(None, use_errno=True)\nattempt('unshare', lambda: libc.unshare(0x10000000))\n"
                                      "attempt('mount', lambda: libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))\n"
                                      "attempt('io_uring', lambda: libc.syscall(425, 1, 0))")
        self.assertEqual(said.count("got -1"), 3, said)
        self.assertGreaterEqual({one["operation"] for one in refused}, {"unshare", "mount", "io_uring_setup"})

    def test_it_forks_without_end(self) -> None:
        said, _ = self.attempts("import time\ndef forks():\n    while True:\n        if os.fork() == 0: time.sleep(1_000_000)\n"
                                "attempt('fork', forks)")
        self.assertIn("fork: BlockingIOError", said)

    def test_it_takes_more_memory_than_its_limit(self) -> None:
        said, _ = self.attempts("attempt('memory', lambda: len(bytearray(1 << 30)))", coder_members="memory_bytes = 500000000")
        self.assertIn("memory: MemoryError", said)

    def test_its_files_are_copied_out_without_special_bits_and_files(self) -> None:
        output = self.folder / "copied"
        self.write(coder=CODER + "mkdir deep\ncp /usr/bin/id deep/x\nchmod 6755 deep/x\nchmod 777 . deep\nmkfifo fifo\nln -s /etc/passwd link\n"
                   "echo grün > grüße.txt\necho raw > \"$(printf 'a\\377b')\"\n")
        self.run_workflow("--output", str(output))
        names = {os.fsencode(path.relative_to(output)): path.lstat().st_mode & 0o7777 for path in output.rglob("*")}
        self.assertEqual(names, {b"deep": 0o755, b"deep/x": 0o755, b"greet.sh": 0o644, "grüße.txt".encode(): 0o644, b"a\xffb": 0o644, b"link": 0o777})
        self.assertEqual(os.readlink(output / "link"), "/etc/passwd")
        self.assertEqual((output / "deep" / "x").stat().st_uid, os.geteuid())
        stored = next(event["body"] for event in self.events("artifact.stored") if event["body"]["metadata"].get("what") == "implementation")
        archive = subprocess.run(self.words("artifact", "get", stored["artifact_id"], "-o", "-"), capture_output=True, check=True).stdout
        listed = subprocess.run(["tar", "--zstd", "-tf", "-", "--quoting-style=literal"], input=archive, capture_output=True, check=True).stdout.split(b"\n")
        self.assertEqual(sorted(listed), sorted([*(set(names) - {b"deep"}), b""]))

    def test_the_output_folder_is_new(self) -> None:
        self.write()
        (self.folder / "link").symlink_to(self.folder)
        for name, status in ((str(self.folder), 1), ("link", 1), ("missing/folder", 1)):
            done = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id, "--output", name)
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
            self.assertIn("--output", done.stderr)
        self.assertEqual(self.events("command.started"), [])

    def test_it_nests_folders_to_hide_files_from_the_limit(self) -> None:
        """Deeper than the open files, and deeper than a path: neither hides files, and both are removed."""
        for depth, name in ((3000, "d"), (30, "n" * 200)):
            with self.subTest(depth=depth):
                self.write(coder=TRY % f"open('greet.sh', 'w')\nfor i in range({depth}):\n    os.mkdir('{name}')\n    os.chdir('{name}')\n"
                           "    if i > 25: open('x', 'wb').write(b'x' * 100_000)\n", coder_members="disk_bytes = 1000000")
                done = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id, "--json", prefix=("prlimit", "--nofile=1024:1024"))
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertEqual(json.loads(done.stdout)["reason"], "the coder failed: exceeded its limit disk_bytes")
                self.assertEqual(list(self.temporary.iterdir()), [])

    def test_special_files_in_the_specification_are_refused(self) -> None:
        os.mkfifo(self.folder / "fifo")
        (self.folder / "start").mkdir()
        os.mkfifo(self.folder / "start" / "fifo")
        for member, words in (('reads = ["fifo"]', "is neither a file nor a folder"), ('start = "start"', "is neither a file nor a folder nor a link")):
            self.write(coder_members=member)
            done = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn(words, done.stderr)

    def test_it_changes_the_specification(self) -> None:
        said, _ = self.attempts("s = os.environ['SPECIFICATION'] + '/spec.txt'\nattempt('write', lambda: open(s, 'w'))\n"
                                "attempt('chmod', lambda: os.chmod(s, 0o777))\nattempt('remove', lambda: os.unlink(s))")
        self.assertNotIn("got", said)

    def test_many_refusals_are_counted_and_bounded(self) -> None:
        _, refused = self.attempts("for i in range(300): attempt('read', lambda: open(f'/root/secret{i}').read())")
        self.assertEqual(len(refused), 100)
        isolation = [event["body"]["isolation"] for event in self.events("command.ended") if "isolation" in event["body"]][0]
        self.assertGreaterEqual(isolation["refused"], 300)
        self.assertEqual(isolation["omitted"], isolation["refused"] - sum(int(str(one.get("count", 1))) for one in refused))

    def test_a_process_that_it_leaves_behind_is_killed(self) -> None:
        mark = f"9{os.getpid()}77"
        self.write(coder=CODER + f"setsid sleep {mark} </dev/null >/dev/null 2>&1 &\n")
        self.run_workflow()
        self.assertEqual(self.processes(mark), [])

    def test_a_process_that_the_spec_writer_leaves_behind_is_killed(self) -> None:
        """It left the session, and its parents have ended: only the kernel knows whose descendant it is."""
        mark = f"9{os.getpid()}76"
        left = f"setsid sh -c 'setsid sleep {mark} & setsid sleep {mark} &' </dev/null >/dev/null 2>&1\n"
        limited = SPEC.replace('["./write_spec.sh"]', '["./write_spec.sh"]\nseconds = 2')
        for last, spec, status in (("", SPEC, 0), ("exit 3\n", SPEC, 1), ("exec sleep 600\n", limited, 1)):
            with self.subTest(last=last):
                self.write(spec_writer=SPEC_WRITER + left + last, spec=spec)
                self.run_workflow(status=status)
                self.assertEqual(self.processes(mark), [])

    def test_a_process_that_the_spec_writer_leaves_behind_changes_the_specification(self) -> None:
        """It changes the specification all the time. The coder reads what was stored."""
        mark = f"9{os.getpid()}75"
        (self.folder / mark).write_text("import os, sys\nfile = os.open(sys.argv[1], os.O_WRONLY)\nn = 0\n"
                                        "while True:\n    n += 1\n    os.pwrite(file, b'%020d' % n, 0)\n")
        self.write(spec_writer=SPEC_WRITER + f'setsid python3 {mark} "$SPECIFICATION/spec.txt" </dev/null >/dev/null 2>&1 &\n'
                   'until grep -q ^0000 "$SPECIFICATION/spec.txt"; do :; done\n')
        result = self.run_workflow()
        self.assertEqual(self.processes(mark), [])
        coder = self.step(result, "coder")["command_id"]
        ended = next(event["body"] for event in self.events("command.ended") if event["body"]["call_id"] == coder)
        files = self.evidence(result["evidence"]["artifact"])["content"]["workflow"]["specification"]
        read, stored = (subprocess.run(self.words("artifact", "get", artifact, "-o", "-"), capture_output=True, check=True).stdout
                        for artifact in (ended["stdout"]["artifact_id"], files[0]["artifact_id"]))
        self.assertRegex(stored, rb"^0{4}\d{16}")
        self.assertEqual(read, stored)

    @NEEDS_ROOT
    def test_a_spec_writer_that_kills_its_watcher(self) -> None:
        """It cannot kill process 1 of its namespace. Without namespaces it can, and nothing is recorded as evidence."""
        self.write(spec_writer=SPEC_WRITER + "kill -9 $PPID\n")
        self.run_workflow()
        before = len(self.events("evidence.recorded"))
        done = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id, "--isolation", "none", prefix=WEAKER)
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertIn("the process that watches the command was killed", done.stderr)
        self.assertEqual(len(self.events("evidence.recorded")), before)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def processes(self, mark: str) -> list[int]:
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cmdline").read_bytes().split(b"\0")[1:2] == [mark.encode()]:
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def started(self, mark: str) -> "subprocess.Popen[str]":
        self.write(coder=f"#!/bin/sh\nsetsid sleep {mark} &\nsleep {mark}\n")
        child = subprocess.Popen(self.words("workflow", "run", "workflow.toml", "--run", self.run_id, "--json"), cwd=self.folder, env=self.env(),
                                 text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(lambda: len(self.processes(mark)) == 2, "both sleeps run")
        return child

    def test_an_interrupt_ends_the_children_and_records_the_end(self) -> None:
        for number in (signal.SIGINT, signal.SIGQUIT):
            mark = f"9{os.getpid()}78{int(number)}"
            child = self.started(mark)
            child.send_signal(number)
            out, err = child.communicate(timeout=60)
            self.assertEqual((child.returncode, json.loads(out)["reason"]), (130, "the coder failed: interrupted"), err)
            self.assertEqual(self.processes(mark), [])
            self.assertEqual(self.events("command.ended")[-1]["body"]["x_ended_by"], "interrupted")
            self.assertEqual(list(self.temporary.iterdir()), [])

    def test_a_killed_muniment_leaves_no_process(self) -> None:
        for ignored in (signal.SIG_DFL, signal.SIG_IGN):   # as under nohup
            before = signal.signal(signal.SIGHUP, ignored)
            try:
                mark = f"9{os.getpid()}79{int(ignored)}"
                child = self.started(mark)
            finally:
                signal.signal(signal.SIGHUP, before)
            child.kill()
            child.communicate()
            wait_until(lambda: self.processes(mark) == [], "the confined processes have ended")

    def started_writer(self, mark: str, prefix: tuple[str, ...] = (), *more: str) -> "subprocess.Popen[str]":
        """Starts a workflow whose spec writer has written the golden file, has left a process behind, and waits."""
        self.write(spec_writer=SPEC_WRITER + f'echo "$GOLDEN" > {self.folder}/golden\nsetsid sleep {mark} &\nsleep {mark}\n')
        child = subprocess.Popen([*prefix, *self.words("workflow", "run", "workflow.toml", "--run", self.run_id, *more)], cwd=self.folder,
                                 env=self.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wait_until(lambda: len(self.processes(mark)) == 2, "both sleeps run")
        return child

    def ancestor(self, process: int, distance: int) -> int:
        for _ in range(distance):
            process = int(pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
        return process

    def test_a_killed_driver_leaves_no_golden_file(self) -> None:
        """The golden file is never on the disk, and no process of the spec writer is left."""
        mark = f"9{os.getpid()}80"
        child = self.started_writer(mark)
        golden = pathlib.Path((self.folder / "golden").read_text().strip())
        self.assertEqual(list(golden.iterdir()), [])   # only the spec writer sees its files
        writer = self.processes(mark)[0]
        self.assertEqual([path.name for path in pathlib.Path(f"/proc/{writer}/root{golden}").iterdir()], ["greeting.txt"])
        os.kill(self.ancestor(writer, 4), signal.SIGKILL)   # above the script, process 1 and the one that made the namespace
        child.communicate(timeout=60)
        wait_until(lambda: self.processes(mark) == [], "the processes of the spec writer have ended")
        wait_until(lambda: list(self.temporary.iterdir()) == [], "the workspace is removed")

    @NEEDS_ROOT
    def test_a_killed_driver_without_namespaces_leaves_nothing(self) -> None:
        mark = f"9{os.getpid()}81"
        child = self.started_writer(mark, WEAKER, "--isolation", "none")
        golden = pathlib.Path((self.folder / "golden").read_text().strip())
        self.assertEqual([path.name for path in golden.iterdir()], ["greeting.txt"])
        child.kill()
        child.communicate(timeout=60)
        wait_until(lambda: self.processes(mark) == [], "the processes of the spec writer have ended")
        wait_until(lambda: list(self.temporary.iterdir()) == [], "the workspace is removed")

    def test_a_killed_cleaner_is_replaced(self) -> None:
        self.write(coder=CODER + "touch started\nwhile sleep 0.1; do [ -e go ] && exit 0; done\n")
        child = subprocess.Popen(self.words("workflow", "run", "workflow.toml", "--run", self.run_id), cwd=self.folder, env=self.env(),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        wait_until(lambda: any(self.temporary.glob("*/implementation/started")), "the coder runs")
        implementation = next(self.temporary.glob("*/implementation"))
        sleeping = wait_until(lambda: [int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()
                                       and self.is_at(entry, implementation)], "the coder's script runs")
        driver = self.ancestor(min(sleeping), 3)
        cleaners = [int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit() and self.is_cleaner_of(entry, driver)]
        os.kill(cleaners[0], signal.SIGKILL)
        (implementation / "go").touch()
        out, _ = child.communicate(timeout=60)
        self.assertEqual(child.returncode, 0, out)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def is_at(self, process: pathlib.Path, folder: pathlib.Path) -> bool:
        try:
            return os.readlink(process / "cwd") == str(folder)
        except OSError:
            return False

    def is_cleaner_of(self, process: pathlib.Path, driver: int) -> bool:
        try:
            return (process / "comm").read_text() == "cleaner\n" and self.ancestor(int(process.name), 1) == driver
        except OSError:
            return False

    def test_a_killed_driver_leaves_nothing_of_the_coder(self) -> None:
        mark = f"9{os.getpid()}82"
        child = self.started(mark)
        self.assertNotEqual(list(self.temporary.iterdir()), [])
        os.kill(self.ancestor(self.processes(mark)[0], 4), signal.SIGKILL)
        child.communicate(timeout=60)
        wait_until(lambda: self.processes(mark) == [], "the confined processes have ended")
        wait_until(lambda: list(self.temporary.iterdir()) == [], "the workspace is removed")

    def test_a_tester_in_the_coders_folder_is_not_used(self) -> None:
        self.write(coder=CODER.replace("Hello,", "Hullo,") + "printf '#!/bin/sh\\necho Hello, Ada!\\n' > test.sh; chmod 755 test.sh\n")
        self.assertFalse(self.run_workflow(status=1)["passed"])

    def test_a_tester_that_is_replaced_meanwhile_is_not_run(self) -> None:
        self.write(coder=CODER + "touch started\nwhile sleep 0.1; do [ -e go ] && exit 0; done\n")
        tester = self.folder / "test.sh"

        def replace() -> None:
            wait_until(lambda: any(self.temporary.glob("*/implementation/started")), "the coder runs")
            tester.write_text("#!/bin/sh\necho 'Hello, Ada!'\n")
            next(self.temporary.glob("*/implementation")).joinpath("go").touch()
        thread = threading.Thread(target=replace)
        thread.start()
        result = self.run_workflow(status=1)
        thread.join()
        self.assertEqual(result["reason"], "the files of the workflow changed while the coder ran")
        self.assertEqual([step["name"] for step in result["steps"]], ["spec_writer", "coder"])

    @NEEDS_ROOT
    def test_less_isolation_than_demanded_refuses_to_run(self) -> None:
        self.write(coder=CODER + "echo ran > /dev/stderr\n")
        done = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id, prefix=WEAKER)
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertIn("spec_writer: the command cannot be isolated", done.stderr)
        self.assertEqual(self.events("evidence.recorded"), [])
        self.assertTrue(self.run_workflow_with("none", prefix=WEAKER)["passed"])

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "only root can mount a small file system")
    def test_it_fills_the_file_system_before_its_limit(self) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(self.temporary)], check=True)
        self.addCleanup(subprocess.run, ["umount", str(self.temporary)], check=True)
        for quiet, reason in (("exec 2>/dev/null", "exit 1"), ("", "its output could not be stored: the disk is full")):
            with self.subTest(quiet=quiet):
                self.write(coder=f"#!/bin/sh\n{quiet}\nset -e\ncat /dev/zero > filler\necho unreached > greet.sh\n")
                # Only a command that is not observed keeps its output where TMPDIR says.
                result = self.run_workflow(status=1, prefix=("setpriv", "--no-new-privs", "--"))
                self.assertEqual(result["reason"], f"the coder failed: {reason}")
                self.assertEqual([step["name"] for step in result["steps"]], ["spec_writer", "coder"])
                self.assertNotIn("validation", [event["body"]["type"] for event in self.events("evidence.recorded")])

    def test_without_a_notifier_the_isolation_is_partial(self) -> None:
        """A process has at most one listener for system calls: the one of the prefix excludes another one."""
        self.write(coder=CODER + 'cat "$(dirname "$SPECIFICATION")/golden/greeting.txt" > seen || true\n'
                   "python3 -c 'import ctypes, socket\nprint(ctypes.CDLL(None).unshare(0x10000000), bool(socket.socket()))\nsocket.socket(40, 1)' 2>&1 || true\n")
        listening = ("python3", "-c", LISTENING)
        refused = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id, prefix=listening)
        self.assertEqual(refused.returncode, 1, refused.stdout + refused.stderr)
        self.assertIn("isolation full is required, and only partial can be reached: seccomp: Device or resource busy", refused.stdout + refused.stderr)
        done = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id, "--json", "--isolation", "partial", prefix=listening)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        coder = self.step(json.loads(done.stdout), "coder")
        self.assertEqual((coder["isolation"], coder["refused"]), ("partial", 0))
        recorded = [event["body"]["isolation"] for event in self.events("command.ended") if "isolation" in event["body"]]
        self.assertEqual((recorded[-1]["level"], recorded[-1]["missing"]), ("partial", ["seccomp: Device or resource busy"]))
        ended = [event["body"] for event in self.events("command.ended") if event["body"]["call_id"] == coder["command_id"]][0]
        said = subprocess.run(self.words("artifact", "get", ended["stderr"]["artifact_id"], "-o", "-"), capture_output=True, text=True)
        self.assertIn("No such file", said.stdout)
        said = subprocess.run(self.words("artifact", "get", ended["stdout"]["artifact_id"], "-o", "-"), capture_output=True, text=True)
        self.assertIn("-1 True", said.stdout)
        self.assertIn("Address family not supported", said.stdout)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
class OrdinaryUser(unittest.TestCase):
    """Runs the whole workflow with a daemon of an ordinary user, in a user namespace."""

    def test_it_confines_the_coder_too(self) -> None:
        folder = tempfile.mkdtemp(prefix="muniment-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        shutil.copytree(ROOT / "scripts" / "examples" / "blind_workflow", f"{folder}/example")
        subprocess.run(["chown", "-R", "games:games", folder], check=True)
        words = ["setpriv", "--reuid=games", "--regid=games", "--clear-groups", "--", str(BUILD / "muniment"), "--data", f"{folder}/data"]
        env = {"PATH": f"{BUILD}:/usr/bin:/bin", "HOME": folder, "TMPDIR": folder}
        self.addCleanup(subprocess.run, [*words, "down"], env=env, capture_output=True)
        done = subprocess.run([*words, "workflow", "run", f"{folder}/example/workflow.toml", "--json"], env=env, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=FINISH_S)
        if done.returncode == 4 and not CONFINES:
            return self.assertIn("the command cannot be isolated", done.stdout + done.stderr)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        coder = json.loads(done.stdout)["steps"][1]
        self.assertEqual((coder["isolation"], coder["refused"]), ("full", 1))
        self.assertTrue(coder["refusals"][0]["path"].endswith("/golden/slugs.txt"))


if __name__ == "__main__":
    main()
