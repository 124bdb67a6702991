"""Helpers of the tests of run bundles: a run with every kind of content, export, and import into another daemon."""
from __future__ import annotations

import io
import json
import pathlib
import subprocess
import tarfile
import unittest
from typing import Any

from support import BUILD, Daemon, DaemonCase

from at_rest import NO_SNAPSHOTS_BY_TIME, size_at_rest
from bundle import tar_of


def muniment(daemon: Daemon, *words: object, json_output: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BUILD / "muniment", "--data", daemon.data, *(["--json"] if json_output else []), *map(str, words)],
                          capture_output=True, text=True, timeout=240)


def unpacked(path: pathlib.Path) -> dict[str, bytes]:
    """Returns the members of a bundle in their order."""
    data = subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


def packed(members: dict[str, bytes], path: pathlib.Path) -> None:
    path.write_bytes(subprocess.run(["zstd", "-cq"], input=tar_of(members), capture_output=True, check=True).stdout)


def lines(members: dict[str, bytes], name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in members[name].splitlines()]


class Bundling(DaemonCase):
    config = NO_SNAPSHOTS_BY_TIME   # no event is appended to a run after its end
    signed = True

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        if cls.signed and not (cls.daemon.folder / "log.pub").exists():   # a shared daemon may already have a key
            done = muniment(cls.daemon, "audit", "key", "init", "-o", cls.daemon.folder / "log.pub", json_output=False)
            assert done.returncode == 0, done.stderr

    def recorded_run(self, name: str = "full") -> str:
        """Records a run with every kind of content, interleaved with another run."""
        run, other = self.new_run(name, goal="find it"), self.new_run(name + "-beside")
        artifact = self.call("artifact.put", run_id=run, step_id="s1", mime_type="text/plain", metadata={"n": 1.50}, text="twelve bytes")
        self.note(other, n=1)
        manifest = self.call("manifest.put", run_id=run, manifest={"entries": [{"artifact_id": artifact["artifact_id"], "why": "read"}]})
        self.client.append(run, "tool.called", {"call_id": "c1", "name": "grep", "kind": "function", "arguments": {"q": "ü\n\"x\""}})
        self.note(other, n=2)
        self.client.append(run, "tool.returned", {"call_id": "c1", "status": "ok", "content": [
            {"type": "text", "content": "see artifact " + artifact["artifact_id"]}]})
        pointer = f"artifact://{run}/{artifact['artifact_id']}"
        self.call("claim.record", run_id=run, text="It is there.", pointers=[pointer])
        self.call("evidence.record", run_id=run, type="review", content={"text": "Read and agreed."})
        self.call("evidence.record", run_id=run, type="file", pointer=pointer)
        self.client.append(run, "state.patched", {"format": "merge", "patch": {"manifest": manifest["manifest_id"]}})
        self.call("snapshot.take", run_id=run)
        command = self.call("command.start", run_id=run, argv=["make", "test"], cwd="/src", env={})
        self.call("command.end", run_id=run, command_id=command["command_id"], exit_code=0)
        self.call("run.end", run_id=run, outcome="success", summary="done")
        return run

    def export(self, run: str, *more: object, name: str = "run") -> pathlib.Path:
        path = self.daemon.folder / f"{self._testMethodName}.{name}.muniment.tar.zst"
        done = muniment(self.daemon, "audit", "export", run, "-o", path, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.exported = json.loads(done.stdout)
        return path


class Importing(Bundling):
    """Imports into another daemon, which is shared if the first one is."""

    other: Daemon
    _shared_others: dict[str, Daemon] = {}

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        if cls.shared and cls.__module__ in cls._shared_others:
            cls.other = cls._shared_others[cls.__module__]
            return
        cls.other = Daemon(config=NO_SNAPSHOTS_BY_TIME)
        if cls.shared:
            cls._shared_others[cls.__module__] = cls.other
            unittest.addModuleCleanup(lambda: cls._shared_others.pop(cls.__module__).destroy())
        else:
            cls.addClassCleanup(cls.other.destroy)
        cls.other.start()

    def bring(self, path: pathlib.Path, *more: object, code: int = 0) -> dict[str, Any]:
        done = muniment(self.other, "audit", "import", path, "--key", self.daemon.folder / "log.pub", *more)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def held(self, method: str, key: str, run: str, **more: Any) -> list[dict[str, Any]]:
        with self.other.client() as client:
            found, cursor = [], {}
            while True:
                page = client.call(method, run_id=run, **more, **cursor)
                found += page[key]
                if not page.get("cursor"):
                    return found
                cursor = {"cursor": page["cursor"]}

    def size(self) -> int:
        """Returns the other log's size once its snapshotter is idle."""
        with self.other.client() as client:
            return size_at_rest(client)
