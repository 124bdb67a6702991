"""Tests of MCP on the daemon's socket: an agent's actions are stored, recorded, halted and followed as with the native protocol."""
from __future__ import annotations

import pathlib
from typing import Any

from mcp_socket_host import SUBSCRIPTION_ID, Host, Json, Refused, text_of
from support import DaemonCase, main, wait_until

TEXT = "The harbour of Aveiro was opened in 1808 by Reinaldo Oudinot."


class McpCase(DaemonCase):
    def host(self, **options: Any) -> Host:
        host = Host(self.daemon, **options)
        self.addCleanup(host.close)
        return host

    def run_of(self, host: Host) -> str:
        """Returns the session's run from the native protocol."""
        seq = host.done("record_event", type="x.test.noted", body={})["seq"]
        event = self.call("event.get", seq=seq)["event"]
        run_id: str = event["run_id"]
        return run_id

    def types(self, run_id: str) -> list[str]:
        return [event["type"] for event in self.events(run_id)]

    def status(self, run_id: str) -> str:
        status: str = self.call("run.get", run_id=run_id)["run"]["status"]
        return status


class Rounds(McpCase):
    shared = True

    def round(self, host: Host) -> tuple[str, list[str]]:
        """Remembers, finds, cites, records and claims. Returns the session's run and the called tools."""
        corpus = f"{self._testMethodName[:40]}{host.stateless}".lower()
        stored = host.done("remember", text=TEXT, title="Aveiro", corpus=corpus)["documents"][0]
        host.done("remember", text=TEXT, title="Aveiro", corpus=corpus)   # the same text gives the same document
        card = host.done("retrieve_evidence", queries=[{"query": "harbour Aveiro", "corpus": corpus}])["results"][0]["cards"][0]
        self.assertTrue(card["id"].startswith(stored["uri"].split("?")[0]), card)
        read = host.tool("resolve_pointer", pointers=[card["id"]])
        self.assertIn("Reinaldo Oudinot", text_of(read))
        draft = f"It was opened in 1808 [ref:{card['id']}]."
        self.assertIn(card["id"], text_of(host.tool("render_with_pointers", draft=draft)))
        wrong = host.tool("render_with_pointers", draft="No. [ref:ev://nowhere/nothing#p0]")
        self.assertIn("do not resolve", text_of(wrong))
        self.assertIn(TEXT[:20], text_of(host.tool("build_context", query="harbour Aveiro", corpus=corpus)))
        run_id = self.run_of(host)
        recorded = host.done("record_event", type="message.added", body={"message_id": "m1", "role": "assistant", "content": draft})
        self.assertEqual(self.call("event.get", seq=recorded["seq"])["event"]["body"]["content"], [{"type": "text", "content": draft}])
        claim = host.done("record_claim", text="The harbour was opened in 1808", pointers=[card["id"]])
        self.assertEqual([one["claim_id"] for one in self.call("claim.list", run_id=run_id)["claims"]], [claim["claim_id"]])
        host.done("feedback", pointer=card["id"], value=1)
        self.assertGreater(host.done("rehydrate")["run_seq"], recorded["run_seq"])
        return run_id, ["remember", "remember", "retrieve_evidence", "resolve_pointer", "render_with_pointers", "render_with_pointers",
                        "build_context", "record_event", "record_event", "record_claim", "feedback", "rehydrate"]

    def called(self, run_id: str) -> list[Json]:
        return [event["body"] for event in self.events(run_id) if event["type"] == "tool.called"]

    def test_the_whole_round_is_recorded_in_the_sessions_run(self) -> None:
        for stateless in (False, True):
            with self.subTest(stateless=stateless):
                host = self.host(stateless=stateless)
                run_id, tools = self.round(host)
                ended = host.done("run_end", outcome="success", summary="done")
                self.assertEqual(ended["run_id"], run_id)
                self.assertEqual(self.status(run_id), "ended")
                calls = self.called(run_id)
                self.assertEqual([call["name"] for call in calls], [*tools, "run_end"])
                self.assertEqual({(call["kind"], call["server"]) for call in calls}, {("mcp", "muniment")})
                returned = [event["body"] for event in self.events(run_id) if event["type"] == "tool.returned"]
                self.assertEqual([one["call_id"] for one in returned], [call["call_id"] for call in calls[:-1]])
                self.assertNotEqual(self.run_of(host), run_id, "the next call begins another run")

    def test_a_call_is_recorded_before_what_it_does_and_its_result_after(self) -> None:
        host = self.host()
        run_id = self.run_of(host)
        host.done("record_event", type="x.test.first", body={})
        host.done("record_event", type="x.test.second", body={})
        host.tool("resolve_pointer", pointers=[f"run://{run_id}"])
        wait_until(lambda: self.types(run_id)[-1] == "tool.returned", "the last result is recorded")
        self.assertEqual([one for one in self.types(run_id) if one.startswith(("tool.", "x.test."))],
                         ["tool.called", "x.test.noted", "tool.returned", "tool.called", "x.test.first", "tool.returned",
                          "tool.called", "x.test.second", "tool.returned", "tool.called", "tool.returned"])

    def test_the_first_call_of_a_session_finds_its_run(self) -> None:
        for stateless in (False, True):
            calls: list[tuple[str, Json]] = [
                ("resolve_pointer", {"pointers": [f"run://{self.run_id}"]}), ("retrieve_evidence", {"queries": [{"query": "x"}]}),
                ("rehydrate", {}), ("build_context", {"query": "x"}), ("record_claim", {"text": "so", "pointers": []})]
            for tool, arguments in calls:
                with self.subTest(tool=tool, stateless=stateless):
                    self.assertFalse(self.host(stateless=stateless).tool(tool, **arguments)["isError"])
            host = self.host(stateless=stateless)
            self.assertTrue(host.call("resources/read", uri=f"run://{self.run_id}")["contents"])

    def test_a_session_that_leaves_ends_its_run(self) -> None:
        host = self.host()
        run_id = self.run_of(host)
        self.assertEqual(self.status(run_id), "open")
        host.close()
        wait_until(lambda: self.status(run_id) == "ended", "the run has ended")

    def test_resources_are_read_and_followed(self) -> None:
        host = self.host()
        run_id = self.run_of(host)
        listed = [one["uri"] for one in host.call("resources/list")["resources"]]
        self.assertEqual(listed[:2], ["log://validation", "log://metrics"])
        self.assertIn(f"run://{run_id}", listed)
        [row] = host.call("resources/read", uri=f"run://{run_id}")["contents"]
        self.assertIn('"status":"open"', row["text"].replace(" ", ""))
        [lines] = host.call("resources/read", uri=f"log://runs/{run_id}/events")["contents"]
        self.assertIn("x.test.noted", lines["text"])
        host.call("resources/subscribe", uri=f"run://{run_id}")
        self.note(run_id, by="another connection")
        self.assertEqual(host.notified("notifications/resources/updated"), {"uri": f"run://{run_id}"})
        host.call("resources/unsubscribe", uri=f"run://{run_id}")

    def test_a_stateless_host_listens(self) -> None:
        host = self.host(stateless=True)
        uris = [f"run://{self.run_id}", f"log://runs/{self.run_id}/events"]
        stream = host.ask("subscriptions/listen", notifications={"resourceSubscriptions": [*uris, "run://no-such-run"], "toolsListChanged": True})
        acknowledged = host.notified("notifications/subscriptions/acknowledged")
        self.assertEqual(acknowledged["_meta"], {SUBSCRIPTION_ID: stream})
        self.assertEqual(sorted(acknowledged["notifications"]["resourceSubscriptions"]), sorted(uris))
        self.note()
        for uri in uris:
            told = host.notified("notifications/resources/updated", uri)
            self.assertEqual(told["_meta"], {SUBSCRIPTION_ID: stream})
        host.tell("notifications/cancelled", requestId=stream)
        host.done("record_event", type="x.test.noted", body={}, run_id=self.run_id)
        self.assertNotIn(stream, host.answers, "what is cancelled is not answered")

    def test_prompts_and_completion_know_the_runs(self) -> None:
        host = self.host()
        [message] = host.call("prompts/get", name="audit_run", arguments={"run": self.run_id})["messages"]
        self.assertIn(f"run://{self.run_id}", message["content"]["text"])
        found = host.call("completion/complete", ref={"type": "ref/prompt", "name": "audit_run"}, argument={"name": "run", "value": self.run_id[:10]})
        self.assertIn(self.run_id, found["completion"]["values"])

    def test_two_sessions_at_once_have_runs_of_their_own(self) -> None:
        hosts = [self.host(), self.host(stateless=True), self.host()]
        runs = [self.run_of(host) for host in hosts]
        self.assertEqual(len(set(runs)), 3)
        for n in range(5):
            asked = [host.ask("tools/call", name="record_event", arguments={"type": "x.test.noted", "body": {"host": i, "n": n}}) for i, host in enumerate(hosts)]
            for host, request_id in zip(hosts, asked):
                self.assertFalse(host.answer(request_id)["isError"])
        for i, run_id in enumerate(runs):
            noted = [event["body"] for event in self.events(run_id) if event["type"] == "x.test.noted" and event["body"]]
            self.assertEqual(noted, [{"host": i, "n": n} for n in range(5)])

    def test_a_host_that_wants_no_run_has_none(self) -> None:
        host = self.host(record=False)
        self.assertFalse(host.tool("status")["isError"])
        refused = host.tool("record_event", type="x.test.noted", body={})
        self.assertTrue(refused["isError"])
        self.assertIn("run_id", text_of(refused))
        host.done("record_event", type="x.test.noted", body={}, run_id=self.run_id)
        self.assertNotIn("tool.called", self.types(self.run_id))

    def test_settings_that_come_first_name_the_run(self) -> None:
        host = self.host(stateless=True)
        host.tell("muniment/session", run_id="named-by-its-host", agent="editor", labels={"team": "a"}, cwd="/tmp", record=True)
        self.assertEqual(self.run_of(host), "named-by-its-host")
        started = self.events("named-by-its-host")[0]["body"]
        self.assertEqual((started["agent"]["name"], started["labels"], started["cwd"]), ("editor", {"team": "a"}, "/tmp"))

    def test_a_text_of_half_a_mebibyte_is_remembered_and_its_call_recorded(self) -> None:
        host = self.host()
        run_id = self.run_of(host)
        long = " ".join(f"word{i}" for i in range(60_000))
        result = host.tool("remember", text=long, title="Long", corpus="long")
        self.assertFalse(result["isError"], result)
        self.assertNotIn("could not be recorded", text_of(host.tool("status")))
        call = [one for one in self.called(run_id) if one["name"] == "remember"][-1]
        self.assertTrue("ref" in call or call["arguments"]["text"] == long)


