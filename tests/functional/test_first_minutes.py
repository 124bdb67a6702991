"""Tests of first contact with the command line: help has examples, misspellings get suggestions, times are shown as
ages, and lists fit the terminal."""
from __future__ import annotations

import fcntl
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest
from typing import Any, Iterator

from support import BUILD, DaemonCase, main, wait_until

FINISH_S = 120.0
PRICES = '[prices."gpt-4o"]\ninput = 2.5\noutput = 10\n'


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}


def ran(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BUILD / "muniment", *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FINISH_S,
                          env=environment(), cwd="/")


class Help(unittest.TestCase):
    def commands(self) -> Iterator[tuple[str, ...]]:
        def below(node: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
            for command in node["commands"]:
                yield (*path, command["name"])
                yield from below(command, (*path, command["name"]))
        yield from below(json.loads(ran("--command-tree").stdout), ())

    def test_without_a_command_help_is_printed(self) -> None:
        for words in ((), ("run",), ("audit", "key")):
            with self.subTest(words=words):
                done = ran(*words)
                self.assertEqual((done.returncode, done.stderr), (3, ""))
                self.assertEqual(done.stdout.strip(), ran(*words, "--help").stdout.strip())
                self.assertRegex(done.stdout, r"Examples?:\n  muniment ")

    def test_every_command_has_an_example_of_itself(self) -> None:
        seen = 0
        for path in self.commands():
            if path == ("help",):
                continue
            with self.subTest(path=path):
                seen += 1
                help_text = ran(*path, "--help").stdout
                example = re.search(r"\nExample:\n  (muniment .*)\n", help_text)
                assert example, help_text
                words = re.sub(r"^muniment --capsule \S+", "muniment", example[1]).split()
                self.assertEqual(words[1], path[0])
                for word in path[1:]:
                    self.assertIn(word, words)
                for option in re.findall(r" (--?[a-z][a-z-]*)(?= |=|$)", example[1].split(" -- ")[0]):
                    self.assertTrue(re.search(rf"(^|[ ,]){option}\b", help_text + ran("--help").stdout + ran("audit", path[-1], "--help").stdout, re.M), option)
        self.assertGreater(seen, 80)

    def test_a_slip_is_answered_with_the_nearest_word(self) -> None:
        for words, said in ((("rnu", "list"), 'muniment: there is no command "rnu". Did you mean "run"?'),
                            (("run", "lst"), 'muniment run: there is no command "lst". Did you mean "list"?'),
                            (("run", "list", "--sicne", "1h"), 'muniment run list: there is no option "--sicne". Did you mean "--since"?'),
                            (("run", "list", "--sicne=1h"), 'muniment run list: there is no option "--sicne". Did you mean "--since"?'),
                            (("--jsno", "run", "list"), 'there is no option "--jsno". Did you mean "--json"?'),
                            (("ingest", "docs", "--corups", "notes"), 'muniment ingest: there is no option "--corups". Did you mean "--corpus"?'),
                            (("run", "show", "a", "b"), 'muniment run show: unexpected argument "b".'),
                            (("query",), "muniment query: TEXT is required. Example: muniment query "),
                            (("run", "list", "--xyzzyx"), 'muniment run list: there is no option "--xyzzyx". See: muniment run list --help')):
            with self.subTest(words=words):
                done = ran(*words)
                self.assertEqual((done.returncode, done.stdout), (3, ""))
                self.assertIn(said, done.stderr)


class Used(DaemonCase):
    config = PRICES
    shared = True

    def muniment(self, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = ran("--data", self.daemon.data, *words)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def rows(self, *words: object) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.muniment("--json", *words).stdout.splitlines()]

    def on_terminal(self, columns: int, *words: object) -> list[str]:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        shown: list[bytes] = []

        def read() -> None:
            while True:
                try:
                    shown.append(os.read(ours, 65_536))
                except OSError:
                    return

        reader = threading.Thread(target=read)
        reader.start()
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, *map(str, words)], stdin=subprocess.DEVNULL, stdout=theirs,
                              stderr=subprocess.PIPE, timeout=FINISH_S, env={**environment(), "NO_COLOR": "1"})
        os.close(theirs)
        reader.join()
        os.close(ours)
        self.assertEqual(done.returncode, 0, done.stderr)
        return b"".join(shown).decode().replace("\r\n", "\n").splitlines()


