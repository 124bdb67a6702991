"""Tests of runs as a corpus: messages, calls, output and errors of a run can be found, cited, checked, and erased."""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
from random import Random
from typing import Any, Iterator

from support import DaemonCase, main, muniment

STRANGER = 65534
STACK = 'File "loader.py", line 7, in load_grammar\n'
LONG = "".join(f"step {i}: the linker looked for symbol quux_{i} in libquark.so and did not find it.\n" for i in range(400))


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "content": words}]


class RunsCorpus(DaemonCase):
    config = f"index_runs = true\nallowed_uids = [{STRANGER}]\n"

    def add(self, event_type: str, run_id: str = "", /, **body: Any) -> dict[str, Any]:
        return self.call("event.append", run_id=run_id or self.run_id, type=event_type, body=body, spill=True)

    def say(self, words: str, role: str = "user", run_id: str = "") -> dict[str, Any]:
        return self.add("message.added", run_id, message_id=hashlib.sha256(words.encode()).hexdigest()[:8], role=role, content=text(words))

    def answer(self, query: str, corpus: str = "run", **more: Any) -> dict[str, Any]:
        size = self.call("server.status")["log"]["size"]
        asked = {"query": query, **({"corpus": corpus} if corpus else {})}
        return self.call("evidence.retrieve", queries=[asked], min_seq=size - 1, **more)["results"][0]

    def cards(self, query: str, corpus: str = "run", **more: Any) -> list[dict[str, Any]]:
        """Queries only this test's run: the log has those of other tests too."""
        return self.answer(f"run:{self.run_id} {query}", corpus, **more)["cards"]

    def resolve(self, pointer: str, **more: Any) -> dict[str, Any]:
        return self.call("pointer.resolve", pointers=[pointer], **more)["results"][0]

    def cli(self, *arguments: str) -> tuple[int, str]:
        done = subprocess.run([str(self.daemon.build / "muniment"), "--data", str(self.daemon.data), *arguments],
                              capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def assert_a_new_index_finds(self, query: str, card: dict[str, Any]) -> None:
        self.daemon.stop()
        shutil.rmtree(self.daemon.data / "index")
        self.restart()
        size = self.call("server.status")["log"]["size"]
        found = self.call("evidence.retrieve", queries=[{"query": f"run:{self.run_id} {query}"}], min_seq=size - 1, _meta={"deadline_ms": 60_000})
        self.assertEqual(found["results"][0]["cards"][0]["id"], card["id"])

    def assert_tables_follow(self) -> None:
        """Checks that the rows agree with the log, by the daemon's rebuild and by the verifier's own computation."""
        report = self.call("server.rebuild", tables=["corpus", "document", "chunk", "feedback"], _meta={"deadline_ms": 60_000})
        self.assertTrue(report["equal"], report)
        done = subprocess.run([str(self.daemon.build / "muniment-verify"), "--data", str(self.daemon.data), "--unsigned-ok", "--json"],
                              capture_output=True, text=True, timeout=120)
        found = json.loads(done.stdout)
        self.assertEqual((done.returncode, found["first_bad"] if "first_bad" in found else None), (0, None), done.stdout)

    @contextlib.contextmanager
    def as_stranger(self) -> Iterator[Any]:
        """Connects as another user of the machine, who may access the socket."""
        self.daemon.let_others_in()

        def call(method: str, **params: Any) -> Any:
            answer, child_end = os.pipe()
            child = os.fork()
            if child == 0:
                os.setgroups([])
                os.setgid(STRANGER)
                os.setuid(STRANGER)
                try:
                    with muniment.connect(self.daemon.socket) as client:
                        reply = client.call(method, **params)
                except muniment.MunimentError as error:
                    reply = {"refused": str(error)}
                os.write(child_end, json.dumps(reply).encode())
                os._exit(0)
            os.close(child_end)
            with os.fdopen(answer) as pipe:
                reply = json.loads(pipe.read())
            os.waitpid(child, 0)
            self.assertNotIn("refused", reply)
            return reply

        yield call


class WhatDidWeTry(RunsCorpus):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        self.say("The grammar cache must survive a restart. What did we try so far?")
        self.add("thought.recorded", content=[{"type": "reasoning", "content": "A memory-mapped grammar cache would survive, if the loader kept its header."}])
        self.add("tool.called", call_id="c1", name="bash", kind="command", arguments={"command": "cargo run --release -- warm-cache"})
        self.returned = self.add("tool.returned", call_id="c1", status="error", content=text("thread main panicked: grammar header checksum differs"), exit_code=101)
        self.raised = self.add("error.raised", error_type="GrammarError", message="no grammar section in the mapped file", stack=STACK)

    def test_every_kind_of_event_is_found_as_what_it_is(self) -> None:
        for query, kind, title in (("grammar cache survive a restart", "message.added", "message.added user"),
                                   ("memory-mapped header loader", "thought.recorded", "thought.recorded"),
                                   ("cargo run warm-cache", "tool.called", "tool.called bash"),
                                   ("panicked checksum differs", "tool.returned", "tool.returned"),
                                   ("no grammar section in the mapped file", "error.raised", "error.raised GrammarError")):
            with self.subTest(kind):
                card = self.cards(query)[0]
                self.assertEqual((card["type"], card["title"]), (kind, title))
                self.assertEqual((card["corpus"], card["trust"], card["origin"], card["current"]), ("run", "untrusted", "reported", True))
                self.assertRegex(card["id"], rf"^ev://run/{self.run_id}#e[1-5]\?v=[0-9a-f]{{16}}$")

    def test_a_card_resolves_to_its_event_and_to_its_passage(self) -> None:
        card = self.cards("panicked checksum differs")[0]
        self.assertEqual(card["id"], f"ev://run/{self.run_id}#e{self.returned['run_seq']}?v={self.returned['body_hash'][:16]}")
        event = self.resolve(card["id"])
        self.assertTrue(event["ok"], event)
        self.assertEqual(json.loads(event["text"])["call_id"], "c1")
        passage = self.resolve(card["id"].replace("?v=", ".0?v="))
        self.assertEqual(passage["text"], "thread main panicked: grammar header checksum differs")
        self.assertEqual(passage["expected_hash"], hashlib.sha256(passage["text"].encode()).hexdigest())
        rendered = self.call("pointer.render", draft=f"It panicked [ref:{card['id']}].")
        self.assertEqual((rendered["ok"], rendered["content"]), (True, "It panicked [1]."))

    def test_filters_know_types_tags_and_times(self) -> None:
        self.assertEqual({card["type"] for card in self.cards("type:tool.returned grammar")}, {"tool.returned"})
        self.assertEqual({card["type"] for card in self.cards("tag:error grammar")}, {"tool.returned", "error.raised"})
        self.assertEqual({card["type"] for card in self.cards("tag:user grammar")}, {"message.added"})
        self.assertEqual(self.answer("run:no-such-run grammar")["reason"], "unknown_run")
        self.assertEqual(self.cards("after:2999-01-01 grammar"), [])

    def test_it_is_in_an_answer_only_where_somebody_asks_for_runs(self) -> None:
        corpus = self.run_id[:60]
        self.call("corpus.ingest", corpus=corpus, documents=[{"id": "a", "text": "The grammar of birds."}], wait=True)
        corpora = lambda query: {card["corpus"] for card in self.answer(query, corpus="", topK=100)["cards"]}
        self.assertNotIn("run", corpora("grammar"))
        self.assertEqual(corpora("in:run grammar"), {"run"})
        self.assertEqual(corpora(f"run:{self.run_id} grammar"), {"run"})
        self.assertEqual(corpora(f"in:run in:{corpus} grammar"), {"run", corpus})

    def test_as_of_a_moment_there_is_what_had_happened_by_then(self) -> None:
        before = self.returned["seq"] - 1
        self.assertEqual({card["type"] for card in self.cards("grammar", asof=before)} & {"tool.returned", "error.raised"}, set())
        self.assertLessEqual({"message.added", "thought.recorded"}, {card["type"] for card in self.cards("grammar", asof=before)})
        pointer = self.cards("panicked checksum")[0]["id"]
        self.assertEqual(self.resolve(pointer, asof=before)["reason"], "NOT_FOUND")
        self.assertTrue(self.resolve(pointer, asof=self.returned["seq"])["ok"])

    def test_the_command_line_shows_them(self) -> None:
        self.cards("panicked")
        code, output = self.cli("query", f"run:{self.run_id} panicked checksum differs", "-k", "1")
        self.assertEqual(code, 0, output)
        self.assertIn("tool.returned", output)
        self.assertIn("reported", output)
        code, output = self.cli("query", f"run:{self.run_id} panicked checksum differs", "-k", "1", "--full")
        self.assertIn("thread main panicked: grammar header checksum differs", output)
        self.assertNotIn("call_id", output)
        self.assertEqual(self.cli("run", "start", f"{self.run_id}.cli", "--agent", "a", "--indexed", "no")[0], 0)
        self.assertNotIn("indexed", self.events(f"{self.run_id}.cli")[0]["body"])

    def test_a_pack_says_where_it_is_from_and_can_be_checked(self) -> None:
        pack = self.call("context.build", query=f"run:{self.run_id} what did we try with the grammar cache", run_id=self.run_id,
                         min_seq=self.raised["seq"])
        self.assertGreaterEqual(len(pack["citations"]), 4)
        for passage in pack["pack"]["passages"]:
            self.assertEqual((passage["trust"], passage["origin"]), ("untrusted", "reported"))
        self.assertIn('"origin":"reported"', pack["text"])
        for citation in pack["citations"]:
            found = self.resolve(citation["pointer"], run_id=self.run_id)
            self.assertEqual((found["ok"], found["expected_hash"], found["critical"]), (True, citation["hash"], True), found)

    def test_feedback_lifts_a_card(self) -> None:
        first, last = (cards := self.cards("grammar"))[0], cards[-1]
        for _ in range(3):
            self.call("feedback.record", pointer=last["id"], value=1)
            self.call("feedback.record", pointer=first["id"], value=-1)
        lifted = {card["id"]: card["score"] for card in self.cards("grammar")}
        self.assertGreater(lifted[last["id"]], last["score"])
        self.assertLess(lifted[first["id"]], first["score"])
        self.assert_tables_follow()

    def test_the_tables_follow_from_the_log(self) -> None:
        self.call("run.end", run_id=self.run_id, outcome="failure", summary="The grammar cache did not survive.")
        self.assertEqual(self.cards("did not survive")[0]["type"], "run.ended")
        self.assert_tables_follow()

    def test_a_run_that_exists_is_indexed_as_a_copy(self) -> None:
        run, path = self.call("run.start", run_id="unindexed", agent={"name": "test"}, indexed=False)["run_id"], self.daemon.folder / "copy.tar.zst"
        self.say("The turnstile jams.", run_id=run)
        self.assertEqual(self.answer(f"run:{run} turnstile")["reason"], "nothing_indexed")
        self.assertEqual(self.cli("audit", "export", run, "-o", str(path))[0], 0)
        code, said = self.cli("audit", "import", str(path), "--unsigned-ok", "--as", "indexed-copy")
        self.assertEqual(code, 0, said)
        self.assertEqual(self.answer("run:indexed-copy turnstile")["cards"][0]["type"], "message.added")
        self.assertEqual(self.answer("run:indexed-copy xylophone", mode="lexical")["reason"], "no_match")

    def test_one_who_may_not_see_the_run_finds_nothing_of_it(self) -> None:
        card = self.cards("panicked checksum differs")[0]
        with self.as_stranger() as call:
            for query, reason in (("panicked checksum differs", "no_match"), (f"run:{self.run_id} grammar", "unknown_run"), ("run:nobodys grammar", "unknown_run")):
                found = call("evidence.retrieve", queries=[{"query": query, "corpus": "run"}])["results"][0]
                self.assertEqual((found["cards"], found["reason"]), ([], reason))
            for pointer in (card["id"], card["id"].replace("?v=", ".0?v=")):
                self.assertEqual(call("pointer.validate", pointers=[pointer])["results"][0]["reason"], "NOT_FOUND")
            call("run.start", run_id="strange", agent={"name": "test"})
            receipt = call("event.append", run_id="strange", type="message.added",
                           body={"message_id": "m", "role": "user", "content": text("My own grammar is fine.")})
            found = call("evidence.retrieve", queries=[{"query": "grammar", "corpus": "run"}], min_seq=receipt["seq"])["results"][0]["cards"]
            self.assertEqual([card["id"].split("#")[0] for card in found], ["ev://run/strange"])


class Runs(RunsCorpus):
    def test_a_run_may_say_no(self) -> None:
        quiet = self.new_run("quiet", indexed=False)
        self.say("The okapi stays hidden in this run.", run_id=quiet)
        self.say("The okapi is seen in this one.")
        self.assertEqual({card["document"].split("#")[0] for card in self.answer('"okapi"', topK=50)["cards"]}, {self.run_id})
        self.assertNotIn("indexed", self.events(quiet)[0]["body"])
        self.assertEqual(self.events()[0]["body"]["indexed"], True)
        event = self.events(quiet)[1]
        pointer = f"ev://run/{quiet}#e1?v={event['body_hash'][:16]}"
        self.assertTrue(self.resolve(pointer)["ok"])   # an event can be resolved even if queries do not find it
        self.assertEqual(self.resolve(pointer.replace("?v=", ".0?v="))["reason"], "NOT_FOUND")

    def test_a_long_output_is_many_passages_of_one_event(self) -> None:
        receipt = self.add("tool.returned", call_id="c", status="ok", content=text(LONG))
        self.assertTrue(receipt["spilled"])
        card = self.cards("the linker looked for symbol quux_217")[0]
        self.assertRegex(card["id"], rf"^ev://run/{self.run_id}#e{receipt['run_seq']}\.\d+\?v=")
        found = self.resolve(card["id"])
        self.assertIn("quux_217 ", found["text"])
        self.assertEqual(found["text"], LONG.encode()[card["span"]["start"]:card["span"]["end"]].decode())
        rows = self.daemon.sql(f"SELECT size_bytes, chunks, artifact_id IS NULL FROM document WHERE document = '{self.run_id}#e{receipt['run_seq']}'")
        self.assertEqual(rows, [[str(len(LONG)), rows[0][1], "t"]])
        self.assertGreater(int(rows[0][1]), 10)
        grouped = self.cards("linker symbol libquark", group="document", topK=50)
        self.assertEqual(len(grouped), 1)
        self.assert_tables_follow()

    def test_a_damaged_output_is_no_hit_and_no_evidence(self) -> None:
        receipt = self.add("tool.returned", call_id="c", status="ok", content=text(LONG.replace("quux", "frob")))
        card = self.cards("symbol frob_33 libquark")[0]
        path, = self.daemon.sql(f"SELECT path FROM artifact WHERE artifact_id = '{receipt['spilled'][0]['artifact_id']}'")[0]
        file = self.daemon.data / "artifacts" / path
        whole = file.read_bytes()
        os.chmod(file, 0o600)
        file.write_bytes(whole.replace(b"frob_33", b"frob_XX"))
        self.assertEqual(self.resolve(card["id"])["reason"], "HASH_MISMATCH")
        self.assertNotIn(card["id"], [found["id"] for found in self.cards("symbol frob_33 of libquark")])
        file.unlink()
        self.assertEqual(self.resolve(card["id"])["reason"], "NOT_FOUND")
        file.write_bytes(whole)
        self.assertTrue(self.resolve(card["id"])["ok"])

    def test_every_reason_for_which_a_pointer_is_bad(self) -> None:
        receipt = self.say("The quagga is extinct.")
        event = f"ev://run/{self.run_id}#e{receipt['run_seq']}"
        right = receipt["body_hash"][:16]
        self.answer("quagga")
        for pointer, reason in ((f"{event}?v={right}", None), (f"{event}.0?v={right}", None), (event, "MISSING_VERSION"), (f"{event}.0", "MISSING_VERSION"),
                                (f"{event}.7?v={right}", "NOT_FOUND"), (f"ev://run/{self.run_id}#e999?v={right}", "NOT_FOUND"),
                                (f"ev://run/no-such-run#e1?v={right}", "NOT_FOUND"), (f"{event}?v={'0' * 16}", "VERSION_MISMATCH"),
                                (f"{event}.0?v={'0' * 16}", "VERSION_MISMATCH"), (f"ev://run/{self.run_id}#p0?v={right}", "PARSE_ERROR"),
                                (f"{event}.?v={right}", "PARSE_ERROR"), (f"{event}.x?v={right}", "PARSE_ERROR"), (f"ev://run/-bad#e1?v={right}", "PARSE_ERROR")):
            with self.subTest(pointer):
                found = self.call("pointer.validate", pointers=[pointer])["results"][0]
                self.assertEqual((found["ok"], found.get("reason")), (reason is None, reason), found)

    def test_a_claim_on_a_passage_that_is_gone_stops_the_run(self) -> None:
        receipt = self.add("tool.returned", call_id="c", status="ok", content=text(LONG.replace("quux", "snark")))
        card = self.cards("symbol snark_120 libquark")[0]
        self.call("claim.record", run_id=self.run_id, text="snark_120 is missing", pointers=[card["id"]])
        path, = self.daemon.sql(f"SELECT path FROM artifact WHERE artifact_id = '{receipt['spilled'][0]['artifact_id']}'")[0]
        file = self.daemon.data / "artifacts" / path
        whole = file.read_bytes()
        file.unlink()
        self.followed()
        reply = self.call("pointer.resolve", pointers=[card["id"]], run_id=self.run_id)
        self.assertEqual([halt["run_id"] for halt in reply["halted"]], [self.run_id])
        with self.refused("run_halted"):
            self.say("and on we go")
        file.write_bytes(whole)

    def test_an_erased_event_is_in_no_index_and_no_table(self) -> None:
        word = "zorilla"
        receipt = self.say(f"The password is {word}, says the keeper.")
        self.say("The keeper has gone home.")
        card = self.cards("password of the keeper")[0]
        done = self.call("audit.redact", seq=receipt["seq"], reason="a password")
        self.assertTrue(done["unindexed"])
        self.assertNotIn(card["id"], [found["id"] for found in self.cards("password of the keeper")])
        self.assertNotIn(card["id"], [found["id"] for found in self.cards("password of the keeper", asof=receipt["seq"])])
        self.assertEqual(self.cards(f'"{word}"'), [])
        for pointer in (card["id"], card["id"].replace("?v=", ".0?v=")):
            self.assertEqual(self.resolve(pointer)["reason"], "NOT_FOUND")
        row = self.daemon.sql(f"SELECT ended_by, title, source, tags::text, (SELECT count(*) FROM chunk c WHERE c.seq = d.seq) FROM document d WHERE seq = {receipt['seq']}")
        self.assertEqual(row, [["erased", "", "", "{}", "0"]])
        self.assert_tables_follow()

    def test_an_erased_output_takes_its_event_with_it(self) -> None:
        receipt = self.add("tool.returned", call_id="c", status="ok", content=text(LONG.replace("quux", "boojum")))
        self.assertTrue(self.cards("boojum_44"))
        self.call("audit.redact", artifact_id=receipt["spilled"][0]["artifact_id"], reason="not ours")
        self.assertEqual(self.cards("boojum_44"), [])
        self.assert_tables_follow()

    def test_a_run_whose_start_was_erased_keeps_what_it_had(self) -> None:
        receipt = self.say("The numbat eats termites.")
        self.assertTrue(self.cards("numbat"))
        self.call("audit.redact", seq=self.events()[0]["seq"], reason="its goal")
        self.assertTrue(self.cards("numbat"))
        self.say("A second numbat eats more.")
        self.assertEqual([card["id"] for card in self.cards("numbat")], [f"ev://run/{self.run_id}#e{receipt['run_seq']}?v={receipt['body_hash'][:16]}"])
        self.assert_tables_follow()

    def test_a_run_is_a_source_and_can_be_revoked_with_what_came_of_it(self) -> None:
        self.say("The axolotl regrows its limbs.")
        card = self.cards("axolotl")[0]
        corpus = self.run_id[:60]
        self.call("corpus.ingest", corpus=corpus, documents=[{"id": "fact", "text": "Axolotls regrow limbs.", "derived_from": [card["id"]]}], wait=True)
        done = self.call("source.revoke", source=f"run://{self.run_id}", reason="it was made up")
        self.assertEqual(done["documents"], 2)
        self.assertEqual(self.cards("axolotl"), [])
        self.assertEqual(self.answer("axolotl", corpus)["cards"], [])
        self.assertEqual(self.resolve(card["id"].replace("?v=", ".0?v="))["reason"], "NOT_FOUND")
        self.assertTrue(self.resolve(card["id"])["ok"])   # the event is still in the log
        self.assert_tables_follow()

    def test_an_artifact_of_another_run_is_not_read(self) -> None:
        other = self.new_run("other", indexed=False)
        put = self.call("artifact.put", run_id=other, text="The wombat is a secret of the other run.", mime_type="text/plain")
        self.call("event.append", run_id=self.run_id, type="tool.returned", body={"call_id": "c", "status": "ok", "content": [
            {"artifact_id": put["artifact_id"], "hash": put["hash"], "size_bytes": put["size_bytes"], "mime_type": "text/plain", "preview": "The"}]})
        self.assertEqual(self.answer('"wombat"')["cards"], [])
        self.assert_tables_follow()

    def test_nobody_ingests_into_it(self) -> None:
        with self.refused("denied"):
            self.call("corpus.ingest", corpus="run", documents=[{"id": "a", "text": "a"}])
        self.assertNotIn("run", [corpus["corpus"] for corpus in self.call("corpus.list")["corpora"]])
        with self.refused("not_found"):
            self.call("document.list", corpus="run")

    def test_a_rebuilt_index_has_it_all_again(self) -> None:
        self.say("The aardwolf sleeps by day.")
        card = self.cards("aardwolf")[0]
        self.assert_a_new_index_finds("aardwolf", card)
        self.say("Another aardwolf wakes.")                 # the daemon finds the run again
        self.assertEqual(len(self.cards("aardwolf")), 2)

    def test_what_is_recorded_by_exec_is_observed(self) -> None:
        code, output = self.cli("exec", "--run", self.run_id, "--", "echo", "the pangolin rolls up")
        self.assertEqual(code, 0, output)
        found = {card["type"]: card["origin"] for card in self.cards("pangolin rolls up")}
        self.assertEqual(found, {"command.started": "observed", "command.ended": "observed"})


class Tampering(RunsCorpus):
    """Changes to the rows past the daemon are found by the verifier and repaired by a rebuild."""

    shared = True   # every test ends with a rebuild, which repairs its changes

    def verify(self) -> dict[str, Any]:
        self.followed()
        done = subprocess.run([str(self.daemon.build / "muniment-verify"), "--data", str(self.daemon.data), "--unsigned-ok", "--json"],
                              capture_output=True, text=True, timeout=120)
        return {"status": done.returncode, **json.loads(done.stdout)}

    def test_rows_that_do_not_follow_from_the_log(self) -> None:
        self.say("The dugong grazes on seagrass.")
        receipt = self.add("tool.returned", call_id="c", status="error", content=text(LONG))
        self.cards("dugong")
        where = f"WHERE seq = {receipt['seq']}"
        for number, (change, check, told) in enumerate((
                ("UPDATE document SET title = 'praise' " + where, "document", "title"),
                ("UPDATE document SET tags = '{}' " + where, "document", "tags"),
                ("UPDATE document SET owner = 'uid:4711' " + where, "document", "owner"),
                ("UPDATE document SET origin = 1 " + where, "document", "origin"),
                ("UPDATE document SET trust = 'trusted' " + where, "document", "trust"),
                ("UPDATE document SET removed_at = seq + 1, valid_to = seq + 1, ended_by = 'revoked' " + where, "document", "ended_by"),
                ("UPDATE chunk SET hash = sha256('x') " + where + " AND number = 3", "chunk", "hash"),
                ("UPDATE chunk SET start_byte = start_byte + 7 " + where + " AND number = 3", "chunk", "passage"),
                ("DELETE FROM chunk " + where + " AND number = 3", "chunk", "number"),
                ("DELETE FROM chunk " + where + " AND number = (SELECT max(number) FROM chunk " + where + ")", "chunk", "rows"),
                (f"DELETE FROM chunk {where}; DELETE FROM document {where}", "document", "no row"))):
            with self.subTest(change):
                self.daemon.sql(change)
                found = self.verify()
                report = self.call("server.rebuild", tables=["document", "chunk"], _meta={"deadline_ms": 60_000})
                self.assertFalse(report["equal"])
                self.assertEqual((found["status"], found["first_bad"]["check"], found["first_bad"]["seq"]), (1, check, receipt["seq"]), found["first_bad"])
                self.assertIn(told, json.dumps(found["findings"]))
                self.assertEqual(self.verify()["status"], 0, number)

    def test_a_row_for_an_event_of_a_run_that_is_not_indexed(self) -> None:
        quiet = self.new_run("quiet", indexed=False)
        self.say("The dugong has said all that it will.")
        seq = self.say("Nobody asked the manatee.", run_id=quiet)["seq"]
        self.cards("dugong")
        self.daemon.sql(f"INSERT INTO document SELECT (jsonb_populate_record(d, jsonb_build_object('seq', {seq}, 'document', '{quiet}#e1', "
                        f"'first_chunk', d.first_chunk + d.chunks, 'chunks', 0))).* FROM document d WHERE document = '{self.run_id}#e1'")
        found = self.verify()
        self.assertEqual((found["status"], found["first_bad"]["check"]), (1, "document"), found["first_bad"])
        self.call("server.rebuild", tables=["document", "chunk"], _meta={"deadline_ms": 60_000})
        self.assertEqual(self.verify()["status"], 0)


class WhateverHappens(RunsCorpus):
    """After any mixture of events, erasures and revocations, the tables and the indexes agree with the log."""

    shared = True

    def step(self, random: Random, runs: list[str], known: list[dict[str, Any]]) -> None:
        run_id = random.choice(runs)
        words = " ".join(random.choice(("quark", "gluon", "boson", "lepton", "\u00fcber", "\u4e2d\u6587", "<b>", "%PDF-", "\x1b[0m", "\f\v", "\u3000", "\n")) for _ in range(random.choice((0, 1, 9, 80, 1500))))
        kind = random.randrange(9)
        if kind == 0:
            known.append(self.add("thought.recorded", run_id, content=[{"type": "reasoning", "content": words}]))
        elif kind == 1:
            known.append(self.add("error.raised", run_id, error_type="E", message=words[:500], stack=words))
        elif kind == 2:
            known.append(self.add("tool.called", run_id, call_id="c", name="t", kind="function", arguments={"a": words}))
        elif kind == 3 and known:
            target = known.pop(random.randrange(len(known)))
            self.call("audit.redact", seq=target["seq"], reason="so it came", _meta={"deadline_ms": 60_000})
        elif kind == 4 and known and random.random() < 0.3:
            with contextlib.suppress(muniment.MunimentError):   # the run may have no documents left
                self.call("source.revoke", source=f"run://{run_id}", reason="so it came")
        elif kind == 5:
            self.call("corpus.ingest", corpus="facts", documents=[{"id": str(random.randrange(3)), "text": f"{words} {random.random()}"}])
        else:
            known.append(self.add("tool.returned", run_id, call_id="c", status=random.choice(("ok", "error")), content=text(words) + text(words[:30])))

    def test_replay_is_state(self) -> None:
        for seed in range(3):
            with self.subTest(seed):
                random = Random(seed)
                runs = [self.new_run(f"{seed}.{i}", indexed=i != 1) for i in range(3)]
                known: list[dict[str, Any]] = []
                for _ in range(60):
                    self.step(random, runs, known)
                if seed == 2:
                    self.call("audit.redact", seq=self.events(runs[0])[0]["seq"], reason="so it came", _meta={"deadline_ms": 60_000})
                self.answer("quark")
                self.assert_tables_follow()
                live = {row[0] for row in self.daemon.sql("SELECT document FROM document WHERE corpus = 'run' AND valid_to IS NULL")}
                answer = self.answer("quark gluon boson lepton", group="document", topK=100)
                self.assertLessEqual({card["document"] for card in answer["cards"]}, live)
                self.assertNotIn("could not be verified", json.dumps(answer.get("degraded", [])))


class Archived(RunsCorpus):
    config = RunsCorpus.config + "partition_bits = 10\n"

    def test_what_lies_in_the_archive_is_found_and_rebuilt(self) -> None:
        receipt = self.say("The vaquita is rarely seen.")
        for start in range(0, 1100, 100):
            self.client.append_all(self.run_id, [{"type": "message.added", "body": {"message_id": str(n), "role": "user", "content": text(f"word {n}")}}
                                                 for n in range(start, start + 100)])
        card = self.cards("vaquita")[0]
        while not self.call("audit.archive", partition=0, _meta={"deadline_ms": 60_000})["archived"]:
            pass
        self.assertEqual(self.daemon.sql(f"SELECT body IS NULL AND salt IS NOT NULL FROM event WHERE seq = {receipt['seq']}"), [["t"]])
        self.assertEqual(self.resolve(card["id"].replace("?v=", ".0?v="))["text"], "The vaquita is rarely seen.")
        self.assert_tables_follow()
        self.assert_a_new_index_finds("vaquita", card)


class ByDefault(DaemonCase):
    def test_a_run_is_not_indexed_unless_it_says_so(self) -> None:
        loud = self.new_run("loud", indexed=True)
        for run_id in (self.run_id, loud):
            receipt = self.client.append(run_id, "message.added", {"message_id": "m", "role": "user", "content": text("The serval jumps.")})
        found = self.call("evidence.retrieve", queries=[{"query": "in:run serval"}], min_seq=receipt["seq"])["results"][0]["cards"]
        self.assertEqual([card["document"] for card in found], [f"{loud}#e1"])
        self.assertEqual(self.daemon.sql("SELECT count(*) FROM document"), [["1"]])


if __name__ == "__main__":
    main()
