"""Runs a real daemon for a test in a folder of its own, and can stop, kill, freeze and inspect it.

The tests use clients/python/muniment, or a raw socket in tests of the framing. Each test class has its own
daemon and folder, so that files can run in parallel.
"""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any, Callable, Iterator, Optional

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "clients" / "python"), str(ROOT / "tests" / "support")]

import muniment  # noqa: E402  (found through the path above)

BUILD = pathlib.Path(os.environ.get("MUNIMENT_BUILD", ROOT / "build-test"))
READABLE = pathlib.Path(os.environ.get("MUNIMENT_READABLE", ROOT))   # clients/python, where other users of the machine can read it
CLUSTER = os.environ.get("MUNIMENT_TEST_CLUSTER")   # from scripts/test
GOLDEN = ROOT / "tests" / "golden" / "errors"
SANITIZER_REPORT = re.compile(r"(Address|Leak|Thread)Sanitizer:|: runtime error: ")
PATIENCE_S = 240.0   # limit of a wait for a condition: a shared machine may pause for minutes


def shared_data() -> pathlib.Path:
    """Returns the folder of the traces and collections beside the checkout."""
    return pathlib.Path(os.environ.get("MUNIMENT_SHARED", ROOT.parent / "shared")) / "data"


def remove_in_use(folder: pathlib.Path) -> None:
    """Removes a folder in which another process creates and removes files meanwhile."""
    for _ in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


def wait_until(condition: Callable[[], Any], what: str, timeout_s: float = PATIENCE_S) -> Any:
    end = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {timeout_s:g} s")
        time.sleep(0.02)
    return value


