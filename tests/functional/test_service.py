"""Tests of the daemon as a service: socket activation, notifications to the service manager, access by group, and
the unit's restrictions. systemd does not run here: the tests implement its protocols."""
from __future__ import annotations

import grp
import json
import os
import pathlib
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Optional

from support import BUILD, ROOT, Daemon, main, muniment, wait_until

UNIT = ROOT / "packaging" / "systemd" / "munimentd.service.in"
UNDER_UNIT = ROOT / "tests" / "support" / "under_unit.py"
NOBODY = 65534
# Runs between the service manager and the program: it knows its own pid, and so can set LISTEN_PID.
AS_SERVICE = """
import os, sys
handed, program = int(sys.argv[1]), sys.argv[2:]
if handed >= 0:
    os.dup2(handed, 3)
    os.set_inheritable(3, True)
    os.environ.setdefault("LISTEN_FDS", "1")
    os.environ.setdefault("LISTEN_PID", str(os.getpid()))
os.execv(program[0], program)
"""


class Service(Daemon):
    """munimentd with a socket of the test as descriptor 3, and a socket for its notifications."""

    def __init__(self, *, handed: Optional[socket.socket] = None, abstract: bool = False, prefix: tuple[str, ...] = (), **more: Any):
        super().__init__(**more)
        self.handed, self.prefix = handed, list(prefix)
        self.told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        name = f"\0muniment-test-{os.getpid()}-{id(self)}" if abstract else str(self.folder / "notify")
        self.told.bind(name)
        if not abstract:
            os.chmod(name, 0o777)
        self.told.settimeout(60)
        self.env["NOTIFY_SOCKET"] = name.replace("\0", "@")

    def listening(self, name: str = "handed.sock") -> socket.socket:
        self.handed = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.handed.bind(str(self.folder / name))
        self.handed.listen(64)
        return self.handed

    @property
    def socket(self) -> str:
        return self.handed.getsockname() if self.handed else super().socket

    def spawn(self, *more: str, failpoint: str = "") -> "subprocess.Popen[bytes]":
        env = {key: value for key, value in os.environ.items() if not key.startswith("MUNIMENT_")}
        handed = self.handed.fileno() if self.handed else -1
        with open(self.log, "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", AS_SERVICE, str(handed), *self.prefix, str(self.build / "munimentd"), "--data", str(self.data),
                 *self.arguments, *more],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**env, **self.env}, start_new_session=True,
                pass_fds=(handed,) if handed >= 0 else ())

    def heard(self) -> dict[str, str]:
        """Returns the next notification."""
        return dict(line.split("=", 1) for line in self.told.recv(4096).decode().splitlines())

    def destroy(self) -> None:
        super().destroy()
        self.told.close()
        if self.handed:
            self.handed.close()


