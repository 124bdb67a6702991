"""An attacker on the memories of a daemon: superuser of its Postgres, who bypasses triggers and constraints, and owner of
its files, but without its keys. The edits are those of Agent Memory Integrity (T1 to T9)."""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any, Callable, Optional

from support import BUILD, ROOT, Daemon, muniment, wait_until

sys.path.insert(0, str(ROOT / "tests" / "support"))

import hashing  # noqa: E402

MEMORY, OTHERS = "memory", "eve"
FACTS = {"home": "Kim lives in Porto.", "food": "Kim eats vegetarian food.", "boss": "Kim works for Acme Corp.",
         "plan": "The plan is to move to Faro."}
QUESTIONS = {"home": "where does Kim live", "food": "what does Kim eat", "boss": "who does Kim work for", "plan": "what is the plan"}
OLD_HOME, SECRET = "Kim lives in Lisbon.", "The password of Eve is hunter2."
MICROS = "(extract(epoch FROM {0}) * 1000000)::bigint"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Memories:
    """A daemon with the memories, in a folder of its own."""

    def __init__(self, template: Optional["Memories"] = None, witnesses: str = "", empty: bool = False):
        self.daemon = Daemon(config=f'witnesses = "{witnesses}"\n')
        if template is None and not empty:
            self.daemon.start()
            with self.daemon.client() as client:
                client.remember("home", OLD_HOME, tags=["place"], source="run://chat-1")
                client.remember("secret", SECRET, corpus=OTHERS)
                for subject, text in FACTS.items():
                    client.remember(subject, text, tags=["fact"])
            self.stop()
        elif template is not None:
            subprocess.run(["cp", "-a", template.daemon.data, self.daemon.data], check=True)

    def start(self) -> None:
        self.daemon.start()
        with self.daemon.client() as client:
            status = wait_until(lambda: self.published(client), "a checkpoint covers the log")
        self.uri = status["database"]
        self.log_id, self.stored = status["log"]["log_id"], status["log"]["size"]

    @staticmethod
    def published(client: Any) -> Any:
        status = client.call("server.status")
        return status if status["checkpoint"]["size"] == status["log"]["size"] else None

    def stop(self) -> None:
        assert self.daemon.stop() == 0

    def read(self) -> "Answers":
        with self.daemon.client(retry_for_s=0) as client:
            with contextlib.suppress(muniment.MunimentError):   # the indexes may have to be filled again
                client.call("evidence.retrieve", queries=[{"query": "wait"}], min_seq=self.stored - 1)
            return Answers(client)


class Answers:
    """The answers for each memory: its text, a refusal, or nothing."""

    def __init__(self, client: Any):
        self.client = client
        self.recalled = {subject: self.ask(lambda question=question: self.recall(question)) for subject, question in QUESTIONS.items()}
        self.listed = self.ask(self.documents)
        self.packed = {subject: self.ask(lambda subject=subject: self.resolve(subject)) for subject in FACTS}

    def ask(self, read: Callable[[], str]) -> str:
        try:
            return read()
        except muniment.MunimentError as error:
            return f"REFUSED: {error.code}: {error}"

    def recall(self, question: str) -> str:
        found = self.client.recall(question, corpus=MEMORY)
        told = [reason for reason in found.get("degraded", []) if "verified" in reason or "differ" in reason]
        sign = "REFUSED: " + "; ".join([*told, found.get("reason", "")]) if told or found.get("reason") == "unverified" else ""
        return found["text"] + json.dumps(found["citations"]) + sign

    def documents(self) -> str:
        return json.dumps(self.client.call("document.list", corpus=MEMORY)["documents"])

    def resolve(self, subject: str) -> str:
        uri = self.client.call("document.get", corpus=MEMORY, document=subject)["document"]["uri"]
        result = self.client.call("pointer.resolve", pointers=[uri])["results"][0]
        return result["text"] if result["ok"] else f"REFUSED: {result['reason']}"

    def texts(self) -> list[str]:
        return [*self.recalled.values(), self.listed, *self.packed.values()]

    def verdict(self, forged: tuple[str, ...]) -> str:
        """accepted: forged content is told, or a memory is missing without a word; genuine: as it was stored; refused."""
        if any(words in text for text in self.texts() for words in forged):
            return "accepted"
        refused = False
        for subject, text in FACTS.items():
            for told in (self.recalled[subject], self.packed[subject]):
                if text not in told and "REFUSED" not in told:
                    return f"accepted: {subject} is missing"
                refused = refused or "REFUSED" in told
            if f'"document": "{subject}"' not in self.listed and "REFUSED" not in self.listed:
                return f"accepted: {subject} is not listed"
        return "refused" if refused or "REFUSED" in self.listed else "genuine"


