"""Real traces become runs: every string of the source is there byte for byte, and a second import adds nothing."""
from __future__ import annotations

import json
import subprocess
import time
from typing import Iterator

from support import BUILD, DaemonCase, main, shared_data, wait_until

TRACES = 3   # of the smallest ones here; the whole folder is scripts/bench's and the soak's


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


class SweAgent(DaemonCase):
    def import_file(self, path: object) -> str:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "import", "--format", "swe-agent", str(path)],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def size(self) -> int:
        return self.call("server.status")["log"]["size"]

    def test_every_string_is_there_and_a_second_import_adds_nothing(self) -> None:
        folder = shared_data() / "traces" / "swe-agent"
        files = sorted(folder.rglob("*.traj"), key=lambda path: path.stat().st_size)
        self.assertTrue(files, f"no traces under {folder}")
        before = {run["run_id"] for run in self.pages("run.list", "runs")}
        for path in [*files[:TRACES], files[len(files) // 2]]:
            self.import_file(path)
        self.followed()
        runs = [run for run in self.pages("run.list", "runs") if run["run_id"] not in before]
        self.assertEqual(len(runs), TRACES + 1)
        held: list[bytes] = []
        for run in runs:
            events = self.events(run["run_id"])
            self.assertEqual({event["origin"] for event in events}, {"imported"})
            held += ["\n".join(strings(event["body"])).encode() for event in events]
            held += [self.client.get(artifact["artifact_id"])
                     for artifact in self.pages("artifact.list", "artifacts", run_id=run["run_id"])]
        everything = b"\n".join(held)
        for path in [*files[:TRACES], files[len(files) // 2]]:
            for text in strings(json.loads(path.read_text())):
                self.assertIn(text.encode(), everything, path)
        wait_until(lambda: self.quiet(), "nothing is written any more")
        size = self.size()
        for path in files[:TRACES]:
            self.import_file(path)
        self.assertEqual(self.size(), size)

    def quiet(self) -> bool:
        before = self.size()
        time.sleep(0.5)
        return self.size() == before

    def test_an_imported_run_rehydrates(self) -> None:
        path = sorted((shared_data() / "traces" / "swe-agent").rglob("*.traj"), key=lambda one: one.stat().st_size)[TRACES]
        self.import_file(path)
        self.followed()
        run = next(run for run in self.pages("run.list", "runs") if run["run_id"] != self.run_id)
        state = self.client.rehydrate(run["run_id"])["state"]
        self.assertEqual(state["run"]["run_id"], run["run_id"])


if __name__ == "__main__":
    main()
