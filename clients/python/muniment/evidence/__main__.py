"""Implements python -m muniment.evidence check-evidence | validate-todo | list-evidence | validate-code, like the commands of `muniment`.

Exit codes: 0 the evidence is intact, the task can be completed, the list is printed, or the outputs equal the golden files; 1 otherwise, or the daemon refuses; 2 the
run is halted; 3 invalid command line; 4 no daemon.
"""
from __future__ import annotations

import argparse
import json
import os
import sys
from typing import NoReturn, Optional, Sequence

from ..client import Json
from ..errors import ConnectionLost, MunimentError
from .agent_interface import AgentAPI
from .errors import EvidenceError
from .evidence_system import Evidence, EvidenceStore
from .results import CompletionResult, Todo
from .todowrite_integration import CompletionValidator

DONE, REFUSED, HALTED, USAGE, UNAVAILABLE = range(5)
HALTING = frozenset({"run_halted", "system_error", "corrupt"})
TEXT_COLUMNS = 80


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def parser() -> Parser:
    whole = Parser(prog="python -m muniment.evidence", description="Check evidence and the tasks that it completes.")
    common = Parser(add_help=False)
    common.add_argument("--json", action="store_true", help="print JSON")
    common.add_argument("--data", metavar="DIR", help="data folder or socket (default: as for muniment)")
    common.add_argument("--base", metavar="DIR", help="folder with .beads (default: the current one)")
    common.add_argument("--run", metavar="RUN", help="run id (default: MUNIMENT_RUN, otherwise none)")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)

    check = commands.add_parser("check-evidence", parents=[common], help="check that evidence exists and is intact",
                                epilog="Example: python -m muniment.evidence check-evidence 01a207ea-733a-7e31-b137-4b2783c600b6")
    check.add_argument("evidence", metavar="EVIDENCE", help="evidence id")

    validate = commands.add_parser("validate-todo", parents=[common], help="check evidence against the text of a task",
                                   epilog="Example: python -m muniment.evidence validate-todo 'Implement the login form' --evidence ID")
    validate.add_argument("content", metavar="CONTENT", help="text of the task")
    validate.add_argument("--evidence", metavar="ID", action="append", default=[], help="evidence id; repeat for several")
    validate.add_argument("--no-evidence-required", action="store_true", help="accept the task without evidence")
    validate.add_argument("--type", metavar="T", help="type of the task, a section of the completion policy")
    validate.add_argument("--required-type", metavar="T", help="type of evidence that the task needs (default: any)")
    validate.add_argument("--task", metavar="TASK", help="id of an opened task of the run with this text")
    validate.add_argument("--strict", action="store_true", help="accept recorded commands only")

    listed = commands.add_parser("list-evidence", parents=[common], help="list evidence",
                                 epilog="Example: python -m muniment.evidence list-evidence --type test_output")
    listed.add_argument("--type", metavar="T", help="only this type")
    listed.add_argument("--task", metavar="TASK", help="only evidence recorded for this task")
    listed.add_argument("--validator", metavar="V", help="only evidence with this actor or validator_id")

    code = commands.add_parser("validate-code", parents=[common], help="run the project's blind workflow for a task",
                               epilog="Example: python -m muniment.evidence validate-code 'Write slugify.py'")
    code.add_argument("content", metavar="TASK", help="text of the task")
    code.add_argument("--spec", metavar="FILE", help="specification (default .muniment/workflow.toml)")
    code.add_argument("--task", metavar="ID", help="task of the run that the evidence supports")
    return whole


def parsed(words: Optional[Sequence[str]]) -> argparse.Namespace:
    whole = parser()
    options = whole.parse_args(words)
    if options.command == "validate-todo" and options.task and (options.no_evidence_required or options.type or options.required_type):
        whole.error("--task excludes --no-evidence-required, --type and --required-type: the opened task has them")
    return options


