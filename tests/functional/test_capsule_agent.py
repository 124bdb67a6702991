"""Tests of the loop of an agent over a capsule: the messages of its hook, its tools, its bounds, and its continuation after a kill."""
from __future__ import annotations

import json
import sys
from typing import Any

from support import main
from test_capsule import CapsuleCase

import muniment_capsule

# Answers with the next line of a file; notes what it reads.
HOOK = """#!/usr/bin/python3
import json, sys
request = json.load(sys.stdin)
with open({seen!r}, "a") as seen: seen.write(json.dumps(request) + "\\n")
answered = sum(1 for message in request["messages"] if message["role"] == "assistant")
print(open({answers!r}).read().splitlines()[answered])
"""


def says(content: str, *calls: Any) -> str:
    return json.dumps({"message": {"role": "assistant", "content": content, "tool_calls": list(calls)}})


def call(number: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"id": number, "name": tool, "arguments": arguments}


class AgentCase(CapsuleCase):
    def setUp(self) -> None:
        super().setUp()
        self.seen, self.answers = self.folder / "seen", self.folder / "answers"
        self.program = self.folder / "hook.py"
        self.program.write_text(HOOK.format(seen=str(self.seen), answers=str(self.answers)))
        self.hook = ("--", sys.executable, self.program)
        self.write("plan.md", "The harbour crane is repaired in March.\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")

    def run_any(self, *words: Any, **options: Any) -> Any:
        options["env"] = {"XDG_CONFIG_HOME": str(self.folder / "ada"), **options.get("env", {})}
        return super().run_any(*words, **options)

    def answer(self, *lines: str) -> None:
        self.answers.write_text("\n".join(lines) + "\n")

    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.seen.read_text().splitlines()] if self.seen.exists() else []

    def turns(self) -> list[tuple[dict[str, Any], str]]:
        return [(json.loads(frame.about), frame.body.decode()) for frame in muniment_capsule.Capsule(str(self.file)).frames()
                if frame.type == "log"]


class Agent(AgentCase):
    def test_tools_are_called_until_the_hook_answers(self) -> None:
        self.answer(says("", call("a", "recall", question="when is the crane repaired"), call("b", "remember", subject="asked", text="Ada asked for the crane.")),
                    says("In March [1]."))
        done = self.run_words("--json", "--capsule", self.file, "agent", "When is the crane repaired?", "--session", "s1", *self.hook)
        self.assertEqual(json.loads(done.stdout), {"session": "s1", "steps": 2, "message": {"role": "assistant", "content": "In March [1]."}})
        first, second = self.requests()
        self.assertEqual((set(first), first["session"]), ({"messages", "tools", "session"}, "s1"))
        self.assertEqual(first["messages"], [{"role": "user", "content": "When is the crane repaired?"}])
        tools = {tool["name"]: tool["inputSchema"] for tool in first["tools"]}
        self.assertIn("question", tools["recall"]["properties"])
        self.assertNotIn("run_start", tools)
        user, said, recalled, remembered = second["messages"]
        self.assertEqual([one["id"] for one in said["tool_calls"]], ["a", "b"])
        self.assertEqual((recalled["role"], recalled["tool_call_id"], recalled["name"]), ("tool", "a", "recall"))
        self.assertIn("repaired in March", recalled["output"])
        self.assertEqual(recalled["details"]["pack"]["passages"][0]["document"], "plan.md")
        self.assertEqual(remembered["details"]["documents"][0]["uri"], "aether://memory/asked")
        self.assertEqual([(about["role"], about["session"]) for about, _ in self.turns()],
                         [("user", "s1"), ("assistant", "s1"), ("tool", "s1"), ("tool", "s1"), ("assistant", "s1")])
        self.assertEqual(self.turns()[-1][1], "In March [1].")
        self.assertIn("Ada asked", self.capsule("recall", "who asked for the crane"))
        self.run_words("capsule", "verify", self.file)

    def test_a_conversation_continues(self) -> None:
        self.answer(says("Hello."), says("Again."))
        self.capsule("agent", "Hi", "--session", "s1", *self.hook)
        self.capsule("agent", "Hi", "--session", "other", *self.hook)
        self.assertEqual(self.capsule("agent", "Once more", "--session", "s1", *self.hook), "Again.\n")
        self.assertEqual([one["content"] for one in self.requests()[-1]["messages"]], ["Hi", "Hello.", "Once more"])
        self.assertIn("Give a prompt", self.run_words("--capsule", self.file, "agent", "--session", "s1", *self.hook, code=1).stderr)
        self.assertEqual(len(self.requests()), 3)

    def test_a_killed_conversation_continues_where_it_was(self) -> None:
        self.answer(says("", call("a", "remember", subject="tide", text="The tide is low."), call("b", "recall", question="tide")), says("Low."))
        for turn in range(1, 6):  # user, assistant, two tools, assistant
            session = f"s{turn}"
            self.run_words("--capsule", self.file, "agent", "How is the tide?", "--session", session, *self.hook, code=-9,
                           env={"MUNIMENT_FAILPOINT": f"agent.turn_logged=kill@{turn}"})
            self.assertEqual(len([about for about, _ in self.turns() if about["session"] == session]), turn)
            if turn < 5:
                self.assertEqual(self.capsule("agent", "--session", session, *self.hook), "Low.\n")
            turns = [(about["role"], about.get("tool_call_id")) for about, _ in self.turns() if about["session"] == session]
            self.assertEqual(turns, [("user", None), ("assistant", None), ("tool", "a"), ("tool", "b"), ("assistant", None)], turn)
        self.run_words("capsule", "verify", self.file)

    def test_open_calls_of_a_killed_run_are_made_before_the_next_prompt(self) -> None:
        self.answer(says("", call("a", "recall", question="tide")), says("Low."))
        self.run_words("--capsule", self.file, "agent", "How is the tide?", "--session", "s1", *self.hook, code=-9,
                       env={"MUNIMENT_FAILPOINT": "agent.turn_logged=kill@2"})
        self.assertEqual(self.capsule("agent", "And now?", "--session", "s1", *self.hook), "Low.\n")
        self.assertEqual([about["role"] for about, _ in self.turns()], ["user", "assistant", "tool", "user", "assistant"])

    def test_a_tool_that_fails_is_told_to_the_hook(self) -> None:
        self.answer(says("", call("a", "run_start"), call("b", "recall"), call("c", "resolve_pointer", pointers=["aether://notes/none"])), says("Done."))
        done = self.run_words("--capsule", self.file, "agent", "Try", *self.hook)
        results = self.requests()[1]["messages"][2:]
        self.assertIn("needs a daemon", results[0]["output"])
        self.assertIn("question is required", results[1]["output"])
        self.assertEqual([one.get("is_error", False) for one in results], [True, True, False])
        self.assertIn("run_start  failed", done.stderr)

    def test_a_chat_interface_may_be_passed_on(self) -> None:
        calls = [{"id": "x", "type": "function", "function": {"name": "recall", "arguments": '{"question": "crane"}'}}]
        self.answer(json.dumps({"message": {"role": "assistant", "content": None, "tool_calls": calls}}), says("March."))
        self.assertEqual(self.capsule("agent", "When?", *self.hook), "March.\n")
        self.assertIn("March", self.requests()[1]["messages"][2]["output"])


