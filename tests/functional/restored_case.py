"""A restored log that is continued in a new one, with the data of two users, and the expected result of every method
of schema/rpc on it."""
from __future__ import annotations

import json
import os
import subprocess
import unittest
from typing import Any, Callable

import test_existence
from support import BUILD, Raw, wait_until
from test_existence import METHODS, OWNER, STRANGER, Json, Things, record_of

# Answered as before the backup, from the closed log; the reply names the log.
READ, READ_IN_PARTS = "read", "read, and every part says of which log it is"
# `conflict`: the run belongs to a closed log, which accepts no more events.
CLOSED = "closed"
# Concerns the current log only, or no log.
PRESENT = "present"
# Documents, which the daemon carries over: answered as before, from the current log.
CARRIED = "carried"
EXPECTED: dict[str, str] = {
    **{method: READ for method in (
        "artifact.get", "artifact.list", "artifact.stat", "audit.prove", "bundle.read", "claim.list", "event.get", "event.list", "evidence.attest", "evidence.check",
        "evidence.export", "evidence.get", "evidence.list", "evidence.verify", "manifest.get", "run.costs", "run.get", "run.judge", "run.rehydrate", "snapshot.latest", "snapshot.list", "task.list")},
    **{method: READ_IN_PARTS for method in ("pointer.render", "pointer.resolve", "pointer.validate", "run.list")},
    **{method: CLOSED for method in (
        "artifact.put", "audit.redact", "claim.decide", "claim.record", "command.end", "command.start", "event.append", "event.subscribe", "evidence.import",
        "evidence.link",
        "evidence.record", "manifest.put", "run.annotate", "run.end", "run.recover", "run.start", "snapshot.take",
        "task.complete", "task.open", "task.validate")},
    **{method: PRESENT for method in (
        "audit.archive", "audit.checkpoint", "audit.key", "audit.verified", "bundle.close", "bundle.nodes", "cloud.answer", "command.executor", "event.unsubscribe", "server.health",
        "server.metrics", "server.rebuild", "server.status",
        "corpus.ingest", "document.retract", "feedback.record", "source.revoke")},
    **{method: CARRIED for method in ("ask", "context.build", "corpus.list", "document.diff", "document.get", "document.history", "document.list", "evidence.retrieve")},
}
# Requests that replace or extend those of METHODS: reads that a closed log must answer.
ASK: dict[str, Callable[[Things], list[Json]]] = {
    "ask": lambda t: [{"id": test_existence.QUESTION, "query": "harbour", "corpus": t.corpus}],
    "context.build": lambda t: [{"query": "harbour", "corpus": t.corpus}, {"query": "harbour", "filters": {"sources": [t.source]}}],
    "corpus.list": lambda t: [{}],
    "document.get": lambda t: [{"corpus": t.corpus, "document": t.document}, {"corpus": t.corpus, "document": t.document, "revision": t.revision}],
    "evidence.retrieve": lambda t: [{"queries": [{"query": f"in:{t.corpus} harbour"}]}, {"queries": [{"query": "harbour", "corpus": t.corpus}], "mode": "lexical"},
                                    {"queries": [{"query": "harbour"}], "filters": {"sources": [t.source]}}],
    "audit.prove": lambda t: [{"run_id": t.run}, {"run_id": t.run, "event_id": t.event}, {"seq": t.seq, "log_no": 1}],
    "event.get": lambda t: [{"run_id": t.run, "run_seq": 1}, {"seq": t.seq, "log_no": 1}],
    "evidence.check": lambda t: [{"evidence_id": t.evidence}, {"evidence_id": t.evidence, "run_id": t.run}],
    "evidence.export": lambda t: [{"evidence_id": t.evidence}, {"evidence_id": t.evidence, "run_id": t.run}],
    "evidence.get": lambda t: [{"evidence_id": t.evidence}, {"evidence_id": t.evidence, "run_id": t.run}],
    "evidence.verify": lambda t: [{"evidence_id": t.evidence}, {"evidence_id": t.evidence, "run_id": t.run}],
    "run.list": lambda t: [{"external_id": t.external}, {}],
    "task.list": lambda t: [{"run_id": t.run}, {"run_id": t.run, "task_id": t.task}],
    "run.rehydrate": lambda t: [{"run_id": t.run}, {"run_id": t.run, "asof": t.seq}, {"run_id": t.run, "messages": {}}, {"run_id": t.ended}, {"run_id": t.halted}],
}
WRITE: dict[str, Callable[[Things, Things], list[Json]]] = {
    "audit.redact": lambda t, own: [{"run_id": t.run, "reason": "x", "dry_run": True}, {"artifact_id": t.artifact, "reason": "x"}],
    "claim.decide": lambda t, own: [{"claim_id": t.claim, "status": "supported"}],
    "claim.record": lambda t, own: [{"run_id": t.run, "text": "x", "pointers": []}],
    "command.end": lambda t, own: [{"run_id": t.run, "command_id": t.command, "exit_code": 0}],
    "event.append": lambda t, own: [{"run_id": t.run, "type": "x.test.noted", "body": {}}, {"run_id": t.run, "type": "x.test.noted", "body": {}, "event_id": t.event}],
    "evidence.import": lambda t, own: [{"run_id": t.run, "record": record_of(t.evidence)}],
    "evidence.link": lambda t, own: [{"claim_id": t.claim, "evidence_id": t.evidence, "relation": "supports"}],
    "evidence.record": lambda t, own: [{"run_id": t.run, "type": "quote", "content": {"text": "x"}}],
    "manifest.put": lambda t, own: [{"run_id": t.run, "manifest": {}}],
    "run.recover": lambda t, own: [{"run_id": t.run}],
    "task.complete": lambda t, own: [{"run_id": t.run, "task_id": t.task, "evidence_ids": [t.evidence]}],
    "task.open": lambda t, own: [{"run_id": t.run, "content": "x"}],
    "task.validate": lambda t, own: [{"run_id": t.run, "task_id": t.task, "evidence_ids": [t.evidence]}],
    "run.start": lambda t, own: [{"run_id": t.run, "agent": {"name": "a"}}, {"run_id": t.ended, "agent": {"name": "a"}, "reopen": True},
                                 {"agent": {"name": "a"}, "parent": {"run_id": t.run}}],
}
# Members that differ between two equal requests.
PASSING = {"hash", "size", "root", "hashes", "proof", "uptime_s", "watermark", "duration_us", "cache", "plan_hash", "behind"}
# Members of a carried-over document that differ in each log.
OWN_PLACE = {"score", "scores", "score_components", "confidence", "signals", "lanes", "n", "seq", "artifact_id", "start_byte", "recorded_at", "manifest_id", "logs_ref", "first_seq", "last_seq", "path"}


