"""Tests that memories which were changed behind the daemon's back are refused when they are read: the edits T1 to T8 of
Agent Memory Integrity, by a superuser of Postgres who owns the files and has no key, on a running and on a restarted daemon."""
from __future__ import annotations

import json
import os
import time
import unittest
from typing import Optional

from integrity_case import Attacker, Memories
from support import main

EDITS = {
    "T1 content": "content", "T1 content, with its event": "content_and_event",
    "T2 cut tail: rows and file": "cut_rows", "T2 cut tail, with the events": "cut_tail",
    "T3 deletion: rows and file": "delete_rows", "T3 deletion, with its event": "delete_all",
    "T4 reordering: rows": "reorder_rows", "T4 reordering, with the events": "reorder_events",
    "T5 insertion": "insert", "T6 replay into another corpus": "replay_context",
    "T7 replay of an older revision": "replay_old", "T7 replay, the newer one deleted": "replay_old_and_delete", "T8 metadata": "metadata",
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


if __name__ == "__main__":
    main()
