"""Tests of an erasure that failed after it was announced: everything that is derived from its content until it is
completed is erased too."""
from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import tempfile
import time
from typing import Any, Callable, Iterator

from support import BUILD, Daemon, main, muniment
from test_archive import CONFIG, Archived
from test_redact import SECRET, Redacting


class HalfwayCase(Redacting):
    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Makes Postgres refuse every erasure with a temporary error."""
        self.daemon.sql("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = 'lock_not_available'; END $$;"
                        "CREATE TRIGGER refuse BEFORE UPDATE ON manifest FOR EACH STATEMENT EXECUTE FUNCTION refuse()")
        try:
            yield
        finally:
            self.daemon.sql("DROP TRIGGER refuse ON manifest; DROP FUNCTION refuse()")

    def fail_halfway(self, **what: Any) -> None:
        with self.refusing(), self.assertRaises(muniment.MunimentError) as caught:
            self.redact(**what)
        self.assertEqual(caught.exception.data.get("outcome"), "unknown", caught.exception)
        self.assertNotEqual(self.journals(), [])

    def journals(self) -> list[pathlib.Path]:
        return list((self.daemon.data / "redactions").glob("*.json"))

    def carried_out_by_a_start(self) -> None:
        self.daemon.stop()
        self.restart()

    def carried_out_by_the_next(self) -> None:
        self.redact(seq=self.note(n=1)["seq"])

    def assert_carried_out(self) -> None:
        self.assertEqual(self.journals(), [])
        self.assert_gone()
        self.assert_verified()

    def each_way(self, act: Callable[[Callable[[], None]], None]) -> None:
        for go_on in (self.carried_out_by_a_start, self.carried_out_by_the_next):
            with self.subTest(go_on=go_on.__name__):
                self.run_id = self.new_run(go_on.__name__)
                act(go_on)


class Halfway(HalfwayCase):
    def test_states_that_were_stored_meanwhile(self) -> None:
        for size in (1, 4_000):   # stored in the database, and in a file
            for go_on in (self.carried_out_by_a_start, self.carried_out_by_the_next):
                with self.subTest(size=size, go_on=go_on.__name__):
                    self.run_id = self.new_run(f"{size}.{go_on.__name__}")
                    seq = self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {"pw": f"{SECRET} " * size}}, spill=True)["seq"]
                    self.fail_halfway(seq=seq)
                    self.note(n=0)
                    self.call("snapshot.take", run_id=self.run_id)
                    go_on()
                    self.assertEqual(self.call("run.rehydrate", run_id=self.run_id)["state"]["working"], {})
                    self.assert_carried_out()

    def test_what_corpora_made_of_a_document_meanwhile(self) -> None:
        page = f"<html><body><h1>Doc</h1><p>lantern {SECRET}</p></body></html>"
        taken = self.call("corpus.ingest", corpus="k1", documents=[{"id": "d.html", "text": page}], wait=True)
        [event] = self.call("event.list", from_seq=taken["seq"], limit=1)["events"]
        artifact_id = event["body"]["artifact_id"]
        self.fail_halfway(artifact_id=artifact_id)
        self.call("corpus.ingest", corpus="k2", documents=[{"id": "d.html", "artifact_id": artifact_id}], wait=True)
        self.carried_out_by_the_next()
        self.assertEqual(self.call("evidence.retrieve", queries=[{"query": "lantern", "corpus": "k2"}])["results"][0]["cards"], [])
        self.assert_carried_out()

    def test_a_whole_run_and_what_others_made_of_it_meanwhile(self) -> None:
        def act(go_on: Callable[[], None]) -> None:
            run_id = self.new_run(f"all.{go_on.__name__}", goal=f"help {SECRET}", labels={"who": SECRET})
            put = self.call("artifact.put", run_id=run_id, text=f"lantern {SECRET}")
            pointer = f"artifact://{run_id}/{put['artifact_id']}"
            self.call("claim.record", run_id=run_id, text=f"{SECRET} was here", pointers=[pointer])
            self.client.append(run_id, "state.patched", {"format": "merge", "patch": {"who": SECRET}})
            self.followed()
            self.fail_halfway(run_id=run_id)
            self.call("snapshot.take", run_id=run_id)
            self.call("corpus.ingest", corpus=f"k.{go_on.__name__}", documents=[{"id": "d.txt", "artifact_id": put["artifact_id"]}], wait=True)
            self.call("evidence.record", run_id=self.run_id, type="note", pointer=pointer)
            go_on()
            self.assert_carried_out()
        self.each_way(act)

    def test_evidence_and_its_uses(self) -> None:
        def act(go_on: Callable[[], None]) -> None:
            recorded = self.call("evidence.record", run_id=self.run_id, type="note", content={"text": SECRET})
            claim = self.call("claim.record", run_id=self.run_id, text="it is so", pointers=[])
            self.followed()
            self.fail_halfway(seq=recorded["seq"])
            with contextlib.suppress(muniment.MunimentError):
                self.call("evidence.link", run_id=self.run_id, claim_id=claim["claim_id"], evidence_id=recorded["evidence_id"], relation="supports")
            go_on()
            self.assert_carried_out()
        self.each_way(act)

    def test_verify_of_every_kind_while_something_is_erased(self) -> None:
        """Verifies also with the state of an earlier verification."""
        saved = self.daemon.folder / "saved"
        verify = [BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--json"]
        subprocess.run([*verify, "--save", saved], check=True, capture_output=True, timeout=60)   # an interrupted one saves nothing
        for number, options in enumerate((("--save", saved), ("--resume", saved)) * 4):
            with self.subTest(options=options, number=number):
                run_id = self.new_run(f"v{number}", goal="erased")
                self.call("artifact.put", run_id=run_id, text=f"erased {number}")
                self.call("corpus.ingest", corpus=f"v{number}", documents=[{"id": "d", "text": f"lantern erased {number}"}], wait=True)
                self.followed()
                verifying = subprocess.Popen([*verify, *options], stdout=subprocess.PIPE, text=True)
                time.sleep(0.03 * (number % 4))   # no condition to wait for: each verify is interrupted at a different point
                self.redact(run_id=run_id)
                said, _ = verifying.communicate(timeout=60)
                self.assertIn(verifying.returncode, (0, 5), said)

    def test_a_verify_that_comes_in_between_with_a_patch_in_a_file(self) -> None:
        run_id = self.new_run("patched")
        seq = self.client.append(run_id, "state.patched", {"format": "merge", "patch": {"pw": f"{SECRET} " * 4_000}}, spill=True)["seq"]
        self.call("snapshot.take", run_id=run_id)
        self.followed()
        self.fail_halfway(seq=seq)
        with subprocess.Popen([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--json"], stdout=subprocess.PIPE, text=True) as verify:
            self.await_reading()
            self.carried_out_by_the_next()
            said, _ = verify.communicate(timeout=60)
        self.assertEqual(verify.returncode, 5, said)
        self.assertIn("content was erased during this verify", said)
        self.assert_carried_out()

    def test_the_doctor_names_one_that_waits(self) -> None:
        seq = self.client.append(self.run_id, "x.test.said", {"secret": SECRET})["seq"]
        self.fail_halfway(seq=seq)
        doctor = [BUILD / "muniment", "--data", self.daemon.data, "doctor"]
        self.assertNotIn("are unfinished", subprocess.run(doctor, capture_output=True, text=True, timeout=60).stdout)
        (journal,) = self.journals()
        os.utime(journal, (time.time() - 600, time.time() - 600))
        self.assertIn("1 erasures are unfinished", subprocess.run(doctor, capture_output=True, text=True, timeout=60).stdout)
        self.carried_out_by_the_next()

    def test_an_innocent_log_is_not_called_tampered_while_something_is_erased(self) -> None:
        for number in range(8):
            artifact_id = self.call("artifact.put", run_id=self.run_id, step_id=f"s{number}", text=f"bytes {number}")["artifact_id"]
            self.followed()
            verify = subprocess.Popen([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--json"], stdout=subprocess.PIPE, text=True)
            time.sleep(0.02 * number)   # no condition to wait for: each verify is interrupted at a different point
            self.redact(artifact_id=artifact_id)
            said, _ = verify.communicate(timeout=60)
            self.assertIn(verify.returncode, (0, 5), said)
        self.assert_verified()

    def test_a_restored_log_is_read_and_the_erasure_waits(self) -> None:
        seq = self.client.append(self.run_id, "x.test.said", {"secret": SECRET})["seq"]
        self.fail_halfway(seq=seq)
        restored = Daemon()
        self.addCleanup(restored.destroy)
        with tempfile.TemporaryDirectory() as backups:
            for data, words in ((self.daemon.data, ("backup", backups)), (restored.data, ("restore", backups))):
                done = subprocess.run([BUILD / "muniment", "--data", data, *words], capture_output=True, text=True, timeout=120, check=False)
                if words[0] == "backup" and done.returncode != 0:   # an announced erasure prevents backups
                    self.assertIn("erasure", done.stderr)
                    break
                self.assertEqual(done.returncode, 0, done.stderr)
            else:
                restored.start()
                with restored.client() as client:
                    self.assertEqual(client.call("run.get", run_id=self.run_id)["run"]["status"], "open")
        self.carried_out_by_the_next()
        self.assert_carried_out()

    def test_a_journal_in_a_log_that_takes_nothing(self) -> None:
        seq = self.client.append(self.run_id, "x.test.said", {"secret": SECRET})["seq"]
        with tempfile.TemporaryDirectory() as backups:
            restored = Daemon()
            self.addCleanup(restored.destroy)
            for data, words in ((self.daemon.data, ("backup", backups)), (restored.data, ("restore", backups))):
                subprocess.run([BUILD / "muniment", "--data", data, *words], capture_output=True, text=True, timeout=120, check=True)
        self.fail_halfway(seq=seq)
        (journal,) = self.journals()
        (restored.data / "redactions").mkdir(mode=0o700, exist_ok=True)
        (restored.data / "redactions" / journal.name).write_bytes(journal.read_bytes())
        restored.start()
        with restored.client() as client:
            event = client.again(lambda: client.call("event.get", seq=seq))["event"]   # the tree of a closed log is built at the first read
            self.assertEqual(event["body"], {"secret": SECRET})
        self.assertTrue((restored.data / "redactions" / journal.name).exists())
        restored.stop()
        restored.start("--continue-restored")
        self.assertIn("a requested erasure is never carried out", restored.log_tail())
        told = subprocess.run([BUILD / "muniment", "--data", restored.data, "doctor"], capture_output=True, text=True, timeout=60).stdout
        self.assertIn("1 erasures are pending in the closed log 1: they are never executed", told)
        self.carried_out_by_the_next()


class InFiles(HalfwayCase, Archived):
    config = CONFIG

    def test_an_archived_event(self) -> None:
        seqs = [self.client.append(self.run_id, "x.test.said", {"secret": SECRET, "n": n})["seq"] for n in range(2)]
        self.archive(self.fill_partition())
        self.assertIn(str(seqs[0]), [row[0] for row in self.in_files(0)])
        left = list(seqs)

        def act(go_on: Callable[[], None]) -> None:
            seq = left.pop(0)
            self.fail_halfway(seq=seq)
            go_on()
            self.assertEqual(self.journals(), [])
            self.assertNotIn(str(seq), [row[0] for row in self.in_files(0)])
            held = subprocess.run(["zstd", "-dc", self.file_of(seq)], check=True, capture_output=True).stdout
            self.assertEqual(held.count(SECRET.encode()), len(left))
            self.verify()
        self.each_way(act)


if __name__ == "__main__":
    main()
