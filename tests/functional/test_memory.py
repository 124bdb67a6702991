"""Tests of an agent's memory: what is stored is corrected, found with its date and source, expires, and is forgotten or erased."""
from __future__ import annotations

import concurrent.futures
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any

from support import BUILD, DaemonCase, main, muniment, shared_data, wait_until

from mcp_host import Host
from mcp_socket_host import Host as SocketHost, text_of

CASE = shared_data().parent / "cases" / "memory-current-fact"
COMMAND_S_MAX = 120
STRANGER = 65_533


def later(**delta: float) -> str:
    """Returns an RFC 3339 time."""
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(**delta)).isoformat()


class MemoryCase(DaemonCase):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        self.corpus = self._testMethodName[5:60].replace("_", "-")

    def remember(self, subject: str, text: str, **more: Any) -> dict[str, Any]:
        return self.client.remember(subject, text, corpus=self.corpus, **more)

    def recall(self, question: str, **more: Any) -> dict[str, Any]:
        return self.client.recall(question, corpus=self.corpus, **more)

    def cards(self, question: str, **more: Any) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = self.call("evidence.retrieve", queries=[{"query": question, "corpus": self.corpus}], **more)["results"][0]["cards"]
        return result

    def command(self, *words: str, code: int = 0, shown: str = "stdout") -> str:
        corpus = [] if words[0] == "audit" else ["--corpus", self.corpus]
        done = subprocess.run([str(BUILD / "muniment"), "--data", str(self.daemon.data), "--no-autostart", *words, *corpus], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=COMMAND_S_MAX)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + (done.stderr if code or shown == "stderr" else "")


class Words(MemoryCase):
    """remember, recall, forget, memories and history: one call each, with plain strings."""

    def test_the_command_line(self) -> None:
        self.assertRegex(self.command("remember", "home", "Kim lives in Lisbon.", "--source", "run://chat-1"), r"\Astored  ev://\S+/home#p0\?v=\S+\n\Z")
        self.assertIn("replaces  ev://", self.command("remember", "home", "Kim lives in Porto."))
        self.assertIn("unchanged", self.command("remember", "home", "Kim lives in Porto."))
        self.assertIn("known already as  ev://", self.command("remember", "city", "Kim is living in Porto"))
        self.command("forget", "city", "--reason", "twice")
        recalled = self.command("recall", "where does Kim live")
        self.assertIn('"text":"Kim lives in Porto."', recalled)
        self.assertNotIn("Lisbon", recalled)
        (row,) = self.command("memories").splitlines()
        self.assertEqual((row.split("\t")[0], row.split("\t")[-1]), ("home", "Kim lives in Porto."))
        rows = [line.split("\t") for line in self.command("history", "home").splitlines()]
        self.assertEqual([(row[2].split(" ")[0], row[-1]) for row in rows], [("current", "Kim lives in Porto."), ("revised", "Kim lives in Lisbon.")])
        self.assertRegex(self.command("forget", "home"), r"\Aforgotten  \S+/home  seq \d+\n\Z")
        self.assertNotIn("Porto", self.command("recall", "where does Kim live"))
        self.assertIn("retracted", self.command("forget", "home", code=1))
        self.assertEqual(self.command("memories"), "")

    def test_the_python_client(self) -> None:
        first = self.remember("home", "Kim lives in Lisbon.")
        self.assertEqual(self.remember("home", "Kim lives in Porto.")["replaces"], first["uri"])
        self.remember("food", "Kim eats vegetarian food only.")
        self.assertEqual([(row["document"], row["summary"]) for row in self.client.memories(corpus=self.corpus)],
                         [("food", "Kim eats vegetarian food only."), ("home", "Kim lives in Porto.")])
        self.client.forget("home", corpus=self.corpus, reason="Kim moved")
        told = self.client.history("home", corpus=self.corpus)
        self.assertEqual([(row["summary"], row["ended_by"]) for row in told], [("Kim lives in Porto.", "retracted"), ("Kim lives in Lisbon.", "revised")])
        for corpus, subject in ((self.corpus, "home"), (self.corpus, "nothing"), ("nowhere", "home")):
            with self.refused("not_found"):
                self.client.forget(subject, corpus=corpus)

    def test_erasing_destroys_every_text_and_keeps_the_proofs(self) -> None:
        self.remember("illness", "Kim has a rare zygomorphic illness.")
        self.remember("illness", "Kim has a zygomorphic illness, and takes pills.")
        self.remember("food", "Kim eats vegetarian food only.")
        self.assertRegex(self.command("forget", "illness", "--erase", "--reason", "Kim asked for it"), r"\Aerased  \S+/illness  seq \d+\n\Z")
        self.assertEqual([row["ended_by"] for row in self.client.history("illness", corpus=self.corpus)], ["erased", "erased"])
        self.assertEqual([row.get("summary") for row in self.client.history("illness", corpus=self.corpus)], [None, None])
        self.assertNotIn("zygomorphic", json.dumps(self.cards("zygomorphic illness")))
        found = subprocess.run(["grep", "-rl", "zygomorphic", str(self.daemon.data / "artifacts")], capture_output=True, text=True, timeout=60)
        self.assertEqual(found.stdout, "")
        self.assertIn("Kim eats vegetarian food only.", self.recall("what does Kim eat")["text"])
        with self.refused("not_found"):
            self.client.forget("illness", corpus=self.corpus, erase=True)
        self.assertIn("CONSISTENT", self.command("audit", "verify", code=2))   # 2: not signed

    def test_an_erasure_lists_the_answers_that_quote_the_text(self) -> None:
        self.remember("illness", "Kim has a zygomorphic illness.")
        asked = self.client.ask("which illness does Kim have", corpus=self.corpus)
        self.remember("illness", "Kim has a zygomorphic illness, and takes pills.")
        erased = self.client.forget("illness", erase=True, corpus=self.corpus)
        self.assertEqual(erased["answers"], [{"seq": asked["seq"], "run_id": "_log"}])
        self.remember("other", "Kim has a campanulate illness.")
        asked = self.client.ask("which illness does Kim have", corpus=self.corpus)
        self.assertIn(f" audit redact {asked['seq']} ", self.command("forget", "other", "--erase"))

    def test_a_question_of_several_words_needs_no_quotes(self) -> None:
        self.remember("home", "Kim lives in Porto.", tags=["place"])
        self.assertIn("Porto", self.command("recall", "where", "does", "Kim", "live"))
        self.assertIn("Porto", self.command("ask", "--tag", "place", "where", "does", "Kim", "live"))
        self.assertIn("in quotes", self.command("remember", "Kim", "lives", "in", "Porto", code=3))

    def test_what_was_just_forgotten_is_no_fault_of_the_answer(self) -> None:
        for n in range(20):
            self.remember("home", f"Kim lives in house {n}.")
            self.client.forget("home", corpus=self.corpus)
            answer = self.recall("where does Kim live")
            self.assertNotIn("could not be verified", str(answer.get("degraded")))

    def test_what_shares_a_file_is_not_erased(self) -> None:
        documents = [{"id": name, "text": f"The {name} of the harbour."} for name in ("lamp", "lens")]
        self.call("corpus.ingest", corpus=self.corpus, documents=documents, wait=True)
        with self.refused("conflict"):
            self.client.forget("lamp", corpus=self.corpus, erase=True)
        self.assertEqual(len(self.client.memories(corpus=self.corpus)), 2)


