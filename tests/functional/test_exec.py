"""Tests of muniment exec with real commands: output and exit status are the same as without it."""
from __future__ import annotations

import fcntl
import json
import os
import pathlib
import pty
import random
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from typing import Any, Optional

from support import BUILD, ROOT, DaemonCase, main, muniment, wait_until

FINISH_S = 120.0


def heed_signals() -> None:
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class ExecCase(DaemonCase):
    shared = True
    origin_of_end = "observed"

    def setUp(self) -> None:
        super().setUp()
        self.folder = self.daemon.folder / self._testMethodName   # the commands run here, outside any repository
        self.folder.mkdir()

    def words(self, *command: str, options: tuple[str, ...] = (), run: Optional[str] = None) -> list[str]:
        run_id = self.run_id if run is None else run
        return [str(BUILD / "muniment"), "--data", str(self.daemon.data), "exec", *(("--run", run_id) if run_id else ()),
                *options, "--", *command]

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        return {**kept, **more}

    def exec(self, *command: str, options: tuple[str, ...] = (), run: Optional[str] = None,
             **env: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(self.words(*command, options=options, run=run), stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=FINISH_S, cwd=self.folder, env=self.environment(**env))

    def spawn(self, *command: str, options: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        """Starts the command in the background; `said` waits for its output."""
        # A shell cannot trap a signal that was ignored when it started, and background jobs and nohup ignore signals.
        process = subprocess.Popen(self.words(*command, options=options), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, cwd=self.folder, env=self.environment(), preexec_fn=heed_signals)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def said(self, process: subprocess.Popen[bytes], line: bytes) -> None:
        self.assertEqual(process.stdout.readline(), line)

    def recorded(self, run_id: Optional[str] = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """The bodies of the one command.started and the one command.ended of a run."""
        events = self.events(run_id, types=["command.*"])
        self.assertEqual([event["type"] for event in events], ["command.started", "command.ended"])
        self.assertEqual([event["origin"] for event in events], ["observed", self.origin_of_end])
        started, ended = (event["body"] for event in events)
        self.assertEqual(ended["call_id"], started["call_id"])
        return started, ended

    def kept(self, ended: dict[str, Any], stream: str) -> bytes:
        """Returns the recorded bytes of a stream; an empty stream is not recorded."""
        return self.client.get(ended[stream]["artifact_id"]) if stream in ended else b""


class Recorded(ExecCase):
    def test_the_start_is_committed_before_the_command_runs(self) -> None:
        script = ("import os, sys; sys.path.insert(0, sys.argv[1]); import muniment\n"
                  "with muniment.connect(sys.argv[2]) as client:\n"
                  "    events = client.call('event.list', run_id=os.environ['MUNIMENT_RUN'])['events']\n"
                  "print([event['type'] for event in events])")
        done = self.exec(sys.executable, "-c", script, str(ROOT / "clients" / "python"), self.daemon.socket)
        self.assertEqual((done.returncode, done.stdout), (0, b"['run.started', 'command.started']\n"), done.stderr)

    def test_what_is_written_down_of_it(self) -> None:
        done = self.exec("sh", "-c", "exit 0", options=("--step", "s1"))
        self.assertEqual(done.returncode, 0, done.stderr)
        started, ended = self.recorded()
        self.assertEqual((started["argv"], started["cwd"], started["scrubbed"]), (["sh", "-c", "exit 0"], str(self.folder), 0))
        self.assertEqual(ended["exit_code"], 0)
        for absent in ("stdout", "stderr", "signal", "scrubbed", "tree_digest"):
            self.assertNotIn(absent, ended)
        self.assertEqual({event["step_id"] for event in self.events(types=["command.*"])}, {"s1"})

    def test_argv_is_scrubbed_and_counted_and_the_command_gets_all_of_it(self) -> None:
        secrets = ("--password=hunter2", "postgresql://ann:sesame@db/x", "--api-token", "abcdef", "ghp_0123456789abcdefghij")
        done = self.exec("printf", "%s\n", *secrets)
        self.assertEqual(done.stdout.decode().splitlines(), list(secrets))
        started, _ = self.recorded()
        self.assertEqual(started["argv"], ["printf", "%s\n", "--password=[scrubbed]", "postgresql://ann:[scrubbed]@db/x",
                                           "--api-token", "[scrubbed]", "[scrubbed]"])
        self.assertEqual(started["scrubbed"], 4)

    def test_every_secret_of_a_script_is_scrubbed(self) -> None:
        self.assertEqual(self.exec("sh", "-c", "export API_TOKEN=sesame1\ntrue password: sesame2 && true --secret sesame3").returncode, 0)
        started, _ = self.recorded()
        self.assertEqual(started["argv"][2], "export API_TOKEN=[scrubbed]\ntrue password: [scrubbed] && true --secret [scrubbed]")
        self.assertEqual(started["scrubbed"], 3)

    def test_the_environment_is_an_allowlist_and_the_command_gets_all_of_it(self) -> None:
        secrets = {"GITHUB_TOKEN": "ghost1", "AWS_SECRET_ACCESS_KEY": "ghost2", "DB_PASSWORD": "ghost3", "MUNIMENT_API_KEY": "ghost4",
                   "LC_SECRET": "ghost5", "MUNIMENT_TOKEN": "ghost6", "LC_Password": "ghost7", "UNKNOWN": "ghost8"}
        done = self.exec("env", **secrets, LC_ALL="C.UTF-8", TZ="Europe/Paris")
        for name, value in secrets.items():
            self.assertIn(f"{name}={value}", done.stdout.decode().splitlines())
        started, _ = self.recorded()
        self.assertEqual((started["env"]["LC_ALL"], started["env"]["TZ"]), ("C.UTF-8", "Europe/Paris"))
        self.assertIn("PATH", started["env"])
        self.assertEqual([name for name in secrets if name in started["env"]], [])
        self.assertNotIn("ghost", json.dumps(started))

    def test_both_streams_go_through_unchanged_and_are_kept(self) -> None:
        data = random.Random(7).randbytes(3_000_000)
        (self.folder / "data").write_bytes(data)
        done = self.exec("sh", "-c", "cat data; head -c 100000 data >&2")
        self.assertEqual((done.returncode, done.stdout == data, done.stderr == data[:100_000]), (0, True, True))
        _, ended = self.recorded()
        self.assertEqual(self.kept(ended, "stdout"), data)
        self.assertEqual(self.kept(ended, "stderr"), data[:100_000])
        self.assertEqual((ended["stdout"]["size_bytes"], ended["stdout"]["mime_type"]), (3_000_000, "application/octet-stream"))

    def test_text_is_kept_as_text_with_its_beginning(self) -> None:
        text = "h\u00e9llo \u2713\n" * 500   # the examined part ends within a character
        done = self.exec("printf", "%s", text)
        self.assertEqual(done.stdout.decode(), text)
        _, ended = self.recorded()
        self.assertEqual(ended["stdout"]["mime_type"], "text/plain")
        preview = ended["stdout"]["preview"]
        self.assertTrue(preview.endswith("\u2026") and text.startswith(preview[:-1]) and len(preview) > 100, preview)

    def test_output_comes_while_the_command_runs(self) -> None:
        process = self.spawn("sh", "-c", "echo first; while [ ! -e go ]; do sleep 0.02; done; echo second")
        self.said(process, b"first\n")
        self.assertEqual([event["type"] for event in self.events(types=["command.*"])], ["command.started"])
        (self.folder / "go").touch()
        self.said(process, b"second\n")
        self.assertEqual(process.wait(FINISH_S), 0)

    def test_an_argument_that_is_not_utf8(self) -> None:
        done = subprocess.run([*map(os.fsencode, self.words("printf", "%s")), b"a\xffb"], capture_output=True, timeout=FINISH_S,
                              cwd=self.folder, env=self.environment())
        self.assertEqual((done.returncode, done.stdout), (0, b"a\xffb"), done.stderr)
        started, ended = self.recorded()
        self.assertEqual(len(started["argv"]), 3)
        self.assertEqual(self.kept(ended, "stdout"), b"a\xffb")

    def test_a_very_long_command_line_is_kept_whole(self) -> None:
        arguments = ["true", *(f"argument {i} " + "a" * 90 for i in range(1000))]
        self.assertEqual(self.exec(*arguments).returncode, 0)
        started, _ = self.recorded()
        self.assertEqual(started["argv"][:3], arguments[:3])
        self.assertEqual(self.client.get(started["x_argv_artifact"]).decode(), "".join(one + "\0" for one in arguments))

    def test_the_tree_before_and_after(self) -> None:
        for words in (["init", "-q"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"]):
            subprocess.run(["git", "-C", str(self.folder), *words], check=True)
        self.assertEqual(self.exec("sh", "-c", "echo new > file").returncode, 0)
        started, ended = self.recorded()
        commit = subprocess.run(["git", "-C", str(self.folder), "rev-parse", "HEAD"], check=True, capture_output=True,
                                text=True).stdout.strip()
        for digest in (started["tree_digest"], ended["tree_digest"]):
            self.assertRegex(digest, rf"\Agit:{commit} v3 root:[0-9a-f]{{16}} sha256:[0-9a-f]{{64}}\Z")
        self.assertNotEqual(started["tree_digest"], ended["tree_digest"])

    def test_without_a_run_it_makes_one_and_ends_it(self) -> None:
        for script, outcome in (("exit 0", "success"), ("exit 3", "failure")):
            with self.subTest(script=script):
                self.exec("sh", "-c", f"{script}  # {outcome}", run="")
                run = self.call("run.list", limit=1)["runs"][0]
                self.assertEqual((run["status"], run["outcome"], run["agent"]), ("ended", outcome, "sh"))
                self.recorded(run["run_id"])

    def test_what_the_command_records_belongs_to_its_run(self) -> None:
        inner = self.words("sh", "-c", "exit 4", run="")
        done = self.exec(*inner, run="")
        self.assertEqual(done.returncode, 4, done.stderr)
        run_id = self.call("run.list", limit=1)["runs"][0]["run_id"]
        self.assertEqual([event["type"] for event in self.events(run_id, types=["run.*", "command.*"])],
                         ["run.started", "command.started", "command.started", "command.ended", "command.ended", "run.ended"])


class Scrubbed(ExecCase):
    TEXT = "export API_TOKEN=sesame1\nuser: ann\nAuthorization: Bearer sesame2\n"

    def test_what_is_kept_is_scrubbed_and_what_is_seen_is_not(self) -> None:
        (self.folder / "text").write_text(self.TEXT)
        done = self.exec("sh", "-c", "cat text; echo password: sesame3 >&2", options=("--scrub",))
        self.assertEqual((done.stdout.decode(), done.stderr.decode()), (self.TEXT, "password: sesame3\n"))
        _, ended = self.recorded()
        self.assertEqual(self.kept(ended, "stdout").decode(),
                         "export API_TOKEN=[scrubbed]\nuser: ann\nAuthorization: Bearer [scrubbed]\n")
        self.assertEqual(self.kept(ended, "stderr").decode(), "password: [scrubbed]\n")
        self.assertEqual(ended["scrubbed"], 3)
        self.assertNotIn("sesame", json.dumps(self.events()))   # the previews do not contain it either

    def test_secrets_of_the_environment_and_of_a_file_are_scrubbed(self) -> None:
        secrets = self.folder / "secrets"
        secrets.write_text("northern light\n")
        secrets.chmod(0o600)
        more = {"BUILD_TOKEN": "blue-heron-17", "MUNIMENT_SANITISER_SECRETS": str(secrets)}
        done = self.exec("sh", "-c", "echo blue-heron-17, northern light, production", options=("--scrub",), **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        started, ended = self.recorded()
        self.assertEqual(self.kept(ended, "stdout").decode(), "[scrubbed], [scrubbed], production\n")
        self.assertEqual(started["argv"][2], "echo [scrubbed], [scrubbed], production")
        secrets.chmod(0o644)
        refused = self.exec("true", options=("--scrub",), **more)
        self.assertEqual(refused.returncode, 125)
        self.assertIn(b"chmod 600", refused.stderr)

    def test_without_it_the_output_is_kept_as_it_is(self) -> None:
        (self.folder / "text").write_text(self.TEXT)
        self.exec("cat", "text")
        _, ended = self.recorded()
        self.assertEqual(self.kept(ended, "stdout").decode(), self.TEXT)
        self.assertNotIn("scrubbed", ended)

    def test_a_secret_across_the_pieces_in_which_a_file_is_read(self) -> None:
        line = "API_TOKEN=" + "sesame" * 20
        data = "x" * ((1 << 20) - 1 - len("API_TO")) + "\n" + f"{line}\n" + "y" * 2_000_000 + f"\n{line}"
        (self.folder / "text").write_text(data)
        done = self.exec("cat", "text", options=("--scrub",))
        self.assertEqual(done.stdout.decode(), data)
        _, ended = self.recorded()
        self.assertEqual(self.kept(ended, "stdout").decode(), data.replace("sesame" * 20, "[scrubbed]"))
        self.assertEqual(ended["scrubbed"], 2)


class Endings(ExecCase):
    def test_the_exit_code_is_handed_through(self) -> None:
        for code in (0, 1, 2, 42, 125, 255):
            with self.subTest(code=code):
                run_id = self.new_run(f"r{code}")
                self.assertEqual(self.exec("sh", "-c", f"exit {code}", run=run_id).returncode, code)
                self.assertEqual(self.recorded(run_id)[1]["exit_code"], code)

    def test_a_signal_that_ends_it_is_named(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
            with self.subTest(signal=number.name):
                run_id = self.new_run(number.name)
                self.assertEqual(self.exec("sh", "-c", f"kill -{int(number)} $$", run=run_id).returncode, 128 + number)
                _, ended = self.recorded(run_id)
                self.assertEqual(ended["signal"], number.name)
                self.assertNotIn("exit_code", ended)

    def test_what_cannot_be_started_answers_as_a_shell_would(self) -> None:
        (self.folder / "plain").write_text("no program\n")
        for command, code in (("/nonexistent/program", 127), (str(self.folder / "plain"), 126)):
            with self.subTest(command=command):
                run_id = self.new_run(f"r{code}")
                done = self.exec(command, run=run_id)
                self.assertEqual(done.returncode, code)
                self.assertIn(command.encode(), done.stderr)
                self.assertEqual(self.recorded(run_id)[1]["exit_code"], code)

    def test_a_signal_is_forwarded(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            with self.subTest(signal=number.name):
                self.run_id = self.new_run(number.name)
                process = self.spawn("sh", "-c", f"trap 'echo heard; exit 9' {number.name[3:]}; echo ready; "
                                                 "while :; do sleep 0.02; done")
                self.said(process, b"ready\n")
                process.send_signal(number)
                self.said(process, b"heard\n")
                self.assertEqual(process.wait(FINISH_S), 9)
                self.assertEqual(self.recorded()[1]["exit_code"], 9)

    def test_a_forwarded_signal_that_ends_the_command(self) -> None:
        process = self.spawn("sh", "-c", "echo ready; exec sleep 600")
        self.said(process, b"ready\n")
        process.terminate()
        self.assertEqual(process.wait(FINISH_S), 128 + signal.SIGTERM)
        self.assertEqual(self.recorded()[1]["signal"], "SIGTERM")

    def test_a_reader_that_goes_away(self) -> None:
        done = subprocess.run(["bash", "-c", '"$@" | head -n 1; exit ${PIPESTATUS[0]}', "bash", *self.words("yes")],
                              capture_output=True, timeout=FINISH_S, cwd=self.folder, env=self.environment())
        self.assertEqual((done.returncode, done.stdout), (128 + signal.SIGPIPE, b"y\n"), done.stderr)
        _, ended = self.recorded()
        self.assertEqual(ended["signal"], "SIGPIPE")
        self.assertTrue(self.kept(ended, "stdout").startswith(b"y\ny\n"))


class Terminal(ExecCase):
    """The command keeps its terminal: exec runs in a session on a pseudo-terminal of the test."""

    def on_terminal(self, *command: str, stdin: Optional[int] = None, stderr: Optional[int] = None) -> tuple[int, int]:
        """Returns the pid and the test's side of the terminal; standard input or error may be something else."""
        pid, terminal = pty.fork()
        if pid == 0:   # the child only executes exec
            try:
                for descriptor, place in ((stdin, 0), (stderr, 2)):
                    if descriptor is not None:
                        os.dup2(descriptor, place)
                fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
                os.chdir(self.folder)
                signal.signal(signal.SIGINT, signal.SIG_DFL)   # ignored if a shell runs these tests in the background
                words = self.words(*command)
                os.execve(words[0], words, self.environment(TERM="xterm"))
            finally:
                os._exit(99)
        self.addCleanup(os.close, terminal)
        return pid, terminal

    def read_until(self, terminal: int, pattern: Optional[bytes]) -> bytes:
        """Returns the terminal's output up to `pattern`, or to its end."""
        shown, end = b"", time.monotonic() + FINISH_S
        while pattern is None or pattern not in shown:
            ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
            self.assertTrue(ready, f"the terminal is silent after {shown!r}")
            try:
                chunk = os.read(terminal, 65_536)
            except OSError:   # EIO: the slave side was closed by its last process
                chunk = b""
            if not chunk:
                self.assertIsNone(pattern, f"the terminal ended after {shown!r}")
                break
            shown += chunk
        return shown

    def exit_code(self, pid: int) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    LOOK = "import os; print([os.isatty(i) for i in (0, 1, 2)], *os.get_terminal_size(1), flush=True)"

    def test_the_command_sees_a_terminal_of_the_same_size(self) -> None:
        pid, terminal = self.on_terminal(sys.executable, "-c", self.LOOK)
        self.assertEqual(self.read_until(terminal, None), b"[True, True, True] 77 33\r\n")
        self.assertEqual(self.exit_code(pid), 0)
        self.assertIn(b"[True, True, True] 77 33", self.kept(self.recorded()[1], "stdout"))

    def test_standard_error_that_is_a_pipe_stays_one(self) -> None:
        ours, theirs = os.pipe()
        pid, terminal = self.on_terminal(sys.executable, "-c", self.LOOK + "; os.write(2, b'aside')", stderr=theirs)
        os.close(theirs)
        self.assertEqual(self.read_until(terminal, None), b"[True, True, False] 77 33\r\n")
        with open(ours, "rb") as pipe:
            self.assertEqual(pipe.read(), b"aside")
        self.assertEqual(self.exit_code(pid), 0)
        self.assertEqual(self.kept(self.recorded()[1], "stderr"), b"aside")

    def test_standard_input_that_is_a_pipe_stays_one(self) -> None:
        theirs, ours = os.pipe()
        pid, terminal = self.on_terminal("sh", "-c", "cat; test -t 0 || echo pipe", stdin=theirs)
        os.close(theirs)
        os.write(ours, b"through the pipe\n")
        os.close(ours)
        self.assertEqual(self.read_until(terminal, None).split(), [b"through", b"the", b"pipe", b"pipe"])
        self.assertEqual(self.exit_code(pid), 0)

    def test_what_is_typed_reaches_the_command(self) -> None:
        pid, terminal = self.on_terminal("sh", "-c", "echo ready; read line; echo got $line")
        self.read_until(terminal, b"ready\r\n")
        os.write(terminal, b"some words\r")
        self.assertIn(b"got some words\r\n", self.read_until(terminal, None))
        self.assertEqual(self.exit_code(pid), 0)

    def test_the_end_of_input_reaches_the_command(self) -> None:
        pid, terminal = self.on_terminal("sh", "-c", "echo ready; cat; echo over")
        self.read_until(terminal, b"ready\r\n")
        os.write(terminal, b"\x04")
        self.assertIn(b"over\r\n", self.read_until(terminal, None))
        self.assertEqual(self.exit_code(pid), 0)

    def test_control_c_interrupts_the_command_and_is_recorded(self) -> None:
        pid, terminal = self.on_terminal("sh", "-c", "echo ready; exec sleep 600")
        self.read_until(terminal, b"ready\r\n")
        os.write(terminal, b"\x03")
        self.read_until(terminal, None)
        self.assertEqual(self.exit_code(pid), 128 + signal.SIGINT)
        self.assertEqual(self.recorded()[1]["signal"], "SIGINT")

    def test_a_new_size_is_handed_on(self) -> None:
        # The signal is blocked before "ready": if it arrives before sigwait starts, it stays pending.
        script = ("import os, signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])\n"
                  "print('ready', flush=True); signal.sigwait([signal.SIGWINCH]); print(*os.get_terminal_size(1), flush=True)")
        pid, terminal = self.on_terminal(sys.executable, "-c", script)
        self.read_until(terminal, b"ready\r\n")
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 44, 88, 0, 0))
        self.assertIn(b"88 44\r\n", self.read_until(terminal, None))
        self.assertEqual(self.exit_code(pid), 0)

    def test_the_terminal_is_left_as_it_was(self) -> None:
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        self.addCleanup(os.close, theirs)
        before = termios.tcgetattr(theirs)
        done = subprocess.run(self.words("sh", "-c", "stty raw -echo; echo done"), stdin=theirs, stdout=theirs, stderr=theirs,
                              timeout=FINISH_S, cwd=self.folder, env=self.environment())
        self.assertEqual(done.returncode, 0)
        self.assertEqual(termios.tcgetattr(theirs), before)


class WithoutDaemon(ExecCase):
    """Exit status 125, and the command is not started: a command that is not in the log was not run."""

    def not_started(self, data: pathlib.Path, *options: str, run: Optional[str] = None) -> str:
        mark = self.folder / "ran"
        done = subprocess.run([str(BUILD / "muniment"), "--data", str(data), *options, "exec", *(("--run", run) if run else ()),
                               "--", "touch", str(mark)], capture_output=True, text=True, timeout=FINISH_S, cwd=self.folder,
                              env=self.environment())
        self.assertEqual((done.returncode, done.stdout), (125, ""), done.stderr)
        self.assertFalse(mark.exists(), "the command ran")
        return done.stderr

    def test_no_daemon(self) -> None:
        self.assertIn("unavailable", self.not_started(self.folder, "--no-autostart"))

    def test_a_daemon_that_cannot_be_started(self) -> None:
        (self.folder / "muniment.toml").write_text("workers = \"many\"\n")
        self.assertIn("workers", self.not_started(self.folder / "data", "--config", str(self.folder / "muniment.toml")))
        (self.folder / "file").touch()
        self.assertIn(str(self.folder / "file"), self.not_started(self.folder / "file"))

    def test_a_run_that_takes_nothing(self) -> None:
        self.assertIn("not_found", self.not_started(self.daemon.data, run="no-such-run"))
        self.call("run.end", run_id=self.run_id, outcome="success")
        self.assertIn(self.run_id, self.not_started(self.daemon.data, run=self.run_id))

    def test_a_halted_run(self) -> None:
        stored = self.client.put(self.run_id, b"bytes", mime_type="text/plain")
        (self.daemon.data / "artifacts" / stored["path"]).unlink()
        with self.assertRaises(muniment.MunimentError):
            self.call("claim.record", run_id=self.run_id, text="so", pointers=[f"artifact://{self.run_id}/{stored['artifact_id']}"])
        self.assertIn("SYSTEM_ERROR", self.not_started(self.daemon.data, run=self.run_id))


class Restarted(ExecCase):
    """The daemon is frozen, killed or stopped while a command runs."""

    shared = False

    def waiting(self) -> subprocess.Popen[bytes]:
        process = self.spawn("sh", "-c", "echo ready; while [ ! -e go ]; do sleep 0.02; done; echo done; exit 6")
        self.said(process, b"ready\n")
        return process

    def let_go(self, process: subprocess.Popen[bytes]) -> None:
        (self.folder / "go").touch()
        self.assertEqual(process.wait(FINISH_S), 6, process.stderr.read())

    def ended(self) -> None:
        self.client.close()   # reconnects, because the daemon was restarted
        _, ended = self.recorded()
        self.assertEqual((ended["exit_code"], self.kept(ended, "stdout")), (6, b"ready\ndone\n"))

    def test_the_daemon_was_killed_and_started_while_the_command_ran(self) -> None:
        self.origin_of_end = "reported"   # the new daemon did not see the command
        process = self.waiting()
        self.daemon.kill()
        self.restart()
        self.let_go(process)
        self.ended()

    def test_a_signal_while_the_end_is_recorded_does_not_lose_it(self) -> None:
        process = self.spawn("sh", "-c", "echo $$; while [ ! -e go ]; do sleep 0.02; done; exit 5")
        assert process.stdout is not None
        command = pathlib.Path(f"/proc/{int(process.stdout.readline())}")
        self.daemon.process.send_signal(signal.SIGSTOP)   # so that the recording blocks until the test resumes the daemon
        try:
            (self.folder / "go").touch()
            wait_until(lambda: not command.exists(), "the command has ended")
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                process.send_signal(number)
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(FINISH_S), 5)
        self.assertEqual(self.recorded()[1]["exit_code"], 5)

    def test_a_daemon_that_is_gone_at_the_end_is_started(self) -> None:
        self.origin_of_end = "reported"
        process = self.waiting()
        self.assertEqual(self.daemon.stop(), 0)
        self.addCleanup(self.restart)
        self.addCleanup(lambda: subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "down"], check=True,
                                               capture_output=True, timeout=FINISH_S, env=self.environment()))
        self.let_go(process)
        self.ended()

    def test_an_end_that_is_not_recorded_is_no_success(self) -> None:
        process = self.spawn("sh", "-c", "echo ready; while [ ! -e go ]; do sleep 0.02; done; exit $(cat go)")
        self.said(process, b"ready\n")
        self.call("run.end", run_id=self.run_id, outcome="cancelled")
        (self.folder / "go").write_text("0\n")
        _, said = process.communicate(timeout=FINISH_S)
        self.assertEqual(process.returncode, 125, said)
        self.assertIn(b"the end of the command is not recorded: ", said)

    def test_postgres_was_killed_while_the_command_ran(self) -> None:
        process = self.waiting()
        self.daemon.kill_postgres()
        self.let_go(process)
        wait_until(lambda: self.daemon.postgres_pid() is not None, "Postgres is back")
        self.ended()


if __name__ == "__main__":
    main()