class Bounds(AgentCase):
    def test_steps_are_bounded_and_the_conversation_can_continue(self) -> None:
        again = [says("", call("a", "list_corpora"))] * 4
        self.answer(*again, says("Enough."))
        done = self.run_words("--capsule", self.file, "agent", "Go", "--session", "s1", "--steps", "3", *self.hook, code=1)
        self.assertIn("after 3 steps", done.stderr)
        self.assertIn("--session s1", done.stderr)
        self.assertEqual(len(self.requests()), 3)
        self.assertEqual(self.capsule("agent", "--session", "s1", *self.hook), "Enough.\n")

    def test_bytes_are_bounded(self) -> None:
        self.answer(says("Yes."))
        done = self.run_words("--capsule", self.file, "agent", "word " * 2_000, "--bytes", "5000", *self.hook, code=1)
        self.assertIn("limit 5,000", done.stderr)
        self.assertEqual(self.requests(), [])

    def test_time_is_bounded(self) -> None:
        done = self.run_words("--capsule", self.file, "agent", "Go", "--seconds", "1", "--", "/bin/sleep", "600", code=4)
        self.assertIn("no answer within", done.stderr)

    def test_a_wrong_answer_is_refused_and_not_logged(self) -> None:
        calls = [call("a", "list_corpora")]
        for answer in ("", "no json", "[]", "{}", '{"message": "x"}', json.dumps({"message": {"role": "user", "content": "x"}}),
                       json.dumps({"message": {"role": "assistant", "content": ""}}), json.dumps({"message": {"role": "assistant", "content": 7}}),
                       json.dumps({"message": {"role": "assistant", "content": "x", "tool_calls": {}}}),
                       says("x", {"id": "a"}), says("x", *calls, *calls), says("x", *[call(str(n), "list_corpora") for n in range(33)]),
                       says("x", {"id": "a", "name": "recall", "arguments": "no json"})):
            self.answer(answer)
            done = self.run_words("--capsule", self.file, "agent", "Go", "--session", "s", *self.hook, code=4)
            self.assertIn("agent hook", done.stderr, answer)
        self.assertEqual({about["role"] for about, _ in self.turns()}, {"user"})

    def test_a_hook_that_fails_ends_the_loop(self) -> None:
        self.assertIn("exit status 1", self.run_words("--capsule", self.file, "agent", "Go", "--", "/bin/false", code=4).stderr)
        self.assertIn("absolute", self.run_words("--capsule", self.file, "agent", "Go", "--", "false", code=1).stderr)
        self.assertIn("--capsule is missing", self.run_words("agent", "Go", *self.hook, code=1).stderr)
        self.run_words("--capsule", self.file, "agent", *self.hook, code=1)

    def test_the_hook_and_the_context_come_from_a_trusted_config(self) -> None:
        config = self.folder / "index.json"
        config.write_text(json.dumps({"context": "Ada's notes.", "collections": {"notes": {"context": "The harbour."}},
                                      "hooks": {"agent": [sys.executable, str(self.program)]}}))
        self.capsule("config", "set", config)
        self.answer(says("Yes."))
        self.assertEqual(self.capsule("agent", "Go"), "Yes.\n")
        self.assertEqual(self.requests()[0]["messages"][0], {"role": "system", "content": "Ada's notes.\nThe collection notes: The harbour."})
        bert = {"XDG_CONFIG_HOME": str(self.folder / "bert")}
        self.assertIn("do not trust", self.run_words("--capsule", self.file, "agent", "Go", code=1, env=bert).stderr)
        self.assertEqual(len(self.requests()), 1)
        self.run_words("--capsule", self.file, "agent", "Go", *self.hook, env=bert)
        self.assertEqual(self.requests()[1]["messages"][0]["role"], "user")


if __name__ == "__main__":
    sys.exit(main())