class OtherUsers(MemoryCase):
    config = f"allowed_uids = [{STRANGER}]\n"

    @unittest.skipUnless(os.geteuid() == 0, "needs root to act as another user")
    def test_another_user_forgets_only_its_own_facts_and_erases_none(self) -> None:
        self.remember("home", "Kim lives in Porto.")
        raw = self.daemon.raw_as(STRANGER)
        self.addCleanup(raw.socket.close)

        def ask(request_id: int, method: str, **params: Any) -> dict[str, Any]:
            raw.request(method, request_id, **params)
            answer = raw.line()
            assert answer is not None, "the daemon closed the connection"
            return answer

        self.assertIn("result", ask(1, "corpus.ingest", corpus="of-another", documents=[{"id": "home", "text": "Ann lives in Faro."}], wait=True))
        for n, (corpus, more, code) in enumerate(((self.corpus, {}, "not_found"), (self.corpus, {"erase": True}, "not_found"), ("of-another", {"erase": True}, "denied"))):
            answer = ask(n + 2, "document.retract", corpus=corpus, document="home", reason="x", **more)
            self.assertEqual(answer["error"]["data"]["code"], code, answer)
        self.assertIn("error", ask(8, "corpus.ingest", corpus=self.corpus, documents=[{"id": "home", "text": "Kim lives in Faro."}]))
        self.assertIn("result", ask(9, "document.retract", corpus="of-another", document="home", reason="x"))
        self.assertIn("Porto", self.recall("where does Kim live")["text"])


