#!/usr/bin/env python3
"""Stand-in for bd, the program of Beads: create, show, list, update and close with --json, as in the sources of bd 1.0.5.

The issues are in the file BD_FILE. BD_FAULT makes it misbehave: "hang COMMAND", "flood COMMAND", "garbage COMMAND" or "fail COMMAND".
BD_JSON_ENVELOPE=1 selects the envelope, as in bd. BD_CALLS names a file that gets the words of each call,
BD_LISTED one with the output of `list`.
"""
import argparse
import datetime
import json
import os
import pathlib
import secrets
import sys
import time

FILE = pathlib.Path(os.environ["BD_FILE"])


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")


def read() -> dict:
    return json.loads(FILE.read_text()) if FILE.exists() else {}


def write(issues: dict) -> None:
    new = FILE.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(issues))
    new.replace(FILE)   # other processes read at the same time


def answer(value: object) -> None:
    envelope = os.environ.get("BD_JSON_ENVELOPE") == "1"
    if envelope:
        value = {"schema_version": 1, "data": value}
    elif isinstance(value, dict):
        value = {**value, "schema_version": 1}
    print(json.dumps(value, indent=2))


def refuse(text: str, code: int = 1) -> int:
    answer({"error": text})
    return code


def misbehave(command: str) -> None:
    fault, _, of = os.environ.get("BD_FAULT", "").partition(" ")
    if of != command:
        return
    if fault == "hang":
        time.sleep(3600)
    if fault == "flood":
        while True:
            sys.stdout.write("[" * 65536)
    if fault == "garbage":
        print("\x1b[31m{not json")
        sys.exit(0)
    if fault == "fail":
        print(f"cannot {command}: blocked by open issues [bd-9] (use --force to override)", file=sys.stderr)
        sys.exit(1)


def resolve(issues: dict, word: str) -> str:
    """Ids may be abbreviated to their last part."""
    found = [one for one in issues if one == word or one.partition("-")[2].startswith(word)]
    return found[0] if len(found) == 1 else ""


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--json", action="store_true", required=True)
    commands = parser.add_subparsers(dest="command", required=True)
    create = commands.add_parser("create")
    create.add_argument("--title", required=True)
    show = commands.add_parser("show")
    show.add_argument("id")
    listed = commands.add_parser("list")
    listed.add_argument("--all", action="store_true")
    listed.add_argument("--limit", type=int, default=50)
    update = commands.add_parser("update")
    update.add_argument("id")
    update.add_argument("--metadata", required=True)
    close = commands.add_parser("close")
    close.add_argument("id")
    close.add_argument("--reason", default="Closed")
    words = sys.argv[1:]
    if "BD_CALLS" in os.environ:
        with open(os.environ["BD_CALLS"], "a") as calls:
            calls.write(json.dumps(words) + "\n")
    words = ["--json", *(word for word in words if word != "--json")]
    options = parser.parse_args(words)
    misbehave(options.command)
    issues = read()
    if options.command == "create":
        issue = {"id": os.environ.get("BD_NEXT_ID") or f"bd-{secrets.token_hex(4)}", "title": options.title, "status": "open", "priority": 2, "issue_type": "task",
                 "created_at": now(), "updated_at": now()}
        issues[issue["id"]] = issue
        write(issues)
        answer(issue)
        return 0
    if options.command == "list":
        if "BD_LISTED" in os.environ:
            print(pathlib.Path(os.environ["BD_LISTED"]).read_text())
            return 0
        found = [issue for issue in issues.values() if options.all or issue["status"] != "closed"]
        answer(found[:options.limit or None])
        return 0
    name = resolve(issues, options.id)
    if not name:
        print(f"Issue {options.id} not found", file=sys.stderr)
        return refuse("no issues found matching the provided IDs")
    issue = issues[name]
    if options.command == "update":
        issue["metadata"] = {**issue.get("metadata", {}), **json.loads(options.metadata)}   # bd merges the members
    if options.command == "close":
        issue.update(status="closed", closed_at=now(), close_reason=options.reason)
    write(issues)
    answer([issue])
    return 0


sys.exit(main())
