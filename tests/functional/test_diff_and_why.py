"""Tests that run diff and why show the log's content and state which parts they did not examine."""
from __future__ import annotations

import subprocess
from typing import Any

from support import BUILD, Daemon, DaemonCase, main


class Said(DaemonCase):
    def muniment(self, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, *map(str, words)], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def command(self, run_id: str, argv: list[str]) -> str:
        return self.call("command.start", run_id=run_id, argv=argv, cwd="/", env={})["command_id"]

    def ended(self, run_id: str, command_id: str, exit_code: int) -> dict[str, Any]:
        return self.call("command.end", run_id=run_id, command_id=command_id, exit_code=exit_code)

    def test_commands_that_end_differently_differ(self) -> None:
        runs = [self.new_run(name) for name in ("a", "b", "c")]
        for run_id, exit_code in zip(runs, (0, 1, 0)):
            self.ended(run_id, self.command(run_id, ["make", "test"]), exit_code)
        self.assertIn("exit 0 → exit 1", self.muniment("run", "diff", runs[0], runs[1], code=1).stdout)
        self.assertIn("no difference in calls, working state, files or cost", self.muniment("run", "diff", runs[0], runs[2]).stdout)

    def test_large_states_are_compared(self) -> None:
        runs = [self.new_run(name) for name in ("a", "b")]
        for run_id, end in zip(runs, "xy"):
            self.client.append(run_id, "state.patched", {"format": "merge", "patch": {f"k{n}": "long " * 10_000 for n in range(12)} | {"end": end}}, spill=True)
        self.assertNotIn("state", self.call("run.rehydrate", run_id=runs[0]), "otherwise it is not large")
        self.assertIn('"x" → "y"', self.muniment("run", "diff", *runs, code=1).stdout)

    def test_a_state_that_cannot_be_read_is_not_called_equal(self) -> None:
        runs = [self.new_run(name) for name in ("a", "b")]
        stored = self.client.put(runs[0], b'{"plan": "long"}', mime_type="application/json")
        ref = {name: self.call("artifact.stat", artifact_id=stored["artifact_id"])["artifact"][name] for name in ("artifact_id", "hash", "size_bytes", "mime_type")}
        self.client.append(runs[0], "state.patched", {"format": "merge", "ref": ref})
        (self.daemon.data / "artifacts" / stored["path"]).unlink()
        self.daemon.kill()   # discards the daemon's memory
        self.restart()
        done = self.muniment("run", "diff", *runs, code=1)
        self.assertIn("not compared", done.stdout + done.stderr)
        self.assertNotIn("working state, files", done.stdout)

    def test_why_names_the_command_that_ended(self) -> None:
        first = self.command(self.run_id, ["alpha"])
        self.command(self.run_id, ["beta"])
        seq = self.ended(self.run_id, first, 0)["receipt"]["seq"]
        said = self.muniment("why", seq).stdout
        self.assertIn("alpha", said)
        self.assertNotIn("beta", said)

    def test_a_run_that_was_started_under_a_key_and_has_ended(self) -> None:
        request = {"agent": {"name": "a"}, "_meta": {"idempotency_key": self._testMethodName}}
        first = self.call("run.start", **request)
        self.assertEqual({**self.call("run.start", **request), "run_seq": 1, "resumed": False, "receipt": first["receipt"]}, {**first, "duplicate": True})
        self.call("run.end", run_id=first["run_id"], outcome="success")
        again = self.call("run.start", **request)
        self.assertEqual((again["run_id"], again["seq"], again["run_seq"], again["resumed"], again["duplicate"]), (first["run_id"], first["seq"], 1, False, True))
        self.assertEqual(self.call("run.get", run_id=first["run_id"])["run"]["status"], "ended")

    def test_the_verdict_on_another_log_is_not_recorded_in_this_one(self) -> None:
        self.followed()
        second = Daemon()
        self.addCleanup(second.destroy)
        second.start()
        done = subprocess.run([BUILD / "muniment", "--socket", second.socket, "--data", self.daemon.data, "audit", "verify", "--unsigned-ok"], capture_output=True, text=True,
                              timeout=120, check=False)
        with second.client() as client:
            recorded = client.call("event.list", run_id="_log", types=["log.verified"])["events"]
        self.assertEqual(recorded, [], done.stdout + done.stderr)
        self.assertIn("the verdict is not recorded", done.stderr)


if __name__ == "__main__":
    main()