def printable(text: str) -> str:
    """Returns the text on one line without terminal control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def check_evidence(store: EvidenceStore, options: argparse.Namespace) -> int:
    found = AgentAPI(store).check_evidence(options.evidence)
    if options.json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        broken = found.get("broken_dependency")
        state = ("missing" if not found["exists"] else "intact" if found["valid"] and found["fresh"] and not broken else
                 "intact, stale" if found["valid"] else "damaged" if broken is None else "damaged, or depends on damaged evidence")
        print(f"{state}  {printable(options.evidence)}")
        for name in ("type", "actor", "validator_id", "created_at", "run_id", "hash", "reason"):
            if name in found:
                print(f"  {name:<13}{printable(found[name])}")
        if broken:
            print(f"  {'dependency':<13}{printable(broken['reason'])}")
    return DONE if found["valid"] else REFUSED


def validate_todo(store: EvidenceStore, options: argparse.Namespace) -> int:
    requires_evidence = requirement_of(store, options) if options.task else not options.no_evidence_required
    todo = Todo(options.content, requires_evidence=requires_evidence, evidence_ids=options.evidence, type=options.type,
                required_type=options.required_type, task_id=options.task)
    result = CompletionValidator(store, strict=options.strict).validate(todo)
    if options.json:
        print(json.dumps(result.as_dict(), ensure_ascii=False))
    else:
        print_result(result)
    return DONE if result else REFUSED


def requirement_of(store: EvidenceStore, options: argparse.Namespace) -> bool:
    """Returns whether the opened task requires evidence. Raises if its text differs from the given one."""
    if not store.run_id:
        raise EvidenceError("--task names a task of a run. Name the run: --run RUN, or set MUNIMENT_RUN")
    found = store.client.call("task.list", run_id=store.run_id, task_id=options.task)["tasks"]
    if not found:
        raise EvidenceError(f"there is no task {options.task!r:.100} in run {store.run_id}. Open it first: muniment task open")
    if found[0].get("content", options.content) != options.content:
        raise EvidenceError(f"task {options.task!r:.100} has a different text: {found[0]['content']!r:.200}. Repeat that text")
    return bool(found[0]["requires_evidence"])


def print_result(result: CompletionResult) -> None:
    print(f"{'can complete' if result else 'cannot complete'}  {result.verdict}  {printable(result.reason)}")
    for finding in result.findings:
        of = f"{printable(finding['evidence_id'])}  " if "evidence_id" in finding else ""
        print(f"  {finding['code']}  {of}{printable(finding['text'])}")


def list_evidence(store: EvidenceStore, options: argparse.Namespace) -> int:
    for evidence in store.list_evidence(options.type, run_id=options.run, task_id=options.task, validator=options.validator):
        print(json.dumps(evidence.as_dict(), ensure_ascii=False) if options.json else line_of(evidence))
    return DONE


def validate_code(store: EvidenceStore, options: argparse.Namespace) -> int:
    result = AgentAPI(store).validate_code(options.content, spec=options.spec, task_id=options.task)
    if options.json:
        print(json.dumps(result.as_dict(), ensure_ascii=False))
    else:
        for step in result.steps:
            print(f"{step['name']:<12} {step['ending']}  isolation {step['isolation']}  {step['refused']} refused")
        print(f"{'passed' if result else 'failed':<12} {printable(result.reason)}")
    return DONE if result else REFUSED


def line_of(evidence: Evidence) -> str:
    text = printable(evidence.text)
    shown = text if len(text) <= TEXT_COLUMNS else text[:TEXT_COLUMNS - 1] + "…"
    return "\t".join((evidence.id, printable(evidence.type), printable(evidence.validator_id), shown))


def code_of(error: MunimentError) -> int:
    if isinstance(error, ConnectionLost) or error.retryable:
        return UNAVAILABLE
    return HALTED if error.code in HALTING else REFUSED


def say_error(options: argparse.Namespace, code: str, message: str) -> None:
    if options.json:
        error: Json = {"error": {"code": code, "message": message}}
        print(json.dumps(error, ensure_ascii=False))
    else:
        print(f"muniment.evidence: {printable(message)}", file=sys.stderr)


def main(words: Optional[Sequence[str]] = None) -> int:
    options = parsed(words)
    command = {"check-evidence": check_evidence, "validate-todo": validate_todo, "list-evidence": list_evidence,
               "validate-code": validate_code}[options.command]
    try:
        with EvidenceStore(options.base, data=options.data, run_id=options.run) as store:
            return command(store, options)
    except MunimentError as error:
        say_error(options, error.code, str(error))
        return code_of(error)
    except EvidenceError as error:
        say_error(options, "invalid_argument", str(error))
        return REFUSED
    except BrokenPipeError:   # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return REFUSED


if __name__ == "__main__":
    sys.exit(main())
