"""Tests of a full disk, on a real file system: refused requests state the reason, acknowledged data is kept, and no run is halted."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import unittest
from typing import Any, Optional

from support import BUILD, Daemon, DaemonCase, main, muniment, wait_until

MIB = 1 << 20
NO_RESERVE = "disk_reserve_bytes = 0\ndisk_reserve_percent = 0\n"   # the last block may be used


class SmallDisk(DaemonCase):
    """A daemon with a file system of its own on `mounted`, a subfolder of the test's folder."""

    config = NO_RESERVE
    mounted = ""
    size_mib = 0

    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon(config=cls.config)
        cls.disk = cls.daemon.folder / cls.mounted
        cls.disk.mkdir(parents=True)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={cls.size_mib}m,mode=0755", "tmpfs", str(cls.disk)],
                               capture_output=True, text=True)
        if mount.returncode != 0:
            cls.daemon.destroy()
            raise unittest.SkipTest(f"a small disk cannot be mounted here: {mount.stderr.strip()}")
        cls.addClassCleanup(lambda: subprocess.run(["rm", "-rf", str(cls.daemon.folder)], check=True))
        cls.addClassCleanup(lambda: subprocess.run(["umount", str(cls.disk)], check=True))
        cls.addClassCleanup(cls.daemon.destroy)
        cls.daemon.start()

    def setUp(self) -> None:
        super().setUp()
        self.ballast = self.disk / "ballast"
        self.addCleanup(self.free)

    def free_bytes(self) -> int:
        about = os.statvfs(self.disk)
        return about.f_bavail * about.f_frsize

    def fill(self, leave: int = 0) -> None:
        """Fills the disk, except for `leave` bytes."""
        with open(self.ballast, "ab", buffering=0) as file:
            try:
                while (more := self.free_bytes() - leave) > 0:
                    file.write(b"\0" * min(MIB, more))
            except OSError:
                self.assertEqual(leave, 0)

    def free(self) -> None:
        self.ballast.unlink(missing_ok=True)

    def assert_verifies(self) -> None:
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok"],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Artifacts(SmallDisk):
    mounted = "data/artifacts"
    size_mib = 16

    def files(self) -> list[pathlib.Path]:
        return sorted(path for path in self.disk.rglob("*") if path.is_file() and path != self.ballast)

    def test_an_artifact_is_refused_with_the_numbers_and_events_go_on(self) -> None:
        self.fill(leave=64 * 1024)
        before = self.files()
        with self.refused("over_budget") as caught:
            self.client.put(self.run_id, b"a" * MIB)
        self.assertRegex(str(caught[0]), r"\d+ bytes free.*1048576 more")
        self.note(still="taken")
        self.assertEqual(self.call("run.rehydrate", run_id=self.run_id)["state"]["run"]["status"], "open")
        self.assertEqual(self.files(), before)
        self.free()
        self.assertEqual(len(self.client.get(self.client.put(self.run_id, b"a" * MIB)["artifact_id"])), MIB)
        self.assert_verifies()

    def test_a_disk_that_fills_while_the_bytes_come(self) -> None:
        before = self.files()
        raw = self.raw()
        free = self.free_bytes()
        raw.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "artifact.put",
                             "params": {"run_id": self.run_id, "body_bytes": 8 * MIB}}).encode() + b"\n" + b"a" * (2 * MIB))
        wait_until(lambda: self.free_bytes() <= free - MIB, "the first bytes are on the disk")
        self.fill()
        raw.send(b"a" * (6 * MIB))
        answer = raw.line()
        self.assertEqual(answer["error"]["data"]["code"], "over_budget", answer)
        self.assertIn("No space left", answer["error"]["message"])
        self.assertEqual(raw.ask(b'{"jsonrpc":"2.0","id":2,"method":"server.health"}')["id"], 2)
        self.note(still="taken")
        wait_until(lambda: self.files() == before, "nothing of it is left")
        self.assertEqual(self.call("artifact.list", run_id=self.run_id)["artifacts"], [])

    def test_an_event_that_would_spill_is_refused_whole(self) -> None:
        self.fill()
        before = self.files()
        with self.refused("over_budget"):
            self.client.append(self.run_id, "x.test.a", {"text": "a" * 100_000})
        self.assertEqual([event["type"] for event in self.events()], ["run.started"])
        self.assertEqual(self.files(), before)
        self.note(still="taken")

    def test_a_snapshot_that_needs_a_file_is_refused_and_the_run_goes_on(self) -> None:
        self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {f"k{i}": "v" * 8_000 for i in range(12)}})
        self.fill()
        with self.refused("over_budget"):
            self.call("snapshot.take", run_id=self.run_id)
        self.note(still="taken")
        self.free()
        self.call("snapshot.take", run_id=self.run_id)
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["status"], "open")
        self.assert_verifies()


