"""The blind workflow: a spec writer, a coder that cannot see the golden files, and a tester whose outputs are compared with them.

    from muniment.evidence import BlindTesterAgent, CoderAgent, SpecWriterAgent, WorkflowOrchestrator

    orchestrator = WorkflowOrchestrator(SpecWriterAgent(["./write_spec.sh"]), CoderAgent(["./code.sh"]), BlindTesterAgent(["./test.sh"]),
                                        compare={"greeting.txt": "stdout"}, folder="workflow")
    result = orchestrator.run("Write greet.sh")
    print(result.passed, result.reason)

`muniment workflow run` does the work: these classes write its specification and read its result (docs/evidence.md). The isolation,
the record and the comparison are the same as on the command line.
"""
from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Optional

from ..client import Json
from ..place import Path
from .command import command_reply
from .errors import InvalidEvidence
from .results import CONTENT_CHARACTERS_MAX, check_text

DEFAULT_SPEC = pathlib.Path(".muniment") / "workflow.toml"
WITHHELD = ("GOLDEN", "MUNIMENT", "LD_")   # variables with these beginnings are never passed on
PASSED, FAILED, INTERRUPTED = 0, 1, 130


@dataclasses.dataclass
class Agent:
    """A command of the workflow. Relative names of files are those in the specification's folder."""

    command: Sequence[str]
    reads: Sequence[str] = ()             # further files and folders that a confined command can read
    seconds: Optional[int] = None         # limits; None: the default of docs/evidence.md
    output_bytes: Optional[int] = None
    disk_bytes: Optional[int] = None
    memory_bytes: Optional[int] = None

    def members(self) -> list[str]:
        lines = [f"command = {texts(self.command)}"]
        if self.reads:
            lines.append(f"reads = {texts(self.reads)}")
        limits = {name: getattr(self, name) for name in ("seconds", "output_bytes", "disk_bytes", "memory_bytes")}
        return lines + [f"{name} = {int(value)}" for name, value in limits.items() if value is not None]


class SpecWriterAgent(Agent):
    """Writes the specification into $SPECIFICATION and the golden files into $GOLDEN. Trusted: it is not confined."""


@dataclasses.dataclass
class CoderAgent(Agent):
    """Works in its current folder, confined: it cannot see the golden files, the spec writer, the tester and the daemon."""

    network: bool = False
    start: Optional[str] = None   # folder that is copied into the coder's folder

    def members(self) -> list[str]:
        start = [] if self.start is None else [f"start = {text(self.start)}"]
        return [*super().members(), *(["network = true"] if self.network else []), *start]


class BlindTesterAgent(Agent):
    """Runs the implementation in $IMPLEMENTATION, confined. The daemon compares its outputs with the golden files."""


def text(value: str) -> str:
    """A string of TOML, which has the escapes of JSON."""
    return json.dumps(str(value)).replace("\x7f", "\\u007f")


def texts(values: Sequence[str]) -> str:
    if isinstance(values, (str, bytes)):
        raise InvalidEvidence("expected a list of words, such as ['python3', 'code.py']")
    return "[" + ", ".join(text(value) for value in values) + "]"


@dataclasses.dataclass(frozen=True)
class WorkflowResult:
    """The result of a workflow. True if every output equals its golden file."""

    passed: bool
    reason: str
    run_id: str
    steps: list[Json]            # {name, command_id, ending, passed, duration_us, isolation, missing, refused, omitted, refusals}
    evidence: dict[str, str]     # artifact, workflow, validation → evidence id
    comparison: str              # one line for each pair
    isolation_demanded: str

    def __bool__(self) -> bool:
        return self.passed

    @classmethod
    def of_reply(cls, reply: Json) -> WorkflowResult:
        return cls(**{field.name: reply[field.name] for field in dataclasses.fields(cls)})

    def as_dict(self) -> Json:
        return dataclasses.asdict(self)

    @property
    def access_attempts(self) -> list[Json]:
        """The refused accesses of the coder: {operation, path, program, count}."""
        return [refusal for step in self.steps if step["name"] == "coder" for refusal in step["refusals"]]


def run_specification(spec: Path, *, task: Optional[str] = None, data: Optional[Path] = None, run_id: Optional[str] = None,
                      task_id: Optional[str] = None, program: str = "muniment") -> WorkflowResult:
    """Runs the specification's workflow, with the text `task` instead of its own. Raises EvidenceError if `muniment` is not installed, and
    MunimentError if the workflow could not run."""
    words = ["workflow", "run", os.fspath(spec)] if task is None else ["validate-code", "--spec", os.fspath(spec)]
    words += [*(["--run", run_id] if run_id else []), *(["--task", task_id] if task_id else []), *(["--", task] if task is not None else [])]
    return WorkflowResult.of_reply(command_reply(words, data=data, program=program))


