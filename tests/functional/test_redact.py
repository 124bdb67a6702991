"""Tests of erasure: erased content is stored nowhere, the proofs stay valid, and a crash in the middle erases all of it or nothing."""
from __future__ import annotations

import base64
import concurrent.futures
import datetime
import json
import os
import pathlib
import pty
import subprocess
import threading
import time
import uuid
from typing import Any

from support import BUILD, Daemon, DaemonCase, main, wait_until

import muniment
from checker import Checker

SECRET = "Zanzibar-Quokka-7731"   # a word that occurs nowhere else


def pg_dump() -> str:
    return str(sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/pg_dump"))[-1])


def dump(daemon: Daemon) -> str:
    uri = (daemon.data / "database.uri").read_text().strip()
    return subprocess.run([pg_dump(), "--inserts", uri], check=True, capture_output=True, text=True, timeout=120).stdout


def files_with(folder: pathlib.Path, word: str) -> list[str]:
    """Returns the files that contain the word, except for the database's own."""
    return [str(path) for path in folder.rglob("*")
            if path.is_file() and "postgres" not in path.relative_to(folder).parts and word.encode() in path.read_bytes()]


class Redacting(DaemonCase):
    def say(self, text: str, run_id: str = "", **more: Any) -> dict[str, Any]:
        return self.client.append(run_id or self.run_id, "message.added",
                                  {"message_id": str(uuid.uuid4()), "role": "user",
                                   "content": [{"type": "text", "content": text}]}, **more)

    def redact(self, **params: Any) -> dict[str, Any]:
        return self.client.call("audit.redact", reason="asked by its subject", **params, _meta={"deadline_ms": 60_000})

    def assert_gone(self, word: str = SECRET) -> None:
        """Checks that the word is neither in the database's text, nor in a file of the data folder, nor in the daemon's answers."""
        self.assertNotIn(word, dump(self.daemon))
        self.assertEqual(files_with(self.daemon.data, word), [])
        for run in self.pages("run.list", "runs"):
            self.assertNotIn(word, json.dumps(self.events(run["run_id"])), run["run_id"])
            self.assertNotIn(word, json.dumps(self.call("run.get", run_id=run["run_id"])))
            self.assertNotIn(word, json.dumps(self.client.rehydrate(run["run_id"])))
            self.assertNotIn(word, json.dumps(list(self.pages("snapshot.list", "snapshots", run_id=run["run_id"]))))

    def await_reading(self) -> None:
        """Waits until a verify has its snapshot of the database, which later queries of the transaction use."""
        reading = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'muniment-verify' AND backend_xmin IS NOT NULL AND xact_start < query_start"
        wait_until(lambda: self.daemon.sql(reading), "a verify reads")

    def assert_verified(self) -> dict[str, Any]:
        """Runs the verifier and the tests' own checker, neither of which shares code with the daemon."""
        self.followed()
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--json"],
                              capture_output=True, text=True, timeout=120, check=False)
        report = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0, report)
        uri = (self.daemon.data / "database.uri").read_text().strip()
        self.assertEqual([str(finding) for finding in Checker(uri, str(self.daemon.data / "artifacts")).check()], [])
        rebuilt = self.call("server.rebuild")
        self.assertTrue(rebuilt["equal"], rebuilt)
        return report


