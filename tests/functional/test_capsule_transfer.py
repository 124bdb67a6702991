"""Tests of capsule export and import: documents and messages keep their bytes, times and origin between a log and a capsule."""
from __future__ import annotations

import hashlib
import json
import struct
import subprocess
from typing import Any

from support import BUILD, PATIENCE_S, DaemonCase, main
from test_capsule import CapsuleCase

import muniment_capsule


class Transfer(CapsuleCase, DaemonCase):
    def setUp(self) -> None:
        DaemonCase.setUp(self)
        CapsuleCase.setUp(self)
        self.corpus = self.run_id[:50]
        self.copy = self.corpus + "-copy"

    def there(self, *words: Any, code: int = 0) -> str:
        """Runs a command against the daemon."""
        return self.run_words("--data", self.daemon.data, *words, code=code).stdout

    def ingest(self, document: str, text: str, **more: Any) -> int:
        answer = self.call("corpus.ingest", corpus=self.corpus, documents=[{"id": document, "text": text, **more}], wait=True)
        self.assertEqual(answer["errors"], [])
        return int(answer["seq"])

    def reader(self) -> muniment_capsule.Capsule:
        reader = muniment_capsule.Capsule(str(self.file))
        reader.verify()
        return reader

    def revisions(self, corpus: str, document: str) -> list[dict[str, Any]]:
        return self.call("document.history", corpus=corpus, document=document)["revisions"]

    def test_a_corpus_becomes_a_signed_capsule_and_is_taken_into_another_corpus(self) -> None:
        self.ingest("plan.md", "# Plan\n\nThe crane is repaired in March.\n", tags=["harbour"], timestamp="2026-01-02T03:04:05Z")
        second = self.ingest("plan.md", "# Plan\n\nThe crane is repaired in April.\n", tags=["harbour"])
        self.ingest("lamp.txt", "The lamp is brass.\n", trust="quarantined")
        self.ingest("gone.txt", "This note is withdrawn.\n")
        self.call("document.retract", corpus=self.corpus, document="gone.txt", reason="old")
        key, public = self.folder / "a.key", self.folder / "a.pub"
        public.write_text(self.run_words("capsule", "key", "a.example", "-o", key).stdout)
        told = json.loads(self.there("--json", "capsule", "export", self.file, "--corpus", self.corpus, "--sign", key))
        self.assertEqual((told["documents"], told["left_out"], told["signed"]), (4, [], True))
        done = subprocess.run([BUILD / "muniment-verify", "--capsule", self.file, "--key", public], capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        frames = [frame for frame in self.reader().frames() if frame.type == "document"]
        recorded = [json.loads(frame.about)["recorded"] for frame in frames]
        event = self.call("event.get", seq=second)["event"]
        self.assertEqual((recorded[1]["seq"], recorded[1]["event_id"], recorded[1]["run_hash"]),
                         (second, event["event_id"], event["run_hash"]))
        self.assertIn("April", self.cards("crane harbour")[0]["summary"])
        self.assertIn("March", self.cards("crane harbour", "--asof", "0")[0]["summary"])
        self.assertEqual(self.cards("withdrawn note"), [])

        told = json.loads(self.there("--json", "capsule", "import", self.file, "--corpus", self.copy))
        self.assertEqual((told["documents"], told["known"], told["only_in_capsule"]), (4, 0, 1))   # the signature; a question to a signed capsule is not recorded
        found = self.revisions(self.copy, "plan.md")
        self.assertEqual([one["hash"] for one in found], [one["hash"] for one in self.revisions(self.corpus, "plan.md")])
        self.assertEqual((found[1]["timestamp"][:19], found[1]["tags"], found[1]["trust"]), ("2026-01-02T03:04:05", ["harbour"], "untrusted"))
        self.assertEqual(self.revisions(self.copy, "lamp.txt")[0]["trust"], "quarantined")
        self.assertEqual(self.revisions(self.copy, "gone.txt")[0]["ended_by"], "retracted")
        run = self.call("run.get", run_id=told["run_id"])["run"]
        self.assertEqual((run["origin"], run["status"]), ("imported", "ended"))
        notes = [frame for event in self.events(told["run_id"]) if event["type"] == "x.muniment.imported" for frame in event["body"]["frames"]]
        self.assertEqual([(note["frame"], note["type"]) for note in notes],
                         [(0, "document"), (1, "document"), (2, "document"), (3, "document"), (4, "retraction")])
        self.assertEqual(notes[0]["chain"], frames[0].chain.hex())
        self.assertEqual(self.call("artifact.list", run_id=told["run_id"])["artifacts"][0]["size_bytes"], self.file.stat().st_size)

    def test_a_grown_capsule_adds_what_is_new(self) -> None:
        self.write("a.txt", "The first note.\n")
        self.capsule("ingest", self.notes, "--corpus", self.corpus)
        self.write("a.txt", "The second note.\n")
        self.capsule("ingest", self.notes, "--corpus", self.corpus)
        first = json.loads(self.there("--json", "capsule", "import", self.file))
        again = json.loads(self.there("--json", "capsule", "import", self.file))
        self.assertEqual((first["documents"], again["documents"], again["run_id"], again["already"]), (2, 0, first["run_id"], True))
        other = json.loads(self.there("--json", "capsule", "import", self.file, "--corpus", self.copy))
        self.assertEqual((other["documents"], other["already"]), (2, False))
        self.write("b.txt", "The third note.\n")
        self.capsule("ingest", self.notes, "--corpus", self.corpus)
        grown = json.loads(self.there("--json", "capsule", "import", self.file))
        self.assertEqual((grown["documents"], grown["known"]), (1, 2))
        self.assertEqual(len(self.revisions(self.corpus, "a.txt")), 2)

    def test_what_came_back_is_current_after_each_import(self) -> None:
        for text in ("The first note.\n", "The second note.\n", "The first note.\n"):
            self.write("a.txt", text)
            self.capsule("ingest", self.notes, "--corpus", self.corpus)
        self.write("b.txt", "The fact.\n")
        self.capsule("ingest", self.notes, "--corpus", self.corpus)
        self.capsule("document", "retract", self.corpus, "b.txt", "--reason", "wrong")
        self.capsule("ingest", self.notes, "--corpus", self.corpus)
        for turn in range(2):
            self.there("capsule", "import", self.file)
            first, fact = self.revisions(self.corpus, "a.txt"), self.revisions(self.corpus, "b.txt")
            self.assertEqual((len(first), first[0]["revision"] == first[2]["revision"], "ended_by" in first[0]), (3, True, False))
            self.assertEqual((len(fact), fact[1]["ended_by"], "ended_by" in fact[0]), (2, "retracted", False))
            self.capsule("log", "user", f"turn {turn}")   # the capsule grows

    def test_a_capsule_retracts_only_what_it_held(self) -> None:
        self.ingest("mine.txt", "My own note.\n")
        self.write("mine.txt", "A note of the same name.\n")
        self.capsule("ingest", self.notes, "--corpus", self.corpus)
        self.capsule("document", "retract", self.corpus, "mine.txt", "--reason", "gone")
        frames = {frame.type: frame for frame in self.reader().frames()}
        forged = json.loads(frames["retraction"].about)
        del forged["revision"]
        body, reader = self.file.read_bytes(), self.reader()
        about = json.dumps(forged).encode()
        time_us = frames["retraction"].time_us + 1
        chained = struct.pack("<4sIQqQQ", b"MUFR", 2, reader.commit.frames, time_us, len(about), 0) + hashlib.sha256(about).digest()
        chain = hashlib.sha256(reader.commit.chain + chained).digest()
        frame = chained + chain + struct.pack("<II", muniment_capsule.crc32c(chained + chain), 0) + about + bytes(-len(about) % 8)
        at = reader.commit.end
        commit = struct.pack("<5Q", reader.commit.number + 1, reader.commit.frames + 1, 0, 0, 128) + chain + struct.pack("<QQ", 0, 0)
        commit += struct.pack("<Q", at + len(frame)) + b"MUCOMMIT"
        head = struct.pack("<4sIQqQQ", b"MUFR", 17, reader.commit.frames + 1, time_us, 0, len(commit)) + hashlib.sha256(commit).digest() + chain
        self.file.write_bytes(body[:at] + frame + head + struct.pack("<II", muniment_capsule.crc32c(head), 0) + commit)
        told = json.loads(self.there("--json", "capsule", "import", self.file))
        self.assertEqual(told["only_in_capsule"], 1)
        self.assertEqual([one["ended_by"] for one in self.revisions(self.corpus, "mine.txt")], ["retracted", "revised"])

    def test_messages_of_a_run_and_the_state_of_the_past(self) -> None:
        before = self.ingest("a.txt", "The first note.\n")
        self.ingest("a.txt", "The second note.\n")
        self.call("run.start", run_id=self.run_id, agent={"name": "coder"})
        self.call("event.append", run_id=self.run_id, type="message.added", body={
            "message_id": "m1", "role": "user", "content": [{"type": "text", "content": "Where is the plan?"}]})
        told = json.loads(self.there("--json", "capsule", "export", self.file, "--corpus", self.corpus, "--run", self.run_id))
        self.assertEqual((told["documents"], told["messages"]), (2, 1))
        turn = [frame for frame in self.reader().frames() if frame.type == "log"][0]
        about = json.loads(turn.about)
        self.assertEqual((about["role"], about["session"], turn.body), ("user", self.run_id, b"Where is the plan?"))
        imported = json.loads(self.there("--json", "capsule", "import", self.file, "--corpus", self.copy))
        message = [event for event in self.events(imported["run_id"]) if event["type"] == "message.added"][0]
        self.assertEqual(message["body"]["content"], [{"type": "text", "content": "Where is the plan?"}])
        past = self.folder / "past.mv2"
        self.there("capsule", "export", past, "--corpus", self.corpus, "--asof", before)
        self.assertIn("The first note", self.run_words("--capsule", past, "query", "note").stdout)

    def test_what_was_erased_or_revoked_stays_in_the_log(self) -> None:
        self.ingest("a.txt", "The harbour master is Kim.\n", source="mail:kim")
        self.ingest("b.txt", "The lamp is brass.\n")
        self.call("source.revoke", source="mail:kim", reason="asked to")
        told = json.loads(self.there("--json", "capsule", "export", self.file, "--corpus", self.corpus))
        self.assertEqual((told["documents"], len(told["left_out"])), (1, 1))
        self.assertNotIn(b"harbour master", self.file.read_bytes())

    def test_a_damaged_capsule_and_bad_use_change_nothing(self) -> None:
        self.write("a.txt", "The first note.\n")
        self.capsule("ingest", self.notes, "--corpus", self.corpus)
        whole = bytearray(self.file.read_bytes())
        whole[whole.index(b"The first note.")] ^= 1
        damaged = self.folder / "damaged.mv2"
        damaged.write_bytes(whole)
        known = [run["run_id"] for run in self.call("run.list")["runs"]]
        self.run_words("--data", self.daemon.data, "capsule", "import", damaged, code=2)
        self.capsule("ingest", self.notes, "--corpus", "other")
        refused = self.run_words("--data", self.daemon.data, "capsule", "import", self.file, "--corpus", "one", code=1)
        self.assertIn("Omit --corpus", refused.stderr)
        self.assertEqual([run["run_id"] for run in self.call("run.list")["runs"] if run["run_id"].startswith("capsule-") and
                          run["run_id"] not in known], [])
        refused = self.run_words("--data", self.daemon.data, "capsule", "export", self.folder / "new.mv2", "--corpus", "nothing", code=1)
        self.assertIn("corpus list", refused.stderr)
        self.assertFalse((self.folder / "new.mv2").exists())


if __name__ == "__main__":
    main()
