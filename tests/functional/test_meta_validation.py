"""muniment doctor --self and MetaValidator: the seven criteria are met, and each one fails if what it checks is broken."""
from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading
import unittest
from typing import Any, Callable, Optional
from unittest import mock

from support import BUILD, Daemon, DaemonCase, main, muniment
from workflow_case import CONFINES, FINISH_S, processes

from muniment.evidence import EvidenceError, MetaValidator

Json = dict[str, Any]
Rewrite = Callable[[str, Json, Json], None]   # (method, params, reply): changes the reply
NAMES = ["Code validation workflow exists", "Design review workflow exists", "TodoWrite integration works", "Beads integration works",
         "Documentation complete", "Agent interface accessible", "Meta-validation functional (self-referential)"]


class LyingDaemon:
    """A socket that forwards to the daemon and changes replies, as a daemon would that is broken."""

    def __init__(self, daemon: Daemon, rewrite: Rewrite):
        self.daemon, self.rewrite = daemon, rewrite
        self.path = str(daemon.folder / "lying.sock")
        pathlib.Path(self.path).unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            daemon = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            daemon.connect(self.daemon.socket)
            asked: dict[int, Json] = {}
            threading.Thread(target=self.requests, args=(client, daemon, asked), daemon=True).start()
            threading.Thread(target=self.replies, args=(client, daemon, asked), daemon=True).start()

    def requests(self, client: socket.socket, daemon: socket.socket, asked: dict[int, Json]) -> None:
        with client.makefile("rb") as source:
            while line := source.readline():
                request = json.loads(line)
                if "id" in request:
                    asked[request["id"]] = request
                daemon.sendall(line + source.read(request.get("params", {}).get("body_bytes", 0)))
        daemon.shutdown(socket.SHUT_WR)

    def replies(self, client: socket.socket, daemon: socket.socket, asked: dict[int, Json]) -> None:
        with client, daemon, daemon.makefile("rb") as source:
            while line := source.readline():
                reply = json.loads(line)
                if "result" in reply:
                    request = asked.pop(reply["id"])
                    self.rewrite(request["method"], request.get("params", {}), reply["result"])
                client.sendall(json.dumps(reply).encode() + b"\n")


def without_executor(rewrite: Rewrite) -> Rewrite:
    """The requests of a command that the executor runs would not pass the lying daemon."""
    def rewritten(method: str, params: Json, result: Json) -> None:
        if method == "command.executor":
            result["socket"] = "nowhere"
        rewrite(method, params, result)
    return rewritten


