"""Tests of an installation by `meson install`: it runs without the source tree, its manual describes every option,
and shells complete them. scripts/package --check installs the Debian package on a clean root."""
from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from typing import Iterator

from support import BUILD, ROOT, Daemon, main, wait_until

MANUAL = ROOT / "scripts" / "manual.py"
GOLDEN = ROOT / "tests" / "golden" / "manual"
PAGES = {"muniment": 1, "munimentd": 8, "muniment-verify": 1, "muniment-record": 1}


def setUpModule() -> None:
    """Installs once for all classes."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-installed-"))
    unittest.addModuleCleanup(shutil.rmtree, folder)
    folder.chmod(0o755)
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", folder], check=True, capture_output=True, timeout=300)
    options = json.loads(subprocess.run(["meson", "introspect", "--buildoptions", BUILD], check=True, capture_output=True, text=True).stdout)
    Installed.folder = folder
    Installed.configured = next(one["value"] for one in options if one["name"] == "prefix")
    Installed.prefix = folder / Installed.configured.lstrip("/")


class Installed(unittest.TestCase):
    folder: pathlib.Path
    configured: str
    prefix: pathlib.Path

    def run_program(self, name: str, *arguments: str, **more: object) -> str:
        env = {key: value for key, value in os.environ.items() if not key.startswith("MUNIMENT_")}
        done = subprocess.run([self.prefix / "bin" / name, *arguments], capture_output=True, text=True, timeout=120, env=env, cwd="/", **more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout


class Running(Installed):
    def test_everything_is_in_its_place(self) -> None:
        found = {str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if path.is_file()}
        for program, section in PAGES.items():
            self.assertLessEqual({f"bin/{program}", f"share/man/man{section}/{program}.{section}", f"share/bash-completion/completions/{program}",
                                  f"share/fish/vendor_completions.d/{program}.fish"}, found)
            self.assertTrue(any(path.startswith("share/zsh/") and path.endswith(f"/_{program}") for path in found), program)
        self.assertLessEqual({"lib/systemd/system/munimentd.service", "lib/systemd/system/munimentd.socket", "lib/sysusers.d/muniment.conf",
                              "share/man/man5/muniment.toml.5", "share/doc/muniment/examples/muniment.toml", "libexec/muniment/fetch-models",
                              "share/doc/muniment/docs/runbook.md", "share/muniment/muniment_verify.py", "bin/researcher"}, found)
        self.assertTrue(os.access(self.prefix / "libexec/muniment/fetch-models", os.X_OK))
        unit = (self.prefix / "lib/systemd/system/munimentd.service").read_text()
        self.assertIn(f"ExecStart={self.configured}/bin/munimentd --config /etc/muniment/muniment.toml\n", unit)
        self.assertNotRegex(unit, r"@\w+@")

    def test_the_example_configuration_is_good(self) -> None:
        example = self.prefix / "share/doc/muniment/examples/muniment.toml"
        self.assertNotRegex(example.read_text(), r"@\w+@")
        self.assertIn("is valid", self.run_program("muniment", "--config", str(example), "config", "check"))

    def test_it_serves_without_the_source_tree(self) -> None:
        calls = self.folder / "calls"
        data = self.folder / "data"
        common = ("--data", str(data))
        traced = ["strace", "-f", "-qq", "-e", "trace=open,openat,openat2,execve", "-o", str(calls), str(self.prefix / "bin/munimentd"), *common]
        daemon = Daemon(build=self.prefix / "bin")
        self.addCleanup(daemon.destroy)
        daemon.data = data
        env = {key: value for key, value in os.environ.items() if not key.startswith("MUNIMENT_") and key not in ("PWD", "OLDPWD")}
        with open(daemon.log, "ab") as log:
            daemon.process = subprocess.Popen(traced, stdout=log, stderr=log, cwd="/", env=env)
        daemon.wait_healthy(120)
        self.run_program("muniment", *common, "run", "start", "--id", "r1", "--agent", "a")
        self.run_program("muniment", *common, "event", "append", "--run", "r1", "x.test.noted", '{"a":1}')
        self.assertIn("consistent" if os.geteuid() else "CONSISTENT", self.run_program("muniment-verify", *common, "--unsigned-ok"))
        code = ("import muniment, sys\nwith muniment.connect(sys.argv[1]) as c: print(muniment.__file__, c.call('run.get', run_id='r1')['run']['run_id'])")
        package = next(self.prefix.rglob("muniment/client.py")).parent.parent
        said = subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(package)!r})\n{code}", daemon.socket], capture_output=True,
                              text=True, timeout=60, cwd="/")
        self.assertEqual(said.stdout.split(), [str(package / "muniment/__init__.py"), "r1"], said.stderr)
        self.run_program("muniment", *common, "down")
        daemon.process.wait(60)
        # Only opened and executed files count: the program also looks up the working folders of all processes, to find an
        # orphaned Postgres.
        opened = calls.read_text(errors="replace").splitlines()
        self.assertGreater(sum("/bin/postgres" in line for line in opened), 0)
        self.assertEqual([line for line in opened if f'"{ROOT}/' in line][:5], [])


class Manual(Installed):
    def page(self, name: str) -> str:
        """Returns the page as shown, without markup and hyphenation."""
        path = self.prefix / f"share/man/man{name.rsplit('.', 1)[1]}" / name
        done = subprocess.run(["groff", "-k", "-man", "-ww", "-Tutf8", "-rHY=0", "-rLL=1000n", "-P-c", path], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stderr, "", name)
        return re.sub(r".\x08", "", done.stdout)

    def helps(self, program: str, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[str]]]:
        """Yields every command and the options in its --help."""
        text = self.run_program(program, *path, "--help")
        text = text.partition("\nOptions, passed to muniment-verify")[0]   # muniment-verify has its own page
        options, _, commands = text.partition("Subcommands:")
        yield path, set(re.findall(r"^\s+(?:-\w,)?(--[a-z-]+)", options, re.M))
        for word in re.findall(r"^  ([a-z-]+)  ", commands.split("\n\n")[0], re.M):
            if word != "help":
                yield from self.helps(program, (*path, word))

    def test_the_manual_has_every_command_and_option_that_help_shows(self) -> None:
        for program, section in PAGES.items():
            page, commands = self.page(f"{program}.{section}"), dict(self.helps(program))
            for path, options in commands.items():
                part = page
                if path:
                    if any(other[:len(path)] == path and other != path for other in commands):
                        continue   # a group: its commands are checked
                    head = re.search(rf"^   {program} {' '.join(path)}(?= [A-Z\[]|$)", page, re.M)
                    assert head, f"{program} {' '.join(path)} is not in the manual"
                    part = re.split(r"\n {0,3}\S", page[head.end():], maxsplit=1)[0]
                missing = {option for option in options if not re.search(rf"{option}(?![a-z-])", part)} - ({"--help"} if path else set())
                self.assertEqual(missing, set(), f"{program} {' '.join(path)}")
            self.assertGreater(len(commands), 60 if program == "muniment" else 0)

    def test_the_configuration_page_has_every_key(self) -> None:
        page = self.page("muniment.toml.5")
        keys = re.findall(r"^(\w+)", self.run_program("muniment", "--data", "/nonexistent", "config", "print"), re.M)
        self.assertGreater(len(keys), 30)
        for key in keys:
            if key != "key":
                self.assertRegex(page, rf"(?m)^       {key}( |$)")

    def test_what_is_made_of_a_small_command_line(self) -> None:
        tree = str(GOLDEN / "tree.json")
        for what, arguments in (("tool.1", ("man", tree, str(GOLDEN / "tool.1.in"), "9.9")), ("tool.bash", ("bash", tree)),
                                ("tool.zsh", ("zsh", tree)), ("tool.fish", ("fish", tree))):
            with self.subTest(what):
                made = subprocess.run([sys.executable, MANUAL, *arguments], check=True, capture_output=True, text=True).stdout
                if os.environ.get("MUNIMENT_ACCEPT") == "1":
                    (GOLDEN / what).write_text(made)
                self.assertEqual(made, (GOLDEN / what).read_text())


class Completion(Installed):
    def completed(self, *words: str, program: str = "muniment") -> list[str]:
        script = (f"PATH={self.prefix}/bin:$PATH\nsource {self.prefix}/share/bash-completion/completions/{program}\n"
                  'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))\n'
                  'function_name=$(complete -p "$1" | sed "s/.*-F \\([^ ]*\\).*/\\1/"); "$function_name" "$1" "${COMP_WORDS[COMP_CWORD]}"\n'
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        env = {key: value for key, value in os.environ.items() if not key.startswith("MUNIMENT_")}
        done = subprocess.run(["bash", "--norc", "-c", script, "bash", *words], capture_output=True, text=True, timeout=60, cwd=self.folder,
                              env={**env, "HOME": str(self.folder), "XDG_DATA_HOME": ""})
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout.split()

    def test_commands_options_and_what_they_take(self) -> None:
        self.assertLessEqual({"run", "record", "recover"}, set(self.completed("muniment", "re") + self.completed("muniment", "ru")))
        self.assertIn("list", self.completed("muniment", "run", ""))
        self.assertIn("list", self.completed("muniment", "--data", "/nowhere", "--no-autostart", "run", "l"))
        options = self.completed("muniment", "run", "list", "--")
        self.assertLessEqual({"--status", "--limit", "--data", "--json", "--help"}, set(options))
        self.assertNotIn("--on-halt", options)
        self.assertEqual(self.completed("muniment", "record", "claude-code", "--on-halt", ""), ["block", "stop", "allow"])
        self.assertEqual(self.completed("muniment", "record", "--on-halt", "=", "st"), ["stop"])
        (self.folder / "a-trace.jsonl").touch()
        self.assertEqual(self.completed("muniment", "import", "a-tr"), ["a-trace.jsonl"])
        self.assertEqual(self.completed("muniment", "--data", "us"), ["usr"])
        self.assertIn("--bundle", self.completed("muniment-verify", "--b", program="muniment-verify"))
        self.assertIn("--continue-restored", self.completed("munimentd", "--c", program="munimentd"))
        self.assertIn("claude-code", self.completed("muniment-record", "cl", program="muniment-record"))

    def test_runs_of_a_daemon_that_runs(self) -> None:
        data = self.folder / "quiet"
        self.assertEqual(self.completed("muniment", "--data", str(data), "run", "show", ""), [])
        self.assertFalse(data.exists(), "completion never starts a daemon")
        daemon = Daemon(build=self.prefix / "bin").start()
        self.addCleanup(daemon.destroy)
        with daemon.client() as client:
            client.call("run.start", run_id="fix-42", agent={"name": "test"})
            client.call("run.start", run_id="fix-43", agent={"name": "test"}, parent={"run_id": "fix-42"})
        place = ("--data", str(daemon.data))
        wait_until(lambda: set(self.completed("muniment", *place, "run", "show", "")) == {"fix-42", "fix-43"}, "both are offered")
        self.assertEqual(self.completed("muniment", *place, "event", "append", "--run", "fix-43"), ["fix-43"])
        self.assertEqual(self.completed("muniment", "run", "diff", "fix-42", "fix-"), [], "no daemon in the user's own folder")
        self.assertEqual(set(self.completed("muniment", *place, "run", "diff", "fix-42", "fix-")), {"fix-42", "fix-43"})

    def test_other_shells_read_theirs(self) -> None:
        """Checks where completions are installed; golden files check their content."""
        for shell, path in (("bash", "share/bash-completion/completions/{}"), ("zsh", f"share/zsh/{'vendor-completions' if self.configured == '/usr' else 'site-functions'}/_{{}}"),
                            ("fish", "share/fish/vendor_completions.d/{}.fish")):
            for program in PAGES:
                if shutil.which(shell):
                    done = subprocess.run([shell, "-n", self.prefix / path.format(program)], capture_output=True, text=True)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    main()