class Daemon:
    """munimentd --data DIR; the argument `failpoint` of a start arms failpoints.

    `initdb`: the daemon makes its database cluster and applies the migrations. Otherwise its first start finds a copy of the cluster
    of scripts/test, if there is one.
    """

    def __init__(self, *, arguments: tuple[str, ...] = (), config: str = "",
                 env: Optional[dict[str, str]] = None, build: Optional[pathlib.Path] = None,
                 encoder: str = "none", initdb: bool = False, program: str = "munimentd"):
        """`encoder`: none by default, since loading it takes a quarter of a second."""
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-test-"))
        self.folder.chmod(0o755)   # if the test runs as root, the private Postgres runs as another user
        self.data = self.folder / "data"
        self.log = self.folder / "daemon.log"
        self.failpoint_log = self.folder / "failpoints"
        self.build = build or BUILD
        self.program = program
        self.initdb = initdb or any("database" in text for text in (config, *arguments))
        self.arguments, self.env = list(arguments), {"MUNIMENT_ENCODER": encoder, **(env or {})}
        self.process: Optional[subprocess.Popen[bytes]] = None
        if config:
            (self.folder / "muniment.toml").write_text(config)
            self.arguments += ["--config", str(self.folder / "muniment.toml")]

    @property
    def socket(self) -> str:
        return str(self.data / "munimentd.sock")

    def spawn(self, *more: str, failpoint: str = "") -> subprocess.Popen[bytes]:
        # No test reads a real key.
        env = {key: value for key, value in os.environ.items() if not key.startswith("MUNIMENT_") and key != "OPENAI_API_KEY"}
        env.update(self.env, MUNIMENT_FAILPOINT=failpoint, MUNIMENT_FAILPOINT_LOG=str(self.failpoint_log))
        self.copy_cluster()
        with open(self.log, "ab") as log:
            return subprocess.Popen(
                [str(self.build / self.program), "--data", str(self.data), *self.arguments, *more],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True)

    def copy_cluster(self) -> None:
        if CLUSTER and not self.initdb and not self.data.exists():
            self.data.mkdir(0o700)
            subprocess.run(["cp", "-a", CLUSTER, self.data / "postgres"], check=True)

    def start(self, *more: str, failpoint: str = "") -> "Daemon":
        self.process = self.spawn(*more, failpoint=failpoint)
        self.wait_healthy()
        return self

    def refused_start(self) -> tuple[int, str]:
        """Starts the daemon, which must fail to start. Returns its exit status and its output."""
        self.process = self.spawn()
        return self.process.wait(PATIENCE_S), self.log_tail()

    def wait_healthy(self, timeout_s: float = PATIENCE_S) -> None:
        end = time.monotonic() + timeout_s
        while True:
            assert self.process is not None
            if self.process.poll() is not None:
                raise AssertionError(f"munimentd exited with {self.process.returncode}:\n{self.log_tail()}")
            try:
                with muniment.connect(self.socket, deadline_s=5) as client:
                    if client.call("server.health")["database"] == "up":   # a daemon that refuses appends has also started
                        return
            except muniment.MunimentError:
                pass
            if time.monotonic() > end:
                raise AssertionError(f"munimentd is not healthy after {timeout_s:g} s:\n{self.log_tail()}")
            time.sleep(0.02)

    def client(self, **options: Any) -> muniment.Client:
        return muniment.connect(self.socket, **options)

    def let_others_in(self) -> None:
        """Makes the socket accessible to other users of the machine; allowed_uids selects the users that are served."""
        for folder in [self.data, *self.data.parents]:
            if folder.stat().st_mode & 0o001 == 0:
                folder.chmod(folder.stat().st_mode | 0o011)

    def raw_as(self, uid: int) -> "Raw":
        """Returns a connection of another user of the machine; requires root."""
        self.let_others_in()
        os.setegid(uid)
        os.seteuid(uid)
        try:
            return Raw(self.socket, 60.0)
        finally:
            os.seteuid(0)
            os.setegid(0)

    def stop(self, timeout_s: float = PATIENCE_S) -> int:
        """Sends SIGTERM. Returns the exit status."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(timeout_s)

    def kill(self) -> None:
        """Sends SIGKILL to the daemon alone: its Postgres is orphaned, as after a crash."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def restart(self, *, failpoint: str = "") -> "Daemon":
        return self.start(failpoint=failpoint)

    def postgres_pid(self) -> Optional[int]:
        """Returns the process id of the private Postgres if it is alive."""
        for path in self.data.glob("*/postmaster.pid"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                pid = int(path.read_text().split()[0])
                if "postgres" in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
                    return pid
        return None

    def kill_postgres(self) -> None:
        if pid := self.postgres_pid():
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: not alive(pid), "Postgres is gone")

    def log_tail(self, lines: int = 40) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""

    def sanitized(self) -> bool:
        """Returns whether the daemon is built with a sanitizer, which uses most of its memory."""
        assert self.process is not None
        return re.search("lib[at]san", pathlib.Path(f"/proc/{self.process.pid}/maps").read_text()) is not None

    def destroy(self) -> None:
        """Ends the remaining processes quickly, and removes the folder. A sanitizer's report fails the test."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        if pid := self.postgres_pid():
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGQUIT)
            with contextlib.suppress(AssertionError):
                wait_until(lambda: not alive(pid), "Postgres is gone", 10)
        log = self.log.read_text(errors="replace") if self.log.exists() else ""
        shutil.rmtree(self.folder, ignore_errors=True)
        if found := SANITIZER_REPORT.search(log):
            raise AssertionError(log[max(0, found.start() - 200):][:20_000])

    def sql(self, query: str, *, check: bool = True) -> list[list[str]]:
        """Runs a query as the database's superuser, without the daemon. Returns the rows as text."""
        with self.client() as client:
            uri = client.call("server.status")["database"]
        return self.sql_at(uri, query, check=check)

    def sql_at(self, uri: str, query: str, *, check: bool = True) -> list[list[str]]:
        done = subprocess.run(["psql", "-X", "-qAt", "-F", "\x1f", "-R", "\x1e", "-v", "ON_ERROR_STOP=1", uri, "-c", query],
                              capture_output=True, text=True, timeout=60)
        if check and done.returncode != 0:
            raise AssertionError(f"psql: {done.stderr}")
        text = done.stdout.rstrip("\n")
        return [row.split("\x1f") for row in text.split("\x1e")] if text else []


def children(pid: int) -> list[int]:
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