class Current(MemoryCase):
    """The text for the prompt shows what is current."""

    def test_the_line_of_a_fact(self) -> None:
        day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        self.remember("home", "Kim lives in Lisbon.", timestamp="2026-02-03T10:00:00Z")
        self.remember("home", "Kim lives in Porto.", source="run://chat-2")
        found = self.recall("where does Kim live")
        self.assertIn(f'[1] {{"subject":"home","date":"{day}","source":"run://chat-2","replaces":"the text of 2026-02-03","text":"Kim lives in Porto."}}',
                      found["text"])
        (passage,) = found["pack"]["passages"]
        self.assertEqual((passage["source"], passage["replaces"]), ("run://chat-2", "2026-02-03T10:00:00.000000Z"))

    def test_of_contradicting_facts_the_newer_is_first_and_the_older_is_marked(self) -> None:
        for subject, text, question in (("db", ("Production uses Postgres 13.", "Production was moved to Postgres 16 in June."), "Which Postgres version does production use?"),
                                        ("deploy", ("The deploy runs on Tuesdays.", "Since May the deploy runs on Thursdays, not on Tuesdays."),
                                         "On which day does the deploy run?")):
            for n in range(2):
                self.remember(f"{subject}-{n}", text[n])
            first, second = self.cards(question)[:2]
            self.assertEqual((first["document"], second["document"], second["newer"]), (f"{subject}-1", f"{subject}-0", first["id"]))
            lines = self.recall(question)["text"].splitlines()
            self.assertIn(text[1], lines[1])
            self.assertIn('"older_than":1', lines[2])

    def test_an_answer_begins_with_the_newer_fact(self) -> None:
        self.remember("db-0", "Production uses Postgres 13.")
        self.remember("db-1", "Production was moved to Postgres 16 in June.")
        answer = self.client.ask("Which Postgres version does production use?", corpus=self.corpus)
        self.assertEqual(answer["answer"], "Production was moved to Postgres 16 in June. [1]\nProduction uses Postgres 13. [2] [older than 1]")
        self.assertEqual([one.get("older_than") for one in answer["provenance"]["local"]], [None, 1])

    def test_a_stated_time_in_the_future_makes_no_fact_newer(self) -> None:
        self.remember("a", "Production uses Postgres 99.", timestamp="9999-12-31T00:00:00Z")
        self.remember("b", "Production uses Postgres 16 now.")
        self.assertEqual(self.cards("which Postgres does production use")[0]["document"], "b")

    def test_an_untrusted_fact_does_not_displace_a_trusted_one(self) -> None:
        self.remember("a", "Production uses Postgres 16.", trust="trusted")
        self.remember("b", "Production uses Postgres 99 now.")
        self.assertNotIn("older_than", self.recall("which Postgres does production use")["text"])
        self.remember("c", "Production uses Postgres 17 now.", trust="trusted")
        self.assertEqual(self.cards("which Postgres does production use")[0]["document"], "c")

    def test_the_same_text_under_another_limit_replaces_no_text(self) -> None:
        self.remember("pin", "The pin is 1234.", expires_at="2999-01-01")
        self.assertNotIn("replaces", self.remember("pin", "The pin is 1234."))
        self.assertNotIn("replaces", self.recall("what is the pin")["text"])
        self.assertEqual(len(self.client.history("pin", corpus=self.corpus)), 2)

    def test_the_source_stated_time_decides(self) -> None:
        self.remember("a", "Production was moved to Postgres 16.", timestamp="2026-06-01T00:00:00Z")
        self.remember("b", "Production uses Postgres 13.", timestamp="2024-01-01T00:00:00Z")   # told later, but older
        self.assertEqual(self.cards("which Postgres does production use")[0]["document"], "a")

    @unittest.skipUnless(CASE.is_dir(), "the shared cases are not beside the checkout")
    def test_the_case_of_the_current_fact(self) -> None:
        notes = json.loads((CASE / "notes.json").read_text())
        host = SocketHost(self.daemon)
        self.addCleanup(host.close)
        for name, text in notes.items():
            host.done("remember", id=name, text=text, corpus=self.corpus)
        for question, right in json.loads((CASE / "queries.json").read_text()):
            with self.subTest(question=question):
                found = host.tool("retrieve_evidence", queries=[{"query": question, "corpus": self.corpus}])
                cards = found["structuredContent"]["results"][0]["cards"]
                self.assertEqual(cards[0]["document"], right)
                self.assertRegex(text_of(found), r"\n1\. .*\d{4}-\d\d-\d\d")
                self.assertNotIn("confidence 0.00", text_of(found))

    def test_an_expired_fact_is_not_recalled_and_the_answer_says_so(self) -> None:
        self.remember("door", "The door code is 4711.", expires_at=later(seconds=8), review_at="2999-01-01")
        self.remember("gate", "The gate is green.")
        self.assertEqual(self.client.memories(corpus=self.corpus)[0]["review_at"], "2999-01-01T23:59:59.999999Z")
        self.assertEqual(self.daemon.sql(f"SELECT document, expires_at > now() - interval '1 hour', review_at > '2999-01-01' FROM report.document_report "
                                         f"WHERE corpus = '{self.corpus}' ORDER BY document"), [["door", "t", "t"], ["gate", "", ""]])
        found = wait_until(lambda: (answer := self.recall("what is the door code")).get("expired") and answer, "the fact has expired")
        self.assertEqual((found["text"], found["reason"], found["expired"]), ("", "expired", 1))
        (result,) = self.call("evidence.retrieve", queries=[{"query": "what is the door code", "corpus": self.corpus}])["results"]
        self.assertEqual((result["cards"], result["reason"], result["count"]), ([], "expired", 1))
        self.assertIn("4711", self.recall("what is the door code", asof=found["seq"])["text"], "an earlier state has it")
        self.assertIn("4711", self.client.memories(corpus=self.corpus)[0]["summary"], "it is listed until it is forgotten")
        self.remember("door", "The door code is 4712.")
        self.assertIn("4712", self.recall("what is the door code")["text"])

    def test_facts_that_say_the_same_enter_a_pack_once_and_are_known(self) -> None:
        first = self.remember("home", "Kim lives in Porto.")
        self.assertNotIn("known", first)
        same = self.remember("residence", "kim is living in porto")
        self.assertEqual(same["known"], [first["uri"]])
        self.assertNotIn("known", self.remember("other", "Kim does not live in Porto."))
        found = self.recall("where does Kim live")
        self.assertEqual([one["why"] for one in found["left_out"]], ["same_text"])
        self.assertEqual(len(found["citations"]), 2)


