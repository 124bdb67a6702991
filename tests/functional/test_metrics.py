"""Tests of server.metrics, `muniment metrics`, `muniment top`, and the daemon's own log."""
from __future__ import annotations

import fcntl
import json
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import tempfile
import termios
import time
import unittest
from typing import Any, Optional

from support import BUILD, ROOT, Daemon, DaemonCase, main, wait_until

import prometheus  # noqa: E402  (found through the path that support sets)

OPERATIONS = ROOT / "docs" / "operations.md"


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}


class Metrics(DaemonCase):
    shared = True   # shared with Top, whose requests are not among the counted ones

    def text(self) -> str:
        return self.call("server.metrics")["text"]

    def value(self, name: str, **labels: str) -> Optional[float]:
        for sample in prometheus.samples(self.text()):
            if sample.name == name and all(sample.label(key) == value for key, value in labels.items()):
                return sample.value
        return None

    def use(self) -> None:
        """Makes at least one use of everything that is counted."""
        self.note()
        artifact = self.client.put(self.run_id, b"the evidence", mime_type="text/plain")["artifact_id"]
        self.call("pointer.resolve", pointers=[f"artifact://{self.run_id}/{artifact}"])
        self.call("snapshot.take", run_id=self.run_id)
        self.call("corpus.ingest", corpus="notes", documents=[{"id": "a", "text": "The proxy listens on port 8080."}], wait=True)
        self.call("evidence.retrieve", queries=[{"query": "proxy", "corpus": "notes"}])
        self.call("event.list", run_id=self.run_id)

    def test_the_text_is_what_prometheus_reads(self) -> None:
        self.use()
        text = self.text()
        self.assertEqual(prometheus.problems(text), [])
        self.assertIn(prometheus.promtool_problems(text), (None, ""))

    def test_the_checker_finds_what_it_is_for(self) -> None:
        good = "# HELP a_total A.\n# TYPE a_total counter\na_total 1\n"
        self.assertEqual(prometheus.problems(good), [])
        for bad in (good + good, good.replace(" counter", " gauge"), good.replace("a_total", "a"), good.replace(" A.", " "), good + "a_total 2\n", good + "b 1\n",
                    good.replace("a_total", "a_ms_total"), good.replace("a_total 1", "a_total -1")):
            self.assertNotEqual(prometheus.problems(bad), [], bad)
        histogram = '# HELP h H.\n# TYPE h histogram\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\nh_sum 3\nh_count 2\n'
        self.assertEqual(prometheus.problems(histogram), [])
        for old, new in (('"1"} 1', '"1"} 3'), ("+Inf", "2"), ("h_count 2", "h_count 3"), ("h_sum 3\n", "")):
            self.assertNotEqual(prometheus.problems(histogram.replace(old, new)), [], new)

    def test_pointers_are_counted_by_reason(self) -> None:
        reasons = ("MISSING_VERSION", "NOT_FOUND", "VERSION_MISMATCH", "HASH_MISMATCH", "PARSE_ERROR")
        before = {reason: self.value("muniment_pointers_bad_total", reason=reason) for reason in reasons}
        for method in ("pointer.validate", "pointer.resolve"):
            self.call(method, pointers=["ev://sample/doc1#p0?v=h9", "ev://sample/doc1#p0", "nonsense", "run://nobody", f"run://{self.run_id}"])
        self.call("pointer.render", draft="So [ref:ev://sample/doc1#p0?v=h9].")
        after = {reason: self.value("muniment_pointers_bad_total", reason=reason) for reason in reasons}
        grown = {reason: (after[reason] or 0) - (before[reason] or 0) for reason in reasons}
        self.assertEqual(grown, {"MISSING_VERSION": 2, "NOT_FOUND": 2, "VERSION_MISMATCH": 3, "HASH_MISMATCH": 0, "PARSE_ERROR": 2})

    def test_what_was_used_is_counted(self) -> None:
        self.use()
        for name in ("append_seconds", "append_wait_seconds", "append_commit_seconds", "append_batch_events", "artifact_fsync_seconds", "snapshot_seconds",
                     "passage_seconds", "pointer_seconds", "query_seconds"):
            self.assertGreater(self.value(f"muniment_{name}_count") or 0, 0, name)
        self.assertGreater(self.value("muniment_artifact_written_bytes_total") or 0, 11)
        self.assertGreaterEqual(self.value("muniment_statement_seconds_count", statement="append_pipeline") or 0, 1)
        wait_until(lambda: self.value("muniment_connections") == 1, "the earlier clients are gone")
        self.assertEqual(self.value("muniment_database_up"), 1)
        wait_until(lambda: (self.value("muniment_artifact_bytes") or 0) >= 12, "the totals, which are asked for now and then, have it")
        size = self.call("server.status")["log"]["size"]
        self.assertGreaterEqual(self.value("muniment_log_events_total") or 0, size)
        wait_until(lambda: all(self.value("muniment_follower_lag_events", follower=name) == 0 for name in ("run", "pointer", "report", "snapshot", "search")),
                   "the followers have seen it")

    def test_requests_are_counted_by_method_and_code_and_by_no_other_name(self) -> None:
        for _ in range(3):
            with self.refused("not_found"):
                self.call("run.get", run_id="nobody")
        with self.refused("invalid_argument"):
            self.call("made.up")
        with self.refused("invalid_argument"):
            self.call("event.append", nonsense=1)
        self.assertEqual(self.value("muniment_requests_total", method="run.get", code="not_found"), 3)
        self.assertEqual(self.value("muniment_requests_total", method="event.append", code="invalid_argument"), 1)
        self.assertGreaterEqual(self.value("muniment_lines_refused_total", code="invalid_argument") or 0, 1)
        methods = {path.stem for path in (ROOT / "schema" / "rpc").glob("*.json")} - {"common"}
        text = self.text()
        self.assertEqual({sample.label("method") for sample in prometheus.samples(text) if sample.name == "muniment_requests_total"}, methods)
        self.assertNotIn("made.up", text)

    def test_a_halted_run_is_counted(self) -> None:
        artifact = self.client.put(self.run_id, b"soon gone", mime_type="text/plain")
        (self.daemon.data / "artifacts" / artifact["path"]).unlink()
        self.call("pointer.resolve", pointers=[f"artifact://{self.run_id}/{artifact['artifact_id']}"], critical=True, run_id=self.run_id)
        wait_until(lambda: self.value("muniment_runs", status="halted") == 1, "the halt is counted")

    def test_the_command_prints_the_same(self) -> None:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "metrics"], capture_output=True, text=True, check=True, env=clean_environment())
        self.assertEqual(prometheus.problems(done.stdout), [])
        self.assertIn('muniment_build_info{version="', done.stdout)

    def test_output_that_cannot_be_written_is_an_error(self) -> None:
        for words in (["metrics"], ["top", "--once"], ["event", "tail"]):
            with self.subTest(words), open("/dev/full", "w") as full:
                done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "--no-autostart", *words], stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn("the output could not be written", done.stderr)

    def test_the_newest_backup_has_its_time(self) -> None:
        self.assertEqual(self.value("muniment_last_backup_timestamp_seconds"), 0)
        with tempfile.TemporaryDirectory() as folder:
            before = int(time.time())
            done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "backup", folder], capture_output=True, env=clean_environment(), timeout=120)
        self.assertIn(done.returncode, (0, 2), done.stderr)   # 2: another test damaged a file, which the backup reports
        self.assertGreaterEqual(self.value("muniment_last_backup_timestamp_seconds") or 0, before)

    def test_every_metric_is_documented(self) -> None:
        self.use()
        documented = OPERATIONS.read_text()
        names = re.findall(r"^# TYPE (\S+)", self.text(), re.M)
        self.assertGreater(len(names), 50)
        self.assertEqual([name for name in names if f"`{name.removeprefix('muniment_')}`" not in documented], [])


