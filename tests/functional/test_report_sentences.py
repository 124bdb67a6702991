"""Tests of the computed sentences of a report and of related output: each appears if and only if it is true."""
from __future__ import annotations

import mmap
import pathlib
import struct
import subprocess
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support import BUILD, ROOT, Daemon, DaemonCase, main  # noqa: E402

ALL_ENDED = "Every call, command, approval, child run and step that began has its end."
NO_STEP = "the log has no step of the daemon's clock of more than a second"
QUIET = "The run was never halted and raised no error."
DAY_S = 86_400


class ReportCase(DaemonCase):
    def cli(self, *words: object) -> str:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--no-autostart", *map(str, words)], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def report(self, run: str) -> str:
        path = self.daemon.folder / f"{self._testMethodName}.md"
        self.cli("audit", "report", run, "-o", path)
        return path.read_text().replace("\\", "")

    def section(self, run: str, title: str) -> str:
        return self.report(run).split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]

    def step(self, run: str, step: str, type_: str, **body: Any) -> None:
        self.call("event.append", run_id=run, type=type_, step_id=step, body=body)


class Sentences(ReportCase):
    def test_a_step_that_has_no_end(self) -> None:
        run = self.new_run("dangling")
        self.assertIn("The run has no call, command, approval, child run or step.", self.section(run, "Gaps"))
        for name in ("one", "two"):
            self.step(run, name, "step.started", name=f"step {name}", kind="task")
        self.step(run, "one", "step.ended", status="ok")
        gaps = self.section(run, "Gaps")
        self.assertNotIn(ALL_ENDED, gaps)
        self.assertIn("step two (two)", gaps)
        self.assertNotIn("step one", gaps)
        self.call("run.end", run_id=run, outcome="success")   # the end of the run does not end a step
        self.assertIn("step two (two)", self.section(run, "Gaps"))
        ended = self.new_run("ended")
        self.step(ended, "one", "step.started", name="step one", kind="task")
        self.step(ended, "one", "step.ended", status="ok")
        self.assertIn(ALL_ENDED, self.section(ended, "Gaps"))

    def test_what_was_erased_is_not_known_to_have_ended(self) -> None:
        run = self.new_run("erased")
        called = self.client.append(run, "tool.called", {"call_id": "c1", "name": "grep", "kind": "function", "arguments": {}})
        returned = self.client.append(run, "tool.returned", {"call_id": "c1", "status": "error", "content": []})
        self.assertIn(ALL_ENDED, self.section(run, "Gaps"))
        self.assertIn("1 of its calls, commands and steps failed", self.section(run, "Halts, recoveries, errors"))
        for event in (called, returned):
            self.call("audit.redact", seq=event["seq"], reason="secret", legal_basis="a request")
        text = self.report(run)
        self.assertNotIn(ALL_ENDED, text)
        self.assertIn("Every beginning in an event with a body has its end.", text)
        self.assertIn("2 events that began or ended a call, a command, an approval or a child run and are erased", text)
        self.assertIn("1 result was erased, so the outcome is unknown.", text)
        self.assertIn("(erased)", text)

    def test_a_restart_within_a_run(self) -> None:
        run = self.new_run("restarted")
        self.note(run, n=1)
        self.assertNotIn("The daemon was started", self.section(run, "Times"))
        self.assertIn(QUIET, self.section(run, "Halts, recoveries, errors"))
        for stop, interrupted in ((self.daemon.stop, 0), (self.daemon.kill, 1)):
            self.client.close()
            stop()
            self.daemon.start()
            self.client = self.daemon.client()
            self.note(run, n=2)
            stops = self.section(run, "Halts, recoveries, errors")
            self.assertEqual((QUIET in stops, stops.count("run.interrupted")), (interrupted == 0, interrupted))
        self.assertIn("The daemon was started 2 times in between", self.section(run, "Times"))
        later = self.new_run("later")
        self.assertNotIn("The daemon was started", self.section(later, "Times"))

    def test_a_run_that_goes_on_names_what_was_checked(self) -> None:
        put = self.call("artifact.put", run_id=self.run_id, mime_type="text/plain", text="twelve bytes")
        pointer = f"artifact://{self.run_id}/{put['artifact_id']}"
        self.call("claim.record", run_id=self.run_id, text="It is so.", pointers=[pointer])
        path = self.daemon.data / "artifacts" / put["path"]
        aside = path.with_suffix(".aside")
        path.rename(aside)
        self.call("pointer.resolve", pointers=[pointer], run_id=self.run_id, critical=True)
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["status"], "halted")
        aside.rename(path)
        self.call("run.recover", run_id=self.run_id)
        why = [event["body"]["why"] for event in self.events(self.run_id) if event["type"] == "run.resumed"]
        self.assertEqual(why, ["1 critical pointers were checked, and none is damaged"])

    def test_tokens_that_nobody_counted_are_not_shown(self) -> None:
        for usage, words in (({"input_tokens": 1200, "output_tokens": 0}, "1,200 tokens in"), ({"input_tokens": 0, "output_tokens": 7}, "7 tokens out"), ({"input_tokens": 5, "output_tokens": 6}, "5 tokens in · 6 out")):
            run = self.new_run(str(sum(usage.values())))
            self.client.append(run, "model.called", {"call_id": "m1", "model": "m", "operation": "chat", "provider": "p", "parameters": {}})
            self.client.append(run, "model.answered", {"call_id": "m1", "status": "ok", "model": "m", "finish_reasons": ["stop"], "content": [], "usage": usage})
            shown = [line.split(None, 1)[1] for line in self.cli("run", "show", run).splitlines() if line.startswith("usage")]
            self.assertEqual(shown, [words])

    def test_a_log_with_a_key_that_is_gone_has_a_key(self) -> None:
        self.cli("audit", "key", "init")
        self.daemon.stop()
        key = self.daemon.data / "keys" / "log.key"
        key.rename(key.with_suffix(".aside"))
        try:
            for path in ("keys/last_signed", "tiles/checkpoint"):
                (self.daemon.data / path).unlink(missing_ok=True)
            self.daemon.start()
            for words in (("audit", "checkpoint", "-o", self.daemon.folder / "note"), ("audit", "prove", self.run_id, "-o", self.daemon.folder / "proof")):
                done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--no-autostart", *map(str, words)], capture_output=True, text=True, timeout=60)
                self.assertEqual((done.returncode, "has a key" in done.stderr, "has no key" in done.stderr), (1, True, False), done.stderr)
        finally:
            self.daemon.stop()
            key.with_suffix(".aside").rename(key)
            self.daemon.start()

    def test_what_verify_did_not_look_for_is_not_counted(self) -> None:
        state = self.daemon.folder / "state"
        verify = [BUILD / "muniment-verify", "--data", str(self.daemon.data), "--unsigned-ok"]
        done = subprocess.run([*verify, "--save", str(state)], capture_output=True, text=True, timeout=60)
        self.assertIn("0 unknown files", done.stdout)
        done = subprocess.run([*verify, "--resume", str(state)], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, "0 unknown files" in done.stdout, "unknown files not searched for" in done.stdout), (0, False, True), done.stdout)