class Attacker:
    def __init__(self, memories: Any):
        """`memories`: Memories, or another object with daemon, uri and log_id."""
        self.memories, self.daemon, self.uri = memories, memories.daemon, memories.uri

    def sql(self, *statements: str) -> list[list[str]]:
        return self.daemon.sql_at(self.uri, "SET session_replication_role = replica; " + "; ".join(statements))

    def document(self, subject: str, corpus: str = MEMORY, current: bool = True) -> dict[str, Any]:
        end = "valid_to IS NULL" if current else "valid_to IS NOT NULL"
        rows = self.sql("SELECT row_to_json(d) FROM (SELECT d.*, a.path, a.seq AS artifact_seq FROM document d JOIN artifact a USING (artifact_id) "
                        f"WHERE d.corpus = '{corpus}' AND d.document = '{subject}' AND d.{end}) d")
        return json.loads(rows[0][0])

    def write(self, row: dict[str, Any], text: str) -> None:
        path = self.daemon.data / "artifacts" / row["path"]
        path.chmod(0o644)
        data = bytearray(path.read_bytes())
        data[row["start_byte"]:row["start_byte"] + row["size_bytes"]] = text.encode()
        path.write_bytes(data)
        self.sql(f"UPDATE artifact SET hash = '{sha256(bytes(data))}', size_bytes = {len(data)} WHERE artifact_id = '{row['artifact_id']}'",
                 f"UPDATE document SET size_bytes = {len(text)}, hash = sha256(decode('{sha256(text.encode())}', 'hex') || chunker::bytea) WHERE seq = {row['seq']}",
                 f"UPDATE chunk SET hash = decode('{sha256(text.encode())}', 'hex'), end_byte = {len(text)} WHERE seq = {row['seq']}")

    def rewrite_event(self, seq: int, old: str, new: str) -> None:
        """Changes the body of an event, and every hash of the table `event` that follows from it."""
        self.sql(f"UPDATE event SET body = replace(body::text, '{old}', '{new}')::json WHERE seq = {seq}",
                 f"UPDATE event SET body_hash = sha256(salt || convert_to(body::text, 'UTF8')) WHERE seq = {seq}")
        self.chain()

    def chain(self, run_id: str = "_log", run_no: int = 0) -> None:
        """Computes the chain of a run again."""
        rows = self.sql("SELECT row_to_json(e) FROM (SELECT seq, run_no, run_seq, " + MICROS.format("recorded_at") + " AS recorded_at, "
                        + MICROS.format("occurred_at") + " AS occurred_at, origin, type, schema_version, step_id, actor, event_id, "
                        f"encode(body_hash, 'hex') AS body_hash FROM event WHERE run_no = {run_no} ORDER BY run_seq) e")
        previous, updates = hashing.ZERO_HASH, []
        for (text,) in rows:
            event = json.loads(text)
            event["body_hash"] = bytes.fromhex(event["body_hash"])
            previous = hashing.run_hash(hashing.encode_entry(self.memories.log_id, run_id, event, previous))
            updates.append(f"UPDATE event SET run_hash = decode('{previous.hex()}', 'hex') WHERE seq = {event['seq']}")
        self.sql(*updates)

    def drop_indexes(self) -> None:
        """The next start of the daemon fills them from the tables."""
        shutil.rmtree(self.daemon.data / "index", ignore_errors=True)

    def delete(self, row: dict[str, Any], *, event: bool) -> None:
        self.sql(f"DELETE FROM chunk WHERE seq = {row['seq']}", f"DELETE FROM document WHERE seq = {row['seq']}",
                 f"DELETE FROM artifact WHERE artifact_id = '{row['artifact_id']}'")
        (self.daemon.data / "artifacts" / row["path"]).unlink()
        if event:
            self.sql(f"DELETE FROM event WHERE seq IN ({row['seq']}, {row['artifact_seq']})")

    # The edits. Each returns the words that no answer may contain.

    def content(self) -> tuple[str, ...]:
        self.write(self.document("home"), "Kim lives in Paris.")
        return ("Paris",)

    def content_and_event(self) -> tuple[str, ...]:
        row = self.document("home")
        self.write(row, "Kim lives in Paris.")
        self.rewrite_event(row["seq"], sha256(FACTS["home"].encode()), sha256(b"Kim lives in Paris."))
        return ("Paris",)

    def cut_rows(self) -> tuple[str, ...]:
        self.delete(self.document("plan"), event=False)
        return ()

    def cut_tail(self) -> tuple[str, ...]:
        row = self.document("plan")
        self.delete(row, event=True)
        self.sql(f"DELETE FROM event WHERE seq >= {row['artifact_seq']}", f"DELETE FROM checkpoint WHERE size > {row['artifact_seq']}",
                 f"UPDATE follower SET next_seq = least(next_seq, {row['artifact_seq']})")
        return ()

    def delete_rows(self) -> tuple[str, ...]:
        self.delete(self.document("food"), event=False)
        return ()

    def delete_all(self) -> tuple[str, ...]:
        self.delete(self.document("food"), event=True)
        return ()

    def reorder_rows(self) -> tuple[str, ...]:
        food, boss = self.document("food"), self.document("boss")
        self.sql(f"UPDATE chunk SET seq = -seq WHERE seq IN ({food['seq']}, {boss['seq']})",
                 f"UPDATE chunk SET seq = CASE seq WHEN -{food['seq']} THEN {boss['seq']} ELSE {food['seq']} END WHERE seq < 0")
        return ()

    def reorder_events(self) -> tuple[str, ...]:
        """Exchanges the subjects of two memories, also in their events."""
        food, boss = self.document("food"), self.document("boss")
        self.sql("DROP INDEX document_current",
                 f"UPDATE document SET document = CASE document WHEN 'food' THEN 'boss' ELSE 'food' END WHERE seq IN ({food['seq']}, {boss['seq']})")
        for row, old, new in ((food, "food", "boss"), (boss, "boss", "food")):
            self.rewrite_event(row["seq"], f'"document":"{old}"', f'"document":"{new}"')
        return ()

    def insert(self, like: str = "food", subject: str = "card", words: str = "Kim pays with the card 4111.") -> tuple[str, ...]:
        """Adds a memory with its file, rows and event at the end of the log."""
        row, text = self.document(like), words.encode()
        forged = "00000000-0000-7000-8000-000000000001"
        source = self.daemon.data / "artifacts" / row["path"]
        path = pathlib.Path(row["path"]).with_name(forged)
        (self.daemon.data / "artifacts" / path).write_bytes(text)
        os.chown(self.daemon.data / "artifacts" / path, source.stat().st_uid, -1)
        end = int(self.sql("SELECT max(seq) + 1 FROM event")[0][0])
        body = "body::text"
        for old, new in ((f'"document":"{like}"', f'"document":"{subject}"'), (row["artifact_id"], forged), (sha256(source.read_bytes()), sha256(text))):
            body = f"replace({body}, '{old}', '{new}')"
        self.sql(
            f"INSERT INTO artifact SELECT '{forged}', run_id, step_id, '{path}', '{sha256(text)}', mime_type, {len(text)}, created_at, metadata, log_no, {end} "
            f"FROM artifact WHERE artifact_id = '{row['artifact_id']}'",
            f"CREATE TEMP TABLE d AS SELECT * FROM document WHERE seq = {row['seq']}",
            f"UPDATE d SET seq = {end}, document = '{subject}', artifact_id = '{forged}', size_bytes = {len(text)}, first_chunk = "
            "(SELECT max(chunk_id) + 1 FROM chunk), revision = 'forged'",
            "INSERT INTO document SELECT * FROM d",
            f"INSERT INTO chunk SELECT log_no, (SELECT max(chunk_id) + 1 FROM chunk), {end}, 0, 0, {len(text)}, decode('{sha256(text)}', 'hex'), NULL "
            f"FROM chunk WHERE seq = {row['seq']}",
            f"INSERT INTO event SELECT log_no, {end}, run_no, (SELECT max(run_seq) + 1 FROM event WHERE run_no = 0), recorded_at, occurred_at, origin, type, "
            f"schema_version, step_id, actor, gen_random_uuid(), body_hash, salt, ({body})::json, run_hash FROM event WHERE seq = {row['seq']}",
            f"UPDATE event SET body_hash = sha256(salt || convert_to(body::text, 'UTF8')) WHERE seq = {end}")
        self.chain()
        return ("4111", '"card"')

    def replay_context(self) -> tuple[str, ...]:
        """Moves a memory of another corpus into this one."""
        row = self.document("secret", corpus=OTHERS)
        self.sql(f"UPDATE document SET corpus = '{MEMORY}' WHERE seq = {row['seq']}")
        return ("hunter2", '"secret"')

    def replay_old(self) -> tuple[str, ...]:
        """Makes an earlier revision the current one."""
        old, new = self.document("home", current=False), self.document("home")
        self.sql("DROP INDEX document_current", f"UPDATE document SET valid_to = NULL, ended_by = NULL WHERE seq = {old['seq']}",
                 f"UPDATE document SET valid_to = seq + 1, ended_by = 'retracted' WHERE seq = {new['seq']}")
        return ("Lisbon",)

    def replay_old_followed_again(self) -> tuple[str, ...]:
        """The same, and the tables of documents seem to be those of a log that nobody has followed yet."""
        forged = self.replay_old()
        self.sql("UPDATE follower SET next_seq = 0 WHERE name = 'document'")
        return forged

    def replay_old_and_delete(self) -> tuple[str, ...]:
        old = self.document("home", current=False)
        self.delete(self.document("home"), event=True)
        self.sql(f"UPDATE document SET valid_to = NULL, ended_by = NULL WHERE seq = {old['seq']}")
        return ("Lisbon",)

    def metadata(self) -> tuple[str, ...]:
        self.sql(f"UPDATE document SET trust = 'trusted', title = 'Approved by Kim', tags = '{{approved}}', source = 'kim:said', "
                 f"source_url = 'https://kim.example/', document_time = '2031-01-01' WHERE corpus = '{MEMORY}'")
        return ("Approved", "approved", "kim:said", "kim.example", "2031-01-01", '"trust": "trusted"')
