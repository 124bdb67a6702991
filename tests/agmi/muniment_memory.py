"""Adapters of Agent Memory Integrity for memories: the edits at rest (T1 to T9), and the attacks through the front door.

The attacker is the superuser of Postgres, who bypasses triggers, and the owner of the files, but has no key. An edit changes
the rows with their hashes and the file; a deletion also the events. `verify` asks the daemon to read, and audits nothing.
"""
from __future__ import annotations

import contextlib
import json
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any

from agmi.adapters.base import MemoryAdapter, Record
from agmi.adapters.semantic_base import MemoryItem, Retrieved, SemanticMemoryAdapter
from integrity_case import Attacker, MEMORY, OTHERS, Memories
from support import Daemon, muniment

FIRST, SECOND = "agmi-seed-", "agmi-other-"


class RunningMemories(MemoryAdapter):
    name = "Muniment, remember and recall, daemon running"
    detection_point = "read"
    supports_replay = supports_metadata = supports_snapshot = True
    restarts = False

    def setup(self) -> None:
        self.elsewhere = pathlib.Path(tempfile.mkdtemp(prefix="muniment-test-"))
        self.memories = Memories(empty=True, witnesses=f"folder:{self.elsewhere}")
        self.memories.start()
        with self.memories.daemon.client() as client:
            client.call("audit.key", action="init")
        self.subjects: list[str] = []
        self.verify_detail: str | None = None
        self.no_start = ""
        self.as_stored = False

    def teardown(self) -> None:
        self.memories.daemon.destroy()
        shutil.rmtree(self.elsewhere, ignore_errors=True)

    def remember(self, corpus: str, subject: str) -> None:
        with self.memories.daemon.client() as client:
            client.remember(subject, f"The note {subject} says {subject[::-1]}.", corpus=corpus, source=f"run://{subject}")

    def seed(self, n: int) -> None:
        for i in range(n):
            self.remember(MEMORY, f"{FIRST}{i}")
            self.subjects.append(f"{FIRST}{i}")

    def seed_other(self, n: int) -> None:
        for i in range(n):
            self.remember(OTHERS, f"{SECOND}{i}")

    # The raw store.

    def attacker(self) -> Attacker:
        with self.memories.daemon.client() as client:
            status = client.call("server.status")
        self.memories.uri, self.memories.log_id = status["database"], status["log"]["log_id"]
        return Attacker(self.memories)

    def rows(self, corpus: str) -> list[Record]:
        attacker = self.attacker()
        found = attacker.sql(f"SELECT document, source, array_to_json(tags) FROM document WHERE corpus = '{corpus}' AND valid_to IS NULL ORDER BY seq")
        records = []
        for seq, (subject, source, tags) in enumerate(found):
            row = attacker.document(subject, corpus)
            text = (self.memories.daemon.data / "artifacts" / row["path"]).read_bytes().decode()
            records.append(Record(seq, {"id": subject, "text": text, "corpus": corpus, "meta": json.dumps([source, json.loads(tags)])}))
        return records

    def read_all_raw(self) -> list[Record]:
        return self.rows(MEMORY)

    def read_other_raw(self) -> list[Record]:
        return self.rows(OTHERS)

    def owner_of(self, record: Record) -> str:
        return str(record.fields["corpus"])

    def payload_of(self, record: Record) -> str:
        return str(record.fields["text"])

    def mutate_payload(self, record: Record) -> Record:
        record.fields["text"] += " [TAMPERED]"
        return record

    def forge_record(self, template: Record) -> Record:
        return self.mutate_payload(Record(template.seq + 1, {**template.fields, "id": "forged"}))

    def write_raw(self, record: Record) -> None:
        attacker, there = self.attacker(), self.read_all_raw()
        if record.seq < len(there):
            attacker.write(attacker.document(there[record.seq].fields["id"]), record.fields["text"])
        else:
            attacker.insert(there[-1].fields["id"], record.fields["id"], record.fields["text"])

    def delete_raw(self, seq: int) -> None:
        attacker = self.attacker()
        attacker.delete(attacker.document(self.read_all_raw()[seq].fields["id"]), event=True)

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        self.write_raw(Record(victim_seq, donor.fields))

    def read_meta(self, seq: int) -> dict[str, Any]:
        source, tags = json.loads(self.read_all_raw()[seq].fields["meta"])
        return {"source": source, **{tag: True for tag in tags}}

    def write_meta(self, seq: int, meta: dict[str, Any]) -> None:
        subject = self.read_all_raw()[seq].fields["id"]
        tags = ",".join(name for name in meta if name != "source")
        self.attacker().sql(f"UPDATE document SET tags = '{{{tags}}}', trust = 'trusted' WHERE corpus = '{MEMORY}' AND document = '{subject}'")

    def snapshot_store(self) -> pathlib.Path:
        self.memories.stop()
        copy = self.memories.daemon.folder / "copy"
        subprocess.run(["cp", "-a", self.memories.daemon.data, copy], check=True)
        self.memories.start()
        return copy

    def append_genuine(self) -> None:
        self.seed_one = f"{FIRST}later"
        self.remember(MEMORY, self.seed_one)

    def restore_store(self, token: object) -> None:
        self.memories.stop()
        shutil.rmtree(self.memories.daemon.data)
        pathlib.Path(str(token)).rename(self.memories.daemon.data)
        self.memories.daemon.start()

    # The tool.

    def reload(self) -> None:
        if not self.restarts:
            return
        self.end()
        try:
            self.memories.daemon.start()
        except AssertionError as error:
            self.no_start = str(error).splitlines()[-1]

    def verify(self) -> bool:
        """Returns False if the daemon refused to tell a memory, or named what it found changed."""
        if self.no_start:
            self.verify_detail = self.no_start
            return False
        self.as_stored = True
        with self.memories.daemon.client(retry_for_s=0) as client:
            try:
                with contextlib.suppress(muniment.MunimentError):   # the indexes may have to be filled again
                    client.call("evidence.retrieve", queries=[{"query": "wait"}], min_seq=client.call("server.status")["log"]["size"] - 1)
                told = [text for subject in self.subjects for text in self.read(client, subject)]
                listed = {one["document"] for one in client.call("document.list", corpus=MEMORY)["documents"]}
                if listed - set(self.subjects):   # a memory that was never stored, whatever else is named
                    return True
                told += [text for text in client.call("server.status")["degraded"] if "differed from the log" in text]
            except muniment.MunimentError as error:
                told = [f"{error.code}: {error}"]
        self.verify_detail = told[0][:300] if told else None
        return not told

    def read(self, client: Any, subject: str) -> list[str]:
        found = client.recall(f"what does the note {subject} say", corpus=MEMORY)
        row = client.call("document.get", corpus=MEMORY, document=subject)["document"]
        self.as_stored = (self.as_stored and f"The note {subject} says {subject[::-1]}." in found["text"] and "TAMPERED" not in found["text"]
                          and (row["source"], row["tags"], row["trust"]) == (f"run://{subject}", [], "untrusted"))
        return [text for text in [*found.get("degraded", []), found.get("reason", "")] if "verified" in text or "differ" in text]


    def end(self) -> None:
        self.memories.daemon.stop()


