"""Tests of muniment mcp with a real daemon: it starts one, survives its restart, and two relays work at the same time."""
from __future__ import annotations

import tempfile
import unittest
from typing import Any

from support import BUILD, Daemon, DaemonCase, main, wait_until

from mcp_host import Host

Json = dict[str, Any]


def run_mcp(test: unittest.TestCase, data: str, *options: str) -> Host:
    folder = tempfile.TemporaryDirectory(prefix="muniment-mcp-")
    test.addCleanup(folder.cleanup)
    host = Host([str(BUILD / "muniment"), "--data", data, "mcp", *options], folder.name)
    test.addCleanup(host.destroy)
    return host


class BesideADaemon(DaemonCase):
    def host(self, *options: str) -> Host:
        host = run_mcp(self, str(self.daemon.data), *options)
        host.initialize()
        return host

    def remembered(self, host: Host, request_id: int, text: str) -> None:
        answer = host.call(request_id, "remember", corpus=self.run_id, id=f"note-{text.split()[0]}", text=text)
        self.assertFalse(answer["result"]["isError"], answer)

    def found(self, host: Host, request_id: int, question: str) -> list[str]:
        answer = host.call(request_id, "retrieve_evidence", queries=[{"query": question, "corpus": self.run_id}])
        return [card["document"] for card in answer["result"]["structuredContent"]["results"][0]["cards"]]

    def session_runs(self) -> list[Json]:
        runs: list[Json] = [run for run in self.call("run.list")["runs"] if run["run_id"].startswith("mcp-")]
        return runs

    def test_a_restart_in_mid_session_costs_one_error_at_most(self) -> None:
        host = self.host()
        self.remembered(host, 1, "zebra stripes differ")
        before = {run["run_id"] for run in self.session_runs() if run["status"] == "open"}
        self.daemon.stop()
        self.daemon.start()
        self.client.close()
        errors = 0
        for request_id in (2, 3, 4):
            answer = host.call(request_id, "status")
            errors += "error" in answer or answer["result"]["isError"]
        self.assertLessEqual(errors, 1)
        self.assertEqual(self.found(host, 5, "zebra"), ["note-zebra"])
        self.assertEqual(host.end(), 0)
        runs = wait_until(lambda: [run for run in self.session_runs() if run["status"] == "ended" and run["run_id"] in before],
                          "the run ends with its session")
        names = [event["body"]["name"] for event in self.events(runs[0]["run_id"]) if event["type"] == "tool.called"]
        self.assertEqual(names[0], "remember")
        self.assertEqual(names[-1], "retrieve_evidence")

    def test_a_killed_daemon_is_started_again_and_loses_nothing(self) -> None:
        host = self.host()
        self.remembered(host, 1, "yak wool is warm")
        self.daemon.kill()
        self.client.close()
        wait_until(lambda: not host.call(2, "status").get("error"), "a daemon serves again")
        self.addCleanup(self.daemon.start)   # replaces the daemon that muniment mcp has started
        self.addCleanup(lambda: Host([str(BUILD / "muniment"), "--data", str(self.daemon.data), "down"], str(self.daemon.data)).process.wait(60))
        self.assertEqual(self.found(host, 3, "yak"), ["note-yak"])

    def test_a_run_that_the_model_ended_stays_ended_after_a_restart(self) -> None:
        before = {run["run_id"] for run in self.session_runs()}
        host = self.host()
        self.assertEqual({run["run_id"] for run in self.session_runs()} - before, set(), "without a call there is no run")
        host.call(1, "status")
        first, = {run["run_id"] for run in self.session_runs()} - before
        self.assertFalse(host.call(2, "run_end", outcome="success")["result"]["isError"])
        self.daemon.stop()
        self.daemon.start()
        self.client.close()
        wait_until(lambda: "result" in host.call(3, "status"), "the host is served again")
        self.assertEqual(host.end(), 0)

        def outcomes() -> dict[str, Json]:
            return {run["run_id"]: run.get("outcome") for run in self.session_runs() if run["run_id"].startswith(first)}

        wait_until(lambda: outcomes() == {first: "success", f"{first}-2": "unknown"}, "only the second run ends with the session")

    def test_two_at_once_overwrite_nothing(self) -> None:
        before = {run["run_id"] for run in self.session_runs()}
        hosts = [self.host(), self.host()]
        for number in range(10):
            for side, host in enumerate(hosts):
                self.remembered(host, number + 1, f"word{side}x{number} belongs to side {side}")
        for side in range(2):
            for number in range(10):
                for host in hosts:
                    self.assertIn(f"note-word{side}x{number}", self.found(host, 100 + number + 20 * side, f"word{side}x{number}"))
        self.assertEqual(len({run["run_id"] for run in self.session_runs()} - before), 2)

    def test_toolsets_are_offered_to_the_host_that_asked_for_them(self) -> None:
        plain, more = self.host(), self.host("--toolset", "runs")
        listed = [[tool["name"] for tool in host.ask("tools/list", 1)["result"]["tools"]] for host in (plain, more)]
        self.assertEqual(len(listed[0]), 15)
        self.assertEqual(listed[1], [*listed[0], "list_runs", "list_events", "take_snapshot"])
        self.assertFalse(more.call(2, "list_runs")["result"]["isError"])
        self.assertIn("error", plain.call(3, "list_runs"))


class WithoutADaemon(unittest.TestCase):
    def test_one_is_started_for_the_host_and_stays(self) -> None:
        daemon = Daemon()
        self.addCleanup(daemon.destroy)
        host = run_mcp(self, str(daemon.data))
        answer = host.initialize()
        self.assertEqual(answer["result"]["serverInfo"]["name"], "muniment")
        self.assertFalse(host.call(1, "remember", text="It was here.")["result"]["isError"])
        self.assertEqual(host.end(), 0)
        with daemon.client() as client:
            self.assertTrue(client.call("server.health")["ok"])
        down = Host([str(BUILD / "muniment"), "--data", str(daemon.data), "down"], str(daemon.data))
        self.assertEqual(down.process.wait(60), 0)
        down.destroy()


if __name__ == "__main__":
    main()