class RunIds(Used):
    def test_an_unknown_run_is_answered_with_similar_ones(self) -> None:
        for run_id in ("nightly-17", "nightly-18", "nightly-19", "nightly-190"):
            self.call("run.start", run_id=run_id, agent={"name": "test"})
        for words in (("run", "show", "nightly-1"), ("run", "end", "nightly-1"), ("run", "grep", "nightly-1", "x"), ("rehydrate", "nightly-1"),
                      ("recover", "nightly-1"), ("event", "list", "--run", "nightly-1"), ("artifact", "list", "--run", "nightly-1"),
                      ("claim", "list", "--run", "nightly-1"), ("snapshot", "take", "nightly-1"), ("run", "fork", "nightly-1"),
                      ("audit", "redact", "--run", "nightly-1", "--reason", "x", "--dry-run"), ("export", "nightly-1", "--format", "jsonl"),
                      ("run", "list", "--parent", "nightly-1"), ("run", "judge", "nightly-1"), ("event", "append", "x.test.a", "{}", "--run", "nightly-1")):
            with self.subTest(words=words):
                said = self.muniment(*words, code=1).stderr
                found = re.search(r"no run nightly-1\. Did you mean (nightly-1\d+), (nightly-1\d+), (nightly-1\d+)\?", said)
                self.assertTrue(found, said)
        self.assertIn("Did you mean nightly-18, ", self.muniment("run", "show", "nihgtly-18", code=1).stderr)
        self.assertNotIn("Did you mean", self.muniment("run", "show", "zzzzzzzzzz", code=1).stderr)


class Times(Used):
    def test_a_time_is_an_age_a_date_or_rfc_3339(self) -> None:
        run_of = lambda *words: self.run_id in {row["run_id"] for row in self.rows("run", "list", "-n", "0", *words)}
        for words, found in ((("--since", "1h"), True), (("--since", "2d", "--until", "1h"), False), (("--since", "1970-01-01"), True),
                             (("--until", "1970-01-01"), False), (("--since", "2100-01-01T00:00:00Z"), False), (("--until", "2100-01-01"), True)):
            with self.subTest(words=words):
                self.assertEqual(run_of(*words), found)
                self.assertEqual(bool(self.rows("event", "list", "--run", self.run_id, *words)), found)
                self.assertEqual(bool(self.muniment("export", self.run_id, "--format", "jsonl", *words).stdout), found)
        self.assertIn("agent", self.muniment("rehydrate", self.run_id, "--asof", "0s").stdout)
        self.note(n=1)
        occurred = self.muniment("event", "append", "x.test.a", "{}", "--run", self.run_id, "--occurred-at", "1d").stdout
        self.assertIn("seq ", occurred)

    def test_until_leaves_out_its_moment_everywhere(self) -> None:
        events = self.rows("event", "list", "--run", self.run_id)
        started = self.call("run.get", run_id=self.run_id)["run"]["started_at"]
        self.assertEqual(self.rows("event", "list", "--run", self.run_id, "--until", events[0]["recorded_at"]), [])
        self.assertEqual(self.muniment("export", self.run_id, "--format", "jsonl", "--until", events[0]["recorded_at"]).stdout, "")
        self.assertNotIn(self.run_id, {row["run_id"] for row in self.rows("run", "list", "-n", "0", "--until", started)})
        self.assertIn(self.run_id, {row["run_id"] for row in self.rows("run", "list", "-n", "0", "--since", started)})

    def test_what_is_no_time_is_refused_with_the_forms_of_one(self) -> None:
        for words in (("run", "list", "--since", "yesterday"), ("event", "list", "--until", "1w"), ("export", "--format", "jsonl", "--since", "now"),
                      ("rehydrate", self.run_id, "--asof", "later"), ("query", "x", "--asof", "-1h"), ("context", "x", "--asof", "1.5h")):
            with self.subTest(words=words):
                self.assertIn("is not a time. Write an age (90s, 15m, 1h, 2d), a date (2026-01-31) or 2026-01-31T13:30:00Z",
                              self.muniment(*words, code=3).stderr)