@unittest.skipUnless(os.geteuid() == 0, "two other users connect: only root can be them")
class Continued(test_existence.Existence):
    """One restored log with a key; `old` and `theirs` are the data of two users."""

    # Tests of test_existence that are not repeated here.
    test_every_method_says_of_anothers_things_what_it_says_of_none = None
    test_what_lists_all_lists_what_is_ones_own = None
    test_a_name_that_is_taken_answers_alike_whoever_owns_it = None
    test_that_somebody_verified_the_log_is_what_he_says = None
    old: Things
    theirs: Things
    before: dict[str, list[Json]]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        case = cls("make")
        cls.addClassCleanup(case.doCleanups)
        case.client = cls.daemon.client()
        case.addCleanup(case.client.close)
        cls.key = cls.daemon.folder / "log1.pub"
        cls.key.write_text(cls.cli("audit", "key", "init"))
        owner, stranger = case.connect(OWNER), case.connect(STRANGER)
        cls.old, cls.theirs = case.make(owner, "owner"), case.make(stranger, "stranger")
        case.followed()
        cls.before = {method: [case.ask(owner, method, params) for params in case.questions(method, cls.old)]
                      for method, kind in EXPECTED.items() if kind in (READ, READ_IN_PARTS, CARRIED)}
        cls.prepare(case)
        seq = case.call("server.status")["log"]["size"]
        wait_until(lambda: case.call("audit.checkpoint")["size"] >= seq, "all of it is signed")
        wait_until(lambda: cls.daemon.sql("SELECT coalesce(max(size), 0) FROM checkpoint_note")[0][0] == str(case.call("server.status")["log"]["size"]), "the note is in the database")
        case.doCleanups()
        cls.go_on()

    @classmethod
    def prepare(cls, case: Continued) -> None:
        """Adds more data before the backup."""

    @classmethod
    def go_on(cls) -> None:
        """Makes a backup, deletes the folder, restores it, and continues in a new log."""
        cls.cli("backup", cls.daemon.folder / "backups")
        cls.daemon.kill()
        cls.daemon.kill_postgres()
        subprocess.run(["rm", "-r", str(cls.daemon.data)], check=True)
        cls.cli("restore", cls.daemon.folder / "backups")
        cls.daemon.start("--continue-restored")
        cls.wait_for_documents()

    @classmethod
    def wait_for_documents(cls) -> None:
        def carried() -> bool:
            with cls.daemon.client() as client:
                status = client.call("server.status")
                return not [note for note in status["notes"] if "restored log" in note] and all(status["followers"][name] >= status["log"]["size"] for name in ("run", "pointer", "report", "search"))
        wait_until(carried, "the documents are there, and indexed, and nothing is behind")

    @classmethod
    def cli(cls, *arguments: object, code: int = 0) -> str:
        done = subprocess.run([BUILD / "muniment", "--data", str(cls.daemon.data), "--no-autostart", *map(str, arguments)],
                              capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != code:
            raise AssertionError(f"muniment {arguments}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def make(self, raw: Raw, name: str) -> Things:
        things = super().make(raw, name)
        # Written back: otherwise, backup and verify would fail.
        (lost,) = self.well(raw, "artifact.list", run_id=things.halted)["artifacts"]
        (self.daemon.data / "artifacts" / lost["path"]).write_text("to be lost")
        return things

    def questions(self, method: str, t: Things) -> list[Json]:
        if method in ASK:
            return ASK[method](t)
        rows = METHODS[method]
        assert callable(rows), method
        # Naming an open run would append an event to it, and so change the answers.
        uses = method == "artifact.get" or method.startswith("pointer.")
        return [params for params in rows(t, t) if not (uses and "run_id" in params)]

    def unlogged(self, value: Any) -> Any:
        """Returns a reply without the members that depend on its log, its origin or the current tree."""
        if isinstance(value, dict):
            return {key: self.unlogged(item) for key, item in value.items() if key not in PASSING | {"log_no", "carried_over", "first_recorded_at"}}
        return [self.unlogged(item) for item in value] if isinstance(value, list) else value

    def placeless(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.placeless(item) for key, item in value.items() if key not in OWN_PLACE}
        return [self.placeless(item) for item in value] if isinstance(value, list) else value

    def logs_of(self, value: Any) -> set[int]:
        if isinstance(value, dict):
            return {log for key, item in value.items() for log in ({item} if key == "log_no" else self.logs_of(item))}
        return {log for item in value for log in self.logs_of(item)} if isinstance(value, list) else set()

    def assert_read_as_before(self, log_no: int = 1) -> None:
        owner = self.connect(OWNER)
        for method, kind in EXPECTED.items():
            if kind not in (READ, READ_IN_PARTS, CARRIED):
                continue
            for params, before in zip(self.questions(method, self.old), self.before[method]):
                with self.subTest(method=method, params=params):
                    now = self.ask(owner, method, params)
                    if method == "run.list":   # runs of the current log are listed first
                        now["result"]["runs"] = [run for run in now["result"]["runs"] if run.get("log_no") == log_no]
                    if method == "corpus.list":        # also lists corpora that were added later
                        now["result"]["corpora"] = [row for row in now["result"]["corpora"] if row["corpus"] == self.old.corpus]
                    if method == "evidence.get":       # runs of the current log may use it too
                        now["result"]["uses"] = [use for use in now["result"]["uses"] if use.get("log_no") == log_no]
                    if kind == CARRIED or "ev://owner-notes" in json.dumps(params):
                        now, before = self.placeless(now), self.placeless(before)
                    self.assertEqual(self.unlogged(now), self.unlogged(before))
                    if "error" in now or kind == CARRIED or "ev://owner-notes" in json.dumps(params):
                        continue
                    if method != "pointer.render":
                        self.assertEqual(self.logs_of(now), {log_no})
                    if kind == READ:
                        self.assertEqual(now["result"]["log_no"], log_no)

    def assert_nothing_is_taken(self, log_no: int = 1) -> None:
        owner = self.connect(OWNER)
        for method, kind in EXPECTED.items():
            if kind != CLOSED:
                continue
            rows = WRITE.get(method, METHODS[method])
            own = self.own(owner)
            assert callable(rows)
            for params in rows(self.old, own):
                with self.subTest(method=method, params=params):
                    reply = self.ask(self.raw() if method == "audit.redact" else owner, method, params)
                    self.assertEqual(reply.get("error", {}).get("data", {}).get("code"), "conflict", reply)
                    self.assertIn(f"is in log {log_no}, which was restored and is closed", reply["error"]["message"])