def digest_of_workflow(spec: Path, *, program: str = "muniment") -> str:
    """Returns the digest by which a task names the workflow: `Todo(…, workflow=digest)`. It covers the specification's file and the files
    of the spec writer and the tester. Raises as run_specification."""
    return str(command_reply(["workflow", "digest", os.fspath(spec)], program=program)["digest"])


class WorkflowOrchestrator:
    """Runs the three agents in order. `compare` maps each golden file to the tester's output file, or to "stdout". `folder` is the
    folder of the agents' files."""

    def __init__(self, spec_writer: SpecWriterAgent, coder: CoderAgent, tester: BlindTesterAgent, *, compare: Mapping[str, str],
                 folder: Optional[Path] = None, isolation: str = "full", environment: Sequence[str] = (), data: Optional[Path] = None,
                 run_id: Optional[str] = None):
        self.spec_writer, self.coder, self.tester = spec_writer, coder, tester
        self.compare, self.isolation, self.environment = dict(compare), isolation, environment
        self.folder = pathlib.Path(folder if folder is not None else ".").resolve()
        self.data, self.run_id = data, run_id

    def specification(self, task: str) -> str:
        """The text of the specification, a TOML file of `muniment workflow run`."""
        check_text("task", task, CONTENT_CHARACTERS_MAX)
        lines = [f"task = {text(task)}", f"isolation = {text(self.isolation)}", f"environment = {texts(list(self.environment))}"]
        for name, agent in (("spec_writer", self.spec_writer), ("coder", self.coder), ("tester", self.tester)):
            lines += [f"[{name}]", *agent.members()]
        lines += ["[compare]", *(f"{text(golden)} = {text(output)}" for golden, output in self.compare.items())]
        return "\n".join(lines) + "\n"

    def run(self, task: str, *, task_id: Optional[str] = None) -> WorkflowResult:
        """Runs the workflow. `task_id`: the task of the run that the evidence supports."""
        with tempfile.NamedTemporaryFile("w", dir=self.folder, prefix=".workflow-", suffix=".toml") as spec:
            spec.write(self.specification(task))
            spec.flush()
            return run_specification(spec.name, data=self.data, run_id=self.run_id, task_id=task_id)


class FilesystemRestrictor:
    """Restricts a command as the workflow restricts its coder: the golden folder is hidden and GOLDEN variables are removed. `muniment
    workflow run` enforces the restriction with kernel namespaces; this class prepares such a run for one command."""

    def __init__(self, golden_dir: Path, working_dir: Path, *, allowed_env: Sequence[str] = ()):
        self.golden_dir, self.working_dir = pathlib.Path(golden_dir).resolve(), pathlib.Path(working_dir).resolve()
        self.allowed_env = tuple(allowed_env)
        self.access_attempts: list[Json] = []
        if self.golden_dir == self.working_dir or self.working_dir in self.golden_dir.parents:
            raise InvalidEvidence(f"the golden folder {self.golden_dir} is inside the working folder, which the command can read")

    def create_restricted_environment(self, environment: Optional[Mapping[str, str]] = None) -> dict[str, str]:
        """The environment without GOLDEN, MUNIMENT and LD_ variables, and without values that name the golden folder."""
        given = os.environ if environment is None else environment
        return {name: value for name, value in given.items()
                if not name.startswith(WITHHELD) and str(self.golden_dir) not in value}

    @contextlib.contextmanager
    def _specification(self, command: Sequence[str], seconds: int) -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix="muniment-restricted-") as folder:
            orchestrator = WorkflowOrchestrator(
                SpecWriterAgent(["/bin/sh", "-c", 'echo ran > "$GOLDEN/ran"']), CoderAgent(list(command), start=str(self.working_dir), seconds=seconds),
                BlindTesterAgent(["/bin/sh", "-c", 'find "$IMPLEMENTATION" -type f -exec head -c 1 {} + > /dev/null; echo ran']),
                compare={"ran": "stdout"}, folder=folder, environment=self.allowed_env)
            path = pathlib.Path(folder) / "workflow.toml"
            path.write_text(orchestrator.specification("Run a restricted command"))
            yield str(path)

    def run(self, command: Sequence[str], *, seconds: int = 600, data: Optional[Path] = None, run_id: Optional[str] = None) -> WorkflowResult:
        """Runs the command confined on a copy of the working folder and records it; `access_attempts` gets its refused accesses. Raises
        InvalidEvidence if a word of the command names a golden file: files that the command names are visible to it."""
        for word in command:
            if self.golden_dir in pathlib.Path(word).resolve().parents:
                raise InvalidEvidence(f"the command names the golden file {word}")
        with self._specification(command, seconds) as spec:
            result = run_specification(spec, data=data, run_id=run_id)
        self.access_attempts += result.access_attempts
        return result
