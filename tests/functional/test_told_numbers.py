"""Tests of reported numbers: events of an import, numbers after an erasure, sources of a state, and repeated requests."""
from __future__ import annotations

import datetime
import json
import os
import subprocess
import time
from typing import Any

from bundling import muniment
from support import ROOT, DaemonCase, main, wait_until
from test_exec import FINISH_S, ExecCase

GOLDEN = ROOT / "tests" / "golden" / "imports"


class Told(DaemonCase):
    def told(self, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = muniment(self.daemon, *words, json_output=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def told_json(self, *words: object) -> list[dict[str, Any]]:
        done = muniment(self.daemon, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]


class Imports(Told):
    shared = True

    def counts(self, run_id: str) -> tuple[int, int]:
        """Returns the number of events, without the daemon's snapshots after the run's end, and the number of artifacts."""
        events = [event["type"] for event in self.events(run_id, limit=1000)]
        return len([one for one in events if one != "snapshot.taken"]), events.count("artifact.stored")

    def test_an_import_tells_what_is_in_the_log(self) -> None:
        children = 0
        for name in ("openhands.json", "tau-bench.json", "claude-code.jsonl", "otlp.jsonl"):
            with self.subTest(name=name):
                forecast = {run["run_id"]: sum(run["events"].values()) for run in self.told_json("import", "--dry-run", GOLDEN / name)}
                told = self.told_json("import", GOLDEN / name)
                self.assertEqual({run["run_id"]: run["events"] for run in told}, forecast)
                for run in told:
                    self.assertEqual((run["events"], run["artifacts"]), self.counts(run["run_id"]), run)
                    children += "parent" in run
                    if "parent" in run:
                        self.assertEqual(self.call("run.get", run_id=run["run_id"])["run"]["parent"], run["parent"])
        self.assertGreater(children, 0)

    def test_a_child_run_is_named_behind_its_parent(self) -> None:
        path = self.daemon.folder / "session.jsonl"
        path.write_bytes((GOLDEN / "claude-code.jsonl").read_bytes())
        parent, child = self.told("import", path).stdout.splitlines()
        self.assertRegex(parent, r"^session-\w+  \d+ events  1 artifacts?$")
        self.assertRegex(child, r"^└ session\.[\w-]+  \d+ events  0 artifacts$")
        self.assertEqual(self.told("import", path).stdout.splitlines(), [parent.split()[0] + "  is already imported"])

    def test_an_export_that_comes_in_again(self) -> None:
        source = self.daemon.folder / "source.json"
        source.write_bytes((GOLDEN / "openhands.json").read_bytes())
        run = self.told_json("import", source)[1]
        self.assertEqual(run["artifacts"], 1)
        path = self.daemon.folder / "export.jsonl"
        self.told("export", run["run_id"], "--format", "jsonl", "--output", path)
        renamed = self.daemon.folder / "renamed.jsonl"
        renamed.write_text(path.read_text().replace(run["run_id"], run["run_id"][:20] + "-again"))
        [again] = self.told_json("import", renamed)
        self.assertEqual((again["events"], again["artifacts"]), self.counts(again["run_id"]))
        self.assertIn("counted  in the file", self.told("import", "--dry-run", renamed).stdout)

    def test_an_end_that_was_archived_was_not_erased(self) -> None:
        run_id = self.new_run("archived")
        self.call("run.end", run_id=run_id, outcome="success")
        path, said = self.daemon.folder / "archived.jsonl", {"archived": "is in an archive that was not exported", "erased": "was erased"}
        self.told("export", run_id, "--format", "jsonl", "--output", path)
        for name, words in said.items():
            with self.subTest(name=name):
                changed = self.daemon.folder / f"{name}.jsonl"
                lines = [json.loads(line) for line in path.read_text().splitlines()]
                for line in lines:
                    line["run_id"] = f"{run_id[:20]}-{name}"
                    if line["type"] == "run.ended":
                        line.update(body=None, **({"salt": None} if name == "erased" else {}))
                changed.write_text("".join(json.dumps(line) + "\n" for line in lines))
                # The archived body is missing: exit status 1.
                told = json.loads(muniment(self.daemon, "import", changed).stdout.splitlines()[0])
                [ended] = [event for event in self.events(told["run_id"], limit=1000) if event["type"] == "run.ended"]
                self.assertEqual(ended["body"].get("summary"), f"how the run ended {words}")

    def test_long_texts_are_named_beforehand(self) -> None:
        path = self.daemon.folder / "long.jsonl"
        lines = [{"type": "user", "uuid": f"u{n}", "timestamp": f"2026-11-22T10:00:0{n}Z", "sessionId": "s", "message": {"role": "user", "content": "word " * length}}
                 for n, length in enumerate((1, 30_000))]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        [shown] = self.told_json("import", "--dry-run", "--format", "claude-code", path)
        self.assertEqual(shown["long"], 1)
        [told] = self.told_json("import", "--format", "claude-code", path)
        self.assertEqual((told["events"], told["artifacts"]), self.counts(told["run_id"]))
        self.assertEqual(told["events"], sum(shown["events"].values()) + told["artifacts"])
        self.assertGreater(told["artifacts"], 0)


class Commands(ExecCase):
    shared = False

    def test_a_folder_of_the_path_that_cannot_be_read_hides_no_command(self) -> None:
        closed, held = self.folder / "closed", self.folder / "held"
        held.mkdir()
        (held / "no-program").write_text("no program\n")
        closed.write_text("a file is no folder: what is below it cannot be looked for\n")
        nobody = self.folder / "nobody"
        nobody.mkdir()
        (nobody / "plain").mkdir()   # a folder is not a command
        for path, name, code, said in ((closed, "nosuchprogram", 127, "command not found"), (nobody, "plain", 127, "command not found"),
                                       (held, "no-program", 126, "Permission denied")):
            with self.subTest(name=name):
                run_id = self.new_run(f"{name}-{path.name}")
                done = self.exec(name, run=run_id, PATH=f"{path}:{os.environ['PATH']}")
                self.assertEqual((done.returncode, done.stderr.decode()), (code, f"muniment: {name}: {said}\n"))
                self.assertEqual(self.recorded(run_id)[1]["exit_code"], code)
                self.assertNotIn("duration_us", self.recorded(run_id)[1])

    def test_what_it_took_is_its_own_time_and_not_that_of_the_recording(self) -> None:
        self.origin_of_end = "reported"   # the new daemon did not see the command
        # Without --no-autostart, exec would start a daemon to record the end, a second after the first attempt.
        process = self.spawn("sh", "-c", "echo ready; while [ ! -e go ]; do sleep 0.02; done; touch over; exit 6", options=("--no-autostart",))
        self.said(process, b"ready\n")
        self.daemon.kill()
        (self.folder / "go").touch()
        wait_until(lambda: (self.folder / "over").exists(), "the command is over")
        time.sleep(1.0)   # an outage of this length, during which the end cannot be recorded
        self.restart()
        self.assertEqual(process.wait(FINISH_S), 6, process.stderr.read())
        self.client.close()   # reconnects, because the daemon was restarted
        _, ended = self.recorded()
        start, end = (datetime.datetime.fromisoformat(event["recorded_at"].replace("Z", "+00:00")) for event in self.events(types=["command.*"]))
        between = int((end - start).total_seconds() * 1e6)
        self.assertLess(ended["duration_us"], between - 1_000_000)
        self.followed()
        rows = self.daemon.sql("SELECT duration_us, (extract(epoch FROM ended_at - started_at) * 1000000)::bigint FROM report.command_report "
                               f"WHERE run_id = '{self.run_id}'")
        self.assertEqual(rows, [[str(ended["duration_us"])] * 2])


class Erased(Told):
    shared = True

    def redact(self, **params: Any) -> None:
        self.call("audit.redact", reason="asked", **params)

    def test_the_end_of_the_step_without_a_name(self) -> None:
        self.client.append(self.run_id, "step.started", {"kind": "task", "name": "all"})
        ended = self.client.append(self.run_id, "step.ended", {"status": "ok"})
        self.redact(seq=ended["seq"])
        self.followed()
        self.assertEqual(self.daemon.sql(f"SELECT step_id, status FROM report.step_report WHERE run_id = '{self.run_id}'"), [["main", "unknown"]])

    def test_artifacts_that_were_erased_are_counted_nowhere(self) -> None:
        put = [self.call("artifact.put", run_id=self.run_id, text=f"file {n} " * (n + 1)) for n in range(4)]
        for one in put[1:]:
            self.redact(artifact_id=one["artifact_id"])
        self.followed()
        left = put[0]["size_bytes"]
        self.assertEqual(self.daemon.sql(f"SELECT artifacts, artifact_bytes FROM report.run_report WHERE run_id = '{self.run_id}'"), [["1", str(left)]])
        there = self.daemon.sql("SELECT count(*), sum(size_bytes) FROM artifact WHERE hash <> repeat('0', 64)")
        self.assertEqual(self.daemon.sql("SELECT row_count, size_bytes FROM report.storage_report WHERE what = 'artifacts'"), there)
        self.assertIn(f" · 1 artifacts ({left} B)", self.told("run", "show", self.run_id).stdout)
        wait_until(lambda: self.value("muniment_artifacts") == int(there[0][0]), "the totals, which are asked for now and then, have it")
        self.assertEqual(self.value("muniment_artifact_bytes"), int(there[0][1]))
        rows = self.told("artifact", "list", "--run", self.run_id).stdout.splitlines()
        self.assertEqual(sorted(row.split()[-1] for row in rows if row.split()[-1] != "hash"), sorted([put[0]["hash"][:16]] + ["erased"] * 3))
        self.assertEqual([row for row in rows if "000000" in row], [])

    def test_what_an_erasure_leaves_in_the_numbers(self) -> None:
        """As documented in docs/sql.md: events are counted by type, calls by their remaining events."""
        def call(n: int) -> list[int]:
            began = self.client.append(self.run_id, "tool.called", {"call_id": f"c{n}", "name": "make", "kind": "function"})
            return [began["seq"], self.client.append(self.run_id, "tool.returned", {"call_id": f"c{n}", "status": "error", "content": []})["seq"]]

        message = self.client.append(self.run_id, "message.added", {"message_id": "m", "role": "user", "content": [{"type": "text", "content": "x"}]})
        whole, half = call(1), call(2)
        numbers = f"SELECT messages, tool_calls, tool_errors FROM report.run_report WHERE run_id = '{self.run_id}'"
        self.followed()
        self.assertEqual(self.daemon.sql(numbers), [["1", "2", "2"]])
        for seq in (message["seq"], *whole, half[1]):
            self.redact(seq=seq)
        self.followed()
        self.assertEqual(self.daemon.sql(numbers), [["1", "1", "0"]])
        self.assertEqual(self.daemon.sql(f"SELECT call_id, status FROM report.tool_call WHERE run_id = '{self.run_id}'"), [["c2", "unknown"]])
        self.assertIn(" · 2 tool calls", self.told("run", "show", self.run_id).stdout)

    def value(self, name: str) -> float:
        for line in self.told("metrics").stdout.splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise AssertionError(name)

    def test_a_snapshot_that_was_erased_is_said_to_be(self) -> None:
        told = self.note(secret="x")
        self.call("snapshot.take", run_id=self.run_id)
        self.redact(seq=told["seq"])
        [row] = [line for line in self.told("snapshot", "list", self.run_id).stdout.splitlines() if "erased" in line]
        self.assertNotIn("000000", row)

    def test_an_end_that_was_erased_is_unknown_and_not_still_to_come(self) -> None:
        begun = {"tool.called": {"call_id": "t1", "name": "make", "kind": "function"}, "model.called": {"call_id": "m1", "operation": "chat", "provider": "p", "model": "m", "parameters": {}}}
        ends = {"tool.returned": {"call_id": "t1", "status": "ok", "content": []}, "model.answered": {"call_id": "m1", "status": "ok", "model": "m", "finish_reasons": [], "content": []}}
        for kind, body in begun.items():
            self.client.append(self.run_id, kind, body)
        command = self.call("command.start", run_id=self.run_id, argv=["true"], cwd="/", env={})["command_id"]
        seqs = [self.client.append(self.run_id, kind, body)["seq"] for kind, body in ends.items()]
        seqs.append(self.call("command.end", run_id=self.run_id, command_id=command, exit_code=0)["seq"])
        later = self.call("command.start", run_id=self.run_id, argv=["false"], cwd="/", env={})["command_id"]
        self.assertEqual(self.statuses(), {"tool_call": ["ok"], "model_call": ["ok"], "command_report": ["ok", "pending"]})
        self.assertIn("pending  1 call without a result\n", self.told("run", "show", self.run_id).stdout)
        for seq in seqs:
            self.redact(seq=seq)
        # A command that began after the erased end is still pending.
        self.assertEqual(self.statuses(), {"tool_call": ["unknown"], "model_call": ["unknown"], "command_report": ["unknown", "pending"]})
        self.assertIn("pending  4 calls without a recorded result; results of this run were erased\n", self.told("run", "show", self.run_id).stdout)
        self.call("command.end", run_id=self.run_id, command_id=later, exit_code=1)
        self.assertEqual(self.statuses()["command_report"], ["unknown", "error"])
        self.assertEqual(self.daemon.sql(f"SELECT count(*) FROM report.error_report WHERE run_id = '{self.run_id}' AND status = 'unknown'"), [["0"]])

    def statuses(self) -> dict[str, list[str]]:
        self.followed()
        order = {"tool_call": "called_seq", "model_call": "called_seq", "command_report": "started_seq"}
        return {view: [row[0] for row in self.daemon.sql(f"SELECT status FROM report.{view} WHERE run_id = '{self.run_id}' ORDER BY {by}")] for view, by in order.items()}


class Twice(Told):
    shared = True

    def test_a_document_that_was_retracted_and_a_source_that_was_revoked(self) -> None:
        note = self.daemon.folder / "food.md"
        note.write_text("# Food\n\nApples are round.\n")
        self.call("corpus.ingest", corpus="memory", documents=[{"id": "food", "text": note.read_text(), "source": "https://food.example/"},
                                                               {"id": "drink", "text": "Water is wet.", "source": "https://drink.example/"}])
        retract, revoke = ("document", "retract", "memory", "food", "--reason", "x"), ("source", "revoke", "https://drink.example/", "--reason", "x")
        for words in (retract, revoke):
            self.told(*words)
        [seq] = [event["seq"] for event in self.call("event.list", run_id="_log", types=["document.retracted"])["events"]]
        self.assertIn(f"the document food of the corpus memory is retracted already, by event {seq}", self.told(*retract, code=1).stderr)
        self.assertIn("the document drink of the corpus memory is revoked already", self.told("document", "retract", "memory", "drink", "--reason", "x", code=1).stderr)
        [seq] = [event["seq"] for event in self.call("event.list", run_id="_log", types=["source.revoked"])["events"]]
        self.assertIn(f"the source https://drink.example/ is revoked already, by event {seq}", self.told(*revoke, code=1).stderr)
        with self.refused("not_found"):
            self.call("document.retract", corpus="memory", document="food", reason="x")
        with self.refused("not_found"):
            self.call("source.revoke", source="https://drink.example/", reason="x")
        self.assertIn("no document tea in the corpus memory", self.told("document", "retract", "memory", "tea", "--reason", "x", code=1).stderr)
        self.assertIn("no document comes from the source", self.told("source", "revoke", "https://tea.example/", "--reason", "x", code=1).stderr)
        # A document that was ingested again can be retracted again.
        self.call("corpus.ingest", corpus="memory", documents=[{"id": "food", "text": "Pears are not.", "source": "https://food.example/"}])
        self.told(*retract)

    def test_a_file_that_was_put_back_before_is_not_put_back(self) -> None:
        stored = self.call("artifact.put", run_id=self.run_id, text="to be lost")
        pointer = f"artifact://{self.run_id}/{stored['artifact_id']}"
        path, good = self.daemon.data / "artifacts" / stored["path"], self.daemon.folder / "good"
        good.write_text("to be lost")
        path.unlink()
        self.assertIn(f"repaired  {pointer}\n", self.told("recover", self.run_id, "--file", f"{pointer}={good}").stdout)
        self.assertEqual(path.read_text(), "to be lost")
        again = self.told("recover", self.run_id, "--file", f"{pointer}={good}").stdout
        self.assertIn(f"{pointer}  is already intact; nothing was replaced\n", again)
        self.assertNotIn("repaired", again)
        answer = self.call("run.recover", run_id=self.run_id, repair={"pointer": pointer, "file": str(good)})
        self.assertEqual((answer["as_recorded"], "repaired" in answer), (pointer, False))

    def test_a_run_that_is_started_again_says_what_became_of_the_words(self) -> None:
        start = ("run", "start", "--id", self.run_id + ".twice", "--agent")
        self.assertEqual(self.told(*start, "first", "--goal", "this").stderr, "")
        again = self.told(*start, "other", "--goal", "else")
        self.assertEqual(again.stdout, f"{self.run_id}.twice\n")
        self.assertIn("already exists and continues unchanged", again.stderr)

    def test_an_end_that_nobody_judged_is_unknown(self) -> None:
        self.assertEqual(self.told("run", "end", self.run_id).stdout, f"{self.run_id} ended: unknown\n")
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["outcome"], "unknown")


class States(Told):
    shared = True

    def test_the_start_is_one_of_the_events(self) -> None:
        self.assertRegex(self.told("rehydrate", self.run_id).stderr, r"from the run's first 1 event\n")
        self.note(n=1)
        self.assertRegex(self.told("rehydrate", self.run_id).stderr, r"from the run's first 2 events\n")
        taken = self.call("snapshot.take", run_id=self.run_id)
        self.note(n=2)
        self.assertRegex(self.told("rehydrate", self.run_id).stderr, rf"from the snapshot at {taken['seq']} and \d events? after it\n")

    def test_a_time_is_told_as_a_time(self) -> None:
        self.assertIn("had no events yet at 2020-01-01T00:00:00Z", self.told("rehydrate", self.run_id, "--asof", "2020-01-01T00:00:00Z", code=1).stderr)
        self.assertIn("had no events yet at seq 0", self.told("rehydrate", self.run_id, "--asof", "0", code=1).stderr)

    def test_filters_that_leave_nothing_tell_no_limit(self) -> None:
        self.call("corpus.ingest", corpus="many", documents=[{"id": f"d{n}", "text": f"Bees dance {n} times.", "tags": ["insects"]} for n in range(120)], wait=True)
        asked = self.told("query", "type:pdf bees", "--corpus", "many")
        self.assertIn("no match passes the filters", asked.stdout + asked.stderr)
        self.assertNotIn("100", asked.stdout + asked.stderr)
        [result] = self.call("evidence.retrieve", queries=[{"query": "in:many type:pdf bees"}])["results"]
        self.assertEqual((result["reason"], "count" in result), ("filtered_out", False))


if __name__ == "__main__":
    main()