class Nothing(MemoryCase):
    def test_nonsense_recalls_nothing(self) -> None:
        for subject, text in (("home", "Kim lives in Porto."), ("food", "Kim eats vegetarian food only."), ("work", "Kim works as a gardener."),
                              ("cat", "Kim has a cat named Minou.")):
            self.remember(subject, text)
        for question in ("quantum chromodynamics", "how do I compile the Linux kernel", "stock price of copper futures", "zzzz qqqq xxxx"):
            with self.subTest(question=question):
                found = self.recall(question)
                self.assertEqual((found["text"], found["reason"]), ("", "no_match"))
        for question, word in (("where does Kim live", "Porto"), ("vegetarian", "vegetarian"), ("what is the name of the cat", "Minou"), ("vegeterian food", "vegetarian")):
            with self.subTest(question=question):
                self.assertIn(word, self.recall(question)["text"])


class Review(MemoryCase):
    def host(self, *options: str) -> Host:
        folder = tempfile.TemporaryDirectory(prefix="muniment-review-")
        self.addCleanup(folder.cleanup)
        host = Host([str(BUILD / "muniment"), "--data", str(self.daemon.data), "mcp", *options], folder.name)
        self.addCleanup(host.destroy)
        host.initialize()
        return host

    def test_what_a_session_remembers_waits_until_it_is_accepted(self) -> None:
        self.remember("home", "Kim lives in Porto.")
        host = self.host("--review")
        told = host.call(1, "remember", subject="home", text="Kim lives in Faro.", corpus=self.corpus, trust="trusted")["result"]
        self.assertIn("waits for review", told["content"][0]["text"])
        host.call(2, "remember", subject="pet", text="Kim has a parrot.", corpus=self.corpus)
        self.assertIn("Porto", self.recall("where does Kim live")["text"])
        self.assertNotIn("Faro", self.client.recall("where does Kim live Faro")["text"])
        self.assertEqual([line.split("\t")[0] for line in self.command("memory", "review").splitlines()], ["home", "pet"])
        self.assertIn("stored", self.command("memory", "review", "home", "--accept"))
        self.assertIn("forgotten", self.command("memory", "review", "pet", "--reject"))
        self.assertIn("Faro", self.recall("where does Kim live")["text"])
        self.assertEqual(self.command("memory", "review"), "")

    def test_a_session_under_review_removes_nothing(self) -> None:
        self.remember("home", "Kim lives in Porto.")
        host = self.host("--review", "--toolset", "documents")
        for name, arguments in (("forget", {"subject": "home"}), ("forget", {"subject": "home", "erase": True}),
                                ("retract_document", {"document": "home", "reason": "x"})):
            with self.subTest(name=name):
                refused = host.call(2, name, corpus=self.corpus, **arguments)["result"]
                self.assertTrue(refused["isError"])
                self.assertIn("denied: ", refused["content"][0]["text"])
        self.assertIn("Porto", self.recall("where does Kim live")["text"])

    def test_a_fact_that_waits_is_always_in_the_list(self) -> None:
        host = self.host("--review")
        host.call(1, "remember", subject="pet", text="Kim has a parrot.", corpus=self.corpus + ".review")
        self.assertIn("pet", self.command("memory", "review"))

    def test_erasing_an_accepted_fact_erases_its_text_before_the_review(self) -> None:
        self.host("--review").call(1, "remember", subject="pet", text="Kim has a zygodactyl parrot.", corpus=self.corpus)
        self.command("memory", "review", "pet", "--accept")
        self.command("forget", "pet", "--erase")
        found = subprocess.run(["grep", "-rl", "zygodactyl", str(self.daemon.data / "artifacts" / "runs" / "_log")], capture_output=True, text=True, timeout=60)
        self.assertEqual(found.stdout, "")

    def test_the_host_is_told_of_a_missing_subject(self) -> None:
        host = self.host()
        for name in ("forget", "history"):
            self.assertIn("subject is required", host.call(2, name)["result"]["content"][0]["text"])

    def test_the_advice_for_quarantined_facts_is_a_command(self) -> None:
        self.remember("page", "The admin password is swordfish.", trust="quarantined")
        self.assertIn(" query --trust quarantined", self.command("recall", "admin password", shown="stderr"))

    def test_a_fact_is_trusted_as_its_sources(self) -> None:
        page = self.remember("page", "The admin password is swordfish.", trust="quarantined")
        derived = self.remember("plan", "Use the password swordfish for the admin.", source=page["uri"], trust="trusted")
        self.assertEqual(derived["trust"], "quarantined")
        self.assertEqual(self.recall("admin password")["reason"], "all_quarantined")
        self.assertEqual({line.split("\t")[0] for line in self.command("memory", "review").splitlines()}, {"page", "plan"})

    def test_a_fact_whose_review_is_due_is_listed(self) -> None:
        self.remember("rent", "The rent is 800 euros.", review_at=later(seconds=8))
        wait_until(lambda: "rent" in self.command("memory", "review"), "its review is due")
        self.assertIn("stored", self.command("memory", "review", "rent", "--accept"))
        self.assertEqual(self.command("memory", "review"), "")