class Activation(unittest.TestCase):
    """Each service is a new one; all use the data folder of the class."""

    data: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-test-"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)   # as in Daemon
        cls.data = folder / "data"

    def service(self, **more: Any) -> Service:
        service = Service(**more)
        service.data = self.data
        self.addCleanup(service.destroy)
        return service

    def test_a_socket_that_was_handed_over_is_served_and_left_when_it_stops(self) -> None:
        service = self.service()
        handed = service.listening()
        with muniment.connect(service.socket, deadline_s=60) as early:   # waits in the backlog until the daemon starts
            service.start()
            self.assertTrue(early.call("server.health")["ok"])
            self.assertEqual(early.call("server.status")["socket"], service.socket)
            early.call("run.start", run_id="r1", agent={"name": "test"})
        self.assertFalse((service.data / "munimentd.sock").exists())
        self.assertEqual(service.stop(), 0)
        self.assertTrue(pathlib.Path(service.socket).exists(), "the socket belongs to who made it")
        # A client that connects now waits for the next daemon.
        with muniment.connect(service.socket, deadline_s=60) as waiting:
            service.start()
            self.assertEqual(waiting.call("run.get", run_id="r1")["run"]["run_id"], "r1")
        del handed

    def test_down_ends_the_daemon_and_not_who_holds_its_socket(self) -> None:
        service = self.service()
        service.listening()
        command = [str(BUILD / "muniment"), "--data", str(service.data), "--socket", service.socket, "--no-autostart", "down"]
        env = {key: value for key, value in os.environ.items() if not key.startswith("MUNIMENT_")}
        waiting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.addCleanup(waiting.stdout.close)   # type: ignore[union-attr]
        self.addCleanup(waiting.stderr.close)   # type: ignore[union-attr]
        self.assertTrue(select.select([service.handed], [], [], 60)[0], "it is connected to us, who only hold the socket")
        process = service.process = service.spawn()
        out, err = waiting.communicate(timeout=120)
        self.assertEqual((waiting.returncode, out), (0, f"munimentd (pid {process.pid}) has stopped\n"), err)
        self.assertEqual(process.wait(60), 0)

    def test_it_says_that_it_serves_lives_and_stops(self) -> None:
        for abstract in (False, True):
            with self.subTest(abstract=abstract):
                service = self.service(abstract=abstract)
                service.env["WATCHDOG_USEC"] = "200000"
                process = service.process = service.spawn()
                first = service.heard()
                self.assertEqual((first["READY"], first["MAINPID"]), ("1", str(process.pid)))
                self.assertIn(service.socket, first["STATUS"])
                with service.client() as client:   # a daemon that reports READY answers requests
                    self.assertTrue(client.call("server.health")["ok"])
                for _ in range(5):
                    self.assertEqual(service.heard(), {"WATCHDOG": "1"})
                process.terminate()
                said = service.heard()
                while said == {"WATCHDOG": "1"}:
                    said = service.heard()
                self.assertEqual(said["STOPPING"], "1")
                self.assertEqual(process.wait(60), 0)

    def test_children_are_told_nothing_of_it(self) -> None:
        service = self.service()
        service.listening()
        service.env.update(WATCHDOG_USEC="60000000", LISTEN_FDNAMES="munimentd.socket")
        service.start()
        pid = service.postgres_pid()
        environment = pathlib.Path(f"/proc/{pid}/environ").read_text()
        self.assertIn("PATH=", environment)
        self.assertNotRegex(environment, "NOTIFY_SOCKET|LISTEN_|WATCHDOG")

    def test_what_is_meant_for_another_process_is_left_alone(self) -> None:
        service = self.service()
        service.env.update(LISTEN_FDS="1", LISTEN_PID="1")
        service.start()
        self.assertTrue((service.data / "munimentd.sock").exists())

    def refused(self, service: Service) -> str:
        status, text = service.refused_start()
        self.assertEqual(status, 3, text)
        self.assertIn("Accept=no", text)
        return text

    def test_what_is_no_listening_unix_stream_socket_is_refused_by_name(self) -> None:
        tcp = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(tcp.close)
        service = self.service(handed=tcp)
        self.assertIn("not a Unix socket", self.refused(service))

        datagrams, not_listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(datagrams.close)
        self.addCleanup(not_listening.close)
        self.assertIn("not a stream socket", self.refused(self.service(handed=datagrams)))
        self.assertIn("does not listen", self.refused(self.service(handed=not_listening)))

        two = self.service(handed=not_listening)
        two.env["LISTEN_FDS"] = "2"
        self.assertIn('LISTEN_FDS is "2"', self.refused(two))

        with open(os.devnull) as null:
            file = self.service(handed=null)
            self.assertIn("not a socket", self.refused(file))