def alive(pid: int) -> bool:
    """Returns whether the process runs and is not a zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Raw:
    """A raw connection: sends bytes, receives lines."""

    def __init__(self, path: str, timeout_s: float = PATIENCE_S):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout_s)
        self.socket.connect(path)
        self.buffer = b""

    def __enter__(self) -> "Raw":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def request(self, method: str, request_id: Any = 1, **params: Any) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": method,
                              "params": params}).encode() + b"\n")

    def line(self) -> Optional[dict[str, Any]]:
        """Returns the next message; None if the daemon has closed the connection."""
        while b"\n" not in self.buffer:
            try:
                chunk = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return None
            if not chunk:
                return None
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def ask(self, data: bytes) -> dict[str, Any]:
        self.send(data + b"\n")
        answer = self.line()
        assert answer is not None, "the daemon closed the connection"
        return answer

    def exactly(self, size: int) -> bytes:
        while len(self.buffer) < size:
            chunk = self.socket.recv(1 << 16)
            assert chunk, "the daemon closed the connection"
            self.buffer += chunk
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def closed(self) -> bool:
        return self.line() is None


class DaemonCase(unittest.TestCase):
    """A test case with one client and one open run for each test, and a daemon for the class.

    `shared = True`: all such classes of the file with the same `config` share one daemon. A shared daemon must not be
    stopped, restarted or damaged, and a test must not rely on being its only client.
    """

    config = ""
    shared = False
    daemon: Daemon
    _shared_daemons: dict[tuple[str, str], Daemon] = {}

    @classmethod
    def setUpClass(cls) -> None:
        key = (cls.__module__, cls.config)
        if cls.shared and key in cls._shared_daemons:
            cls.daemon = cls._shared_daemons[key]
            return
        cls.daemon = Daemon(config=cls.config)
        if cls.shared:
            cls._shared_daemons[key] = cls.daemon
            unittest.addModuleCleanup(lambda: cls._shared_daemons.pop(key).destroy())
        else:
            cls.addClassCleanup(cls.daemon.destroy)
        cls.daemon.start()

    def setUp(self) -> None:
        self.client = self.daemon.client()
        self.addCleanup(self.client.close)
        self.run_id = self.new_run()

    def new_run(self, name: str = "", **more: Any) -> str:
        """Starts a run named after the test, so that messages are reproducible."""
        run_id = re.sub(r"[^A-Za-z0-9._-]", "-", self._testMethodName)[:100] + (f".{name}" if name else "")
        return self.client.again(lambda: self.client.call("run.start", run_id=run_id, agent={"name": "test"}, **more))["run_id"]

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.client.call(method, **params)

    def halt_run(self, run_id: str) -> None:
        """Halts the run because of another run's file, which is away for the moment."""
        owner = self.new_run("lost")
        stored = self.client.put(owner, run_id.encode(), mime_type="text/plain")
        path = self.daemon.data / "artifacts" / stored["path"]
        away = path.with_name("away")
        path.rename(away)
        self.call("pointer.resolve", pointers=[f"artifact://{owner}/{stored['artifact_id']}"], run_id=run_id, critical=True)
        away.rename(path)

    def followed(self) -> dict[str, Any]:
        """Returns the status after the followers have read the current log."""
        size = self.call("server.status")["log"]["size"]

        def caught_up() -> Optional[dict[str, Any]]:
            status = self.call("server.status")
            return status if all(status["followers"].get(name, 0) >= size for name in ("run", "pointer", "report")) else None

        return wait_until(caught_up, "the followers caught up")

    def restart(self) -> None:
        self.daemon.start()
        self.client.close()   # the next call reconnects

    def note(self, run_id: Optional[str] = None, **body: Any) -> dict[str, Any]:
        return self.client.append(run_id or self.run_id, "x.test.noted", body)

    def events(self, run_id: Optional[str] = None, **more: Any) -> list[dict[str, Any]]:
        return list(self.pages("event.list", "events", run_id=run_id or self.run_id, **more))

    def pages(self, method: str, key: str, **params: Any) -> Iterator[dict[str, Any]]:
        while True:
            page = self.call(method, **params)
            yield from page[key]
            if not page.get("cursor"):
                return
            params["cursor"] = page["cursor"]

    @contextlib.contextmanager
    def refused(self, code: str, golden: str = "", **data: Any) -> Iterator[list[muniment.MunimentError]]:
        """Expects the block to fail with `code`, these members in `data`, and the golden message."""
        caught: list[muniment.MunimentError] = []
        try:
            yield caught
        except muniment.MunimentError as error:
            caught.append(error)
        if not caught:
            self.fail(f"was not refused (expected {code})")
        error = caught[0]
        self.assertEqual(error.code, code, error)
        for name, value in data.items():
            self.assertEqual(error.data.get(name), value, f"data.{name} of: {error}")
        if golden:
            self.golden(golden, f"{error}\n")

    def golden(self, name: str, text: str) -> None:
        """Checks that `text`, with its variable parts masked, equals tests/golden/errors/<name>."""
        for pattern, stand_in in ((r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>"),
                                  (r"\b\d\d:\d\d:\d\dZ", "<time>"), (r"\(seq \d+\)", "(seq <n>)")):
            text = re.sub(pattern, stand_in, text)
        path = GOLDEN / f"{name}.txt"
        if os.environ.get("MUNIMENT_ACCEPT") == "1":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.assertTrue(path.exists(), f"no {path.relative_to(ROOT)}; look at the text, then MUNIMENT_ACCEPT=1:\n{text}")
        self.assertEqual(text, path.read_text(), f"differs from {path.relative_to(ROOT)}")

    def raw(self) -> Raw:
        raw = Raw(self.daemon.socket)
        self.addCleanup(raw.socket.close)
        return raw

    def assert_alive(self) -> None:
        """Checks that nothing was lost or halted: the daemon and this test's run still accept events."""
        self.note(still="here")


def main() -> None:
    """Runs the tests of `python3 tests/functional/test_x.py`; scripts/test uses tests/support/run_python.py."""
    unittest.main(verbosity=2)
