"""Adapter of Agent Memory Integrity for the LangGraph checkpointer: the edits at rest on the events that hold a thread's checkpoints.

A record is the event state.patched that a checkpoint wrote, with the event of the checkpoint after it. The attacker is that of
muniment_memory.py; `verify` lists the thread's checkpoints with a new saver.
"""
from __future__ import annotations

import json
import re
from typing import Any

from agmi.adapters.base import Record
from langgraph.checkpoint.base import create_checkpoint, empty_checkpoint
from muniment_memory import RunningMemories
from support import muniment

from muniment.checkpointer import MunimentSaver

THREAD, OTHER = "agmi-thread", "agmi-other"


class RunningSaver(RunningMemories):
    name = "Muniment, LangGraph saver, daemon running"

    def setup(self) -> None:
        super().setup()
        self.last: dict[str, Any] = {}

    def put(self, thread: str, n: int, first: int = 0) -> None:
        with MunimentSaver(self.memories.daemon.socket) as saver:
            config, checkpoint = self.last.get(thread, ({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}, empty_checkpoint()))
            for i in range(first, first + n):
                checkpoint = create_checkpoint(checkpoint, None, i)
                checkpoint["channel_values"] = {"state": f"{thread} says {i}"}
                checkpoint["channel_versions"] = {"state": i + 1}
                config = saver.put(config, checkpoint, {"source": "loop", "step": i}, {"state": i + 1})
            self.last[thread] = (config, checkpoint)

    def seed(self, n: int) -> None:
        self.put(THREAD, n)

    def seed_other(self, n: int) -> None:
        self.put(OTHER, n)

    def append_genuine(self) -> None:
        self.put(THREAD, 1, 99)

    def rows(self, thread: str) -> list[Record]:
        found = self.attacker().sql(
            "SELECT p.seq, p.body, c.actor FROM event c JOIN event p ON p.run_no = c.run_no AND p.run_seq = c.run_seq - 1 WHERE c.type = 'x.langgraph.checkpoint' "
            f"AND c.run_no = (SELECT run_no FROM event WHERE type = 'run.started' AND body ->> 'run_id' = 'langgraph-{thread}' "
            f"OR (type = 'run.started' AND body::text LIKE '%{thread}%') LIMIT 1) ORDER BY c.seq")
        return [Record(i, {"id": seq, "text": body, "corpus": thread, "actor": actor}) for i, (seq, body, actor) in enumerate(found)]

    def read_all_raw(self) -> list[Record]:
        return self.rows(THREAD)

    def read_other_raw(self) -> list[Record]:
        return self.rows(OTHER)

    def mutate_payload(self, record: Record) -> Record:
        """Changes a digit of a checkpoint's id, which the state holds."""
        record.fields["text"] = re.sub('"([0-9a-f])(?=[0-9a-f]{7}-)', lambda found: '"1' if found[1] == "0" else '"0', record.fields["text"], count=1)
        return record

    def forge_record(self, template: Record) -> Record:
        return self.mutate_payload(Record(template.seq + 1, {**template.fields, "id": "forged"}))

    def write_raw(self, record: Record) -> None:
        attacker, there = self.attacker(), self.read_all_raw()
        if record.seq < len(there):
            seq = int(there[record.seq].fields["id"])
        else:   # both events of the last checkpoint once more, at the end of the log
            last, end = int(there[-1].fields["id"]), int(attacker.sql("SELECT max(seq) + 1 FROM event")[0][0])
            seq = end
            attacker.sql("CREATE TEMP TABLE e AS SELECT * FROM event WHERE seq IN " + f"({last}, {last + 1})",
                         
                         f"UPDATE e SET seq = seq - {last} + {end}, run_seq = seq - {last} + (SELECT max(x.run_seq) + 1 FROM event x WHERE x.run_no = e.run_no), "
                         "event_id = gen_random_uuid()", "INSERT INTO event SELECT * FROM e")
        attacker.sql(f"UPDATE event SET body = $body${record.fields['text']}$body$ WHERE seq = {seq}",
                     f"UPDATE event SET body_hash = sha256(salt || convert_to(body::text, 'UTF8')) WHERE seq = {seq}")

    def delete_raw(self, seq: int) -> None:
        first = int(self.read_all_raw()[seq].fields["id"])
        self.attacker().sql(f"DELETE FROM event WHERE seq IN ({first}, {first + 1})")

    def read_meta(self, seq: int) -> dict[str, Any]:
        return {"actor": self.read_all_raw()[seq].fields["actor"]}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        self.attacker().sql(f"UPDATE event SET actor = 'uid:4242' WHERE seq = {int(self.read_all_raw()[seq].fields['id']) + 1}")

    def verify(self) -> bool:
        self.as_stored = False
        if self.no_start:
            self.verify_detail = self.no_start
            return False
        try:
            with MunimentSaver(self.memories.daemon.socket) as saver:
                saver.client.retry_for_s = 0
                json.dumps([one.checkpoint["channel_values"] for one in saver.list({"configurable": {"thread_id": THREAD}})])
        except (muniment.MunimentError, LookupError, ValueError) as error:
            self.verify_detail = str(error)[:300]
            return False
        return True


class RestartedSaver(RunningSaver):
    name = "Muniment, LangGraph saver, daemon restarted"
    restarts = True
