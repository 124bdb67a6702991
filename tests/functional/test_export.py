"""Tests of exports: anyone can check one, an interrupted one can be resumed, and importing it gives the same states."""
from __future__ import annotations

import csv
import datetime
import hashlib
import json
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time
from typing import Any

from support import BUILD, ROOT, Daemon, DaemonCase, main, shared_data, wait_until

TRACES = shared_data() / "traces"
GOLDEN = ROOT / "tests" / "golden" / "imports"
COLUMNS = ["seq", "log_id", "run_no", "run_id", "run_seq", "recorded_at", "occurred_at", "origin", "type", "schema_version", "step_id",
           "actor", "event_id", "body_hash", "salt", "run_hash", "body"]
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def run_muniment(daemon: Daemon, *words: Any, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([BUILD / "muniment", "--data", daemon.data, *map(str, words)], stderr=subprocess.PIPE, text=True, timeout=300,
                          **({"stdout": subprocess.PIPE} | options))
    assert done.returncode == code, (done.returncode, done.stderr)
    return done


def body_of(line: str) -> str:
    """Returns the hashed bytes, which are at the end of the line, unchanged."""
    return line[line.index(',"body":') + len(',"body":'):-1]


class Exporting(DaemonCase):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.daemon.folder))

    def export(self, *words: Any, **options: Any) -> list[str]:
        return run_muniment(self.daemon, "export", "--format", "jsonl", *words, **options).stdout.splitlines()

    def seqs(self, *words: Any) -> list[int]:
        return [json.loads(line)["seq"] for line in self.export(*words)]