class MetaCase(DaemonCase):
    shared = True

    def run(self, result: Any = None) -> Any:
        with processes(alone=False):
            return super().run(result)

    def doctor(self, *more: str, place: Optional[list[str]] = None, prefix: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
        env = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        return subprocess.run([*prefix, str(BUILD / "muniment"), *(place or ["--data", str(self.daemon.data)]), "doctor", "--self", *more],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FINISH_S, env=env)

    def report(self, **more: Any) -> Json:
        done = self.doctor("--json", **more)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        report: Json = json.loads(done.stdout)
        self.assertEqual([one["name"] for one in report["criteria"]], NAMES)
        self.assertEqual(done.returncode == 0, report["summary"]["all_criteria_met"], report)
        return report

    def assert_not_met(self, report: Json, numbers: set[int], reason: str) -> None:
        expected = numbers | (set() if CONFINES else {1})
        self.assertEqual({one["number"] for one in report["criteria"] if not one["met"]}, expected, report)
        self.assertFalse(report["summary"]["all_criteria_met"])
        self.assertEqual(report["summary"]["met"], 7 - len(expected))
        self.assertIn(reason, report["criteria"][min(numbers) - 1]["detail"])

    def lie(self, rewrite: Rewrite) -> Json:
        lying = LyingDaemon(self.daemon, without_executor(rewrite))
        self.addCleanup(lying.listener.close)
        return self.report(place=["--socket", lying.path])


class Report(MetaCase):
    def test_all_seven_criteria_are_met(self) -> None:
        report = self.report()
        if not CONFINES:
            return self.assert_not_met(report, {1}, "the command cannot be isolated")
        self.assertEqual(report["summary"], {"total_criteria": 7, "met": 7, "completion_percentage": 100, "all_criteria_met": True}, report)
        run = self.call("run.get", run_id=report["run_id"])["run"]
        self.assertEqual((run["status"], run["outcome"], run["agent"]), ("ended", "success", "doctor"))

    def test_the_report_is_the_content_of_its_evidence(self) -> None:
        report = self.report()
        found = self.call("evidence.get", evidence_id=report["evidence_id"])["evidence"]
        self.assertEqual((found["type"], found["run_id"]), ("meta_validation", report["run_id"]))
        for member in ("criteria", "summary", "run_id"):
            self.assertEqual(found["content"][member], report[member])
        checked = self.call("evidence.check", evidence_id=report["evidence_id"])
        self.assertTrue(checked["intact"])

    def test_it_can_be_repeated(self) -> None:
        first, second = self.report(), self.report()
        self.assertNotEqual(first["run_id"], second["run_id"])
        self.assertEqual(second["summary"], first["summary"])

    def test_the_text_names_each_criterion_and_its_result(self) -> None:
        lines = self.doctor().stdout.splitlines()
        for number, name in enumerate(NAMES, 1):
            result = "met" if CONFINES or number > 1 else "not met"
            self.assertTrue(any(re.fullmatch(rf"{number} {re.escape(name)} +{result}", line) for line in lines), lines)
        self.assertTrue(any(line.startswith(f"{7 if CONFINES else 6} of 7 criteria are met") for line in lines), lines)

    def test_python_returns_the_same_report(self) -> None:
        with mock.patch.dict(os.environ, {"PATH": f"{BUILD}:{os.environ['PATH']}"}):
            report = MetaValidator(self.daemon.socket).generate_completion_report()
            self.assertEqual(set(report), {"run_id", "criteria", "summary", "evidence_id"})
            self.assertEqual(report["summary"]["completion_percentage"] == 100.0, CONFINES, report)
            with self.assertRaises(muniment.MunimentError) as caught:
                MetaValidator(self.daemon.folder / "nothing").generate_completion_report()
            self.assertEqual(caught.exception.code, "unavailable")
        with mock.patch.dict(os.environ, {"PATH": "/nowhere"}), self.assertRaisesRegex(EvidenceError, "no program muniment"):
            MetaValidator().generate_completion_report()

    @unittest.skipUnless(CONFINES, "the kernel cannot isolate a workflow")
    def test_an_interrupted_check_records_no_report(self) -> None:
        """The signal arrives during a workflow, and during a criterion that runs none."""
        for interrupted in ("command.start", "task.open"):
            with self.subTest(method=interrupted):
                self.interrupt_at(interrupted)

    def interrupt_at(self, interrupted: str) -> None:
        def interrupt(method: str, params: Json, reply: Json) -> None:
            if method == interrupted and not started.get("run"):
                started["run"] = params["run_id"]
                child.send_signal(signal.SIGINT)

        started: dict[str, str] = {}
        lying = LyingDaemon(self.daemon, without_executor(interrupt))
        self.addCleanup(lying.listener.close)
        child = subprocess.Popen([str(BUILD / "muniment"), "--socket", lying.path, "doctor", "--self"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = child.communicate(timeout=FINISH_S)
        self.assertEqual((child.returncode, out), (130, ""), err)
        self.assertIn("interrupted", err)
        run = self.call("run.get", run_id=started["run"])["run"]
        self.assertEqual((run["status"], run["outcome"]), ("ended", "cancelled"))
        recorded = self.call("evidence.list", run_id=started["run"])["evidence"]
        self.assertNotIn("meta_validation", [evidence["type"] for evidence in recorded])

    def test_without_a_daemon_nothing_is_started(self) -> None:
        done = self.doctor(place=["--data", str(self.daemon.folder / "nothing")])
        self.assertEqual(done.returncode, 4, done.stdout)
        self.assertIn("muniment", done.stderr)
        self.assertFalse((self.daemon.folder / "nothing").exists())


class Broken(MetaCase):
    """A criterion whose subject is broken is not met; the others are met."""

    @unittest.skipUnless(CONFINES and os.geteuid() == 0 and shutil.which("setpriv"), "needs root and namespaces")
    def test_1_without_namespaces(self) -> None:
        report = self.report(prefix=("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"))
        self.assert_not_met(report, {1}, "the command cannot be isolated")
        self.assertEqual(report["summary"]["completion_percentage"], 85.7)

    @unittest.skipUnless(CONFINES, "needs namespaces")
    def test_1_a_comparison_that_always_passes(self) -> None:
        def rewrite(method: str, params: Json, result: Json) -> None:
            if method == "evidence.record" and params["type"] == "validation":
                result["passed"] = True
        self.assert_not_met(self.lie(rewrite), {1}, "the workflow of a wrong coder passed")

    def test_2_a_gate_that_takes_a_placeholder(self) -> None:
        placeholders: set[str] = set()

        def rewrite(method: str, params: Json, result: Json) -> None:
            if method == "evidence.record" and "TODO: planted by doctor --self" in params.get("content", {}).get("text", ""):
                placeholders.add(result["evidence_id"])
            if method == "task.complete" and placeholders & set(params["evidence_ids"]):
                result["completed"] = True
        self.assert_not_met(self.lie(rewrite), {2}, "a completion with a placeholder was accepted")

    def test_3_a_direct_change_that_nobody_notices(self) -> None:
        def rewrite(method: str, params: Json, result: Json) -> None:
            if method == "event.list" and params["types"] == ["violation.detected"]:
                result["events"] = []
        self.assert_not_met(self.lie(rewrite), {3}, "no violation was recorded")

    def test_4_an_attachment_that_is_lost(self) -> None:
        def rewrite(method: str, params: Json, result: Json) -> None:
            if method == "event.list" and params["types"] == ["x.muniment.evidence_attached"]:
                result["events"] = []
        self.assert_not_met(self.lie(rewrite), {4}, "attached to an issue is not in the log")

    def test_5_a_method_without_a_schema(self) -> None:
        def rewrite(method: str, params: Json, result: Json) -> None:
            if method == "server.metrics":
                result["text"] += 'muniment_requests_total{method="task.forget",code="ok"} 0\n'
        self.assert_not_met(self.lie(rewrite), {5}, "method task.forget has no schema")

    def test_6_a_missing_tool(self) -> None:
        def rewrite(method: str, params: Json, result: Json) -> None:
            if method == "tools/list":
                result["tools"] = [tool for tool in result["tools"] if tool["name"] != "complete_task"]
        self.assert_not_met(self.lie(rewrite), {6}, "tools/list has no tool complete_task")

    def test_7_a_report_that_reads_back_differently(self) -> None:
        def rewrite(method: str, params: Json, result: Json) -> None:
            if method == "evidence.get" and result["evidence"]["type"] == "meta_validation":
                result["evidence"]["content"]["summary"]["met"] = 0
        report = self.lie(rewrite)
        self.assert_not_met(report, {7}, "the recorded report differs")
        corrected = self.call("evidence.get", evidence_id=report["evidence_id"])["evidence"]["content"]
        self.assertFalse(corrected["criteria"][6]["met"])
        self.assertEqual(self.call("run.get", run_id=report["run_id"])["run"]["outcome"], "failure")


class StrictPolicy(MetaCase):
    shared = False

    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.daemon.destroy)
        policy, config = cls.daemon.folder / "completion.toml", cls.daemon.folder / "muniment.toml"
        policy.write_text("[task.default]\nstrict = true\n")
        config.write_text(f'completion_policy = "{policy}"\n')
        cls.daemon.arguments += ["--config", str(config)]
        cls.daemon.start()

    def test_evidence_of_clients_completes_nothing(self) -> None:
        self.assert_not_met(self.report(), {2, 3, 4}, "a completion with a design review was refused: Weak evidence: ")


if __name__ == "__main__":
    main()