class Reserve(SmallDisk):
    """Free space below the reserve."""

    mounted = "data/artifacts"
    size_mib = 32
    config = f"disk_reserve_bytes = {16 * MIB}\n"

    def setUp(self) -> None:
        super().setUp()
        self.fill(leave=8 * MIB)

    def exec(self, *command: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        run_id = self.new_run("exec." + self._testMethodName)
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "exec", "--run", run_id, "--", *command],
                              capture_output=True, text=True, timeout=60)
        [ended] = self.call("event.list", run_id=run_id, types=["command.ended"])["events"]
        return done, ended["body"]

    def test_small_artifacts_are_stored_and_large_ones_refused(self) -> None:
        self.client.put(self.run_id, b"a" * 65_536)
        with self.refused("over_budget"):
            self.client.put(self.run_id, b"a" * 65_537)
        self.client.append(self.run_id, "x.test.a", {"text": "a" * 40_000}, spill=True)
        self.free()
        self.assert_verifies()

    def test_a_large_upload_in_small_parts_is_refused(self) -> None:
        raw = self.raw()
        begun = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "artifact.put", "params": {
            "run_id": self.run_id, "upload_id": "01900000-0000-7000-8000-000000000001", "offset": 0, "body_bytes": 65_536}})
        raw.send(begun.encode() + b"\n" + b"a" * 65_536)
        self.assertIn("result", raw.line())
        raw.send(begun.replace('"offset": 0', '"offset": 65536').encode() + b"\n" + b"a" * 65_536)
        self.assertEqual(raw.line()["error"]["data"]["code"], "over_budget")

    def test_a_memory_is_remembered(self) -> None:
        self.client.remember("home", "Kim lives in Porto.")
        self.assertIn("Porto", self.client.recall("where does Kim live")["text"])

    def test_the_end_of_a_command_is_recorded(self) -> None:
        done, ended = self.exec("echo", "hello")
        self.assertEqual((done.returncode, done.stderr, ended["exit_code"], "x_output_lost" in ended), (0, "", 0, False))
        self.assertEqual(self.client.get(ended["stdout"]["artifact_id"]), b"hello\n")

    def test_the_end_of_a_command_is_recorded_without_a_large_output(self) -> None:
        done, ended = self.exec("head", "-c", "100000", "/dev/zero")
        self.assertEqual((done.returncode, ended["exit_code"], ended["x_output_lost"], "stdout" in ended), (0, 0, True, False))
        self.assertIn("stdout of the command is not recorded: over_budget", done.stderr)


class Everything(SmallDisk):
    """The log's own disk: Postgres cannot write."""

    mounted = "data"
    size_mib = 400

    def check(self, leave: int) -> None:
        """Appends until an append is refused, frees space, and checks every acknowledged event."""
        acked: list[int] = []
        refused: Optional[muniment.MunimentError] = None
        self.fill(leave)
        with self.daemon.client(retry_for_s=0, deadline_s=10) as client:
            for i in range(1000):
                try:
                    acked.append(client.append(self.run_id, "x.test.a", {"i": i, "t": os.urandom(25_000).hex()}, spill=False)["seq"])
                except muniment.MunimentError as error:
                    refused = error
                    break
            self.assertIsNotNone(refused, "a full disk takes 50 MB")
            self.assertIn(refused.code, ("unavailable", "deadline_exceeded"), refused)
        for method in ("server.health", "server.status"):
            self.call(method)
        self.free()
        last = self.note(room="again")
        events = self.events()
        self.assertEqual([event["run_seq"] for event in events], list(range(len(events))))
        self.assertEqual(set(acked) - {event["seq"] for event in events}, set())
        self.assertEqual(events[-1]["seq"], last["seq"])
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["status"], "open")
        self.assert_verifies()

    def test_no_block_is_left(self) -> None:
        self.check(leave=0)

    def test_no_room_for_a_segment_of_the_write_ahead_log(self) -> None:
        self.check(leave=15 * MIB)   # the next WAL segment needs 16 MiB


if __name__ == "__main__":
    main()