class Reading(Used):
    def card(self) -> str:
        documents = [{"id": "ports.md", "text": "# Ports\n\nThe lighthouse of Pharos listens on port 8080."}]
        self.assertEqual(self.call("corpus.ingest", corpus="pharos", documents=documents, wait=True)["errors"], [])
        [card] = self.call("evidence.retrieve", queries=[{"query": "in:pharos lighthouse"}])["results"][0]["cards"]
        self.call("claim.record", run_id=self.run_id, text="it listens", pointers=[card["id"]])
        return card["id"]

    def test_a_critical_passage_is_read_without_a_run(self) -> None:
        pointer = self.card()
        [resolved] = self.call("pointer.resolve", pointers=[pointer])["results"]
        self.assertEqual((resolved["ok"], resolved["critical"]), (True, True))
        self.assertIn("listens on port 8080", resolved["text"])
        full = self.muniment("query", "in:pharos lighthouse", "--full").stdout
        self.assertIn("listens on port 8080", full)
        self.assertIn("verified", full)
        self.assertIn("listens on port 8080", self.muniment("context", "in:pharos lighthouse").stdout)
        with self.assertRaisesRegex(Exception, "is critical: set run_id to the run that halts"):
            self.call("pointer.resolve", pointers=[pointer], critical=True)

    def test_what_is_critical_and_damaged_still_needs_a_run(self) -> None:
        documents = [{"id": "lost.md", "text": "The colossus of Rhodes is about to be lost."}]
        self.assertEqual(self.call("corpus.ingest", corpus="rhodes", documents=documents, wait=True)["errors"], [])
        [card] = self.call("evidence.retrieve", queries=[{"query": "in:rhodes colossus"}])["results"][0]["cards"]
        self.call("claim.record", run_id=self.run_id, text="it stands", pointers=[card["id"]])
        [intact] = self.call("pointer.resolve", pointers=[card["id"]])["results"]
        path = self.daemon.data / "artifacts" / intact["path"]
        good, mode = path.read_bytes(), path.stat().st_mode & 0o777
        path.chmod(0o600)
        path.write_bytes(good.replace(b"lost", b"last"))
        try:
            with self.assertRaisesRegex(Exception, "is critical: set run_id to the run that halts"):
                self.call("pointer.resolve", pointers=[card["id"]])
            self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["status"], "open")
        finally:
            path.write_bytes(good)
            path.chmod(mode)
        self.assertTrue(self.call("pointer.resolve", pointers=[card["id"]])["results"][0]["ok"])

    def test_an_mcp_host_reads_it_as_a_resource(self) -> None:
        pointer = self.card()
        meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {}}
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": pointer, "_meta": meta}})
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "mcp", "--no-run"], input=line + "\n", capture_output=True, text=True,
                              timeout=FINISH_S, env=environment())
        answer = json.loads(done.stdout.splitlines()[0])
        self.assertIn("listens on port 8080", answer["result"]["contents"][0]["text"], done.stderr)


class Artifacts(Used):
    def test_an_artifact_keeps_the_name_of_its_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("build.log", "error: no such file\n"), ("test.log", "error: one failed\n"), ("report.html", "<p>error: none\n")):
                (pathlib.Path(folder) / name).write_text(text)
                self.muniment("artifact", "put", f"{folder}/{name}", "--run", self.run_id, "--metadata", '{"of": "ci"}')
            (pathlib.Path(folder) / "x").write_text("error: renamed\n")
            self.muniment("artifact", "put", f"{folder}/x", "--run", self.run_id, "--name", "renamed.txt")
        names = lambda *words: [row["metadata"].get("name") for row in self.rows("artifact", "list", "--run", self.run_id, *words)]
        self.assertEqual(names(), ["build.log", "test.log", "report.html", "renamed.txt"])
        self.assertEqual(names("--name", "*.log"), ["build.log", "test.log"])
        self.assertEqual(names("--name", "none"), [])
        self.assertEqual(self.rows("artifact", "list", "--run", self.run_id)[0]["metadata"], {"name": "build.log", "of": "ci"})
        listed = self.muniment("artifact", "list", "--run", self.run_id).stdout
        self.assertEqual([line.split("\t")[-1] for line in listed.splitlines()], ["build.log", "test.log", "report.html", "renamed.txt"])
        found = self.rows("artifact", "grep", self.run_id, "error: .*", "--name", "*.log")
        self.assertEqual([(row["name"], row["text"]) for row in found], [("build.log", "error: no such file"), ("test.log", "error: one failed")])
        self.assertEqual({row["type"] for row in self.rows("artifact", "grep", self.run_id, "o")}, {"artifact"}, "events are not searched")
        self.assertIn(" build.log:1  error: no such file", self.muniment("artifact", "grep", self.run_id, "no such file").stdout)
        self.muniment("artifact", "grep", self.run_id, "error", "--name", "*.none", code=1)

    def test_standard_input_has_the_name_that_is_given_or_none(self) -> None:
        for words in ((), ("--name", "given.txt")):
            done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "artifact", "put", "-", "--run", self.run_id, *words],
                                  input=f"some bytes {words}", capture_output=True, text=True, timeout=FINISH_S, env=environment())
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row["metadata"] for row in self.rows("artifact", "list", "--run", self.run_id)], [{}, {"name": "given.txt"}])


