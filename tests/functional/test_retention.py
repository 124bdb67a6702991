"""Tests of muniment retention, audit redact --subject and muniment disk."""
from __future__ import annotations

import datetime
import json
import subprocess
from typing import Any

from support import BUILD, DaemonCase, main

RULES = '''
[retention.ci]
days = 30
label = "env=ci"
reason = "builds are kept for 30 days"

[retention.thread]
days = 1
thread = "order-7"

[retention.old]
days = 3650
'''


def in_days(days: int) -> str:
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")


class RetentionCase(DaemonCase):
    def muniment(self, *words: Any, code: int = 0, config: Any = None) -> subprocess.CompletedProcess[str]:
        place = ["--config", config] if config else ["--config", self.daemon.folder / "muniment.toml"]
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, *place, *map(str, words)], capture_output=True, text=True, timeout=120,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def rows(self, *words: Any, code: int = 0) -> dict[str, dict[str, Any]]:
        done = self.muniment("--json", *words, code=code)
        return {row["run_id"]: row for row in map(json.loads, done.stdout.splitlines()) if "run_id" in row}

    def ended_run(self, name: str, **more: Any) -> str:
        run_id = self.call("run.start", run_id=f"{name}-{self.id()[-12:]}", agent={"name": "a"}, **more)["run_id"]
        self.client.put(run_id, b"a secret " * 10_000, mime_type="text/plain")
        self.client.append(run_id, "message.added", {"message_id": "m", "role": "user", "content": [{"type": "text", "content": "private"}]})
        self.call("run.end", run_id=run_id, outcome="success")
        return run_id

    def bodies(self, run_id: str) -> list[Any]:
        return [event.get("body") for event in self.call("event.list", run_id=run_id)["events"] if event["type"] == "message.added"]


class Retention(RetentionCase):
    config = RULES

    def test_a_run_whose_file_is_a_document_stays(self) -> None:
        used = self.call("run.start", run_id="used", agent={"name": "a"}, external_id="order-7")["run_id"]
        file = self.client.put(used, b"The crane is repaired in March. " * 1_000, mime_type="text/plain")
        self.call("corpus.ingest", corpus="notes", documents=[{"id": "plan.txt", "artifact_id": file["artifact_id"]}], wait=True)
        self.call("run.end", run_id=used, outcome="success")
        self.followed()
        self.assertIn("1 revision", self.rows("retention", "preview", "--at", in_days(31))[used]["stays"])

    def test_a_rule_erases_what_it_previews_and_a_hold_wins(self) -> None:
        build = self.ended_run("build", labels={"env": "ci"})
        held = self.ended_run("held", labels={"env": "ci"})
        other = self.ended_run("other", labels={"env": "prod"})
        thread = self.ended_run("thread", external_id="order-7")
        still_open = self.new_run("open", labels={"env": "ci"})
        self.call("run.annotate", run_id=held, legal_hold=True)
        self.followed()
        self.assertEqual(self.rows("retention", "preview"), {}, "nothing is old enough")
        planned = self.rows("retention", "preview", "--at", in_days(31))
        self.assertEqual({run: row["rule"] for run, row in planned.items()}, {build: "ci", held: "ci", thread: "thread"})
        self.assertIn("legal hold", planned[held]["stays"])
        self.assertGreater(planned[build]["events"], 2)
        self.assertEqual((planned[build]["artifact_files"], planned[build]["artifact_bytes"], planned[build]["erased"]), (1, 90_000, False))
        self.assertIn("2 runs with", self.muniment("retention", "preview", "--at", in_days(31)).stdout)
        self.assertEqual(self.bodies(build)[0]["role"], "user", "a preview changes nothing")
        # A rule of the future is applied today by a shorter age: the same rules with other days.
        short = self.daemon.folder / "short.toml"
        short.write_text((self.daemon.folder / "muniment.toml").read_text().replace("days = 30\n", "days = 1\n"))
        self.assertEqual(self.rows("retention", "apply"), {}, "nothing is old enough")
        self.assertEqual(self.bodies(build)[0]["role"], "user")
        del other, still_open

    def test_old_imports_are_erased_with_their_proofs_intact(self) -> None:
        lines = [{"role": "user", "content": "private", "time": "2020-01-01T00:00:00Z"}, {"role": "assistant", "content": "well", "time": "2020-01-01T00:00:01Z"}]
        path = self.daemon.folder / "old.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        held_path = self.daemon.folder / "kept.jsonl"
        held_path.write_text("".join(json.dumps({**line, "content": line["content"] + "!"}) + "\n" for line in lines))
        run, held = ([json.loads(line)["run_id"] for line in self.muniment("--json", "import", "--format", "messages", file).stdout.splitlines()][0] for file in (path, held_path))
        for one in (run, held):
            self.call("run.annotate", run_id=one, labels={"env": "ci"})
        self.call("run.annotate", run_id=held, legal_hold=True)
        self.followed()
        self.assertEqual(set(self.rows("retention", "preview")), {run, held})
        erased = self.rows("retention", "apply")
        self.assertTrue(erased[run]["erased"])
        self.assertFalse(erased[held]["erased"])
        self.assertIn("legal hold", erased[held]["stays"])
        self.assertEqual(self.bodies(run), [None])
        self.assertEqual(self.bodies(held)[0]["role"], "user")
        [redacted] = [event for event in self.call("event.list", run_id=run, types=["event.redacted"], limit=1)["events"]]
        self.assertEqual(redacted["body"]["reason"], "builds are kept for 30 days")
        self.assertEqual(set(self.rows("retention", "apply")), {held}, "an erased run is not erased again")
        verified = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data], capture_output=True, text=True, timeout=120)
        self.assertIn(verified.returncode, (0, 2), verified.stdout + verified.stderr)

    def test_wrong_rules_are_named(self) -> None:
        config = self.daemon.folder / "wrong.toml"
        for text, problem in (("[retention.a]\nlabel = \"k=v\"\n", 'retention."a": days is missing or not 1 to 36500'), ("[retention.a]\ndays = 0\n", "days is missing"),
                              ("[retention.a]\ndays = 1\nlabel = \"k\"\n", 'label: give "k=v"'), ("[retention.a]\ndays = 1\nuser = \"x\"\n", 'unknown key "user"')):
            with self.subTest(problem=problem):
                config.write_text(text)
                self.assertIn(problem, self.muniment("config", "check", config=config, code=1).stdout)
        config.write_text("workers = 2\n")
        self.assertIn("the configuration has no rules. Write [retention.NAME]", self.muniment("retention", "preview", config=config, code=1).stderr)


