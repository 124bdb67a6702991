"""Simulates a power cut of a whole data folder: on ext4 or xfs in a file, by the file system's shutdown ioctl.

The ioctl drops the data that is not on the disk. Afterwards all acknowledged events must exist, the log must verify, and
the tiles must be repaired. scripts/test --kinds power_cut runs 21 cuts; CUTS=n sets their number. If no file system can
be mounted or cut, the program reports it and runs none."""
from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any, Iterator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "functional"))

from support import BUILD, Daemon, alive, wait_until  # noqa: E402

CUTS = int(os.environ.get("CUTS") or 21)
SEED = int(os.environ.get("SEED") or random.randrange(10**9))
GOING_DOWN = 0x8004587D          # _IOR('X', 125, __u32) of xfs and ext4
WITHOUT_THE_JOURNAL = struct.pack("I", 2)
MAKERS = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"]}


class Disk:
    """A file system in a file."""

    def __init__(self, kind: str, folder: pathlib.Path):
        self.image, self.place = folder / "image", folder / "disk"
        self.place.mkdir()
        with open(self.image, "wb") as image:
            image.truncate(600 << 20)
        subprocess.run([*MAKERS[kind], str(self.image)], check=True, capture_output=True)

    def mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", str(self.image), str(self.place)], check=True, capture_output=True)

    def unmount(self) -> None:
        wait_until(lambda: subprocess.run(["umount", str(self.place)], capture_output=True).returncode == 0, "the disk is free")

    def cut(self) -> None:
        folder = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, GOING_DOWN, WITHOUT_THE_JOURNAL)
        finally:
            os.close(folder)


@contextlib.contextmanager
def disk_of(kind: str) -> Iterator[Disk]:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-cut-"))
    folder.chmod(0o755)
    try:
        disk = Disk(kind, folder)
        disk.mount()
        try:
            yield disk
        finally:
            subprocess.run(["umount", "-l", str(disk.place)], capture_output=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def kinds_here() -> list[str]:
    """Returns the file systems that can be made, mounted and cut on this machine."""
    found = []
    for kind, maker in MAKERS.items():
        if shutil.which(maker[0]) is None:
            continue
        with contextlib.suppress(OSError, subprocess.CalledProcessError), disk_of(kind) as disk:
            disk.cut()
            found.append(kind)
    return found


class PowerCut(unittest.TestCase):
    def test_what_was_acked_is_there_and_verifies_after_a_power_cut(self) -> None:
        kinds = kinds_here()
        if not kinds:
            print("\npower cuts: none tried: this machine mounts no file system in a file, or cannot shut it down (it takes root, a loop device, and ext4 or xfs)")
            return
        rng = random.Random(SEED)
        emptied = made_again = 0
        for number in range(CUTS):
            with self.subTest(cut=number, SEED=SEED), disk_of(kinds[number % len(kinds)]) as disk:
                one, other = self.cut(disk, rng)
                emptied, made_again = emptied + one, made_again + other
        print(f"\npower cuts: {CUTS} on {' and '.join(kinds)} (SEED={SEED}): {emptied} files of the tree came back cut, {made_again} were made again")

    def cut(self, disk: Disk, rng: random.Random) -> tuple[int, int]:
        daemon = Daemon()
        daemon.data = disk.place / "data"
        self.addCleanup(daemon.destroy)
        daemon.start()
        key = daemon.folder / "log.pub"
        self.cli(daemon, "audit", "key", "init", "-o", key)
        acked = self.append(daemon, rng)
        disk.cut()
        pid = daemon.postgres_pid()
        daemon.kill()
        if pid:
            for child in [pid, *map(int, subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split())]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            wait_until(lambda: not alive(pid), "Postgres is gone", 30)
        disk.unmount()
        disk.mount()
        emptied = sum(1 for path in (disk.place / "data/tiles").rglob("*") if path.is_file() and path.stat().st_size == 0)
        daemon.start(failpoint="written_end.other_boot=error@1+")   # a power cut restarts the machine too
        with daemon.client() as client:
            for seq, (event_id, body_hash) in acked.items():
                event = client.call("event.get", seq=seq)["event"]
                self.assertEqual((event["event_id"], event["body_hash"]), (event_id, body_hash))
            made_again = client.call("server.status")["checkpoint"]["files_made_again"]

        def verified() -> bool:
            done = subprocess.run([BUILD / "muniment-verify", "--data", daemon.data, "--key", key, "--json"], stdout=subprocess.PIPE, timeout=120)
            self.report = json.loads(done.stdout)
            self.assertNotEqual(done.returncode, 1, self.report["findings"])
            return done.returncode == 0

        wait_until(verified, "it verifies")
        # The record may be older than the log; the log is never older than the acknowledged events.
        for adoption in self.report["adopted"]:
            self.assertGreater(adoption["to_seq"], adoption["from_seq"] - 1)
        self.assertEqual(daemon.stop(), 0)
        return emptied, made_again

    def append(self, daemon: Daemon, rng: random.Random) -> dict[int, tuple[str, str]]:
        """Appends several hundred events with pauses, so that partial tiles of several sizes exist, some of them not on disk."""
        acked: dict[int, tuple[str, str]] = {}
        with daemon.client() as client:
            client.call("run.start", run_id="cut", agent={"name": "test"})
            end = time.monotonic() + rng.uniform(1.0, 6.0)
            while time.monotonic() < end:
                events: list[dict[str, Any]] = [{"type": "x.test.noted", "body": {"n": n}} for n in range(rng.choice((1, 3, 40)))]
                for receipt in client.call("event.append", run_id="cut", events=events)["receipts"]:
                    acked[receipt["seq"]] = (receipt["event_id"], receipt["body_hash"])
                time.sleep(rng.choice((0.0, 0.05, 0.3)))
        return acked

    def cli(self, daemon: Daemon, *words: object) -> None:
        subprocess.run([BUILD / "muniment", "--data", daemon.data, "--no-autostart", *map(str, words)], check=True, capture_output=True, timeout=60)


if __name__ == "__main__":
    unittest.main()