class Erasure(Redacting):
    def redact_on_a_terminal(self, seq: int, answer: bytes, *more: str) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        try:
            process = subprocess.Popen([BUILD / "muniment", "--data", self.daemon.data, "audit", "redact", str(seq), "--reason", "asked", *more],
                                       stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            os.write(ours, answer)
            said, _ = process.communicate(timeout=60)
            return process.returncode, said.decode()
        finally:
            os.close(ours)
            os.close(theirs)

    def test_pages_are_vacuumed(self) -> None:
        seq = self.say(f"the word is {SECRET}")["seq"]
        part = self.daemon.sql(f"SELECT tableoid::regclass FROM event WHERE seq = {seq}")[0][0]
        self.followed()
        now = self.daemon.sql("SELECT clock_timestamp()")[0][0]
        self.redact(seq=seq)
        dead = self.daemon.sql(f"SELECT relname FROM pg_stat_user_tables WHERE schemaname = 'public' AND coalesce(last_vacuum < '{now}', true)"
                               f" AND (relname IN ('run', 'artifact', 'claim', 'evidence', 'manifest', 'snapshot', 'document') OR relname = '{part}')")
        self.assertEqual(dead, [])

    def test_nothing_is_erased_before_somebody_says_yes(self) -> None:
        told = self.say(SECRET)
        for answer in (b"no\n", b"\n", b"y\n", b"\x04"):
            code, said = self.redact_on_a_terminal(told["seq"], answer)
            self.assertNotEqual(code, 0, said)
            self.assertIn("would erase", said)
            self.assertIn("nothing was erased", said)
            self.assertIsNotNone(self.call("event.get", seq=told["seq"])["event"]["body"])
        code, said = self.redact_on_a_terminal(told["seq"], b"yes\n")
        self.assertEqual(code, 0, said)
        self.assert_gone()

    def test_yes_can_be_said_beforehand(self) -> None:
        told = self.say(SECRET)
        code, said = self.redact_on_a_terminal(told["seq"], b"", "--yes")
        self.assertEqual(code, 0, said)
        self.assertNotIn("would erase", said)
        self.assert_gone()

    def test_an_event(self) -> None:
        before = self.say("harmless")
        told = self.say(f"my name is {SECRET}")
        self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {"kept": 1}})
        listed = self.redact(seq=told["seq"], dry_run=True)
        self.assertEqual((listed["dry_run"], listed["seqs"], listed["artifact_files"]), (True, [told["seq"]], 0))
        self.assertIn(SECRET, json.dumps(self.events()), "a dry run erases nothing")
        done = self.redact(seq=told["seq"], legal_basis="GDPR 17")
        self.assertEqual(done["seqs"], [told["seq"]])
        self.assert_gone()
        events = {event["seq"]: event for event in self.events()}
        erased = events[told["seq"]]
        self.assertEqual((erased["body"], erased["salt"], erased["redacted"]), (None, None, True))
        self.assertEqual((erased["body_hash"], erased["run_hash"]), (told["body_hash"], told["run_hash"]))
        said = events[done["seq"]]
        self.assertEqual(said["type"], "event.redacted")
        self.assertEqual({**said["body"], "by": ""}, {"seq": told["seq"], "reason": "asked by its subject", "legal_basis": "GDPR 17", "by": ""})
        self.assertEqual(events[before["seq"]]["body_hash"], before["body_hash"])
        self.assertEqual(self.client.rehydrate(self.run_id)["state"]["working"], {"kept": 1})
        self.assertIn(told["seq"], self.assert_verified()["redactions"])

    def test_what_was_spilled_and_everyone_who_shows_its_beginning(self) -> None:
        text = f"{SECRET} " * 2_000
        first = self.client.append(self.run_id, "message.added", {"message_id": "a", "role": "user",
                                   "content": [{"type": "text", "content": text}]}, spill=True)
        again = self.client.append(self.run_id, "message.added", {"message_id": "b", "role": "user",
                                   "content": [{"type": "text", "content": text}]}, spill=True)
        self.assertEqual(first["spilled"][0]["artifact_id"], again["spilled"][0]["artifact_id"])
        self.assertNotEqual(files_with(self.daemon.data, SECRET), [])
        done = self.redact(seq=first["seq"])
        self.assertIn(again["seq"], done["seqs"])
        self.assertEqual([item["artifact_id"] for item in done["artifacts"]], [first["spilled"][0]["artifact_id"]])
        self.assert_gone()
        self.assert_verified()

    def test_what_the_report_tables_took_from_it(self) -> None:
        called = self.client.append(self.run_id, "tool.called", {"call_id": SECRET, "name": SECRET, "kind": "function"})
        returned = self.client.append(self.run_id, "tool.returned", {"call_id": SECRET, "status": "error", "content": [],
                                      "error": {"error_type": SECRET, "message": SECRET}})
        self.followed()
        self.assertEqual(self.daemon.sql(f"SELECT tool, status FROM report.tool_call WHERE run_id = '{self.run_id}'"), [[SECRET, "error"]])
        self.redact(seq=called["seq"])
        self.assertEqual(self.daemon.sql(f"SELECT tool_calls, tool_errors FROM report.run_report WHERE run_id = '{self.run_id}'"), [["1", "1"]])
        self.redact(seq=returned["seq"])
        self.assertEqual(self.daemon.sql(f"SELECT tool_calls, tool_errors FROM report.run_report WHERE run_id = '{self.run_id}'"), [["0", "0"]])
        self.assert_gone()
        self.assert_verified()

    def test_an_artifact(self) -> None:
        put = self.call("artifact.put", run_id=self.run_id, text=f"the file of {SECRET}", metadata={"title": SECRET})
        done = self.redact(artifact_id=put["artifact_id"])
        self.assertEqual(done["artifact_files"], 1)
        self.assert_gone()
        with self.refused("not_found"):
            self.call("artifact.get", artifact_id=put["artifact_id"])
        self.assert_verified()
        with self.refused("conflict"):
            self.redact(artifact_id=put["artifact_id"])
        other = self.call("artifact.put", run_id=self.run_id, text="the same run goes on")
        self.assertEqual(self.call("artifact.get", artifact_id=other["artifact_id"])["text"], "the same run goes on")

    def test_states_that_held_it(self) -> None:
        self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {"before": 1}})
        early = self.call("snapshot.take", run_id=self.run_id)
        told = self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {"who": SECRET}})
        self.call("snapshot.take", run_id=self.run_id)
        large = self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {"text": "a" * 80_000}}, spill=True)
        kept = self.call("snapshot.take", run_id=self.run_id)
        self.assertIn("artifact_id", kept, "this state is too large for its row")
        done = self.redact(seq=told["seq"])
        self.assertGreaterEqual(done["snapshots"], 2)
        self.assertIn(kept["artifact_id"], [item["artifact_id"] for item in done["artifacts"]])
        self.assert_gone()
        working = self.client.rehydrate(self.run_id)["state"]["working"]
        self.assertEqual(sorted(working), ["before", "text"])
        rows = {row["seq"]: row for row in self.pages("snapshot.list", "snapshots", run_id=self.run_id)}
        self.assertNotIn("erased", rows[early["seq"]], "a state of before it is as it was")
        self.assertTrue(rows[kept["seq"]]["erased"])
        self.assertIn(done["snapshot_seq"], rows)
        self.assertEqual(self.client.rehydrate(self.run_id, asof=large["seq"])["state"]["working"]["before"], 1)
        self.assert_verified()

    def test_a_large_state_that_was_taken_after_the_end(self) -> None:
        told = self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {"text": f"{SECRET} " * 6_000}}, spill=True)
        self.call("run.end", run_id=self.run_id, outcome="success")
        taken = self.call("snapshot.take", run_id=self.run_id)
        self.assertIn("artifact_id", taken)
        done = self.redact(seq=told["seq"])
        self.assertIn(taken["artifact_id"], [item["artifact_id"] for item in done["artifacts"]])
        self.assert_gone()
        self.assert_verified()

    def test_a_whole_run(self) -> None:
        run_id = self.new_run("all", goal=f"help {SECRET}", labels={"who": SECRET}, external_id=SECRET)
        self.say(f"I am {SECRET}", run_id)
        put = self.call("artifact.put", run_id=run_id, text=SECRET)
        pointer = f"artifact://{run_id}/{put['artifact_id']}"
        self.call("claim.record", run_id=run_id, text=f"{SECRET} was here", pointers=[pointer])
        self.call("evidence.record", run_id=run_id, type="note", content={"text": SECRET})
        self.call("manifest.put", run_id=run_id, manifest={"items": [], "why": SECRET})
        self.client.append(run_id, "state.patched", {"format": "merge", "patch": {"who": SECRET}})
        self.call("snapshot.take", run_id=run_id)
        self.call("run.end", run_id=run_id, outcome="success", summary=SECRET)
        self.followed()
        listed = self.redact(run_id=run_id, dry_run=True)
        self.assertEqual(listed["needed"], [pointer])
        done = self.redact(run_id=run_id)
        self.assertEqual((done["manifests"], done["claims"], done["evidence"], done["artifact_files"]), (1, 1, 1, 1))
        self.assert_gone()
        self.assert_verified()
        self.daemon.stop()
        self.restart()
        self.assertEqual(self.call("run.get", run_id=run_id)["run"]["status"], "ended", "a run whose start is erased is still found")
        self.assert_gone()
        self.assert_verified()

    def test_an_event_that_was_erased_cannot_be_sent_again(self) -> None:
        event_id = str(uuid.uuid4())
        told = self.say(SECRET, event_id=event_id)
        self.redact(seq=told["seq"])
        with self.refused("conflict") as caught:
            self.say(SECRET, event_id=event_id)
        self.assertIn("redacted", str(caught[0]))
        with self.refused("conflict"):
            self.redact(seq=told["seq"])
        self.assert_gone()

    def test_snapshots_that_are_taken_meanwhile_stand_in_nobodys_way(self) -> None:
        """Each state has one snapshot, whether the erasure or a request takes it first."""
        others = [self.daemon.client() for _ in range(3)]
        for n in range(8):
            run_id, erased = self.new_run(str(n)), threading.Event()
            self.note(run_id, n=n)
            self.call("snapshot.take", run_id=run_id)

            def take(client: muniment.Client, run_id: str = run_id, erased: threading.Event = erased) -> None:
                while not erased.is_set():
                    client.call("snapshot.take", run_id=run_id)

            with concurrent.futures.ThreadPoolExecutor() as threads:
                takers = [threads.submit(take, client) for client in others]
                try:
                    self.redact(run_id=run_id)
                finally:
                    erased.set()
                for taker in takers:
                    taker.result()
        for client in others:
            client.close()

    def test_a_link_that_was_erased_cannot_be_made_again_with_its_key(self) -> None:
        claim = self.call("claim.record", run_id=self.run_id, text="a claim", pointers=[])
        evidence = self.call("evidence.record", run_id=self.run_id, type="review", content={"text": "fine"})
        link = {"claim_id": claim["claim_id"], "evidence_id": evidence["evidence_id"], "relation": "supports", "_meta": {"idempotency_key": "k"}}
        made = self.call("evidence.link", **link)
        self.assertEqual(self.call("evidence.link", **link)["seq"], made["seq"])
        self.redact(seq=evidence["seq"])
        self.redact(seq=made["seq"])
        with self.refused("conflict") as refusal:
            self.call("evidence.link", **link)
        self.assertIn("content that was erased since", str(refusal[0]))

    def test_a_halt_whose_reason_was_erased(self) -> None:
        stored = self.call("artifact.put", run_id=self.run_id, text="bytes that will be others")
        path = self.daemon.data / "artifacts" / self.call("artifact.stat", artifact_id=stored["artifact_id"])["artifact"]["path"]
        held = path.read_bytes()
        path.write_bytes(b"other" + held[5:])
        with self.refused("run_halted"):
            self.call("claim.record", run_id=self.run_id, text="x", pointers=[stored["pointer"]])
        path.write_bytes(held)   # restored, because other tests verify the whole log
        halted = self.events(types=["run.halted"])[-1]
        self.redact(seq=halted["seq"])
        for _ in range(2):
            with self.refused("run_halted") as refusal:
                self.note(n=1)
            self.assertIn(f"(seq {halted['seq']}): the reason was erased. See: muniment recover", str(refusal[0]))
            self.daemon.stop()
            self.restart()

    def test_a_legal_hold_refuses_it_and_says_whose_it_is(self) -> None:
        told = self.say(SECRET)
        held = self.call("run.annotate", run_id=self.run_id, legal_hold=True)
        for params in ({"seq": told["seq"]}, {"run_id": self.run_id}, {"seq": told["seq"], "dry_run": True}):
            with self.refused("conflict") as caught:
                self.redact(**params)
            self.assertIn("legal hold", str(caught[0]))
            self.assertIn(f"seq {held['seq']}, set by uid:", str(caught[0]))
        self.assertIn(SECRET, json.dumps(self.events()))
        self.call("run.annotate", run_id=self.run_id, note="not about the hold")
        with self.refused("conflict"):
            self.redact(seq=told["seq"])
        self.call("run.annotate", run_id=self.run_id, legal_hold=False)
        self.redact(seq=told["seq"])
        self.assert_gone()

    def test_before_its_time_a_run_is_kept(self) -> None:
        told = self.say(SECRET)
        run_id = self.run_id
        kept = self.call("run.annotate", run_id=run_id, retain_until="2999-12-31T23:00:00-01:00")
        for params in ({"seq": told["seq"]}, {"run_id": run_id}, {"seq": told["seq"], "dry_run": True}):
            with self.refused("conflict") as caught:
                self.redact(**params)
            self.assertIn("until 3000-01-01T00:00:00.000000Z", str(caught[0]))
            self.assertIn(f"seq {kept['seq']}, set by uid:", str(caught[0]))
            self.assertIn("run.annotate {retain_until: …}", str(caught[0]))
        self.assertIn(SECRET, json.dumps(self.events()))
        self.call("run.annotate", run_id=run_id, retain_until="2001-01-01T00:00:00Z")
        self.call("run.annotate", run_id=run_id, retain_until="2999-01-01T00:00:00Z")
        self.call("run.annotate", run_id=run_id, note="not about the time", legal_hold=False)
        with self.refused("conflict"):
            self.redact(seq=told["seq"])   # the newest annotation that sets the time applies, not the newest one
        with self.refused("invalid_argument"):
            self.call("run.annotate", run_id=run_id, retain_until="for ever")
        other = self.say(SECRET, self.new_run("other"))
        self.redact(seq=other["seq"])      # the time applies only to its own run
        self.call("run.annotate", run_id=run_id, retain_until=None)
        self.redact(seq=told["seq"])
        self.assert_gone()

    def test_the_moment_it_is_reached_a_run_may_be_erased(self) -> None:
        told = self.say(SECRET)
        until = time.time() + 2.0
        stamp = datetime.datetime.fromtimestamp(until, datetime.timezone.utc).isoformat(timespec="microseconds")
        self.call("run.annotate", run_id=self.run_id, retain_until=stamp)

        def erased() -> bool:
            asked = time.time()
            try:
                self.redact(seq=told["seq"])
            except muniment.MunimentError as error:
                self.assertEqual(error.code, "conflict")
                self.assertLess(asked, until, "refused though the time is over")
                return False
            self.assertGreaterEqual(time.time(), until, "erased before its time")
            return True

        wait_until(erased, "the time is over")
        self.assert_gone()

    def test_what_the_proofs_need_is_refused(self) -> None:
        told = self.say("a word")
        done = self.redact(seq=told["seq"])
        with self.refused("invalid_argument"):
            self.redact(seq=done["seq"])
        with self.refused("not_found"):
            self.redact(seq=10_000_000)
        with self.refused("invalid_argument"):
            self.redact()
        with self.refused("invalid_argument"):
            self.redact(seq=1, run_id=self.run_id)

    def test_the_command(self) -> None:
        told = self.say(f"by hand: {SECRET}")
        command = [BUILD / "muniment", "--data", self.daemon.data, "audit", "redact", str(told["seq"]), "--yes", "--reason", "asked"]
        done = subprocess.run([*command, "--dry-run"], capture_output=True, text=True, timeout=60, check=True)
        self.assertIn(f"would erase in {self.run_id}:  1 events", done.stdout)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        self.assertIn(f"erased in {self.run_id}:  1 events", done.stdout)
        self.assert_gone()