class RunList(Used):
    def test_it_fits_its_terminal_and_says_how_many_there_are(self) -> None:
        long = self.call("run.start", run_id="a-run-of-a-name-that-is-too-long-for-any-narrow-terminal-of-these-days", agent={"name": "an-agent-of-a-long-name"},
                         goal="to be much longer than the sixty columns that the terminal of this test has for everything")["run_id"]
        for number in range(24):
            self.call("run.start", run_id=f"run-{number}", agent={"name": "builder"}, goal=f"build number {number} of the whole of the program, again")
        for columns in (60, 80, 200):
            with self.subTest(columns=columns):
                lines = self.on_terminal(columns, "run", "list", "-n", "30")
                self.assertRegex(lines[0], r"^no +run +outcome")
                self.assertLessEqual(max(map(len, lines)), columns)
                self.assertTrue(any(long[:8] in line for line in lines))
                self.assertTrue(any(line.split()[1] == "run-3" for line in lines))
        self.assertIn(long, "".join(self.on_terminal(200, "run", "list", "-n", "30")))
        total = len(self.rows("run", "list", "-n", "0"))
        done = self.muniment("run", "list")
        self.assertEqual(done.stderr, f"muniment: 20 of {total} runs; --limit N shows more\n")
        self.assertEqual([len(line.split("\t")) for line in done.stdout.splitlines()], [6] * 20)
        self.assertEqual(self.muniment("run", "list", "--limit", total).stderr, "")
        agent = self.muniment("run", "list", "--agent", "builder", "-n", "5").stderr
        self.assertEqual(agent, "muniment: 5 of 24 runs; --limit N shows more\n")


class Costs(Used):
    def test_the_timeline_has_durations_calls_and_costs(self) -> None:
        for number in (1, 2):
            self.client.append(self.run_id, "tool.called", {"call_id": f"c{number}", "name": "read", "kind": "function", "arguments": {"path": f"{number}.py"}})
        for number in (1, 2):
            self.client.append(self.run_id, "tool.returned", {"call_id": f"c{number}", "status": "ok", "content": [], "duration_us": number * 1_500_000})
        usage = {"input_tokens": 100_000, "output_tokens": 50_000}
        self.client.append(self.run_id, "model.answered", {"call_id": "m", "status": "ok", "model": "gpt-4o", "finish_reasons": ["stop"], "content": [], "usage": usage})
        shown = self.muniment("run", "show", self.run_id).stdout
        self.assertIn("→ read 1.py: ok 1.5 s 0 B", shown)
        self.assertIn("▸ read 2.py", shown)
        [version] = re.findall(r"≈0\.7500 USD: 1 answer of models by the prices of the daemon, version ([0-9a-f]{12})\n", shown)
        # Every figure is the daemon's, by its own price list: that of the list, of SQL and of the report.
        [row] = [line.split("\t") for line in self.muniment("run", "list", "-n", "0").stdout.splitlines() if f"\t{self.run_id}\t" in line]
        self.assertEqual(row[-1], "≈0.7500 USD")
        [listed] = [row for row in self.rows("run", "list", "-n", "0") if row["run_id"] == self.run_id]
        self.assertEqual(listed["cost"], {"amount": "0.75", "currency": "USD", "estimated": "0.75", "price_list": version})
        self.assertEqual(self.rows("sql", "-c", f"SELECT cost, currency, cost_basis FROM report.model_call WHERE run_id = '{self.run_id}'"),
                         [{"cost": 0.75, "currency": "USD", "cost_basis": f"prices {version}"}])
        self.assertEqual(self.rows("sql", "-c", f"SELECT cost, cost_estimated, price_list FROM report.run_report WHERE run_id = '{self.run_id}'"),
                         [{"cost": 0.75, "cost_estimated": 0.75, "price_list": version}])
        self.assertEqual(self.rows("sql", "-c", "SELECT model, input, cache_write FROM report.price WHERE current AND model = 'gpt-4o'"), [{"model": "gpt-4o", "input": 2.5, "cache_write": 2.5}])
        report = self.daemon.folder / "costs.md"
        self.muniment("audit", "report", self.run_id, "-o", report)
        text = report.read_text()
        self.assertIn("≈0.75 USD", text)
        self.assertIn(f"by the daemon's prices of version {version}", text)