class Subject(RetentionCase):
    config = "workers = 2\n"

    def test_all_runs_of_a_subject_are_erased_but_held_ones(self) -> None:
        runs = [self.ended_run(f"kim{number}", labels={"subject": "kim"}) for number in range(2)]
        held = self.ended_run("kimheld", labels={"subject": "kim"})
        other = self.ended_run("ana", labels={"subject": "ana"})
        self.call("run.annotate", run_id=held, legal_hold=True)
        self.followed()
        words = ("audit", "redact", "--subject", "kim", "--reason", "GDPR 17")
        self.assertEqual(set(self.rows(*words, "--dry-run", code=1)), {*runs, held})
        self.assertEqual(len([body for body in self.bodies(runs[0]) if body]), 1)
        self.rows(*words, code=1)
        self.assertEqual([self.bodies(run) for run in runs], [[None], [None]])
        self.assertEqual([bool(self.bodies(run)[0]) for run in (held, other)], [True, True])
        self.assertIn("no run has the label subject=nobody", self.muniment("audit", "redact", "--subject", "nobody", "--reason", "r", code=1).stderr)
        self.assertIn("--answers is for one object", self.muniment("audit", "redact", "--subject", "kim", "--answers", "--reason", "r", code=1).stderr)
        self.assertIn("--subject names all its runs", self.muniment("audit", "redact", "4", "--subject", "kim", "--reason", "r", code=1).stderr)


class Disk(RetentionCase):
    config = "workers = 2\n"

    def test_it_says_what_uses_space(self) -> None:
        self.client.put(self.run_id, b"x" * 5_000_000, mime_type="text/plain")
        rows = {row["name"]: row for row in map(json.loads, self.muniment("--json", "disk").stdout.splitlines())}
        self.assertLessEqual({"postgres", "postgres/pg_wal", "database: events", "database: other tables", "artifacts/runs", "tiles"}, set(rows))
        self.assertGreaterEqual(rows["artifacts/runs"]["bytes"], 5_000_000)
        self.assertGreater(rows["postgres"]["bytes"], rows["postgres/pg_wal"]["bytes"] + rows["database: events"]["bytes"])
        self.assertIn("artifacts/runs", self.muniment("disk").stdout)


if __name__ == "__main__":
    main()