class AtFailpoints(Redacting):
    """A state that is too large for a reply is stored as an artifact, and must not contain content that was erased
    since it was read. A daemon that dies during an erasure has erased nothing before the journal is written; after
    that, the next start erases everything."""

    STEPS = ("redact.before_journal", "redact.after_journal", "redact.after_announce", "redact.after_erase", "redact.after_file",
             "redact.before_end")

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.gate = cls.daemon.folder / "gate"

    def opened_at(self, plan: str) -> None:
        """Restarts the daemon with these failpoints, whose waits do not block yet."""
        self.gate.touch()
        self.daemon.stop()
        self.daemon.failpoint_log.unlink(missing_ok=True)
        self.daemon.start(failpoint=plan)
        self.client.close()

    def await_passed(self, name: str) -> None:
        log = self.daemon.failpoint_log
        wait_until(lambda: log.exists() and name in log.read_text().split(), f"{name} was reached")

    def large_state(self) -> tuple[int, int]:
        """Returns the seqs of the event with the word and of the requested state, which has no snapshot."""
        told = self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {"who": SECRET}})
        large = self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {"text": "a" * 600_000}}, spill=True)
        self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {"later": 1}})
        self.followed()
        return told["seq"], large["seq"]

    def rehydrating(self, asof: int) -> "concurrent.futures.Future[dict[str, Any]]":
        def ask() -> dict[str, Any]:
            with self.daemon.client() as client:
                return client.call("run.rehydrate", run_id=self.run_id, asof=asof, _meta={"deadline_ms": 60_000})

        pool = concurrent.futures.ThreadPoolExecutor(1)
        self.addCleanup(pool.shutdown)
        self.addCleanup(self.gate.touch)   # runs before that
        return pool.submit(ask)

    def test_erased_between_reading_and_storing(self) -> None:
        self.opened_at(f"snapshot.before_store=wait:{self.gate}@1")
        told, asof = self.large_state()
        self.gate.unlink()
        answer = self.rehydrating(asof)
        self.await_passed("snapshot.before_store")
        self.redact(seq=told)
        self.gate.touch()
        state = json.loads(self.client.get(answer.result(60)["state_artifact"]))
        self.assertEqual(sorted(state["working"]), ["text"])
        self.assert_gone()
        self.assert_verified()

    def test_stored_and_not_yet_in_the_log(self) -> None:
        self.opened_at(f"append.before_send=wait:{self.gate}@1+,snapshot.after_file=sleep:0@1")
        told, asof = self.large_state()
        self.gate.unlink()
        answer = self.rehydrating(asof)
        self.await_passed("snapshot.after_file")
        with self.assertRaises(muniment.MunimentError):
            self.client.call("audit.redact", seq=told, reason="asked", _meta={"deadline_ms": 1_000})
        self.assertEqual(list((self.daemon.data / "redactions").iterdir()), [], "it waits for what it has to erase")
        self.gate.touch()
        stored = answer.result(60)["state_artifact"]
        done = self.redact(seq=told)
        self.assertIn(stored, [item["artifact_id"] for item in done["artifacts"]])
        self.assert_gone()
        self.assert_verified()

    def test_all_of_it_or_none(self) -> None:
        for step in self.STEPS:
            with self.subTest(step=step):
                self.killed_at(step)

    def killed_at(self, step: str) -> None:
        word = base64.b32encode(step.encode()).decode().rstrip("=")
        run_id = self.new_run(step, goal=word)
        told = self.client.append(run_id, "message.added", {"message_id": "a", "role": "user",
                                  "content": [{"type": "text", "content": f"{word} " * 2_000}]}, spill=True)
        self.client.append(run_id, "state.patched", {"format": "merge", "patch": {"who": word}})
        self.call("snapshot.take", run_id=run_id)
        self.daemon.stop()
        self.daemon.start(failpoint=f"{step}=kill@1")
        self.client.close()
        with self.assertRaises((muniment.MunimentError, OSError)):
            self.call("audit.redact", run_id=run_id, reason="asked")
        wait_until(lambda: self.daemon.process is not None and self.daemon.process.poll() is not None, f"{step} killed the daemon")
        self.assertIn(step, self.daemon.failpoint_log.read_text())
        self.restart()
        self.followed()
        held = word in dump(self.daemon)
        files = files_with(self.daemon.data, word)
        if step == "redact.before_journal":
            self.assertTrue(held and files, "nothing was erased")
            self.call("audit.redact", run_id=run_id, reason="asked")
            held, files = word in dump(self.daemon), files_with(self.daemon.data, word)
        self.assertEqual((held, files), (False, []))
        self.assertEqual(list((self.daemon.data / "redactions").iterdir()), [])
        announced = [event["body"]["seq"] for event in self.events(run_id, types=["event.redacted"])]
        self.assertEqual(len(announced), len(set(announced)), "each was announced once")
        self.assertIn(told["seq"], announced)
        self.assertNotIn(word, json.dumps(self.client.rehydrate(run_id)))
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--json"],
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    main()
