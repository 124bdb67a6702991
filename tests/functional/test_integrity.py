"""Tests that memories which were changed behind the daemon's back are refused when they are read: the edits T1 to T8 of
Agent Memory Integrity, by a superuser of Postgres who owns the files and has no key, on a running and on a restarted daemon."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest
import uuid
from typing import Any, Callable, Optional

from integrity_case import FACTS, Attacker, Memories
from support import main, muniment, wait_until
from test_witness import Witness

EDITS = {
    "T1 content": "content", "T1 content, with its event": "content_and_event",
    "T2 cut tail: rows and file": "cut_rows", "T2 cut tail, with the events": "cut_tail",
    "T3 deletion: rows and file": "delete_rows", "T3 deletion, with its event": "delete_all",
    "T4 reordering: rows": "reorder_rows", "T4 reordering, with the events": "reorder_events",
    "T5 insertion": "insert", "T6 replay into another corpus": "replay_context",
    "T7 replay of an older revision": "replay_old", "T7 replay, the newer one deleted": "replay_old_and_delete", "T8 metadata": "metadata",
    "T7 replay, followed again": "replay_old_followed_again",
}


class Integrity(unittest.TestCase):
    template: Memories

    @classmethod
    def setUpClass(cls) -> None:
        cls.template = Memories()
        cls.addClassCleanup(cls.template.daemon.destroy)

    def attacked(self, edit: Optional[str], restart: bool, drop_indexes: bool) -> str:
        began = time.monotonic()
        memories = Memories(self.template)
        self.addCleanup(memories.daemon.destroy)
        memories.start()
        if restart:
            memories.daemon.kill()
        attacker = Attacker(memories)
        forged = getattr(attacker, edit)() if edit else ()
        if drop_indexes:
            attacker.drop_indexes()
        if restart:
            memories.daemon.restart()
        answers = memories.read()
        verdict = answers.verdict(forged)
        if os.environ.get("INTEGRITY_SHOW"):
            print(f"{edit} restart={restart} drop={drop_indexes}: {verdict} {time.monotonic() - began:.1f} s", flush=True)
            if os.environ["INTEGRITY_SHOW"] == "2":
                print(json.dumps({"recalled": answers.recalled, "listed": answers.listed, "packed": answers.packed}, indent=1)[:6000], flush=True)
        memories.daemon.destroy()
        return verdict

    def assert_refused(self, restart: bool, drop_indexes: bool = False) -> None:
        for name, edit in EDITS.items():
            with self.subTest(name):
                self.assertIn(self.attacked(edit, restart, drop_indexes), ("refused", "genuine"))

    def test_memories_are_told_as_they_were_stored(self) -> None:
        self.assertEqual([self.attacked(None, *how) for how in ((False, False), (True, False), (True, True))], ["genuine"] * 3)

    def test_edits_of_a_running_daemon_are_refused(self) -> None:
        self.assert_refused(restart=False)

    def test_edits_before_a_restart_are_refused(self) -> None:
        self.assert_refused(restart=True)

    def test_edits_before_a_restart_with_new_indexes_are_refused(self) -> None:
        self.assert_refused(restart=True, drop_indexes=True)


def status_of(memories: Memories) -> dict[str, Any]:
    with memories.daemon.client() as client:
        status = client.call("server.status")
    memories.uri, memories.log_id, memories.stored = status["database"], status["log"]["log_id"], status["log"]["size"]
    return status["log"]


def start_marked(memories: Memories, log_id: str, size: int) -> None:
    """Starts the daemon with the mark of a restore, which has no signature: the owner of the folder can write it."""
    (memories.daemon.data / "restored.json").write_text(json.dumps({"log_no": 1, "log_id": log_id, "size": size}))
    memories.daemon.start()


class Restored(unittest.TestCase):
    """A log that is marked as restored is read, if the mark describes it, and held against the tree of its events."""

    def assert_refused(self, memories: Memories) -> None:
        answers = memories.read()
        self.assertEqual([text for text in answers.texts() if "REFUSED" not in text], [])
        memories.stop()

    def test_only_the_log_that_the_mark_describes_is_read_and_its_events_are_held_against_their_tree(self) -> None:
        memories = Memories()
        self.addCleanup(memories.daemon.destroy)
        start_marked(memories, log_id=str(uuid.uuid4()), size=1)
        log = status_of(memories)
        self.assert_refused(memories)
        start_marked(memories, log_id=log["log_id"], size=log["size"] - 1)
        self.assert_refused(memories)

        start_marked(memories, log_id=log["log_id"], size=log["size"])
        answers = memories.read()   # recall is recorded, which this log refuses
        self.assertEqual(answers.packed, FACTS)
        self.assertNotIn("REFUSED", answers.listed)
        attacker = Attacker(memories)
        seq = attacker.document("home")["seq"]
        with memories.daemon.client() as client:
            self.assertEqual(client.call("event.get", seq=seq)["event"]["seq"], seq)
        attacker.content_and_event()
        self.assertIn("REFUSED", memories.read().packed["home"])
        with memories.daemon.client() as client, self.assertRaises(muniment.MunimentError) as refused:
            client.call("event.get", seq=seq)
        self.assertEqual(refused.exception.code, "corrupt")


class OlderCopy(unittest.TestCase):
    """T9: the database and the data folder are replaced by an older copy of both."""

    def rolled_back(self, keeper: Callable[[str], str]) -> Memories:
        """`keeper` returns the setting `witnesses`, given the log's key."""
        memories = Memories()
        self.addCleanup(memories.daemon.destroy)
        memories.start()
        with memories.daemon.client() as client:
            client.call("run.start", run_id="r", agent={"name": "a"})
            self.record(client, "Lisbon")
            key = client.call("audit.key", action="init")["keys"][0]
            wait_until(lambda: client.call("audit.checkpoint").get("note"), "a checkpoint is signed")
        memories.stop()
        (memories.daemon.folder / "muniment.toml").write_text(f'witnesses = "{keeper(key)}"\n')
        older = memories.daemon.folder / "older"
        subprocess.run(["cp", "-a", memories.daemon.data, older], check=True)
        memories.start()
        with memories.daemon.client() as client:
            client.remember("home", "Kim lives in Faro.", tags=["fact"])
            self.record(client, "Faro")
            size = client.call("server.status")["log"]["size"]
            wait_until(lambda: all(one["size"] >= size for one in client.call("audit.checkpoint").get("kept_by", [])), "it is kept elsewhere")
        memories.stop()
        shutil.rmtree(memories.daemon.data)
        older.rename(memories.daemon.data)
        return memories

    def record(self, client: Any, city: str) -> None:
        """Appends evidence and a change of the state, and takes a snapshot."""
        self.evidence = client.call("evidence.record", run_id="r", type="note", content={"text": city})["evidence_id"]
        client.append("r", "state.patched", {"format": "merge", "patch": {"city": city}})
        self.snapshot = f"snap://r/{client.call('snapshot.take', run_id='r')['seq']}"

    def answers(self, memories: Memories) -> list[str]:
        """Returns the answers about the evidence and the state, or REFUSED for each."""
        reads: tuple[Callable[[Any], Any], ...] = (
            lambda client: client.call("evidence.list", run_id="r"), lambda client: client.call("evidence.get", evidence_id=self.evidence),
            lambda client: client.call("run.rehydrate", run_id="r"), lambda client: client.call("snapshot.latest", run_id="r"),
            lambda client: client.call("snapshot.list", run_id="r"), lambda client: client.call("event.list", run_id="r"),
            lambda client: client.call("event.get", run_id="r", run_seq=1))
        found = []
        with memories.daemon.client(retry_for_s=0) as client:
            for read in reads:
                try:
                    found.append(json.dumps(read(client)))
                except muniment.MunimentError as error:
                    found.append(f"REFUSED {error.code}")
        return found

    def assert_told_as_refused(self, memories: Memories) -> None:
        self.assertEqual(memories.read().verdict(("Porto", "Lisbon")), "refused")
        self.assertEqual([one for one in self.answers(memories) if "REFUSED" not in one], [])
        with memories.daemon.client() as client:
            self.assertIn("log_rolled_back", " ".join(client.call("server.status")["degraded"]))

    def assert_refused(self, keeper: Callable[[str], str]) -> None:
        memories = self.rolled_back(keeper)
        memories.daemon.start()
        self.assert_told_as_refused(memories)

    def not_known(self, memories: Memories) -> None:
        with memories.daemon.client() as client:
            self.assertNotIn("log_rolled_back", json.dumps(client.call("server.status")))

    def refused_later(self, memories: Memories) -> None:
        """Waits until a keeper that was away at the start has been asked."""
        with memories.daemon.client() as client:
            wait_until(lambda: "log_rolled_back" in " ".join(client.call("server.status")["degraded"]), "the keeper is asked")
        self.assert_told_as_refused(memories)

    def test_an_older_copy_is_refused_by_what_a_folder_elsewhere_holds(self) -> None:
        elsewhere = pathlib.Path(tempfile.mkdtemp(prefix="muniment-test-"))
        self.addCleanup(shutil.rmtree, elsewhere, True)
        self.assert_refused(lambda key: f"folder:{elsewhere}")

    def test_an_older_copy_is_refused_by_what_a_witness_has_seen(self) -> None:
        def witness(key: str) -> str:
            made = Witness(key)
            self.addCleanup(made.destroy)
            return f"{made.listen} {made.vkey}"
        self.assert_refused(witness)

    def test_an_older_copy_is_refused_when_a_folder_returns(self) -> None:
        elsewhere = pathlib.Path(tempfile.mkdtemp(prefix="muniment-test-"))
        self.addCleanup(shutil.rmtree, elsewhere, True)
        folder, away = elsewhere / "notes", elsewhere / "away"
        folder.mkdir()
        memories = self.rolled_back(lambda key: f"folder:{folder}")
        folder.rename(away)
        memories.daemon.start(failpoint="submitter.ask_soon=error@1+")
        self.not_known(memories)
        away.rename(folder)
        self.refused_later(memories)

    def test_an_older_copy_is_refused_when_a_witness_returns(self) -> None:
        made: list[Witness] = []

        def witness(key: str) -> str:
            made.append(Witness(key))
            self.addCleanup(made[0].destroy)
            return f"{made[0].listen} {made[0].vkey}"
        memories = self.rolled_back(witness)
        made[0].stop()
        memories.daemon.start()
        self.not_known(memories)
        made[0].start()
        self.refused_later(memories)

    def test_another_history_of_the_same_size_is_refused(self) -> None:
        elsewhere = pathlib.Path(tempfile.mkdtemp(prefix="muniment-test-"))
        self.addCleanup(shutil.rmtree, elsewhere, True)
        memories = self.rolled_back(lambda key: f"folder:{elsewhere}")
        kept = max(elsewhere.iterdir())
        note, size = kept.read_text(), int(kept.read_text().splitlines()[1])
        kept.unlink()   # the folder returns with it when this history is longer
        for path in elsewhere.iterdir():
            path.unlink()
        memories.daemon.start(failpoint="submitter.ask_soon=error@1+")
        with memories.daemon.client() as client:
            end = 1 + wait_until(lambda: (seq := client.append("r", "x.test.noted", {})["seq"]) > size and seq, "it is longer")
            wait_until(lambda: client.call("audit.checkpoint")["kept_by"][0]["size"] == end, "the folder has all of it")
        for path in elsewhere.iterdir():
            path.unlink()
        kept.write_text(note)
        self.refused_later(memories)

    def test_an_older_copy_that_is_marked_as_restored_is_refused(self) -> None:
        elsewhere = pathlib.Path(tempfile.mkdtemp(prefix="muniment-test-"))
        self.addCleanup(shutil.rmtree, elsewhere, True)
        memories = self.rolled_back(lambda key: f"folder:{elsewhere}")
        memories.daemon.start()
        log = status_of(memories)
        memories.stop()
        start_marked(memories, log_id=log["log_id"], size=log["size"])
        self.assert_told_as_refused(memories)

    def test_without_a_witness_an_older_copy_is_told_and_the_status_says_so(self) -> None:
        memories = self.rolled_back(lambda key: "")
        memories.daemon.start()
        self.assertEqual(memories.read().recalled["home"].count("Porto") > 0, True)
        with memories.daemon.client() as client:
            self.assertIn("no witness", json.dumps(client.call("server.status")))


if __name__ == "__main__":
    main()
