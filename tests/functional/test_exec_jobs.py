"""Tests of muniment exec under job control: ^Z, fg, bg and signals affect a recorded command like any other."""
from __future__ import annotations

import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import time

from support import main, wait_until
from test_exec import FINISH_S, ExecCase


class Shell:
    """An interactive bash on a terminal of its own."""

    def __init__(self, case: ExecCase):
        self.case = case
        self.unread = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:   # the child only executes exec
            try:
                os.chdir(case.folder)
                for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
                    signal.signal(number, signal.SIG_DFL)
                os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], case.environment(PS1="ready> ", TERM="dumb", LC_ALL="C"))
            finally:
                os._exit(99)
        case.addCleanup(self.close)
        self.read_until("ready> ")

    def close(self) -> None:
        os.close(self.terminal)
        os.waitpid(self.pid, 0)

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def read_until(self, words: str) -> str:
        end = time.monotonic() + FINISH_S
        while words not in self.unread:
            ready, _, _ = select.select([self.terminal], [], [], max(0.0, end - time.monotonic()))
            self.case.assertTrue(ready, f"no {words!r} after {self.unread!r}")
            self.unread += os.read(self.terminal, 65_536).decode(errors="replace")
        shown, _, self.unread = self.unread.partition(words)
        return shown + words

    def run(self, command: str, until: str = "ready> ") -> str:
        """Types a line. Returns the output without the line's echo."""
        self.type(command + "\n")
        self.read_until("\n")
        return self.read_until(until)


class Jobs(ExecCase):
    COUNTER = "import sys\nprint('begin', flush=True)\nfor line in sys.stdin: print('got', line.strip(), flush=True)\nprint('end')"

    def line(self, *command: str) -> str:
        return shlex.join(self.words(*command))

    def test_ctrl_z_stops_the_command_and_fg_continues_it(self) -> None:
        shell = Shell(self)
        shell.run(self.line(sys.executable, "-c", self.COUNTER), "begin")
        shell.type("one\n")
        shell.read_until("got one")
        for again in ("two", "three"):
            shell.type("\x1a")
            self.assertIn("Stopped", shell.read_until("ready> "))
            shell.run("fg", "\n")   # bash prints the command
            shell.type(again + "\n")
            shell.read_until(f"got {again}")
        shell.type("\x04")
        shell.read_until("ready> ")
        self.assertIn("status 0", shell.run("echo status $?"))
        self.assertEqual(self.recorded()[1]["exit_code"], 0)

    def test_a_command_that_stops_itself_gives_the_shell_back(self) -> None:
        for target, number in (("0", "STOP"), ("$$", "STOP"), ("$$", "TSTP")):
            with self.subTest(target=target, number=number):
                shell = Shell(self)
                pid_file = self.folder / f"pid{target}{number}"
                script = f"echo $$ > {shlex.quote(str(pid_file))}; kill -{number} {target}; echo woken; exit 3"
                self.assertIn("Stopped", shell.run(self.line("sh", "-c", script)))
                shell.run("fg", "woken")
                shell.read_until("ready> ")
                self.assertIn("status 3", shell.run("echo status $?"))

    def test_a_stopped_command_runs_in_the_background_and_ends(self) -> None:
        shell = Shell(self)
        self.assertIn("Stopped", shell.run(self.line("sh", "-c", "kill -STOP $$; echo woken; exit 4")))
        shell.type("bg; wait %1; echo status $?\n")
        shell.read_until("woken")
        shell.read_until("status 4")

    def test_a_command_in_the_background_leaves_the_terminal_alone(self) -> None:
        shell = Shell(self)
        shell.type(f"{self.line('sh', '-c', 'echo spoken')} & wait; echo status $?\n")
        shell.read_until("spoken\r")
        shell.read_until("status 0")

    def test_kill_ends_a_stopped_job(self) -> None:
        shell = Shell(self)
        self.assertIn("Stopped", shell.run(self.line("sh", "-c", "kill -STOP $$; echo woken")))
        shell.run("kill %1")
        wait_until(lambda: len(self.events(types=["command.*"])) == 2, "the end of the command")
        self.assertEqual(self.recorded()[1]["signal"], "SIGTERM")

    def stopped(self, pid: int) -> bool:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] == "T"

    def test_sigterm_reaches_a_stopped_command_where_no_shell_can_continue_it(self) -> None:
        process = subprocess.Popen(self.words("sh", "-c", "echo $$; kill -STOP $$; echo woken"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, cwd=self.folder, env=self.environment(), start_new_session=True)
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        wait_until(lambda: self.stopped(pid), "a stopped command")
        process.terminate()
        self.assertEqual(process.wait(FINISH_S), 128 + signal.SIGTERM)
        process.communicate()
        self.assertEqual(self.recorded()[1]["signal"], "SIGTERM")

    def test_sigterm_before_the_stop_is_noted_ends_the_command(self) -> None:
        # The output is not read, so exec waits for its pipe while the command stops and the signal arrives.
        process = self.spawn("sh", "-c", "echo $$; head -c 120000 /dev/zero; kill -STOP $$; echo woken")
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        wait_until(lambda: self.stopped(pid), "a stopped command")
        process.terminate()
        process.communicate(timeout=FINISH_S)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)

    def test_a_key_stops_nothing_where_no_shell_can_continue_it(self) -> None:
        pid, terminal = pty.fork()
        if pid == 0:   # the session leader: its process group is orphaned
            try:
                os.chdir(self.folder)
                words = self.words(sys.executable, "-c", self.COUNTER)
                os.execve(words[0], words, self.environment(TERM="dumb"))
            finally:
                os._exit(99)
        self.addCleanup(os.close, terminal)
        shown = b""
        for key, answer in ((b"", b"begin"), (b"\x1a", b"^Z"), (b"one\n", b"got one")):
            os.write(terminal, key) if key else None
            while answer not in shown:
                shown += os.read(terminal, 65_536)
        os.write(terminal, b"\x04")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)


if __name__ == "__main__":
    main()