class Lines(Exporting):
    def setUp(self) -> None:
        super().setUp()
        run_muniment(self.daemon, "import", "--format", "openhands", GOLDEN / "openhands.json")
        run_muniment(self.daemon, "import", "--format", "tau-bench", GOLDEN / "tau-bench.json")
        self.followed()

    def test_every_hashed_field_is_in_a_line_and_every_body_is_what_was_hashed(self) -> None:
        lines = self.export()
        events = [json.loads(line) for line in lines]
        self.assertEqual([event["seq"] for event in events], list(range(len(events))))
        for line, event in zip(lines, events):
            self.assertEqual(list(event), COLUMNS)
            self.assertEqual(hashlib.sha256(bytes.fromhex(event["salt"]) + body_of(line).encode()).hexdigest(), event["body_hash"])
        got = self.client.call("event.get", seq=7)["event"]
        for name in ("run_id", "run_seq", "recorded_at", "origin", "type", "event_id", "body_hash", "run_hash", "actor"):
            self.assertEqual(events[7][name], got[name], name)

    def test_csv_says_the_same(self) -> None:
        lines = self.export()
        text = run_muniment(self.daemon, "export", "--format", "csv").stdout
        rows = list(csv.DictReader(text.splitlines()))[:len(lines)]
        self.assertEqual(list(rows[0]), COLUMNS)
        for line, row in zip(lines, rows):
            event = json.loads(line)
            self.assertEqual(row["body"], body_of(line))
            self.assertEqual({name: "" if event[name] is None else str(event[name]) for name in COLUMNS[:-1]}, {name: row[name] for name in COLUMNS[:-1]})

    def test_filters(self) -> None:
        events = [json.loads(line) for line in self.export()]
        some = next(event["run_id"] for event in events if event["run_id"].startswith("tau-bench"))
        self.assertEqual(self.seqs(some), [event["seq"] for event in events if event["run_id"] == some])
        self.assertEqual(self.seqs("--type", "tool.*", "--type", "run.ended"),
                         [event["seq"] for event in events if event["type"].startswith("tool.") or event["type"] == "run.ended"])
        self.assertEqual(self.seqs("--type", "tool_called"), [])
        labelled = {event["run_id"] for event in events if event["type"] == "run.started" and event["body"].get("labels", {}).get("reward") == "1.0"}
        self.assertEqual(self.seqs("--label", "reward=1.0"), [event["seq"] for event in events if event["run_id"] in labelled])
        self.assertEqual(self.seqs("--label", "reward=0'; DROP TABLE event"), [])
        self.assertEqual(self.seqs("--since", events[9]["recorded_at"], "--until", events[20]["recorded_at"]),
                         [event["seq"] for event in events if events[9]["recorded_at"] <= event["recorded_at"] < events[20]["recorded_at"]])
        self.assertEqual(self.seqs("--from-seq", 12), [event["seq"] for event in events if event["seq"] >= 12])
        for words, code in ((("no-such-run",), 1), (("--since", "yesterday"), 3), (("--label", "no-equals"), 1)):
            self.export(*words, code=code)

    def test_a_file_is_not_overwritten_and_one_that_was_cut_is_completed(self) -> None:
        for form in ("jsonl", "csv"):
            whole = run_muniment(self.daemon, "export", "--format", form, "--until", "2100-01-01T00:00:00Z").stdout
            path = self.folder / f"events.{form}"
            path.write_text(whole[: len(whole) // 2])
            run_muniment(self.daemon, "export", "--format", form, "--output", path, code=1)
            run_muniment(self.daemon, "export", "--format", form, "--output", path, "--resume")
            self.assertTrue(path.read_text().startswith(whole))
            run_muniment(self.daemon, "export", "--format", form, "--output", path, "--resume")
            self.assertEqual(path.read_text().count('"seq":0,' if form == "jsonl" else "seq,log_id"), 1)
        other = self.folder / "other"
        other.write_text("something else\n")
        run_muniment(self.daemon, "export", "--format", "csv", "--output", other, "--resume", code=1)
        self.assertEqual(other.read_text(), "something else\n")

    def assert_not_gone_on_with(self, path: pathlib.Path, *words: Any) -> str:
        before = path.read_bytes()
        with self.subTest(words=words):
            said: str = run_muniment(self.daemon, "export", *words, "--output", path, "--resume", code=1).stderr
            self.assertIn("invalid_argument: ", said)
            self.assertIn("belongs to a different export", said)
            self.assertEqual(path.read_bytes(), before)
        return said

    def test_a_file_of_another_export_is_not_gone_on_with(self) -> None:
        other = self.new_run("other")
        self.note(other, n=1)
        self.note(n=2)
        path = self.folder / "one.jsonl"
        run_muniment(self.daemon, "export", self.run_id, "--format", "jsonl", "--output", path)
        self.note(n=3)
        path.write_text(path.read_text() + '{"seq":')   # a truncated last line
        self.assertIn("heading of CSV", self.assert_not_gone_on_with(path, self.run_id, "--format", "csv"))
        self.assertIn("different ones", self.assert_not_gone_on_with(path, other, "--format", "jsonl"))   # the same number of events
        for words in ((), (self.run_id, other), (self.run_id, "--type", "run.*"), (self.run_id, "--from-seq", self.events()[1]["seq"])):
            self.assert_not_gone_on_with(path, *words, "--format", "jsonl")
        run_muniment(self.daemon, "export", self.run_id, "--format", "jsonl", "--output", path, "--resume")
        self.assertEqual(path.read_text().splitlines(), self.export(self.run_id))
        table = self.folder / "one.csv"
        run_muniment(self.daemon, "export", self.run_id, "--format", "csv", "--output", table)
        self.assertIn("an event as JSON", self.assert_not_gone_on_with(table, self.run_id, "--format", "jsonl"))
        self.assert_not_gone_on_with(table, other, "--format", "csv")
        for name, text in (("short", "something"), ("object", '{"id":1}\n'), ("list", "[]\n")):
            odd = self.folder / name
            odd.write_text(text)
            for form in ("jsonl", "csv"):
                self.assert_not_gone_on_with(odd, self.run_id, "--format", form)

    def test_manifests_of_what_was_written_before_are_not_forgotten(self) -> None:
        manifest = self.call("manifest.put", run_id=self.run_id, manifest={"entries": []})["manifest_id"]
        path, beside = self.folder / "events.jsonl", self.folder / "beside"
        words = ("export", self.run_id, "--format", "jsonl", "--output", path, "--artifacts", beside)
        run_muniment(self.daemon, *words)
        (beside / f"{manifest}.json").unlink()   # simulates an interruption before the manifests were written
        run_muniment(self.daemon, *words, "--resume")
        self.assertTrue((beside / f"{manifest}.json").exists())

    def test_a_full_disk_is_said_and_the_export_can_go_on(self) -> None:
        with open("/dev/full", "w") as full:
            done = run_muniment(self.daemon, "export", "--format", "jsonl", code=1, stdout=full)
        self.assertIn("No space left on device", done.stderr)
        self.assertIn("--from-seq 0", done.stderr)

        def limited() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

        path = self.folder / "events.jsonl"
        done = run_muniment(self.daemon, "export", "--format", "jsonl", "--output", path, code=4, preexec_fn=limited)
        self.assertIn("continue with --resume", done.stderr)
        run_muniment(self.daemon, "export", "--format", "jsonl", "--output", path, "--resume")
        seqs = [json.loads(line)["seq"] for line in path.read_text().splitlines()]
        self.assertEqual(seqs, list(range(len(seqs))))

    def test_nothing_is_started_for_an_export(self) -> None:
        done = subprocess.run([BUILD / "muniment", "--data", self.folder / "none", "export", "--format", "jsonl"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertIn(f"muniment --data {self.folder}/none up", done.stderr)
        self.assertFalse((self.folder / "none").exists())


class RoundTrip(Exporting):
    """Imports every real trace, exports it with its artifacts, and imports it into another daemon."""

    shared = False

    def comparable(self, state: dict[str, Any]) -> Any:
        """Returns the state without log positions and the daemon's times; ids that the daemon assigns are numbered in order."""
        state = json.loads(json.dumps(state))
        del state["at"]
        for name in ("started_at", "last_event_at"):
            state["run"].pop(name)
        state["counts"].pop("snapshot.taken", None)
        numbers: dict[str, str] = {}
        return json.loads(UUID.sub(lambda match: numbers.setdefault(match[0], f"id-{len(numbers)}"), json.dumps(state, sort_keys=True)))

    def test_export_and_import_again_gives_equal_states(self) -> None:
        sources = {form: sorted(path for path in (TRACES / form).rglob("*") if path.is_file() and path.suffix in (".traj", ".json", ".jsonl"))
                   for form in ("swe-agent", "openhands", "tau-bench")}
        sources |= {"claude-code": [GOLDEN / "claude-code.jsonl"], "otlp": [GOLDEN / "otlp.jsonl"]}
        if not sources["swe-agent"]:
            self.skipTest(f"no traces at {TRACES}")
        for form, files in sources.items():
            run_muniment(self.daemon, "import", "--format", form, *files)
        self.followed()
        runs = [run["run_id"] for run in self.pages("run.list", "runs") if run["origin"] == "imported"]
        self.assertGreater(len(runs), 300)
        path, artifacts = self.folder / "all.jsonl", self.folder / "artifacts"
        run_muniment(self.daemon, "export", "--format", "jsonl", "--output", path, "--artifacts", artifacts)
        other = Daemon()
        self.addCleanup(other.destroy)
        other.start()
        with other.client() as client:   # a kill in between changes nothing
            process = subprocess.Popen([BUILD / "muniment", "--data", other.data, "import", "--format", "jsonl", "--artifacts", artifacts, path],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_until(lambda: process.poll() is not None or client.call("server.status")["log"]["size"] > 2_000, "some of it is imported")
            process.kill()
            process.wait()
            run_muniment(other, "import", "--format", "jsonl", "--artifacts", artifacts, path)
            for run_id in runs:
                here, there = self.client.rehydrate(run_id)["state"], client.rehydrate(run_id)["state"]
                self.assertEqual(self.comparable(there), self.comparable(here), run_id)
            size = client.call("server.status")["log"]["size"]
            again = run_muniment(other, "--json", "import", "--format", "jsonl", "--artifacts", artifacts, path)
            added = [json.loads(line)["added"] for line in again.stdout.splitlines()]
            self.assertEqual((set(added), len(added) >= len(runs)), ({False}, True))
            self.assertLessEqual(client.call("server.status")["log"]["size"] - size, len(runs))   # snapshots that were still pending
        for daemon in (self.daemon, other):
            verified = subprocess.run([BUILD / "muniment-verify", "--data", daemon.data, "--unsigned-ok"], capture_output=True, text=True, timeout=200)
            self.assertEqual(verified.returncode, 0, verified.stdout)


class When(Exporting):
    """In an imported run, occurred_at is the source's occurred_at, or else the time when the source recorded the event."""

    TYPES = ("run.started", "x.test.noted", "artifact.stored", "manifest.recorded", "command.started", "command.ended", "claim.recorded", "evidence.recorded",
             "evidence.linked", "claim.decided", "run.annotated", "run.ended")

    def recorded(self) -> str:
        run = self.new_run("source", goal="g")
        self.client.append(run, "x.test.noted", {"n": 1}, occurred_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 1)))
        self.note(run, n=2)
        artifact = self.call("artifact.put", run_id=run, text="twelve bytes")
        self.call("manifest.put", run_id=run, manifest={"entries": [{"artifact_id": artifact["artifact_id"], "why": "read"}]})
        command = self.call("command.start", run_id=run, argv=["make"], cwd="/src", env={})
        self.call("command.end", run_id=run, command_id=command["command_id"], exit_code=0)
        claim = self.call("claim.record", run_id=run, text="It is there.", pointers=[f"artifact://{run}/{artifact['artifact_id']}"])
        evidence = self.call("evidence.record", run_id=run, type="review", content={"text": "agreed"})
        self.call("evidence.link", claim_id=claim["claim_id"], evidence_id=evidence["evidence_id"], relation="supports")
        self.call("claim.decide", claim_id=claim["claim_id"], status="supported")
        self.call("run.annotate", run_id=run, note="a note")
        self.call("run.end", run_id=run, outcome="success")
        return run

    def times(self, run_id: str, of_source: bool) -> list[tuple[str, str]]:
        """Returns the types and times of events, except the bundle's artifact, which has no time."""
        found = [(event["type"], event.get("occurred_at") or (event["recorded_at"] if of_source else "none"))
                 for event in self.events(run_id, limit=1000) if event["type"] in self.TYPES]
        return sorted(pair for pair in found if pair != ("artifact.stored", "none"))

    def durations(self, run_id: str) -> tuple[str, str]:
        """Returns the durations of the run and of its command."""
        [[run, command]] = self.daemon.sql("SELECT extract(epoch FROM r.duration), c.duration_us FROM report.run_report r"
                                           f" JOIN report.command_report c USING (log_no, run_id) WHERE r.run_id = '{run_id}'")
        return run, command

    def test_every_event_of_an_imported_run_says_when(self) -> None:
        run = self.recorded()
        path, artifacts = self.folder / "run.jsonl", self.folder / "artifacts"
        run_muniment(self.daemon, "export", run, "--format", "jsonl", "--output", path, "--artifacts", artifacts)
        first = json.loads(run_muniment(self.daemon, "--json", "import", "--format", "jsonl", "--artifacts", artifacts, path).stdout.splitlines()[0])["run_id"]
        bundle = self.folder / "run.muniment.tar.zst"
        run_muniment(self.daemon, "audit", "export", run, "-o", bundle)
        second = json.loads(run_muniment(self.daemon, "--json", "audit", "import", bundle, "--unsigned-ok").stdout)["run_id"]
        self.followed()
        wanted = self.times(run, True)
        self.assertEqual({type for type, _ in wanted}, set(self.TYPES))
        said = [datetime.datetime.fromisoformat(at) for _, at in wanted]
        durations = (f"{(max(said) - min(said)).total_seconds():.6f}", self.durations(run)[1])
        for new in (first, second):
            with self.subTest(run=new):
                self.assertEqual(self.times(new, False), wanted)
                self.assertEqual(self.durations(new), durations)

    def test_another_run_takes_no_such_time(self) -> None:
        self.call("run.end", run_id=self.run_id, outcome="success", _meta={"occurred_at": "2020-01-02T03:04:05Z"})
        self.assertEqual([event.get("occurred_at") for event in self.events() if event["type"] == "run.ended"], [None])
        with self.refused("invalid_argument"):
            self.call("run.start", run_id=self.run_id + ".b", agent={"name": "test"}, _meta={"occurred_at": "yesterday"})


class Damaged(Exporting):
    def test_lines_that_are_no_events_are_named_and_a_run_with_gaps_says_so(self) -> None:
        run_muniment(self.daemon, "import", "--format", "tau-bench", GOLDEN / "tau-bench.json")
        self.followed()
        lines = [line for line in self.export("--label", "task_id=3")]
        path = self.folder / "damaged.jsonl"
        path.write_bytes(("\n".join(lines[:5]) + "\nnot json\n[]\n{}\n" + lines[6][:-20] + "\n").encode() + b'{"run_id":"\xff"}\n' +
                         "\n".join(lines[9:]).replace("not yours", "\\ud800").encode())
        done = run_muniment(self.daemon, "--json", "import", "--format", "jsonl", path, code=1)
        for number in (6, 7, 8, 9, 10):
            self.assertIn(f"line {number}: ", done.stderr)
        [run] = [json.loads(line) for line in done.stdout.splitlines() if "run_id" in line]
        self.assertNotEqual(run["run_id"], json.loads(lines[0])["run_id"])   # its own id is taken
        notes = [event["body"]["note"] for event in self.events(run["run_id"], limit=1000) if event["type"] == "run.annotated"]
        self.assertEqual(len(notes), 1)
        self.assertIn("partly imported: the export lacks 4 of its events", notes[0])


if __name__ == "__main__":
    main()
