"""Base class of workflow tests: files of a small blind workflow, and functions that run it."""
from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import subprocess
import tempfile
from typing import Any, Iterator

from support import BUILD, DaemonCase

FINISH_S = 180.0
SPEC_WRITER = """#!/bin/sh
echo 'greet.sh NAME prints: Hello, NAME!' > "$SPECIFICATION/spec.txt"
printf 'Hello, Ada!\\n' > "$GOLDEN/greeting.txt"
"""
CODER = """#!/bin/sh
cat "$SPECIFICATION/spec.txt"
printf 'echo "Hello, $1!"\\n' > greet.sh
"""
TESTER = """#!/bin/sh
exec sh "$IMPLEMENTATION/greet.sh" Ada
"""
SPEC = """task = "Write greet.sh, which greets the person in its first argument"
{top}
[spec_writer]
command = ["./write_spec.sh"]
[coder]
command = ["./code.sh"]
{coder}
[tester]
command = ["./test.sh"]
{tester}
[compare]
"greeting.txt" = "stdout"
"""


# Some containers permit no namespaces; a workflow that requires them is then refused.
CONFINES = subprocess.run(["unshare", *([] if os.geteuid() == 0 else ["--map-current-user"]), "--mount", "--pid", "--net", "--fork", "true"],
                          capture_output=True).returncode == 0


@contextlib.contextmanager
def processes(alone: bool) -> Iterator[None]:
    """All workflows of root have one user and its limit of processes: a test that reaches it runs beside no other one."""
    folder = pathlib.Path(tempfile.gettempdir())
    names = [folder / f"muniment-tests-{os.geteuid()}.{name}" for name in ("door", "processes")]
    with open(names[0], "w") as door, open(names[1], "w") as held:
        fcntl.flock(door, fcntl.LOCK_EX)   # nobody enters while a test waits to be alone
        fcntl.flock(held, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield


class WorkflowCase(DaemonCase):
    shared = True

    def run(self, result: Any = None) -> Any:
        if not CONFINES:
            setattr(self, self._testMethodName, self.refuses)
        with processes(alone=self._testMethodName == "test_it_forks_without_end"):
            return super().run(result)

    def refuses(self) -> None:
        """Replaces each test in a container without namespaces."""
        self.write()
        done = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id)
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertIn("the command cannot be isolated", done.stderr)

    def setUp(self) -> None:
        super().setUp()
        self.folder = self.daemon.folder / self._testMethodName
        self.folder.mkdir()
        self.temporary = self.daemon.folder / (self._testMethodName + ".tmp")
        self.temporary.mkdir()

    def write(self, *, coder: str = CODER, tester: str = TESTER, spec_writer: str = SPEC_WRITER, spec: str = SPEC, top: str = "",
              coder_members: str = "", tester_members: str = "") -> None:
        for name, text in (("write_spec.sh", spec_writer), ("code.sh", coder), ("test.sh", tester)):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        (self.folder / "workflow.toml").write_text(spec.format(top=top, coder=coder_members, tester=tester_members))

    def words(self, *more: str) -> list[str]:
        return [str(BUILD / "muniment"), "--data", str(self.daemon.data), *more]

    def env(self) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        return {**env, "TMPDIR": str(self.temporary), "GOLDEN_FOLDER": "/secret", "SOME_TOKEN": "hidden"}

    def muniment(self, *more: str, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*prefix, *self.words(*more)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FINISH_S,
                              cwd=self.folder, env=self.env())

    def run_workflow(self, *more: str, status: int = 0, prefix: tuple[str, ...] = ()) -> dict[str, Any]:
        done = self.muniment("workflow", "run", "workflow.toml", "--run", self.run_id, "--json", *more, prefix=prefix)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(list(self.temporary.iterdir()), [])   # the workspace is removed in any case
        return dict(json.loads(done.stdout))

    def step(self, result: dict[str, Any], name: str) -> dict[str, Any]:
        return next(step for step in result["steps"] if step["name"] == name)

    def events(self, kind: str) -> list[dict[str, Any]]:
        return list(self.call("event.list", run_id=self.run_id, types=[kind], limit=1000)["events"])

    def evidence(self, evidence_id: str) -> dict[str, Any]:
        listed = self.call("evidence.list", run_id=self.run_id)["evidence"]
        return dict(next(one for one in listed if one["evidence_id"] == evidence_id))

    def open_task(self, text: str, task: str = "t1", *more: str) -> None:
        done = self.muniment("task", "open", text, "--run", self.run_id, "--task", task, *more)
        self.assertEqual(done.returncode, 0, done.stderr)