class Top(DaemonCase):
    shared = True

    def top(self, *words: str) -> str:
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=120, env=clean_environment())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode()

    def test_one_frame(self) -> None:
        self.client.append(self.run_id, "x.test.noted", {})
        text = self.top("top", "--once", "--interval", "0.2")
        for word in ("munimentd ", "append ", "commit ", "followers ", "disk ", " connections", self.run_id[:27], "x.test.noted"):
            self.assertIn(word, text)
        self.assertNotIn("\x1b", text)

    def test_json_is_one_object_a_frame(self) -> None:
        with subprocess.Popen([BUILD / "muniment", "--data", self.daemon.data, "--json", "top", "--interval", "0.1"], stdout=subprocess.PIPE, env=clean_environment()) as top:
            assert top.stdout is not None
            frames = [json.loads(top.stdout.readline()) for _ in range(2)]
            top.terminate()
        self.assertGreater(frames[1]["time"], frames[0]["time"])
        once = json.loads(self.top("--json", "top", "--once", "--interval", "0.1"))
        self.assertEqual(sorted(once), sorted(frames[0]))
        self.assertTrue(once["database_up"])
        self.assertEqual(once["runs"][0]["run_id"], self.run_id)

    def test_rates_are_those_of_the_interval(self) -> None:
        for _ in range(20):   # events before the interval are not counted
            self.note()
        size = self.call("server.status")["log"]["size"]
        with subprocess.Popen([BUILD / "muniment", "--data", self.daemon.data, "--json", "top", "--once", "--interval", "1"], stdout=subprocess.PIPE,
                              env=clean_environment()) as top:
            while top.poll() is None:
                self.note()
            assert top.stdout is not None
            frame = json.loads(top.stdout.read())
        self.assertGreater(frame["events_per_second"], 0)
        # The interval is at least a second, and lies between the reads of the two sizes.
        self.assertLessEqual(frame["events_per_second"], (self.call("server.status")["log"]["size"] - size) * 1.05)
        self.assertGreater(frame["append"]["p99_s"], 0)
        self.assertGreaterEqual(frame["append"]["p99_s"], frame["append"]["p50_s"])

    def test_on_a_terminal_it_draws_until_q_and_what_runs_are_called_does_no_harm(self) -> None:
        self.call("run.start", run_id="hostile", agent={"name": "\x1b[2J\x1b]0;title\x07\u202eevil"})
        leader, follower = pty.openpty()
        fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        before = termios.tcgetattr(follower)
        with subprocess.Popen([BUILD / "muniment", "--data", self.daemon.data, "top", "--interval", "0.2"], stdin=follower, stdout=follower, stderr=follower,
                              env=clean_environment(), start_new_session=True) as top:
            shown = self.read_until(leader, b"hostile")
            frames = shown.count(b"\x1b[H")
            shown += self.read_until(leader, b"\x1b[H")
            self.assertGreater(shown.count(b"\x1b[H"), frames, "it is drawn again")
            os.write(leader, b"q")
            shown += self.read_until(leader, b"\x1b[?1049l")
            self.assertEqual(top.wait(60), 0)
        self.assertEqual(termios.tcgetattr(follower)[3], before[3], "the terminal is as it was")
        os.close(leader)
        os.close(follower)
        text = shown.decode()
        self.assertIn("\\x1b[2J", text)
        # Removes the program's own control sequences: colours, the cursor, clearing to the end of the line and of the
        # screen.
        rest = re.sub(r"\x1b\[(\?1049[hl]|\?25[hl]|H|K|J|[0-9;]*m)", "", text)
        for bad in ("\x1b", "\x07", "\u202e"):
            self.assertNotIn(bad, rest)

    def read_until(self, descriptor: int, wanted: bytes) -> bytes:
        got = bytearray()

        def drawn() -> bool:
            if select.select([descriptor], [], [], 0.5)[0]:
                got.extend(os.read(descriptor, 65536))
            return wanted in got

        wait_until(drawn, f"{wanted!r} is drawn")
        return bytes(got)


