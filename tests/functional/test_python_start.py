"""Tests of the Python client's start: its package, the daemon that it finds or starts, and its errors if it cannot."""
from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import zipfile
from typing import Any, Optional

from support import BUILD, READABLE, ROOT, main, remove_in_use

CLIENT = READABLE / "clients" / "python"
PYTHON = "/usr/bin/python3"   # Debian's Python, for which python3-setuptools and python3-wheel are installed
NOBODY = 65534
WAIT_S = 300
PATHS = ("muniment.client", "muniment.evidence", "muniment.evidence.results", "muniment.steps", "researcher", "muniment_verify")


class FolderCase(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-python-"))
        self.folder.chmod(0o755)   # if the test runs as root, the private Postgres runs as another user
        self.addCleanup(remove_in_use, self.folder)

    def environment(self, **more: Any) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MUNIMENT_", "XDG_", "PYTHON"))}
        return {**kept, "PYTHONPATH": str(CLIENT), "HOME": str(self.folder / "home"), **{name: str(value) for name, value in more.items()}}

    def python(self, code: str, *words: Any, user: Optional[int] = None, **environment: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run([PYTHON, "-c", f"import muniment, sys\n{code}", *map(str, words)], env=self.environment(**environment), cwd="/", text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=WAIT_S, user=user, group=user, extra_groups=[] if user else None)


class Package(FolderCase):
    def run_checked(self, *words: Any, **more: Any) -> str:
        done = subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WAIT_S, cwd="/",
                              env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}, **more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_a_wheel_installs_in_a_fresh_environment_without_a_network(self) -> None:
        source, venv = self.folder / "source", self.folder / "venv"
        shutil.copytree(CLIENT, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
        self.run_checked(PYTHON, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", self.folder, source)
        version = re.search(r"^  version: '(.*)'", (ROOT / "meson.build").read_text(), re.M)
        assert version is not None
        wheel = self.folder / f"muniment-{version[1]}-py3-none-any.whl"
        wanted = {str(path.relative_to(source)) for path in source.rglob("*") if path.suffix == ".py" or path.name == "py.typed"
                  if "build" not in path.relative_to(source).parts}
        with zipfile.ZipFile(wheel) as packed:
            self.assertEqual({name for name in packed.namelist() if ".dist-info/" not in name}, wanted)
        self.run_checked(PYTHON, "-m", "venv", venv)
        self.run_checked(venv / "bin/pip", "install", "--no-index", wheel)
        code = "import importlib, sys, muniment; [importlib.import_module(name) for name in sys.argv[1:]]; print(muniment.__file__, muniment.__version__)"
        self.assertEqual(self.run_checked(venv / "bin/python", "-c", code, *PATHS[:-1]),
                         f"{venv}/lib/python3.{self.minor(venv)}/site-packages/muniment/__init__.py {version[1]}\n")
        verifier = subprocess.run([venv / "bin/python", "-m", "muniment_verify", "--help"], capture_output=True, text=True, timeout=WAIT_S, cwd="/")
        self.assertIn("cryptography", verifier.stdout + verifier.stderr)   # its only dependency, which this environment lacks
        self.assertIn("Provides-Extra: langgraph", self.run_checked(venv / "bin/pip", "show", "-v", "-f", "muniment") + self.metadata(venv))

    def minor(self, venv: pathlib.Path) -> str:
        return next((venv / "lib").glob("python3.*")).name.removeprefix("python3.")

    def metadata(self, venv: pathlib.Path) -> str:
        return next(venv.rglob("muniment-*.dist-info/METADATA")).read_text()


class Places(FolderCase):
    """The client looks for the daemon in the same places as the command line."""

    def socket_of(self, environment: dict[str, Any], user: Optional[int]) -> str:
        done = self.python("print(muniment.socket_path())", user=user, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def socket_of_the_command_line(self, environment: dict[str, Any], user: Optional[int]) -> str:
        done = subprocess.run([BUILD / "muniment", "config", "print", "--json"], env=self.environment(**environment), cwd="/", capture_output=True, text=True,
                              timeout=WAIT_S, user=user, group=user, extra_groups=[] if user else None)
        return str(json.loads(done.stdout)["socket"]["value"])

    def test_as_the_command_line(self) -> None:
        home, data, told = self.folder / "home", self.folder / "data", self.folder / "told"
        for folder in (home / ".local/share/muniment", data, told):
            folder.mkdir(parents=True)
        (told / "muniment.toml").write_text(f'socket = "{self.folder}/from-file.sock"\nworkers = 4\n')
        places: list[dict[str, Any]] = [
            {}, {"MUNIMENT_DATA": data}, {"MUNIMENT_DATA": f"{data}/"}, {"MUNIMENT_DATA": self.folder / "new"}, {"MUNIMENT_SOCKET": "/tmp/x.sock"},
            {"MUNIMENT_SOCKET": "relative.sock"}, {"MUNIMENT_DATA": told}, {"MUNIMENT_DATA": told, "MUNIMENT_SOCKET": "/tmp/x.sock"},
            {"XDG_DATA_HOME": self.folder / "xdg"}, {"XDG_DATA_HOME": "relative"}, {"MUNIMENT_DATA": "", "MUNIMENT_SOCKET": ""}]
        for user in (None, NOBODY) if os.geteuid() == 0 else (None,):
            for place in places:
                with self.subTest(place=place, user=user):
                    self.assertEqual(self.socket_of(place, user), self.socket_of_the_command_line(place, user))
        self.assertEqual(self.socket_of({"MUNIMENT_DATA": told}, None), f"{self.folder}/from-file.sock")

    def test_a_path_that_is_given(self) -> None:
        data, socket = self.folder / "data", self.folder / "some.sock"
        data.mkdir()
        (data / "muniment.toml").write_text('socket = "/tmp/y.sock"\n')
        for given, wanted in ((data, "/tmp/y.sock"), (socket, str(socket)), (self.folder / "new", f"{self.folder}/new/munimentd.sock")):
            done = self.python("print(muniment.socket_path(sys.argv[1]))", given, MUNIMENT_SOCKET="/tmp/other.sock")
            self.assertEqual((done.stdout.strip(), done.stderr), (wanted, ""))

    def test_a_configuration_that_is_not_toml(self) -> None:
        (self.folder / "muniment.toml").write_text("socket = \n")
        done = self.python("muniment.connect()", MUNIMENT_DATA=self.folder)
        self.assertRegex(done.stderr, r"MunimentError: .*/muniment.toml is not TOML: .*See: muniment config check")


class Starting(FolderCase):
    def setUp(self) -> None:
        super().setUp()
        self.data = self.folder / "data"
        self.addCleanup(lambda: subprocess.run([BUILD / "muniment", "--data", self.data, "down"], env=self.environment(), capture_output=True, timeout=WAIT_S))

    def test_the_first_run_starts_the_daemon(self) -> None:
        code = ("with muniment.run(agent='first') as run:\n    print(run.step('add', lambda a, b: a + b, 1, 2))\n"
                "with muniment.connect(start=False) as m:\n    print(m.call('run.get', run_id=run.run_id)['run']['outcome'])")
        done = self.python(code, MUNIMENT_DATA=self.data, PATH=f"{BUILD}:{os.environ['PATH']}")
        self.assertEqual((done.stdout, done.stderr), ("3\nsuccess\n", ""))
        done = self.python(code, MUNIMENT_DATA=self.data, PATH="/usr/bin:/bin")
        self.assertEqual((done.stdout, done.stderr), ("3\nsuccess\n", ""), "the daemon goes on when its client has ended")

    def test_a_folder_that_is_given_and_the_program_that_muniment_bin_names(self) -> None:
        for named in (BUILD, BUILD / "muniment"):
            done = self.python("with muniment.connect(sys.argv[1]) as m: print(m.call('server.status')['socket'])", self.data, MUNIMENT_BIN=named,
                               PATH="/usr/bin:/bin", MUNIMENT_SOCKET=self.folder / "other.sock")
            self.assertEqual((done.stdout.strip(), done.stderr), (f"{self.data}/munimentd.sock", ""))
            subprocess.run([BUILD / "muniment", "--data", self.data, "down"], env=self.environment(), capture_output=True, timeout=WAIT_S, check=True)

    def test_what_is_said_where_none_can_be_started(self) -> None:
        (self.folder / "bad").mkdir()
        (self.folder / "bad" / "muniment.toml").write_text("nothing = 1\n")
        cases: list[tuple[str, dict[str, Any], str]] = [
            ("muniment.connect()", {"MUNIMENT_DATA": self.data, "PATH": "/usr/bin:/bin"},
             r"no daemon at .*/data/munimentd.sock, and none can be started: muniment is not in PATH. Install .* set MUNIMENT_BIN=.*: muniment up"),
            ("muniment.connect()", {"MUNIMENT_DATA": self.data, "MUNIMENT_BIN": self.folder / "none"}, r"MUNIMENT_BIN=.*/none is not a program"),
            ("muniment.connect()", {"MUNIMENT_DATA": self.folder / "bad", "MUNIMENT_BIN": BUILD},
             r"/muniment up failed \(exit \d\): muniment: .*unknown key"),
            ("muniment.connect(start=False)", {"MUNIMENT_DATA": self.data, "MUNIMENT_BIN": BUILD}, r"no daemon at .*Start it: muniment up"),
            (f"muniment.connect('{self.folder}/none.sock')", {"MUNIMENT_BIN": BUILD}, r"no daemon at .*Start it: muniment up")]
        for code, environment, wanted in cases:
            with self.subTest(code=code, environment=environment):
                done = self.python(code, **environment)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr.splitlines()[-1], rf"^muniment.errors.NoDaemon: .*{wanted}")
        self.assertFalse(self.data.exists(), "nothing was started")


if __name__ == "__main__":
    main()