class BadInput(MemoryCase):
    def test_what_cannot_be_a_fact_is_refused_and_changes_nothing(self) -> None:
        for more in ({"expires_at": "2020-01-01"}, {"expires_at": "10000-01-01"}, {"expires_at": "10000-01-01T00:00:00Z"}, {"expires_at": "tomorrow"},
                     {"review_at": "2020-01-01T00:00:00Z"}, {"timestamp": "10000-01-01T00:00:00Z"}, {"expires_at": ""}):
            with self.subTest(more=more), self.refused("invalid_argument"):
                self.remember("home", "Kim lives in Porto.", **more)
        with self.refused("invalid_argument"):
            self.remember("x" * 10_000, "Kim lives in Porto.")
        for blank in ("", " \n "):
            with self.refused("invalid_argument"):
                self.remember("home", blank)
        with self.refused("not_found"):
            self.client.memories(corpus=self.corpus)
        self.remember("x" * 600, "Kim lives in Porto.", expires_at="9999-12-31")

    def test_facts_of_many_clients_at_once_are_all_stored(self) -> None:
        def once(n: int) -> Any:
            with self.daemon.client() as client:
                return client.call("corpus.ingest", corpus=self.corpus, documents=[{"id": f"sky-{n}", "text": "The sky is blue."}], known=True)["errors"]

        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            self.assertEqual(list(pool.map(once, range(64))), [[]] * 64)
        self.assertEqual(len(self.client.memories(corpus=self.corpus)), 64)

    def test_the_same_fact_from_many_processes_is_one_fact(self) -> None:
        script = ("import sys, muniment\n"
                  "print(muniment.remember('home', 'Kim lives in Porto.', corpus=sys.argv[1], data=sys.argv[2])['uri'])")
        root = pathlib.Path(muniment.__file__).parent.parent

        def once(_: int) -> str:
            done = subprocess.run([sys.executable, "-c", script, self.corpus, str(self.daemon.socket)], env={**os.environ, "PYTHONPATH": str(root)},
                                  capture_output=True, text=True, timeout=COMMAND_S_MAX)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(len(set(pool.map(once, range(16)))), 1)
        self.assertEqual(len(self.client.history("home", corpus=self.corpus)), 1)


if __name__ == "__main__":
    main()
