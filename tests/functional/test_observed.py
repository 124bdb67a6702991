"""Tests of observed commands: what the daemon's executor runs, what it refuses to run, and the working tree of a task."""
from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from support import BUILD, main, wait_until
from test_exec import ExecCase
from test_exec_evidence import BAD, FINISH_S, GOOD, UNITTEST, EvidenceCase

# Numbers of the protocol of the executor (src/cli/executor/).
F_ADD_SEALS, SEALS = 1033, 0x2 | 0x4 | 0x8   # shrink, grow, write
REFUSED, ENDED = b"\0\0\0\0", b"\x03\0\0\0"

STATE = "umask; ulimit -n; nice; grep -E 'SigIgn|Cpus_allowed:' /proc/self/status; id -u; id -G"
CONFINED = """
import ctypes, os, sys
assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0   # PR_SET_NO_NEW_PRIVS
os.execvp(sys.argv[1], sys.argv[1:])
"""
# Tries what a process of the same user can do to another one.
ATTACK = """
import ctypes, os, sys
tried = []
for name in ("mem", "environ", "fd"):
    try:
        os.listdir(f"/proc/{sys.argv[1]}/fd") if name == "fd" else open(f"/proc/{sys.argv[1]}/{name}", "rb").read(1)
        tried.append(name)
    except OSError:
        pass
libc = ctypes.CDLL(None, use_errno=True)
if libc.ptrace(16, int(sys.argv[1]), 0, 0) == 0:   # PTRACE_ATTACH
    tried.append("ptrace")
print(",".join(tried) or "none")
"""


def executors(daemon_pid: int) -> list[int]:
    return [int(pid) for pid in pathlib.Path(f"/proc/{daemon_pid}/task/{daemon_pid}/children").read_text().split()
            if b"--executor-child" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]