class Log(unittest.TestCase):
    def lines(self, daemon: Daemon) -> list[dict[str, Any]]:
        return [json.loads(line) for line in daemon.log.read_text().splitlines()]

    def daemon(self, config: str) -> Daemon:
        daemon = Daemon(config=config)
        self.addCleanup(daemon.destroy)
        return daemon

    def test_json_is_one_object_a_line_also_of_the_search_child(self) -> None:
        daemon = self.daemon('log_format = "json"\n').start()
        wait_until(lambda: any(line["component"] == "search_supervisor" for line in self.lines(daemon)), "the search child serves")
        daemon.stop()
        lines = self.lines(daemon)
        self.assertGreater(len(lines), 2)
        for line in lines:
            self.assertLessEqual({"time", "level", "component", "message"}, set(line), line)
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        self.assertIn(("info", "wiring", "munimentd serves"), [(line["level"], line["component"], line["message"]) for line in lines])

    def test_also_why_it_does_not_start(self) -> None:
        daemon = self.daemon('log_format = "json"\n')
        daemon.data.mkdir()
        (daemon.data / "postgres").mkdir()
        (daemon.data / "postgres" / "stranger").write_text("")
        status, _ = daemon.refused_start()
        self.assertEqual(status, 1)
        self.assertEqual([(line["level"], line["message"]) for line in self.lines(daemon)][-1], ("error", "munimentd does not start"))

    def test_an_unknown_format_is_refused(self) -> None:
        status, said = self.daemon('log_format = "xml"\n').refused_start()
        self.assertEqual(status, 3)
        self.assertIn("give text or json", said)


class Growth(unittest.TestCase):
    """Data that would grow without a limit is truncated, at a start and once a minute."""

    def test_logs_are_cut_and_abandoned_uploads_go(self) -> None:
        daemon = Daemon(config="upload_seconds = 3600\n")
        self.addCleanup(daemon.destroy)
        daemon.start()
        daemon.stop()
        logs = {daemon.data / "munimentd.log": 64 << 20, daemon.data / "postgres" / "server.log": 8 << 20}
        for path, limit in logs.items():
            with open(path, "wb") as file:
                file.truncate(limit)
                file.seek(0, os.SEEK_END)
                file.write(b"\nthe last line\n")
        uploads = daemon.data / "artifacts" / "uploads"
        old, young = uploads / "01900000-0000-4000-8000-000000000001", uploads / "01900000-0000-4000-8000-000000000002"
        for path, age in ((old, 3700), (young, 3500)):
            path.write_bytes(b"half")
            os.utime(path, (time.time() - age, time.time() - age))
        daemon.start()
        for path, limit in logs.items():
            self.cut(path)
            kept = path.with_name(path.name + ".1")
            self.assertLessEqual(kept.stat().st_size, limit + 100)
            self.assertTrue(kept.read_bytes().endswith(b"the last line\n"))
        wait_until(lambda: not old.exists(), "the old upload is gone")
        self.assertTrue(young.exists())

    def cut(self, path: pathlib.Path) -> None:
        wait_until(lambda: path.stat().st_size < 1 << 20, f"{path} is cut")


if __name__ == "__main__":
    main()