@unittest.skipUnless(os.geteuid() == 0, "another user's connection is made by root")
class Groups(unittest.TestCase):
    def asked_by(self, uid: int, gid: int, groups: list[int], path: str) -> str:
        # The daemon may close a refused connection before the request is sent; its answer can be read nevertheless.
        code = ("import contextlib, socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
                'with contextlib.suppress(BrokenPipeError): s.sendall(b\'{"jsonrpc":"2.0","id":1,"method":"server.health"}\\n\')\n'
                "print(s.makefile().readline())")
        return subprocess.run(["/usr/bin/python3", "-c", code, path], capture_output=True, text=True, timeout=60, user=uid, group=gid,
                              extra_groups=groups).stdout

    def test_members_of_the_group_may_connect_and_others_are_told_what_to_do(self) -> None:
        members = grp.getgrnam("games")
        daemon = Daemon(config='allowed_group = "games"\n')
        self.addCleanup(daemon.destroy)
        daemon.folder.chmod(0o755)
        daemon.arguments += ["--socket", str(daemon.folder / "open.sock")]
        daemon.process = daemon.spawn()
        path = str(daemon.folder / "open.sock")
        wait_until(lambda: pathlib.Path(path).exists(), "it listens")
        self.assertIn('"ok":true', self.asked_by(12345, 12345, [members.gr_gid], path), "a supplementary group")
        self.assertIn('"ok":true', self.asked_by(12345, members.gr_gid, [], path), "the first group")
        self.assertIn('"ok":true', self.asked_by(12345, 12345, list(range(20_000, 20_300)) + [members.gr_gid], path), "of many")
        refused = self.asked_by(12345, 12345, [], path)
        self.assertIn("no access for uid 12345", refused)

    def test_a_group_that_is_not_there_is_refused_by_name(self) -> None:
        daemon = Daemon(config='allowed_group = "no-such-group"\n')
        self.addCleanup(daemon.destroy)
        self.assertIn('there is no group "no-such-group"', daemon.refused_start()[1])


class Unit(unittest.TestCase):
    def test_systemd_understands_it(self) -> None:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-unit-"))
        self.addCleanup(shutil.rmtree, folder)
        text = UNIT.read_text()
        for name, value in (("@bindir@", "/bin"), ("@docdir@", "/usr/share/doc/muniment"), ("@config@", "/etc/muniment/muniment.toml")):
            self.assertIn(name, text)
            text = text.replace(name, value)
        self.assertNotIn("@bin", text)
        (folder / "munimentd.service").write_text(text.replace("/bin/munimentd", "/bin/true"))
        shutil.copy(UNIT.parent / "munimentd.socket", folder)
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", folder / "munimentd.service", folder / "munimentd.socket"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", folder / "munimentd.service"],
                              capture_output=True, text=True, timeout=60)
        exposure = re.search(r"exposure level for munimentd.service: ([0-9.]+)", done.stdout)
        assert exposure, done.stdout + done.stderr
        self.assertLessEqual(float(exposure[1]), 2.0)

    def test_the_daemon_its_postgres_and_the_search_child_work_under_its_restrictions(self) -> None:
        user = ["--user", str(NOBODY)] if os.geteuid() == 0 else []
        service = Service(prefix=(sys.executable, str(UNDER_UNIT), str(UNIT), *user, "--"))
        self.addCleanup(service.destroy)
        service.listening()
        service.data.mkdir(mode=0o700)
        if user:
            os.chown(service.data, NOBODY, NOBODY)
        service.start()
        with service.client() as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
            client.put("r1", b"bytes " * 1000)
            client.call("snapshot.take", run_id="r1")
            client.call("corpus.ingest", corpus="c", documents=[{"id": "a.md", "text": "The proxy listens on port 8080.\n"}])

            def found() -> bool:
                answer = client.call("evidence.retrieve", queries=[{"corpus": "c", "query": "which port does the proxy listen on"}])
                return "8080" in json.dumps(answer)

            wait_until(found, "the search child serves")
            degraded = client.call("server.status")["degraded"]
            self.assertEqual([text for text in degraded if "encoder" not in text], [])   # the encoder's files belong to another user
        status_text = pathlib.Path(f"/proc/{service.process.pid}/status").read_text()
        self.assertRegex(status_text, r"NoNewPrivs:\s*1")
        self.assertRegex(status_text, r"Seccomp:\s*2")
        service.kill_postgres()   # it is started again under the same restrictions
        with service.client() as client:
            wait_until(lambda: self.appends(client), "Postgres is back")
        self.assertEqual(service.stop(), 0)

    @staticmethod
    def appends(client: muniment.Client) -> bool:
        try:
            client.append("r1", "x.test.noted", {"still": "here"})
            return True
        except muniment.MunimentError:
            return False


if __name__ == "__main__":
    main()
