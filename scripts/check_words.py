#!/usr/bin/env python3
"""Checks the openings of comments and descriptions, which are sentences or noun phrases, and finds section banners.

    scripts/check_words.py [ROOT]       prints each violation as path:line: text; exits with 1 if there is one
    scripts/check_words.py --self-test  creates violations of each kind and expects them to be found
"""
from __future__ import annotations

import json
import pathlib
import re
import sys
import tempfile
from typing import Any, Iterator, NamedTuple

OPENING = re.compile(r"(What|Whether|Who|Whose|Whoever|Of|Nobody|Somebody|That of|As whom)\b")
COMMENT = re.compile(r"^\s*(?://|#)\s(.*)$")
TRAILING = re.compile(r"^\s*[^\s/#].*\s{2}(?://|#)\s(.*)$")
DOCSTRING = re.compile(r'^\s*[rf]?"""(.*)$')
BANNER = re.compile(r"^\s*(?://|#|--)\s*(?:[-=*#]{3,}|\S.*[-=]{4,})\s*$")
MARKED = (".cpp", ".hpp", ".py", ".sh", ".build", ".in")   # suffixes of files with // or # comments
FOLDERS = ("src", "adapters", "verify", "clients", "scripts", "packaging", "tests")


class Violation(NamedTuple):
    path: pathlib.Path
    line: int
    text: str


def marked_files(root: pathlib.Path) -> Iterator[pathlib.Path]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and (path.suffix in MARKED or not path.suffix and folder != "tests") and path.name != "check_words.py":
                yield path


def check_comments(path: pathlib.Path) -> Iterator[Violation]:
    inside = False   # the previous line is also a comment
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if BANNER.match(line):
            yield Violation(path, number, "a section banner: delete it, or write a sentence")
        comment = COMMENT.match(line)
        opening = comment if not inside else None
        for found in (opening, TRAILING.match(line) if not comment else None, DOCSTRING.match(line)):
            if found and (word := OPENING.match(found[1])):
                yield Violation(path, number, f'opens with "{word[0]}": begin with a noun or a verb, such as "Returns"')
        inside = comment is not None


def descriptions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            if name in ("title", "description") and isinstance(item, str):
                yield item
            else:
                yield from descriptions(item)
    elif isinstance(value, list):
        for item in value:
            yield from descriptions(item)


def check_schemas(root: pathlib.Path) -> Iterator[Violation]:
    for path in sorted((root / "schema").rglob("*.json")):
        text = path.read_text()
        for description in descriptions(json.loads(text)):
            if word := OPENING.match(description):
                line = text[:max(text.find(description), 0)].count("\n") + 1
                yield Violation(path, line, f'a description opens with "{word[0]}": {description[:60]}')


def check(root: pathlib.Path) -> list[Violation]:
    comments = (violation for path in marked_files(root) for violation in check_comments(path))
    return [*comments, *check_schemas(root)]


PLANTED = {   # file → (text, number of violations)
    "src/base/banner.hpp": ("// ---- keys ---------\n// Keys -----------\nint f();\n", 2),
    "src/base/opening.hpp": ("// What a key is.\nint f();\nint g();  // of the key\nint h();  // Of the key\n", 2),
    "tests/unit/opening.cpp": ("int f();  // As whom it runs\n", 1),
    "src/base/fine.hpp": ("// Returns a key and\n// What follows it.\nint f(int a);\nauto b = \"// What\";\n// -1: none\n", 0),
    "scripts/opening.py": ('"""Whether it works."""\nx = 1   # Nobody\n#!shebang\n', 2),
    "schema/rpc/a.json": ('{"title": "Whether it is", "properties": {"a": {"description": "Of an event"}, "b": {"description": "Offset"}}}', 2),
    "schema/rpc/b.json": ('{"properties": {"title": {"description": "The title"}}}', 0),
}


def self_test() -> int:
    with tempfile.TemporaryDirectory(prefix="muniment-words-") as folder:
        root = pathlib.Path(folder)
        for name, (text, _) in PLANTED.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = [path.relative_to(root).as_posix() for path, _, _ in check(root)]
    failures = 0
    for name, (_, wanted) in PLANTED.items():
        if found.count(name) != wanted:
            failures += 1
            print(f"{name}: expected {wanted} violations, found {found.count(name)}")
    print(f"self-test: {len(PLANTED) - failures} of {len(PLANTED)} planted files were judged correctly")
    return 1 if failures else 0


def main(arguments: list[str]) -> int:
    if arguments == ["--self-test"]:
        return self_test()
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent).resolve()
    violations = check(root)
    for path, line, text in violations:
        print(f"{path.relative_to(root)}:{line}: {text}")
    print(f"words: {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