class Stops(McpCase):
    def artifact(self, run_id: str) -> tuple[str, pathlib.Path]:
        stored = self.client.put(run_id, b"the evidence", mime_type="text/plain")
        return f"artifact://{run_id}/{stored['artifact_id']}", self.daemon.data / "artifacts" / stored["path"]

    def test_a_broken_critical_pointer_stops_the_sessions_run_until_it_is_repaired(self) -> None:
        host = self.host()
        run_id = self.run_of(host)
        pointer, path = self.artifact(run_id)
        path.unlink()
        stopped = text_of(host.tool("resolve_pointer", pointers=[pointer], critical=True))
        self.assertIn(f"Run {run_id} is stopped with SYSTEM_ERROR", stopped)
        self.assertIn(f"muniment recover {run_id}", stopped)
        self.assertEqual(self.status(run_id), "halted")

        refused = host.tool("record_event", type="x.test.noted", body={"too": "late"})
        self.assertTrue(refused["isError"])
        self.assertEqual(refused["structuredContent"]["code"], "run_halted")
        self.assertIn("recover", text_of(refused), "the error says what to do")
        self.assertNotIn("could not be recorded", text_of(host.tool("status")), "and is not told again as a warning")
        self.assertFalse(host.tool("rehydrate")["isError"], "a stopped run can be read")

        file = self.daemon.folder / "repair"
        file.write_bytes(b"the evidence")
        self.call("run.recover", run_id=run_id, repair={"pointer": pointer, "file": str(file)}, why="from the backup")
        self.assertEqual(self.run_of(host), run_id, "the session goes on in it")
        self.assertGreater(host.done("rehydrate")["run_seq"], self.types(run_id).index("run.resumed"))

    def test_a_claim_on_a_broken_pointer_stops_the_sessions_run(self) -> None:
        host = self.host(stateless=True)
        run_id = self.run_of(host)
        pointer, path = self.artifact(run_id)
        path.unlink()
        refused = host.tool("record_claim", text="so it is", pointers=[pointer])
        self.assertTrue(refused["isError"])
        self.assertIn("SYSTEM_ERROR", text_of(refused) + str(refused["structuredContent"]))
        self.assertEqual(self.status(run_id), "halted")
        with self.assertRaises(Refused) as caught:
            host.call("resources/read", uri=pointer)
        self.assertEqual(caught.exception.code, -32602)
        self.assertIn("NOT_FOUND", str(caught.exception))

    def test_what_cannot_be_recorded_is_told_with_the_next_result(self) -> None:
        host = self.host()
        run_id = self.run_of(host)
        self.call("run.end", run_id=run_id, outcome="success")   # without the session's knowledge
        told = wait_until(lambda: next((text for text in [text_of(host.tool("status"))] if "could not be recorded" in text), ""),
                          "a result says what could not be recorded")
        self.assertIn(run_id, told)
        self.assertTrue(self.call("server.health")["ok"], "the daemon is well: only the result can say it")

    def test_a_daemon_that_stops_leaves_the_run_open_for_a_host_that_comes_again(self) -> None:
        host, unnamed = self.host(stateless=True), self.host()
        host.tell("muniment/session", run_id="named-by-its-host", record=True)
        run_id, own = self.run_of(host), self.run_of(unnamed)
        self.assertEqual(run_id, "named-by-its-host")
        self.assertEqual(self.daemon.stop(), 0)
        self.restart()
        self.assertEqual((self.status(run_id), self.status(own)), ("open", "ended"))
        again = self.host(stateless=True)
        again.tell("muniment/session", run_id=run_id, resume=True, record=True)
        self.assertEqual(self.run_of(again), run_id)