class RestartedMemories(RunningMemories):
    name = "Muniment, remember and recall, daemon restarted"
    restarts = True


class KilledMemories(RestartedMemories):
    name = "Muniment, remember and recall, daemon killed and restarted"

    def end(self) -> None:
        self.memories.daemon.kill()


class FrontDoor(SemanticMemoryAdapter):
    name = "Muniment, default configuration, one corpus for each user"

    def __init__(self) -> None:
        self.daemon = Daemon().start()
        self.count = 0

    def reset(self) -> None:
        self.count += 1

    def close(self) -> None:
        self.daemon.destroy()

    def corpus(self, user_id: str) -> str:
        return f"memory.{user_id}.{self.count}"

    def add_memory(self, item: MemoryItem) -> None:
        self.items = getattr(self, "items", 0) + 1
        tags = [f"{key}={value}" for key, value in item.metadata.items()]
        with self.daemon.client() as client:
            client.remember(f"fact-{self.items}", item.text, corpus=self.corpus(item.user_id), source=item.source, tags=tags)

    def retrieve(self, query: str, user_id: str, k: int = 5, filters: Any = None) -> list[Retrieved]:
        with self.daemon.client() as client:
            asked = {"queries": [{"query": query, "corpus": self.corpus(user_id)}], "topK": k, **({"filters": filters} if filters else {})}
            cards = client.call("evidence.retrieve", **asked)["results"][0]["cards"]
        return [Retrieved(card["summary"], user_id, card["score"]) for card in cards]

    def retrieve_where(self, query: str, user_id: str, where: dict[str, Any], k: int = 5) -> list[Retrieved]:
        return self.retrieve(query, user_id, k, {"tags": [f"{key}={value}" for key, value in where.items()]})
