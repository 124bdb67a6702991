"""Tests of the commands that the command line suggests: they name the right instance, work as printed, and report the facts correctly."""
from __future__ import annotations

import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import unittest
from typing import Optional

from support import BUILD, ROOT, DaemonCase, main, wait_until

FINISH_S = 120.0
NOBODY = 65_534
ADVISED = re.compile(r"(?<![\w/.-])muniment ([a-z-]\S*)")


def ran(*words: object, user: Optional[int] = None, program: str = "muniment") -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
    return subprocess.run([BUILD / program, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FINISH_S,
                          env=environment, user=user, group=user, extra_groups=[] if user else None, cwd="/")


def as_printed(command: str) -> subprocess.CompletedProcess[str]:
    """Runs a printed command as a shell would."""
    words = shlex.split(command)
    assert words[0] == "muniment", command
    return ran(*words[1:])


class NoDaemon(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.data = self.folder / "it's data"

    def test_a_start_is_advised_for_the_folder_that_was_named(self) -> None:
        place = f"--data {shlex.quote(str(self.data))}"
        for words in (("status",), ("metrics",), ("backup", self.folder / "b"), ("--socket", self.data / "s", "status")):
            with self.subTest(words=words):
                said = ran("--data", self.data, *words)
                self.assertNotEqual(said.returncode, 0)
                self.assertIsNone(re.search(r"[(:] ?muniment (?!--)[a-z]", re.sub(r"^muniment: ", "", said.stderr)), said.stderr)
        said = ran("--data", self.data, "status").stderr.strip()
        self.assertTrue(said.endswith("Start it: muniment --data " + "'" + str(self.data).replace("'", "'\\''") + "' up"), said)
        self.assertEqual(shlex.split(said.partition("Start it: ")[2])[2], shlex.split(place)[1])
        self.assertTrue(ran("--config", self.config(), "status").stderr.strip().endswith(f"Start it: muniment --config {self.folder}/c.toml up"))

    def config(self) -> pathlib.Path:
        (self.folder / "c.toml").write_text(f'data = "{self.folder}/d"\n')
        return self.folder / "c.toml"

    def test_whose_socket_it_is_is_not_known(self) -> None:
        """Without --data, the default folder's daemon would listen on this socket."""
        self.assertIn(f"Start it: muniment --data DIR --socket {self.folder}/s up", ran("--socket", self.folder / "s", "status").stderr)

    def test_where_nothing_was_named_nothing_is_added(self) -> None:
        environment = {**os.environ, "MUNIMENT_DATA": str(self.data)}
        done = subprocess.run([BUILD / "muniment", "status"], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment, timeout=FINISH_S)
        self.assertTrue(done.stderr.strip().endswith("Start it: muniment up"), done.stderr)

    def test_the_doctor_mends_the_instance_that_it_looked_at(self) -> None:
        folder = self.folder / "plain"
        folder.mkdir(0o700)
        for place in (("--data", folder), ("--config", self.config())):
            findings = json.loads(ran(*place, "--json", "doctor").stdout)["findings"]
            advised = [word for finding in findings for word in ADVISED.findall(finding["fix"])]
            self.assertGreater(len(advised), 1, findings)
            self.assertEqual(set(advised), {place[0]}, findings)

    def test_down_says_where_it_looked(self) -> None:
        self.assertEqual(ran("--data", self.folder / "x", "down").stdout, f"no daemon is running: no process answers at {self.folder}/x/munimentd.sock\n")

    def test_a_file_is_no_data_folder(self) -> None:
        file = self.folder / "file"
        file.write_text("")
        done = ran("--data", file, "up")
        self.assertEqual((done.returncode, done.stderr), (1, f"muniment: invalid_argument: {file} is not a folder. Name the data folder: --data DIR\n"))

    def test_a_flush_says_how_the_daemon_is_started(self) -> None:
        done = ran("--data", self.folder / "x", "record", "claude-code", "--flush", "--spool", self.folder / "spool")
        self.assertEqual(done.returncode, 4)
        self.assertIn(f"Start it: muniment --data {self.folder}/x up", done.stderr)

    def test_a_wrong_command_line_is_exit_code_3(self) -> None:
        for program in ("munimentd", "muniment", "muniment-verify"):
            with self.subTest(program=program):
                self.assertEqual(ran("--nope", program=program).returncode, 3)
                self.assertEqual(ran("--help", program=program).returncode, 0)

    def test_what_the_exit_codes_mean_is_said_alike(self) -> None:
        told = " ".join(ran("--help").stdout.split())
        manual = " ".join(re.sub(r"^\.[A-Z]+ ?", "", (ROOT / "packaging" / "man" / "muniment.1.in").read_text(), flags=re.MULTILINE).split())
        for meaning in ("the contents of a file, a log, a backup or a restored log differ from what was recorded",
                        "the daemon or database is unreachable or timed out; retry later"):
            self.assertIn(meaning, told)
            self.assertIn(meaning, manual)

    def test_audit_verify_tells_its_options(self) -> None:
        told = ran("audit", "verify", "--help").stdout
        options = {name for option in json.loads(ran("--command-tree", program="muniment-verify").stdout)["options"] for name in option["names"]}
        named = set(re.findall(r"--[a-z][a-z-]+", told)) - {"--help"}
        self.assertLessEqual({"--key", "--proof", "--bundle", "--data", "--log", "--json"}, named)
        self.assertLessEqual(named, options)
        self.assertIn("5  incomplete", told)


class Beside(DaemonCase):
    def muniment(self, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = ran("--data", self.daemon.data, *words)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def test_what_status_advises_works(self) -> None:
        found = re.search(r"no checkpoint is signed \((muniment .*)\)", self.muniment("status").stdout)
        assert found is not None
        self.assertEqual(found[1], f"muniment --data {self.daemon.data} audit key init")
        self.assertEqual(as_printed(found[1]).returncode, 0)
        self.assertEqual(self.call("audit.key", action="show")["keys"][0], as_printed(found[1].replace("init", "show")).stdout.strip())

    def test_a_socket_alone_is_about_the_folder_of_its_daemon(self) -> None:
        log_id, home = self.call("server.status")["log"]["log_id"], self.daemon.folder / "home"
        home.mkdir()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")} | {"HOME": str(home)}

        def said(*words: object) -> str:
            done = subprocess.run([BUILD / "muniment", "--socket", self.daemon.socket, *map(str, words)], capture_output=True, text=True, env=environment, timeout=FINISH_S)
            self.assertIn(done.returncode, (0, 2), done.stdout + done.stderr)   # 2: verified, but not signed
            return done.stdout

        self.assertEqual(json.loads(said("--json", "audit", "verify"))["log_id"], log_id)
        self.assertTrue(pathlib.Path(json.loads(said("--json", "backup", home / "backups"))["path"]).is_dir())
        self.assertIn(str(self.daemon.data), said("doctor"))
        self.assertIn(self.run_id, said("sql", "-c", "SELECT run_id FROM report.run_report"))
        beside = home / "artifacts"
        artifact_id = self.call("artifact.put", run_id=self.run_id, text="a file")["artifact_id"]
        self.assertIn(log_id, said("export", self.run_id, "--format", "jsonl", "--artifacts", beside))
        self.assertEqual((beside / artifact_id).read_text(), "a file")

    def test_status_names_the_runs_that_are_halted(self) -> None:
        self.assertNotIn("halted", self.muniment("status").stdout)
        self.halt_run(self.run_id)
        found = re.search(r"(?m)^runs       1 halted: (muniment .*)$", self.muniment("status").stdout)
        assert found is not None
        self.assertIn(self.run_id, as_printed(found[1]).stdout)

    def test_a_run_that_there_is_not(self) -> None:
        place = f"muniment --data {self.daemon.data}"
        for words in (("run", "diff", "nope", "nope2"), ("recover", "nope"), ("run", "end", "nope"), ("audit", "report", "nope", "-o", self.daemon.folder / "r.html")):
            with self.subTest(words=words):
                self.assertIn(f"See: {place} run list, or start it: {place} run start RUN --agent AGENT", self.muniment(*words, code=1).stderr)
        self.assertIn(f"List them: {place} artifact list --run RUN", self.muniment("artifact", "get", "01a201f4-8535-793f-8007-fa9a2b0449d7", code=1).stderr)

    def test_which_partitions_there_are(self) -> None:
        self.assertIn("there is no partition 7, only partition 0, which is not full yet", self.muniment("audit", "archive", 7, code=1).stderr)
        self.assertIn("partition 0 is not full yet", self.muniment("audit", "archive", 0, code=1).stderr)

    def test_a_backup_is_made_elsewhere(self) -> None:
        for folder in (self.daemon.data, self.daemon.data / "backups", f"{self.daemon.folder}/data/../data/b"):
            with self.subTest(folder=folder):
                self.assertIn("Choose a folder outside it", self.muniment("backup", folder, code=1).stderr)
        self.assertFalse((self.daemon.data / "backups").exists())

    def test_a_type_that_there_is_not(self) -> None:
        for pattern, said in (("toool.*", 'muniment: there is no event type "toool.*". Did you mean "tool.*"?\n'),
                              ("tool.caled", 'muniment: there is no event type "tool.caled". Did you mean "tool.called"?\n'),
                              ("zzzzzzzzzz", 'muniment: there is no event type "zzzzzzzzzz".\n'), ("tool.*", ""), ("tool.called", ""), ("x.test.*", "")):
            for command in ("list", "tail"):
                with self.subTest(pattern=pattern, command=command):
                    self.assertEqual(self.muniment("event", command, "--type", pattern).stderr, said)

    def test_what_comes_after_a_restore(self) -> None:
        drill = self.daemon.folder / "drill"
        self.muniment("backup", self.daemon.folder / "backups")
        said = ran("--data", drill, "restore", self.daemon.folder / "backups").stdout
        first, second = re.findall(r"(muniment .*?)    ", said)
        self.assertEqual((first.rstrip(), second), (f"muniment --data {drill} up", f"muniment --data {drill} up --continue-restored"), said)
        self.addCleanup(ran, "--data", drill, "down")
        up = as_printed(first)
        self.assertEqual(up.returncode, 0, up.stderr)
        self.assertIn(f"stop it with: muniment --data {drill} down", up.stderr)
        status = ran("--data", drill, "status").stdout
        self.assertIn(f"muniment --data {drill} audit verify", status)
        self.assertIn(f"muniment --data {drill} up --continue-restored", status)
        mends = {finding["fix"] for finding in json.loads(ran("--data", drill, "--json", "doctor").stdout)["findings"]}
        self.assertIn(f"muniment --data {drill} down && muniment --data {drill} up --continue-restored", mends)
        self.assertIn("degraded", status)
        self.assertEqual(self.call("server.status")["degraded"], [])   # the other instance was not stopped

    @unittest.skipUnless(os.geteuid() == 0, "needs another user")
    def test_which_of_two_things_keeps_another_user_away(self) -> None:
        data = self.daemon.data
        self.addCleanup(data.chmod, data.stat().st_mode & 0o7777)
        data.chmod(0o700)

        def asked() -> dict[str, str]:
            done = ran("--data", data, "--json", "doctor", user=NOBODY)
            return next(one for one in json.loads(done.stdout)["findings"] if one["subject"] == "socket")
        closed = asked()
        self.assertEqual((closed["level"], closed["fix"]), ("broken", f"ask its owner to run: chmod o+x {data}"))
        self.assertIn(f"{data} (mode 700, of uid 0) does not let you reach {self.daemon.socket}; allowed_uids must also name uid {NOBODY}", closed["text"])
        self.assertIn("See: muniment --data", ran("--data", data, "status", user=NOBODY).stderr)
        self.assertEqual(subprocess.run(shlex.split(closed["fix"].partition("run: ")[2]), check=False).returncode, 0)
        listed = f"ask its owner (uid 0) to add {NOBODY} to allowed_uids in muniment.toml, then: muniment --data {data} down && muniment --data {data} up"
        self.assertEqual(asked()["fix"], listed)
        os.chmod(self.daemon.socket, 0o666)   # clients can connect, but the daemon refuses them
        self.addCleanup(os.chmod, self.daemon.socket, 0o600)
        self.assertEqual(asked()["fix"], listed)

    def test_where_nothing_was_verified_no_verdict_is_recorded(self) -> None:
        def verdicts() -> list[int]:
            return [event["seq"] for event in self.pages("event.list", "events", run_id="_log", types=["log.verified"])]
        before = verdicts()
        wrong = self.daemon.folder / "wrong.pub"
        wrong.write_text("this is no key\n")
        done = ran("--data", self.daemon.data, "audit", "verify", "--key", wrong)
        self.assertEqual((done.returncode, done.stdout[:10]), (4, "UNREADABLE"), done.stdout + done.stderr)
        self.assertNotIn("not recorded", done.stderr)
        self.assertEqual(verdicts(), before)
        ran("--data", self.daemon.data, "audit", "verify", "--unsigned-ok")
        self.assertEqual(len(verdicts()), len(before) + 1)

    def test_a_session_file_that_never_came(self) -> None:
        process = subprocess.Popen([BUILD / "muniment", "--data", self.daemon.data, "record", "claude-code", "--follow", "/no/such/file"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        status = pathlib.Path(f"/proc/{process.pid}/status")
        wait_until(lambda: int(re.search(r"SigCgt:\s*(\w+)", status.read_text())[1], 16) >> (signal.SIGINT - 1) & 1, "it follows")   # type: ignore[index]
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=FINISH_S)
        self.assertEqual((process.returncode, out), (1, "0 lines; nothing was recorded: /no/such/file is missing\n"), error)


if __name__ == "__main__":
    main()