class Tasks(McpCase):
    """The toolset tasks: an agent claims to be done, is refused, and then presents a recorded command."""

    shared = True
    CONTENT = "Fix the off-by-one in the pagination of the search results"
    OUTPUT = ("============================= test session starts ==============================\n"
              "collected 2 items\n\ntests/test_pagination.py::test_last_page PASSED\ntests/test_pagination.py::test_search_results_end PASSED\n\n"
              "============================== 2 passed in 0.12s ===============================\n")

    def recorded(self, run_id: str) -> str:
        """Records evidence of a command in the run, as muniment exec does."""
        started = self.call("command.start", run_id=run_id, argv=["pytest", "-v"], cwd="/src/app", env={})["command_id"]
        stored = self.client.put(run_id, self.OUTPUT.encode(), mime_type="text/plain")
        self.call("command.end", run_id=run_id, command_id=started, exit_code=0, stdout={"artifact_id": stored["artifact_id"]})
        recorded: str = self.call("evidence.record", run_id=run_id, type="test_output", command_id=started)["evidence_id"]
        return recorded

    def test_all_tests_passed_is_refused_and_a_recorded_run_is_not(self) -> None:
        for stateless in (False, True):
            with self.subTest(stateless=stateless):
                host = self.host(stateless=stateless, toolsets=("tasks", "ledger"))
                run_id = self.run_of(host)
                opened = host.tool("open_task", content=self.CONTENT, task_id="t1", required_type="test_output")
                self.assertIn("Task t1 opened", text_of(opened))
                claimed = host.done("record_evidence", type="test_output", content={"text": "All tests passed"})["evidence_id"]
                refused = host.tool("complete_task", task_id="t1", evidence_ids=[claimed])
                self.assertEqual((refused["isError"], refused["structuredContent"]["completed"]), (False, False))
                text = text_of(refused)
                code = refused["structuredContent"]["findings"][0]["code"]
                self.assertIn("Task t1 is not completed: refused", text)
                self.assertIn(f"evidence {claimed}: {code}: ", text)
                self.assertIn("Do not report it as done", text)
                evidence = self.recorded(run_id)
                strictly = host.tool("validate_todo", task_id="t1", evidence_ids=[evidence], strict=True)
                self.assertIn("the daemon did not observe it", text_of(strictly))
                self.assertIn("can be completed", text_of(host.tool("validate_todo", task_id="t1", evidence_ids=[evidence])))
                done = host.tool("complete_task", task_id="t1", evidence_ids=[evidence])
                self.assertRegex(text_of(done), "^Task t1 completed at seq [0-9]+ [(]pass[)]: ")
                self.assertEqual(self.call("task.list", run_id=run_id)["tasks"][0]["evidence_ids"], [evidence])
                host.close()

    def test_a_todo_is_checked_without_a_task(self) -> None:
        host = self.host(toolsets=("tasks",))
        self.assertIn("cannot be completed", text_of(host.tool("validate_todo", content=self.CONTENT, evidence_ids=[])))
        self.assertIn("can be completed", text_of(host.tool("validate_todo", content="Tidy up", evidence_ids=[], requires_evidence=False)))

    def test_a_task_that_was_not_opened_is_an_error_with_the_next_step(self) -> None:
        refused = self.host(toolsets=("tasks",)).tool("complete_task", task_id="nope", evidence_ids=[])
        self.assertTrue(refused["isError"])
        self.assertIn("task.open", text_of(refused))

    def test_the_prompt_names_the_task(self) -> None:
        [message] = self.host(toolsets=("tasks",)).call("prompts/get", name="validate_completion", arguments={"task": "t1", "evidence": "e1"})["messages"]
        self.assertIn("Check whether this task is done: t1", message["content"]["text"])
        self.assertIn("Evidence: e1", message["content"]["text"])


if __name__ == "__main__":
    main()
