"""Tests of audit reports: one file that shows a run's events and proofs, whatever text an agent has recorded."""
from __future__ import annotations

import html.parser
import json
import pathlib
import re
import subprocess
import unittest
from typing import Optional

from support import BUILD, DaemonCase, main, shared_data

SECTIONS = ["summary", "custody", "who", "what", "models", "actions", "approvals", "ledger", "reads", "stops", "erasure", "gaps", "time", "limits", "repeat"]
ELEMENTS = {"html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "p", "span", "nav", "a", "main", "section", "dl", "dt",
            "dd", "div", "table", "thead", "tbody", "tr", "th", "td", "ul", "ol", "li", "pre", "wbr"}
HOSTILE = "<script>alert(1)</script> \"' onload=x [a](javascript:x) ![b](http://c/d) | e |\n# f\n`g` \x1b[31mred \u202eh http://i.example www.example.com"


class Parsed(html.parser.HTMLParser):
    """Collects the elements, the ids, the links and the text of a report."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, Optional[str]]]) -> None:
        self.elements.add(tag)
        for name, value in attributes:
            self.attributes.add(name)
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src"):
                self.links.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


class Reporting(DaemonCase):
    def report(self, run: str, name: str = "r.html", code: int = 0) -> str:
        path = self.daemon.folder / f"{self._testMethodName}.{name}"
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "audit", "report", run, "-o", path],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.said = json.loads(done.stdout)
        return path.read_text() if path.exists() else ""

    def assert_one_safe_file(self, text: str) -> Parsed:
        parsed = Parsed(text)
        self.assertLessEqual(parsed.elements, ELEMENTS)
        self.assertLessEqual(parsed.attributes, {"lang", "charset", "http-equiv", "content", "name", "id", "class", "href", "scope", "aria-label", "data-label"})
        self.assertEqual(parsed.links, ["#" + name for name in SECTIONS])
        self.assertEqual(parsed.ids, SECTIONS)
        self.assertEqual(re.findall(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text), [])
        return parsed


class Report(Reporting):
    def test_says_what_happened_and_what_proves_it(self) -> None:
        run = self.new_run("all", goal="find it", labels={"team": "a"}, cwd="/src", vcs={"commit": "12ab", "dirty": True})
        put = self.call("artifact.put", run_id=run, mime_type="text/plain", text="twelve bytes")
        self.client.append(run, "tool.called", {"call_id": "c1", "name": "grep", "kind": "function", "arguments": {"q": "x"}})
        self.client.append(run, "tool.returned", {"call_id": "c1", "status": "ok", "content": [{"type": "text", "content": "found"}]})
        self.client.append(run, "tool.called", {"call_id": "c2", "name": "never-answered", "kind": "function", "arguments": {}})
        self.client.append(run, "approval.requested", {"approval_id": "a1", "question": "May I?", "options": ["yes", "no"]})
        self.client.append(run, "approval.decided", {"approval_id": "a1", "decision": "approved", "by": "human", "reason": "Ada agrees"})
        self.client.append(run, "file.changed", {"path": "src/a.c", "change": "modified"}, occurred_at="2026-01-02T03:04:05Z")
        command = self.call("command.start", run_id=run, argv=["make", "test"], cwd="/src", env={})
        self.call("command.end", run_id=run, command_id=command["command_id"], exit_code=3)
        self.call("claim.record", run_id=run, text="It was found.", pointers=[f"artifact://{run}/{put['artifact_id']}"])
        self.call("evidence.record", run_id=run, type="review", content={"text": "Read and agreed."})
        parsed = self.assert_one_safe_file(self.report(run))
        self.assertEqual((self.said["proven"], self.said["signed"]), (True, False))
        events = self.events(run)
        for text in ("find it", "team", "/src", "commit 12ab", "grep", "never-answered (c2)", "May I?", "Ada agrees", "src/a.c", "2026-01-02T03:04:05.000000Z",
                     "make test", "exit 3", "It was found.", "Read and agreed.", put["hash"], "The run is open", "unsigned", events[-1]["run_hash"]):
            self.assertIn(text, parsed.text)

    def test_hostile_text_is_text(self) -> None:
        run = self.new_run("hostile", goal=HOSTILE, labels={"label": HOSTILE}, cwd=HOSTILE)
        self.client.append(run, "tool.called", {"call_id": HOSTILE, "name": HOSTILE, "kind": "function", "arguments": {HOSTILE: HOSTILE}})
        self.client.append(run, "message.added", {"message_id": "m", "role": "user", "content": [{"type": "text", "content": HOSTILE}]})
        self.client.append(run, "approval.requested", {"approval_id": "a", "question": HOSTILE, "options": [HOSTILE]})
        self.client.append(run, "x.test.noted", {"text": HOSTILE})
        self.client.append(run, "error.raised", {"error_type": HOSTILE[:60], "message": HOSTILE})
        self.call("claim.record", run_id=run, text=HOSTILE, pointers=[])
        self.call("evidence.record", run_id=run, type=HOSTILE[:60], content={"text": HOSTILE})
        parsed = self.assert_one_safe_file(self.report(run))
        self.assertIn("<script>alert(1)</script>", parsed.text)
        text = self.report(run, "r.md")
        prose = re.sub(r"^    .*$", "", text, flags=re.M)
        bare = re.sub(r"\\.", "", prose)   # characters with a meaning in Markdown
        self.assertEqual(re.findall(r"[<>\[\]`]|://|www\.", bare), [])
        self.assertEqual(re.findall(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text), [])
        self.assertEqual([line for line in prose.splitlines() if line.startswith("# ")], [f"# Audit report of run {run}".replace("_", "\\_")])

    def test_a_changed_event_is_seen(self) -> None:
        run = self.new_run("changed")
        self.note(run, n=1)
        self.call("audit.prove", run_id=run)
        self.daemon.sql("SET session_replication_role = replica; UPDATE event SET body = '{\"n\":2}' WHERE seq = "
                        + str(self.events(run)[-1]["seq"]))
        parsed = self.assert_one_safe_file(self.report(run, code=1))
        self.assertEqual((self.said["proven"], self.said["events"]), (False, 2))
        self.assertIn("2 events", parsed.text)
        self.assertIn("the body does not match its hash", parsed.text)
        self.assertIn("NOT PROVEN", parsed.text)

    def test_a_first_event_that_was_changed(self) -> None:
        """No event can be proven: the report counts the events, and names the place where the chain breaks."""
        run = self.new_run("changed-first", goal="find it")
        for n in range(3):
            self.note(run, n=n)
        seq = self.events(run)[0]["seq"]
        self.daemon.sql(f"SET session_replication_role = replica; UPDATE event SET body = replace(body::text, 'find it', 'hide it')::json WHERE seq = {seq}")
        text = self.report(run, "r.md", code=1).replace("\\", "")
        self.assertEqual((self.said["proven"], self.said["events"]), (False, 4))
        for words in ("4 events, written", "NOT PROVEN", f"is broken: seq {seq} (run_seq 0): the body does not match its hash", f"seq {seq} to {seq + 3}"):
            self.assertIn(words, text)
        for words in ("invalid_argument", "is below 0", "0 events,", "nothing is signed"):
            self.assertNotIn(words, text)
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "audit", "report", run, "-o", self.daemon.folder / "first.md"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("4 events  NOT PROVEN", done.stdout)
        self.assertIn(f"seq {seq} ", done.stdout)

    def test_a_file_of_another_kind_is_refused(self) -> None:
        self.report(self.run_id, "r.pdf", code=1)
        self.assertEqual(self.said["error"]["code"], "invalid_argument")


class Signed(Reporting):
    shared = True

    def test_is_signed_once_the_log_has_a_key(self) -> None:
        run = self.new_run("signed")
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "audit", "key", "init"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        parsed = self.assert_one_safe_file(self.report(run))
        self.assertEqual((self.said["proven"], self.said["signed"]), (True, True))
        self.assertIn(done.stdout.strip(), parsed.text)


class RealTrace(Reporting):
    shared = True

    def test_of_a_real_trace(self) -> None:
        traces = sorted((shared_data() / "traces" / "swe-agent").rglob("*.traj"), key=lambda path: path.stat().st_size)
        if not traces:
            raise unittest.SkipTest(f"no traces under {shared_data()}")
        trace: pathlib.Path = traces[len(traces) // 2]
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--json", "import", "--format", "swe-agent", trace],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        run = json.loads(done.stdout)["run_id"]
        parsed = self.assert_one_safe_file(self.report(run))
        events = self.events(run, limit=1000)
        self.assertTrue(self.said["proven"])
        for event in events[:1000]:
            self.assertIn(event["recorded_at"], parsed.text)
        self.assertIn("came from a file; the daemon did not witness them", parsed.text)
        self.assertIn("Imported from", parsed.text)
        for name in {event["body"]["name"] for event in events if event["type"] == "tool.called"}:
            self.assertIn(name, parsed.text)


if __name__ == "__main__":
    main()