class Observed(ExecCase):
    config = "allowed_uids = [5]\n"

    def origins(self) -> list[str]:
        return [event["origin"] for event in self.events(types=["command.*"])]

    def test_the_command_inherits_the_state_of_the_caller(self) -> None:
        prelude = "umask 027; ulimit -n 333; trap '' INT USR1; exec taskset -c 0 nice -n 3 \"$@\""
        done = subprocess.run(["sh", "-c", prelude, "sh", *self.words("sh", "-c", STATE)], cwd=self.folder, env=self.environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FINISH_S)
        plain = subprocess.run(["sh", "-c", prelude, "sh", "sh", "-c", STATE], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(done.stdout, plain.stdout, done.stderr)
        self.assertEqual(self.origins(), ["observed", "observed"])

    def test_a_caller_that_ignores_the_end_of_its_children(self) -> None:
        done = subprocess.run(["sh", "-c", "trap '' CHLD; exec \"$@\"", "sh", *self.words("sh", "-c", "exit 3")], cwd=self.folder,
                              env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=FINISH_S)
        self.assertEqual((done.returncode, self.recorded()[1]["exit_code"]), (3, 3), done.stderr)

    def test_a_request_of_a_few_bytes(self) -> None:
        name = self.call("command.executor")["socket"]
        self.assertEqual(self.request(name, b"muniment\0exec\0", SEALS)[:4], ENDED)
        self.assertIn("the command is missing", (self.folder / "out").read_text())

    def test_a_request_that_others_can_change_or_that_is_too_large(self) -> None:
        name = self.call("command.executor")["socket"]
        self.assertIn(b"of another version", self.request(name, b"muniment\0exec\0", 0))
        self.assertIn(b"too large", self.request(name, b"\0" * ((1 << 19) + 1), SEALS))
        self.assertIn(b"too large", self.request(name, b"x" * (8 << 20) + b"\0", SEALS))

    def request(self, name: str, text: bytes, seals: int, words: int = 2) -> bytes:
        """Sends a request to the executor and returns its last message."""
        request, folder = os.memfd_create("command", os.MFD_ALLOW_SEALING), os.open(".", os.O_PATH)
        os.write(request, text)
        fcntl.fcntl(request, F_ADD_SEALS, seals)
        out = os.open(self.folder / "out", os.O_RDWR | os.O_CREAT)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect("\0" + name)
            passed = array.array("i", [request, out, out, out, folder])
            connection.sendmsg([(1).to_bytes(4, "little") + words.to_bytes(4, "little")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
            said = connection.recv(4096)
            while said and said[:4] not in (REFUSED, ENDED):
                said = connection.recv(4096)
        for descriptor in (request, folder, out):
            os.close(descriptor)
        return said

    def test_the_output_is_not_kept_where_the_caller_says(self) -> None:
        with unittest.mock.patch.dict(os.environ, TMPDIR="/nowhere"):
            self.assertEqual(self.exec("sh", "-c", "echo $TMPDIR").returncode, 0)
        self.assertEqual(self.origins(), ["observed", "observed"])

    def test_input_comes_from_the_caller(self) -> None:
        done = subprocess.run(self.words("cat"), input=b"x" * 300_000, cwd=self.folder, env=self.environment(), capture_output=True, timeout=FINISH_S)
        self.assertEqual((done.returncode, len(done.stdout)), (0, 300_000), done.stderr)

    def test_the_end_is_recorded_if_the_caller_is_killed(self) -> None:
        process = self.spawn("sh", "-c", "echo ready; exec sleep 600")
        self.said(process, b"ready\n")
        process.kill()
        wait_until(lambda: len(self.origins()) == 2, "the end of the command")
        self.assertEqual(self.recorded()[1]["signal"], "SIGHUP")

    def test_a_killed_executor_is_started_again(self) -> None:
        self.assertEqual(self.exec("true").returncode, 0)
        (executor,) = executors(self.daemon.process.pid)
        os.kill(executor, signal.SIGKILL)
        wait_until(lambda: not pathlib.Path(f"/proc/{executor}").exists(), "the executor has ended")
        self.assertEqual(self.exec("true").returncode, 0)
        self.assertEqual(self.origins(), ["observed"] * 4)

    def test_a_confined_caller_is_not_led_out_of_its_sandbox(self) -> None:
        words = [sys.executable, "-c", CONFINED, *self.words("sh", "-c", "grep NoNewPrivs /proc/self/status", options=("--evidence", "test"))]
        done = subprocess.run(words, cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FINISH_S)
        self.assertIn("NoNewPrivs:\t1", done.stdout, done.stderr)
        self.assertIn("the daemon does not observe this command", done.stderr)
        self.assertEqual(self.origins(), ["reported", "reported"])

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root and unshare")
    def test_a_caller_in_another_namespace_is_not_observed(self) -> None:
        done = subprocess.run(["unshare", "-m", *self.words("true", options=("--evidence", "test"))], cwd=self.folder, env=self.environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FINISH_S)
        self.assertIn("another namespace", done.stderr)
        self.assertEqual(self.origins(), ["reported", "reported"])

    def test_a_request_of_no_front_is_refused(self) -> None:
        name = self.call("command.executor")["socket"]
        for message in (b"", b"x", b"\0" * 8, os.urandom(8), os.urandom(4096)):
            with self.subTest(len(message)), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
                connection.connect("\0" + name)
                connection.settimeout(FINISH_S)
                connection.send(message) if message else connection.shutdown(socket.SHUT_WR)
                self.assertEqual(connection.recv(4096)[:4], b"\0\0\0\0")   # refused
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:   # without a request
            connection.connect("\0" + name)
        self.assertEqual(self.exec("true").returncode, 0)

    def test_only_exec_and_workflows_use_the_observed_connection(self) -> None:
        """A caller may hand over any command line; its other requests are reported."""
        done = self.exec(str(BUILD / "muniment"), "--data", str(self.daemon.data), "exec", "--run", self.run_id, "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        name = self.call("command.executor")["socket"]
        words = ["muniment", "--data", str(self.daemon.data), "event", "append", "x.test.forged", "{}", "--run", self.run_id]
        self.assertEqual(self.request(name, b"".join(word.encode() + b"\0" for word in words), SEALS, len(words))[:4], ENDED)
        forged = self.events(types=["x.*"])
        self.assertEqual([event["origin"] for event in forged], ["reported"], (self.folder / "out").read_text())

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root and setpriv")
    def test_another_user_runs_as_itself_and_cannot_touch_its_worker(self) -> None:
        self.daemon.let_others_in()
        os.chown(self.folder, 5, 60)
        words = ["setpriv", "--reuid=5", "--regid=60", "--groups=4", "--", *self.words("sh", "-c", f"id -u; id -g; id -G; /usr/bin/python3 attack.py $PPID", run="")]
        (self.folder / "attack.py").write_text(ATTACK)
        done = subprocess.run(words, cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FINISH_S)
        self.assertEqual(done.stdout.split("\n")[:4], ["5", "60", "60 4", "none"], done.stderr)
        run = self.call("run.list", limit=1)["runs"][0]
        self.assertEqual({(event["actor"], event["origin"]) for event in self.events(run["run_id"], types=["command.*"])}, {("uid:5", "observed")})


class SwitchedOff(ExecCase):
    config = "executor = false\n"

    def test_commands_are_reported(self) -> None:
        done = self.exec("true", options=("--evidence", "test"))
        self.assertIn(b"executor = false", done.stderr)
        self.assertEqual({event["origin"] for event in self.events(types=["command.*"])}, {"reported"})


class Programs(EvidenceCase):
    """Under the strict policy, only an installed runner that runs all tests completes a task."""

    def refused(self, code: str, *command: str, **env: str) -> None:
        self.open()
        with unittest.mock.patch.dict(os.environ, env):
            status, evidence, said = self.exec(*command)
        self.assertEqual(status, 0, said)
        self.assertIn(code, self.blocking(evidence))

    def blocking(self, evidence: str) -> list[str]:
        """Returns the codes for which the strict policy refuses the evidence."""
        done = self.complete(evidence, options=("--strict", "--json"))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return [finding["code"] for finding in json.loads(done.stdout)["findings"] if finding["blocks"]]

    def script(self, path: str, text: str = "#!/bin/sh\necho '1 passed in 0.01s'\n") -> str:
        file = self.folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
        return str(file)

    def test_a_runner_in_the_tree(self) -> None:
        self.script("build/pytest")
        self.refused("own_program", "build/pytest")

    def test_a_runner_in_an_ignored_folder_of_the_tree(self) -> None:
        self.script("__pycache__/pytest")
        self.refused("own_program", "__pycache__/pytest")

    def test_a_runner_of_the_tree_in_path(self) -> None:
        self.script("bin/pytest")
        self.refused("own_program", "pytest", PATH=f"{self.folder}/bin:{os.environ['PATH']}")

    def test_a_runner_where_every_user_may_write(self) -> None:
        shared = self.outside()
        shared.chmod(0o1777)
        self.script(f"{shared}/pytest")
        self.refused("own_program", "pytest", PATH=f"{shared}:{os.environ['PATH']}")

    def test_a_runner_that_was_made_within_the_task(self) -> None:
        with tempfile.TemporaryDirectory(dir=BUILD) as outside:
            self.open()
            self.script(f"{outside}/pytest")
            with unittest.mock.patch.dict(os.environ, PATH=f"{outside}:{os.environ['PATH']}"):
                evidence = self.exec("pytest")[1]
            self.assertIn("own_program", self.blocking(evidence))

    def test_a_script_of_the_agent_for_a_task_without_tests(self) -> None:
        self.script("deploy.sh", "#!/bin/sh\necho 'deployed release 4.2 to staging'\n")
        for committed, code in ((False, 1), (True, 0)):
            if committed:
                self.commit("a script")
            task = self.muniment("task", "open", "Deploy release 4.2 to staging", "--run", self.run_id, "--task", f"d{committed}")
            self.assertEqual(task.returncode, 0, task.stderr)
            done = self.muniment("exec", "--run", self.run_id, "--evidence", "deployment", "--task", f"d{committed}", "--", "./deploy.sh")
            evidence = re.search(r"evidence ([0-9a-f-]{36})", done.stderr)
            assert evidence, done.stderr
            said = self.muniment("task", "complete", f"d{committed}", "--run", self.run_id, "--evidence", evidence[1], "--strict")
            self.assertEqual(said.returncode, code, said.stdout + said.stderr)

    def test_an_installed_runner(self) -> None:
        prefix = self.outside()
        packages = prefix / "lib/python3.11/site-packages/pytest-8.dist-info"
        packages.mkdir(parents=True)
        (packages / "entry_points.txt").write_text("[console_scripts]\npytest = pytest:console_main\n")
        (prefix / "bin").mkdir()
        self.open()
        self.script(f"{prefix}/bin/pytest")
        with unittest.mock.patch.dict(os.environ, PATH=f"{prefix}/bin:{os.environ['PATH']}"):
            evidence = self.exec("pytest")[1]
        self.assertEqual(self.complete(evidence, options=("--strict",)).returncode, 0)

    def outside(self) -> pathlib.Path:
        folder = self.folder.with_name(self.folder.name + "-outside")
        folder.mkdir()
        return folder

    def test_a_module_that_hides_the_runner(self) -> None:
        self.script("pytest.py", "print('1 passed in 0.01s')\n")
        self.refused("own_program", "python3", "-m", "pytest")

    def test_a_module_in_pythonpath(self) -> None:
        outside = self.outside()
        (outside / "sitecustomize.py").write_text("")
        self.refused("own_program", *UNITTEST, PYTHONPATH=str(outside))

    def test_an_environment_that_changes_the_run(self) -> None:
        self.refused("own_program", *UNITTEST, BASH_ENV="/dev/null")

    def test_a_part_of_the_tests(self) -> None:
        self.refused("selection", *UNITTEST, "-k", "test_zero")

    def test_a_command_line_that_is_too_long_to_be_recorded(self) -> None:
        self.refused("selection", *UNITTEST, *["-v"] * 6_000)

    def test_a_committed_script_is_as_it_was(self) -> None:
        self.script("runtests.py", "import sys, unittest\nunittest.main(module=None, argv=['x', 'discover'])\n")
        self.commit("a script")
        self.open("Make the tests pass")
        status, evidence, said = self.exec("python3", "runtests.py")
        self.assertEqual(status, 0, said)
        done = self.complete(evidence)
        self.assertEqual(done.returncode, 0, done.stdout + said)

    def test_a_part_that_the_task_names(self) -> None:
        self.open("Make test_small_numbers pass")
        status, evidence, said = self.exec(*UNITTEST, "-k", "test_small_numbers")
        self.assertEqual(status, 0, said)
        done = self.complete(evidence)
        self.assertEqual(done.returncode, 0, done.stdout)


class CommandLines(EvidenceCase):
    """Under the strict policy, a command line runs all tests of the task's tree, and each of its words is understood."""

    EASY = "import unittest\n\nclass Easy(unittest.TestCase):\n    def test_it(self):\n        pass\n"

    def findings(self, *command: str, **env: str) -> str:
        """Returns the findings under the strict policy, one on each line; empty if the task is completed."""
        with unittest.mock.patch.dict(os.environ, env):
            status, evidence, said = self.exec(*command)
        self.assertEqual(status, 0, said)
        done = self.complete(evidence, options=("--strict", "--json"))
        return "\n".join(f"{one['code']}: {one['text']}" for one in json.loads(done.stdout)["findings"]) if done.returncode else ""

    def write(self, path: str, text: str) -> pathlib.Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def start(self) -> None:
        super().start()
        self.write("docs/guide.md", "A guide.\n")
        self.commit("a guide")

    def test_a_folder_of_its_own(self) -> None:
        self.open()
        self.write("easy/test_easy.py", self.EASY)
        self.write("easy/__init__.py", "")
        for command in ((*UNITTEST, "discover", "-s", "easy"), (*UNITTEST, "discover", "easy"), (*UNITTEST, "easy.test_easy"),
                        ("sh", "-c", "cd easy && python3 -m unittest"), ("env", "-C", "easy", *UNITTEST),
                        (*UNITTEST, "discover", ".", "test_e*.py")):
            with self.subTest(command=command):
                self.assertIn("selection", self.findings(*command))

    def test_a_folder_of_its_own_as_the_current_one(self) -> None:
        self.open()
        self.write("easy/test_easy.py", self.EASY)
        self.folder /= "easy"
        self.assertIn("selection", self.findings(*UNITTEST))

    def test_the_finding_names_a_file_that_is_left_out(self) -> None:
        self.open()
        self.write("easy/test_easy.py", self.EASY)
        _, evidence, _ = self.exec(*UNITTEST, "discover", "-s", "easy")
        self.assertIn("It leaves out test_adder.py.", self.complete(evidence).stdout)
        self.followed()
        for view in ("command_report", "evidence_report"):
            self.assertIn(["test_adder.py"], self.daemon.sql(f"SELECT left_out FROM report.{view} WHERE left_out IS NOT NULL"))
        for words in (("list",), ("get", evidence)):
            self.assertIn("leaves out test_adder.py", self.muniment("evidence", *words).stdout)

    def test_another_tree(self) -> None:
        self.open()
        with tempfile.TemporaryDirectory(dir=BUILD) as outside:
            (pathlib.Path(outside) / "test_easy.py").write_text(self.EASY)
            self.assertIn("own_program", self.findings("env", "-C", outside, *UNITTEST))

    def test_words_that_are_not_understood(self) -> None:
        self.open()
        for command in (("env", "PYTHONHOME=/usr", *UNITTEST), ("python3", "-O", "-m", "unittest"),
                        ("python3", "-Xpycache_prefix=/tmp/x", "-m", "unittest"), ("sh", "-c", "T=unittest; python3 -m unittest $X"),
                        ("bash", "-lc", "python3 -m unittest")):
            with self.subTest(command=command):
                self.assertIn("unknown_argument", self.findings(*command))

    def test_a_wrapper_of_its_own(self) -> None:
        wrapper = self.write("bin/nice", "#!/bin/sh\nshift\nexec \"$@\"\n")
        wrapper.chmod(0o755)
        self.open()
        self.assertIn("own_program", self.findings("env", str(wrapper), "5", *UNITTEST))

    def test_a_module_in_the_place_of_one_that_the_runner_imports(self) -> None:
        self.open()
        for name in ("pprint.py", "traceback/__init__.py"):
            with self.subTest(name=name):
                file = self.write(name, "import sys, importlib\nsys.path.reverse()\n")
                with contextlib.suppress(AssertionError):   # the runner may fail
                    self.assertIn("own_program", self.findings(*UNITTEST))
                file.unlink()

    def test_settings_above_the_tree(self) -> None:
        self.open()
        home = self.folder.with_name(self.folder.name + "-home")
        (home / ".cargo").mkdir(parents=True)
        (home / ".cargo/config.toml").write_text("")
        cargo = home / "lib/site-packages/bin/cargo"
        cargo.parent.mkdir(parents=True)
        cargo.write_text("#!/bin/sh\necho 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'\n")
        cargo.chmod(0o755)
        self.assertIn("own_program", self.findings("cargo", "test", HOME=str(home), PATH=f"{cargo.parent}:{os.environ['PATH']}"))

    def test_honest_command_lines(self) -> None:
        for i, command in enumerate(((*UNITTEST, "-v"), (*UNITTEST, "discover", "-s", "."), (*UNITTEST, "test_adder"),
                                     ("sh", "-ec", "python3 -m unittest 2>&1"), ("env", "CI=1", "timeout", "60", *UNITTEST, "test_adder.py"),
                                     ("bash", "-c", "set -euo pipefail; export CI=1; cd docs && cd .. && exec python3 -Wdefault -m unittest"))):
            with self.subTest(command=command):
                self.open(task=f"t{i}")
                status, evidence, said = self.exec(*command, task=f"t{i}")
                self.assertEqual(status, 0, said)
                done = self.muniment("task", "complete", f"t{i}", "--run", self.run_id, "--evidence", evidence, "--strict")
                self.assertEqual(done.returncode, 0, done.stdout)

    def test_all_tests_in_a_subfolder(self) -> None:
        self.write("backend/adder.py", GOOD)
        for name in ("adder.py", "test_adder.py"):
            (self.folder / name).unlink(missing_ok=True)
        self.write("backend/test_adder.py", self.EASY)
        self.commit("a subfolder")
        self.open()
        self.assertEqual(self.findings("sh", "-c", "cd backend && python3 -m unittest"), "")

    def test_a_virtual_environment_that_a_script_activates(self) -> None:
        bin_folder = self.folder / "__pycache__/venv/bin"   # ignored by git
        bin_folder.mkdir(parents=True)
        (bin_folder.parent / "pyvenv.cfg").write_text("home = /usr/bin\n")
        (bin_folder / "activate").write_text(f"PATH={bin_folder}:$PATH\n")
        (bin_folder / "python3").symlink_to(shutil.which("python3") or "")
        self.open()
        self.assertEqual(self.findings("sh", "-c", ". __pycache__/venv/bin/activate && python3 -m unittest"), "")


class Trees(EvidenceCase):
    """A strict task that was opened in a tree needs a command and a claim in that tree."""

    def refused(self, *evidence: str, code: str, cwd: pathlib.Path | None = None) -> None:
        if cwd is not None:
            self.folder = cwd
        done = self.complete(*evidence, options=("--strict", "--json"))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        blocking = [finding["code"] for finding in json.loads(done.stdout)["findings"] if finding["blocks"]]
        self.assertIn(code, blocking, done.stdout)

    def clone(self) -> pathlib.Path:
        clone = self.folder.with_name(self.folder.name + "-clone")
        subprocess.run(["git", "clone", "-q", self.folder, clone], check=True, capture_output=True)
        return clone

    def passing(self) -> str:
        status, evidence, said = self.exec(*UNITTEST)
        self.assertEqual(status, 0, said)
        return evidence

    def test_the_tree_of_the_task_completes_it(self) -> None:
        self.open()
        self.assertEqual(self.complete(self.passing()).returncode, 0)

    def test_a_clone_in_which_the_tests_pass(self) -> None:
        self.open()
        tree, self.folder = self.folder, self.clone()
        evidence = self.passing()
        self.refused(evidence, code="other_tree")
        self.refused(evidence, code="other_tree", cwd=tree)

    def test_a_clone_that_names_the_tree_as_its_own(self) -> None:
        self.open()
        tree, self.folder = self.folder, self.clone()
        subprocess.run(["git", "config", "core.worktree", tree], cwd=self.folder, check=True)
        evidence = self.passing()
        self.refused(evidence, code="tree_missing")
        self.refused(evidence, code="tree_missing", cwd=tree)

    def test_a_claim_of_a_confined_process(self) -> None:
        self.open()
        evidence = self.passing()
        words = [BUILD / "muniment", "--socket", self.daemon.socket, "task", "complete", "--run", self.run_id, "t1", "--evidence", evidence,
                 "--strict", "--json"]
        done = subprocess.run([sys.executable, "-c", CONFINED, *words], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=FINISH_S)
        self.assertEqual([finding["code"] for finding in json.loads(done.stdout)["findings"] if finding["blocks"]], ["tree_missing"])

    def test_a_copy_without_its_repository(self) -> None:
        self.open()
        shutil.rmtree(self.folder / ".git")
        self.refused(self.passing(), code="tree_missing")

    def test_a_claim_without_a_tree(self) -> None:
        self.open()
        evidence = self.passing()
        self.refused(evidence, code="tree_missing", cwd=pathlib.Path("/"))
        answer = self.call("task.complete", run_id=self.run_id, task_id="t1", evidence_ids=[evidence], strict=True)
        self.assertEqual([finding["code"] for finding in answer["findings"] if finding["blocks"]], ["tree_missing"])

    def test_a_command_in_another_folder(self) -> None:
        self.open()
        tree, outside = self.folder, self.folder.with_name(self.folder.name + "-outside")
        shutil.copytree(tree, outside, ignore=shutil.ignore_patterns(".git"))
        self.folder = outside
        self.refused(self.passing(), code="tree_missing", cwd=tree)

    def test_a_revert_before_the_claim(self) -> None:
        self.open()
        evidence = self.passing()
        (self.folder / "adder.py").write_text(BAD)
        self.refused(evidence, code="tree_changed")

    def test_a_program_named_git_before_the_system_s(self) -> None:
        self.open()
        fake = self.folder.with_name(self.folder.name + "-bin")
        fake.mkdir()
        (fake / "git").write_text("#!/bin/sh\nexit 1\n")
        (fake / "git").chmod(0o755)
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = f"{fake}:{path}"
        os.environ["GIT_DIR"] = "/nowhere"
        self.addCleanup(os.environ.pop, "GIT_DIR", None)
        evidence = self.passing()
        body = [event["body"] for event in self.events(types=["command.started"])][-1]
        self.assertIn(" sha256:", body["tree_digest"])
        self.assertEqual(self.complete(evidence).returncode, 0)

    def test_a_task_outside_a_tree_needs_none(self) -> None:
        self.folder = self.folder.with_name(self.folder.name + "-plain")
        shutil.copytree(self.folder.with_name(self._testMethodName), self.folder, ignore=shutil.ignore_patterns(".git"))
        self.open()
        self.assertEqual(self.complete(self.passing()).returncode, 0)


if __name__ == "__main__":
    main()