class Repriced(DaemonCase):
    config = PRICES

    def test_other_prices_apply_after_a_restart_and_recorded_costs_stay(self) -> None:
        config = self.daemon.folder / "muniment.toml"
        before = config.read_text()
        run = self.new_run("repriced")
        answer = {"status": "ok", "model": "gpt-4o", "finish_reasons": [], "content": []}
        self.client.append(run, "model.answered", {**answer, "call_id": "a", "usage": {"input_tokens": 1_000_000, "cache_write_tokens": 1_000_000}})
        self.client.append(run, "model.answered", {**answer, "call_id": "b", "usage": {"input_tokens": 1, "cost": {"amount": 1, "currency": "USD"}}})

        def basis() -> list[tuple[str, str, str]]:
            return [(one["amount"], one["currency"], one["basis"]) for one in self.call("run.costs", run_id=run)["answers"]]

        first = basis()
        self.assertRegex(first[0][2], "^prices [0-9a-f]{12}$")
        self.assertEqual((first[0][:2], first[1]), (("2.5", "USD"), ("1", "USD", "recorded")))
        self.assertEqual(self.daemon.stop(), 0)
        config.write_text(before.replace("output = 10\n", "output = 10\ncache_write = 3.125\n"))
        self.restart()
        second = basis()
        self.assertEqual((second[0][:2], second[1]), (("3.125", "USD"), first[1]))
        self.assertNotEqual(second[0][2], first[0][2])
        self.assertEqual(self.daemon.stop(), 0)
        config.write_text(before.replace(PRICES, 'price_list = "none"\n'))
        self.restart()
        self.assertEqual(basis(), first[1:], "without prices nothing is estimated")
        self.assertEqual(self.daemon.stop(), 0)
        config.write_text(before)
        self.restart()
        self.assertEqual(basis(), first)


class Late(DaemonCase):
    def test_status_and_top_explain_a_follower_that_is_late(self) -> None:
        self.followed()
        self.daemon.sql("CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
                        " CREATE TRIGGER z BEFORE INSERT OR UPDATE ON follower FOR EACH ROW WHEN (NEW.name = 'report') EXECUTE FUNCTION leave_out()")
        try:
            self.note(n=1)
            began = time.time()
            said = lambda: ran("--data", self.daemon.data, "status").stdout
            wait_until(lambda: "behind     report by " in said(), "the follower is late")
            self.assertRegex(said(), r"behind     report by \d+ events? since 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ \(\S+ \S+.*\): the views of schema report "
                                     r"and the times in run list are outdated\. It catches up by itself; if the number does not fall: muniment --data \S+ doctor")
            self.assertGreaterEqual(time.time() - began, 4, "one that is only busy is not said to be late")
            top = json.loads(ran("--data", self.daemon.data, "--json", "top", "--once", "--interval", "0.2").stdout)
            [late] = [one for one in top["followers_late"] if one["follower"] == "report"]
            self.assertGreater(late["events"], 0)
            self.assertIn("behind   report by ", ran("--data", self.daemon.data, "top", "--once", "--interval", "0.2").stdout)
            self.assertEqual(self.daemon.stop(), 0)
            self.restart()
            wait_until(lambda: "behind     report by " in said(), "the follower is late again")
            top = json.loads(ran("--data", self.daemon.data, "--json", "top", "--once", "--interval", "0.2").stdout)
            [late] = [one for one in top["followers_late"] if one["follower"] == "report"]
            self.assertEqual(late["since"], self.call("server.status")["started_at"], "the time in which no daemon ran does not count")
        finally:
            self.daemon.sql("DROP TRIGGER z ON follower; DROP FUNCTION leave_out()")
        self.followed()
        wait_until(lambda: "behind     report" not in said(), "it has caught up")


if __name__ == "__main__":
    main()