class Clock(ReportCase):
    """A daemon whose wall clock can be stepped."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.daemon.destroy)
        built, cls.clock = cls.daemon.folder / "clock.so", cls.daemon.folder / "clock"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", built, ROOT / "tests" / "sim" / "clock.c", "-ldl"], check=True)
        cls.clock.write_bytes(bytes(8))
        cls.daemon.env.update(LD_PRELOAD=str(built), MUNIMENT_CLOCK=str(cls.clock))
        cls.daemon.start()

    def set_clock(self, seconds: int) -> None:
        with open(self.clock, "r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
            shared[:8] = struct.pack("<q", seconds)

    def test_a_clock_that_steps_by_a_day_and_back(self) -> None:
        run = self.new_run("stepped")
        self.note(run, n=1)
        times = self.section(run, "Times")
        self.assertIn(NO_STEP, times)
        self.assertIn("Recorded earlier than its predecessor | 0 events", times)
        for off in (DAY_S, 0):
            self.set_clock(off)
            self.note(run, off=off)
        times = self.section(run, "Times")
        self.assertNotIn(NO_STEP, times)
        self.assertIn("Recorded earlier than its predecessor | 1 event |", times)
        steps = [event["body"] for event in self.call("event.list", run_id="_log", types=["clock.stepped"])["events"]]
        self.assertEqual(len(steps), 2)
        for step in steps:
            self.assertIn(step["before"], times)
            self.assertIn(step["after"], times)
        self.assertEqual([round(step["step_us"] / 1e6 / DAY_S) for step in steps], [1, -1])
        later = self.new_run("later")
        self.note(later, n=1)
        self.assertIn(NO_STEP, self.section(later, "Times"))

    def test_a_run_that_ended_before_it_began_took_no_time(self) -> None:
        self.set_clock(DAY_S)
        run = self.new_run("back")
        self.set_clock(0)
        self.call("run.end", run_id=run, outcome="success")
        shown = self.cli("run", "show", run)
        self.assertIn("by a clock that was set back", shown)
        self.assertNotIn(", took", shown)


if __name__ == "__main__":
    main()
