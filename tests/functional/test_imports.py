"""Real traces become runs: every string of the source is there byte for byte, and a second import adds nothing."""
from __future__ import annotations

import json
import pathlib
import subprocess
import time
from typing import Any, Iterator

from support import BUILD, DaemonCase, main, shared_data, wait_until

TRACES = shared_data() / "traces" / "swe-agent"


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


class Importing(DaemonCase):
    def muniment_import(self, *files: pathlib.Path, code: int = 0) -> list[dict[str, Any]]:
        """One line per file that was imported."""
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "import", "--format", "swe-agent", *files],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def settled_size(self) -> int:
        """The log's size, once the snapshotter has written what it wants to."""
        sizes = [self.followed()["log"]["size"]]

        def settled() -> bool:
            time.sleep(0.5)   # nothing tells that nothing more will come
            sizes.append(self.call("server.status")["log"]["size"])
            return sizes[-1] == sizes[-2]

        wait_until(settled, "nothing is written any more")
        return sizes[-1]


class SweAgent(Importing):
    """All traces, imported once for the class."""

    files: list[pathlib.Path] = []
    runs: list[dict[str, Any]] = []

    def setUp(self) -> None:
        super().setUp()
        if not self.files:
            SweAgent.files = sorted(TRACES.rglob("*.traj"))
            self.assertGreater(len(self.files), 50, f"no traces under {TRACES}")
            SweAgent.runs = self.muniment_import(*self.files)

    def held(self, run_id: str) -> set[bytes]:
        """Every string in a body of the run, and every artifact of it."""
        events = self.events(run_id, limit=1000)
        self.assertEqual({event["origin"] for event in events if not event["type"].startswith("snapshot.")}, {"imported"}, run_id)
        held = {text.encode() for event in events for text in strings(event["body"])}
        for artifact in self.pages("artifact.list", "artifacts", run_id=run_id):
            held.add(self.client.get(artifact["artifact_id"]))
        return held

    def test_each_is_a_run_of_its_own(self) -> None:
        self.assertEqual([run["file"] for run in self.runs], [str(path) for path in self.files])
        self.assertEqual({run["added"] for run in self.runs}, {True})
        self.assertEqual(len({run["run_id"] for run in self.runs}), len(self.files))

    def test_every_string_of_a_source_is_in_its_own_run(self) -> None:
        for run in self.runs:
            held = self.held(run["run_id"])
            everything = b"\0".join(held)   # which no string of a trace holds
            missing = [text for text in set(strings(json.loads(pathlib.Path(run["file"]).read_text())))
                       if text.encode() not in held and text.encode() not in everything]
            self.assertEqual(missing, [], run["file"])

    def test_a_second_import_adds_nothing(self) -> None:
        size = self.settled_size()
        again = self.muniment_import(*self.files)
        self.assertEqual([run["run_id"] for run in again], [run["run_id"] for run in self.runs])
        self.assertEqual({run["added"] for run in again}, {False})
        self.assertEqual(self.settled_size(), size)

    def test_all_of_it_verifies(self) -> None:
        key = self.daemon.folder / "log.pub"
        key.write_text(self.call("audit.key", action="init")["keys"][0] + "\n")
        size = self.settled_size()
        wait_until(lambda: self.call("audit.checkpoint")["size"] >= size, "all of it is signed")
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--key", key, "--json"],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["verdict"], report["first_bad"]), ("verified", None))
        self.assertGreaterEqual(report["signed_upto"], size - 1)
        self.assertGreaterEqual(report["counts"]["runs"], len(self.files))

    def test_every_run_rehydrates(self) -> None:
        for run in self.runs:
            state = self.client.rehydrate(run["run_id"])["state"]
            self.assertEqual((state["run"]["run_id"], state["run"]["status"]), (run["run_id"], "ended"))
            self.assertEqual((state["pending"]["calls"], state["steps"]["open"]), ([], []), run["file"])
            self.assertEqual(sum(count for kind, count in state["counts"].items() if kind == "tool.called"),
                             state["counts"].get("tool.returned"), run["file"])


class Refused(Importing):
    def test_a_file_that_is_no_trace_is_named_and_the_others_are_imported(self) -> None:
        bad = self.daemon.folder / "bad.traj"
        bad.write_text("{\"trajectory\": 7")
        good = min(TRACES.rglob("*.traj"), key=lambda path: path.stat().st_size)
        lines = self.muniment_import(bad, good, code=1)
        self.assertEqual([line["file"] for line in lines if "file" in line], [str(good)])

    def test_a_changed_file_is_another_run(self) -> None:
        good = min(TRACES.rglob("*.traj"), key=lambda path: path.stat().st_size)
        first = self.muniment_import(good)[0]
        other = self.daemon.folder / good.name
        other.write_text(good.read_text() + "\n")
        second = self.muniment_import(other)[0]
        self.assertNotEqual(first["run_id"], second["run_id"])
        self.assertTrue(second["added"])


if __name__ == "__main__":
    main()
