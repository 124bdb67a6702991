"""Tests of erasures that run while a request refers to the erased content: the request is recorded with the
remaining content, or refused."""
from __future__ import annotations

import concurrent.futures
import json
import pathlib
import subprocess
import time
from typing import Any

from support import BUILD, main, wait_until
from test_redact import Redacting

TEXT = "secret pelican " * 1500


class Meanwhile(Redacting):
    def held(self, failpoint: str):
        """Restarts the daemon with the failpoint. Returns the file for which it waits."""
        go_on = self.daemon.folder / f"{self._testMethodName}.go-on"
        self.daemon.stop()
        self.client.close()
        self.daemon.failpoint_log.unlink(missing_ok=True)
        self.daemon.start(failpoint=f"{failpoint}=wait:{go_on}@1")
        return go_on

    def meanwhile(self, go_on, method: str, request: dict, meanwhile) -> dict:
        """Returns the reply to a request that the failpoint holds while `meanwhile` runs."""
        raw = self.raw()
        raw.request(method, **request)
        wait_until(self.daemon.failpoint_log.exists, f"{method} has come so far")
        meanwhile()
        go_on.touch()
        return raw.line()

    def put(self, text: str, mime_type: str) -> str:
        return self.call("artifact.put", run_id=self.run_id, step_id="s", text=text, mime_type=mime_type)["artifact_id"]

    def left_on_disk(self, word: bytes) -> list[str]:
        return [str(path) for path in (self.daemon.data / "artifacts").rglob("*") if path.is_file() and word in path.read_bytes()]

    def test_an_ingest_of_what_is_erased_meanwhile_takes_nothing_in(self) -> None:
        artifact_id = self.put("<html><body><h1>Doc</h1><p>the password is quetzalcoatl</p></body></html>", "text/html")
        go_on = self.held("documents.looked_at")
        request = {"corpus": "k", "documents": [{"id": "d.html", "artifact_id": artifact_id}]}
        reply = self.meanwhile(go_on, "corpus.ingest", request, lambda: self.call("audit.redact", artifact_id=artifact_id, reason="asked for"))
        self.assertEqual(reply["result"]["documents"], [], reply)
        self.assertEqual(self.left_on_disk(b"quetzalcoatl"), [])
        self.assertNotIn("quetzalcoatl", json.dumps(self.call("evidence.retrieve", queries=[{"query": "password quetzalcoatl"}])["results"][0]["cards"]))

    def test_an_append_that_found_its_text_keeps_it_itself(self) -> None:
        artifact_id = self.put(TEXT, "text/plain")
        go_on = self.held("append.spilled")
        request = {"run_id": self.run_id, "step_id": "s", "type": "tool.returned", "spill": True,
                   "body": {"call_id": "c", "status": "ok", "content": [{"type": "text", "content": TEXT}]}}
        reply = self.meanwhile(go_on, "event.append", request, lambda: self.call("audit.redact", artifact_id=artifact_id, reason="asked for"))
        spilled = reply["result"]["spilled"][0]["artifact_id"]
        self.assertNotEqual(spilled, artifact_id)
        self.assertEqual(self.call("artifact.get", artifact_id=spilled, encoding="text")["text"], TEXT)

    def test_a_passage_that_is_being_erased_halts_nobody(self) -> None:
        reply = self.call("corpus.ingest", corpus="gone", documents=[{"id": "d.md", "text": "The word is quetzalcoatl.\n"}], wait=True)
        pointer = reply["documents"][0]["uri"]
        [event] = self.call("event.list", from_seq=reply["seq"], limit=1)["events"]
        artifact_id = event["body"]["artifact_id"]
        go_on = self.held("redact.after_file")

        def ask() -> None:
            for _ in range(2):
                [found] = self.call("pointer.resolve", pointers=[pointer], run_id=self.run_id, critical=True)["results"]
                self.assertEqual((found["ok"], found["reason"]), (False, "NOT_FOUND"))
                self.assertIn("erased", found["detail"])

        self.meanwhile(go_on, "audit.redact", {"artifact_id": artifact_id, "reason": "asked for"}, ask)
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["status"], "open")

    def test_a_verify_and_an_export_say_that_an_erasure_is_under_way(self) -> None:
        seq = self.client.append(self.run_id, "x.test.said", {"secret": "pelican"})["seq"]
        self.followed()
        go_on = self.held("redact.after_announce")

        def ask() -> None:
            done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "audit", "export", self.run_id, "-o", self.daemon.folder / "during.muniment.tar.zst"],
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertNotEqual(done.returncode, 0, done.stdout)
            self.assertIn("is in progress", done.stderr)
            done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--json"], capture_output=True, text=True, timeout=120, check=False)
            report = json.loads(done.stdout)
            self.assertEqual((done.returncode, report["verdict"], report["findings"]), (5, "incomplete", []), report)
            self.assertIn("an erasure is in progress", report["problem"])

        self.meanwhile(go_on, "audit.redact", {"seq": seq, "reason": "asked for", "_meta": {"deadline_ms": 120_000}}, ask)
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok"], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def verified(self, *where: object) -> tuple[int, dict[str, Any]]:
        done = subprocess.run([BUILD / "muniment-verify", *(where or ("--data", self.daemon.data)), "--unsigned-ok", "--json"], capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, json.loads(done.stdout)

    def test_a_verify_between_the_rows_and_the_files_of_an_erasure(self) -> None:
        secret = self.call("artifact.put", run_id=self.run_id, text="pelican " * 40_000)["artifact_id"]
        other = self.call("artifact.put", run_id=self.new_run("beside"), text="a stork")
        damaged = self.daemon.data / "artifacts" / other["path"]
        self.followed()
        go_on = self.held("redact.after_erase")

        def ask() -> None:
            uri = (self.daemon.data / "database.uri").read_text().strip()
            with concurrent.futures.ThreadPoolExecutor() as threads:   # in parallel, because each waits ten seconds for the erasure
                elsewhere = threads.submit(self.verified, "--database", uri, "--artifacts", self.daemon.data / "artifacts")
                code, report = self.verified()
            self.assertEqual((code, report["verdict"], report["findings"]), (5, "incomplete", []), report)
            self.assertIn("an erasure is in progress: 1 files", report["problem"])
            code, report = elsewhere.result()
            self.assertEqual((code, report["findings"]), (5, []), report)
            damaged.chmod(0o600)
            damaged.write_bytes(b"a shark")
            code, report = self.verified()
            self.assertEqual((code, report["first_bad"]["check"], report["first_bad"]["run_id"]), (1, "artifact_hash", f"{self.run_id}.beside"), report)
            self.assertIn("an erasure is in progress", report["problem"])
            damaged.write_bytes(b"a stork")

        self.meanwhile(go_on, "audit.redact", {"artifact_id": secret, "reason": "asked for", "_meta": {"deadline_ms": 120_000}}, ask)
        self.assertEqual(self.verified()[0], 0)

    def test_what_was_found_elsewhere_is_told_when_something_was_erased_meanwhile(self) -> None:
        """The erasure ends while the verify reads: findings in its own run are only counted, those in another run are reported."""
        runs = [self.new_run(name) for name in ("erased", "damaged")]
        paths = []
        for run_id in runs:
            paths.append(self.daemon.data / "artifacts" / self.call("artifact.put", run_id=run_id, text=f"a stork of {run_id}")["path"])
        seq = self.client.append(runs[0], "x.test.said", {"secret": "pelican"})["seq"]
        self.followed()
        go_on = self.held("redact.after_announce")
        for path in paths:
            path.chmod(0o600)
            path.write_bytes(b"x" * path.stat().st_size)
        found: list[tuple[int, dict[str, Any]]] = []

        def ask() -> None:
            with subprocess.Popen([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--json"], stdout=subprocess.PIPE, text=True) as verify:
                self.await_reading()
                go_on.touch()
                said, _ = verify.communicate(timeout=60)
                found.append((verify.returncode, json.loads(said)))

        self.meanwhile(go_on, "audit.redact", {"seq": seq, "reason": "asked for", "_meta": {"deadline_ms": 120_000}}, ask)
        [(code, report)] = found
        self.assertEqual((code, [finding["run_id"] for finding in report["findings"]]), (1, [runs[1]]), report)
        self.assertIn("content was erased during this verify, and 1 findings", report["problem"])
        for path, run_id in zip(paths, runs):
            path.write_text(f"a stork of {run_id}")
        self.assertEqual(self.verified()[0], 0)

    def test_a_run_that_ends_while_its_row_is_erased_has_ended(self) -> None:
        run_id = self.new_run("ends", goal="a pelican")
        seq = self.events(run_id)[0]["seq"]
        self.followed()
        go_on = self.held("rebuild.before_replace")
        eraser = self.raw()

        def ask() -> None:
            eraser.request("audit.redact", seq=seq, reason="asked for", _meta={"deadline_ms": 60_000})
            wait_until(lambda: self.daemon.sql("SELECT 1 FROM pg_locks WHERE NOT granted"), "what it has announced waits for the tables that the rebuild holds")
            self.call("run.end", run_id=run_id, outcome="success")

        self.meanwhile(go_on, "server.rebuild", {"tables": ["run"], "_meta": {"deadline_ms": 60_000}}, ask)
        self.assertIn("result", eraser.line())
        self.followed()
        self.assertEqual(self.daemon.sql(f"SELECT status, outcome, goal FROM run WHERE run_id = '{run_id}'"), [["ended", "success", ""]])
        self.assertEqual(self.verified()[0], 0)

    def test_a_pack_that_is_built_meanwhile_holds_nothing_of_it(self) -> None:
        seq = self.call("corpus.ingest", corpus="packed", documents=[{"id": "d.md", "text": "The word is quetzalcoatl.\n"}], wait=True)["seq"]
        [event] = self.call("event.list", from_seq=seq, limit=1)["events"]
        go_on = self.held("redact.before_journal")
        builder = self.raw()

        def ask() -> None:
            builder.request("context.build", query="quetzalcoatl word", corpus="packed")
            time.sleep(0.3)   # nothing indicates that the request waits; without the wait, this time suffices for an answer

        reply = self.meanwhile(go_on, "audit.redact", {"artifact_id": event["body"]["artifact_id"], "reason": "asked for"}, ask)
        built = builder.line()["result"]
        self.assertGreater(built["seq"], reply["result"]["seq"])
        self.assertEqual((built["pack"]["passages"], built["text"].count("quetzalcoatl")), ([], 0))

    def test_of_two_ingests_the_second_stands_on_the_first(self) -> None:
        damaged = self.call("artifact.stat", artifact_id=self.put("this one will be gone", "text/plain"))["artifact"]
        path = self.daemon.data / "artifacts" / damaged["path"]
        content = path.read_bytes()
        path.unlink()
        self.addCleanup(path.write_bytes, content)   # restored, because another test verifies the whole log
        go_on = self.held("documents.looked_at")
        request = {"corpus": "raced", "documents": [{"id": "a", "text": "The second text."}, {"id": "b", "artifact_id": damaged["artifact_id"]}]}
        taken = []
        reply = self.meanwhile(go_on, "corpus.ingest", request, lambda: taken.append(
            self.call("corpus.ingest", corpus="raced", documents=[{"id": "a", "text": "The first text."}])["documents"][0]))
        self.assertEqual([error["code"] for error in reply["result"]["errors"]], ["corrupt"], reply)
        [event] = self.call("event.list", from_seq=reply["result"]["seq"], limit=1)["events"]
        self.assertEqual((event["type"], event["body"]["document"], event["body"]["previous"]), ("document.revised", "a", taken[0]["revision"]))
        self.followed()
        self.assertTrue(self.call("server.rebuild")["equal"])

    def killed_with_journals(self, **what: Any) -> dict[pathlib.Path, bytes]:
        """Kills the daemon after an erasure's journals are written, and before anything is erased; moves the
        journals out of the folder and restarts the daemon. Returns the journals."""
        self.daemon.stop()
        self.client.close()
        self.daemon.failpoint_log.unlink(missing_ok=True)
        self.daemon.start(failpoint="redact.after_journal=kill@1")
        raw = self.raw()
        raw.request("audit.redact", reason="asked for", **what)
        self.assertIsNone(raw.line())
        kept = {path: path.read_bytes() for path in (self.daemon.data / "redactions").glob("*.json")}
        for path in kept:
            path.unlink()
        self.restart()
        return kept

    def start_with(self, kept: dict[pathlib.Path, bytes]) -> None:
        self.daemon.stop()
        self.client.close()
        for path, text in kept.items():
            path.write_bytes(text)
        self.restart()
        self.assertEqual(list((self.daemon.data / "redactions").glob("*.json")), [])

    def test_what_corpora_make_of_it_before_it_is_erased_goes_with_it(self) -> None:
        artifact_id = self.put("<html><body><h1>Doc</h1><p>axolotl, late</p></body></html>", "text/html")
        kept = self.killed_with_journals(artifact_id=artifact_id)
        self.assertEqual(len(kept), 1)
        taken = self.call("corpus.ingest", corpus="late", documents=[{"id": "d.html", "artifact_id": artifact_id}], wait=True)
        self.assertNotEqual(self.left_on_disk(b"axolotl"), [])
        self.start_with(kept)
        self.assertEqual(self.left_on_disk(b"axolotl"), [])
        [found] = self.call("pointer.resolve", pointers=[taken["documents"][0]["uri"]])["results"]
        self.assertFalse(found["ok"], found)
        self.assertEqual(self.call("evidence.retrieve", queries=[{"query": "axolotl", "corpus": "late"}])["results"][0]["cards"], [])
        self.followed()
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok"], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_what_is_dropped_for_a_hold_is_dropped_whole(self) -> None:
        artifact_id = self.put("<html><body><h1>Doc</h1><p>quetzalcoatl again</p></body></html>", "text/html")
        said = self.events("_log", types=["event.redacted", "artifact.redacted"])
        taken = self.call("corpus.ingest", corpus="held", documents=[{"id": "d.html", "artifact_id": artifact_id}], wait=True)
        kept = self.killed_with_journals(artifact_id=artifact_id)
        self.assertEqual(len(kept), 2, "what was named, and what corpora made of it")
        self.call("run.annotate", run_id=self.run_id, legal_hold=True)
        self.start_with(kept)
        self.assertEqual(self.events("_log", types=["event.redacted", "artifact.redacted"]), said)
        [found] = self.call("pointer.resolve", pointers=[taken["documents"][0]["uri"]])["results"]
        self.assertTrue(found["ok"], found)

    def test_a_hold_that_is_acknowledged_holds(self) -> None:
        seq = self.client.append(self.run_id, "x.test.said", {"secret": "pelican"})["seq"]
        go_on = self.held("redact.before_journal")
        hold = self.raw()

        def ask() -> None:
            hold.request("run.annotate", run_id=self.run_id, legal_hold=True)
            time.sleep(0.3)   # nothing indicates that the request waits; without the wait, this time suffices for an answer

        reply = self.meanwhile(go_on, "audit.redact", {"seq": seq, "reason": "asked for"}, ask)
        held = hold.line()["result"]["seq"]
        self.assertGreater(held, reply["result"]["seq"], "the log says first that it was erased")

    def test_an_erasure_that_was_asked_for_before_a_hold_is_not_begun(self) -> None:
        seq = self.client.append(self.run_id, "x.test.said", {"secret": "pelican"})["seq"]
        kept = self.killed_with_journals(seq=seq)
        self.assertEqual(len(kept), 1)
        self.call("run.annotate", run_id=self.run_id, legal_hold=True)
        self.start_with(kept)
        self.assertEqual(self.call("event.get", seq=seq)["event"]["body"], {"secret": "pelican"})

    def test_the_planner_keeps_no_example_of_it(self) -> None:
        said = [self.call("claim.record", run_id=self.run_id, text="the password is quetzalcoatl", pointers=[])["seq"] for _ in range(5)]
        for number in range(20):
            self.call("claim.record", run_id=self.run_id, text=f"filler {number}", pointers=[])
        shown = "SELECT count(*) FROM pg_stats WHERE most_common_vals::text LIKE '%quetzalcoatl%' OR histogram_bounds::text LIKE '%quetzalcoatl%'"
        self.daemon.sql("ANALYZE claim")
        self.assertNotEqual(self.daemon.sql(shown), [["0"]], "otherwise this test looks at nothing")
        for seq in said:
            self.call("audit.redact", seq=seq, reason="asked for")
        self.assertEqual(self.daemon.sql(shown), [["0"]])


if __name__ == "__main__":
    main()
