"""Searches erased words in all columns of all tables, in all files and in the replies. Each occurrence is a finding.

Postgres' own files are excluded: its free space and write-ahead log contain deleted data until vacuum and recycling.
"""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
from typing import TYPE_CHECKING, Iterator

from model import Finding

if TYPE_CHECKING:
    from judge import Judge

WORD = re.compile(rb"tk[0-9a-f]{16}")
HEX_WORD = re.compile(rb"746b(?:3[0-9]|6[1-6]){16}")
KEPT_BESIDE = ("postgres",)        # excluded from the data folder


def erased_words(judge: Judge) -> set[bytes]:
    """Returns the tokens of erased events and the words in erased artifacts."""
    words: set[str] = set()
    gone = {str(event.parsed.get("artifact_id")) for event in judge.log.events.values() if event.type == "artifact.redacted"}
    for operation in judge.record.operations:
        for token, events in zip(operation.tokens, judge.placed.get(id(operation), ())):
            if events and all(event.body is None for event in events):
                words.add(token)
        if operation.secrets and any(attempt.result.get("artifact_id") in gone for attempt in operation.oks()):
            words.update(operation.secrets)
    return {word.encode() for word in words}


def still_there(judge: Judge, uri: str, data: pathlib.Path) -> Iterator[Finding]:
    words = erased_words(judge)
    if not words:
        return
    found: dict[bytes, list[str]] = {}
    for where, text in places(uri, data):
        there = set(WORD.findall(text)) | {bytes.fromhex(match.decode()) for match in HEX_WORD.findall(text)}
        for word in there & words:
            found.setdefault(word, []).append(where)
    for word, where in list(found.items())[:20]:
        yield Finding("erased_is_there", f"{word.decode()} was erased, and is in {', '.join(where[:6])}; it was written by "
                      + "; ".join(str(one) for one in judge.record.operations if word.decode() in (*one.tokens, *one.secrets)))


def places(uri: str, data: pathlib.Path) -> Iterator[tuple[str, bytes]]:
    dump = subprocess.run(["pg_dump", "--data-only", "--no-sync", "-d", uri], capture_output=True, check=True).stdout
    table = ""
    for line in dump.split(b"\n"):
        if line.startswith(b"COPY "):
            table = line.split()[1].decode()
        elif b"tk" in line or b"746b" in line:
            yield f"the table {table}", line
    for folder, folders, names in os.walk(data):
        if pathlib.Path(folder) == data:
            folders[:] = [name for name in folders if name not in KEPT_BESIDE]
        for name in names:
            path = pathlib.Path(folder) / name
            if path.is_file() and not path.is_symlink():
                try:
                    yield str(path.relative_to(data)), path.read_bytes()
                except OSError:
                    continue   # an index file that a merge removed meanwhile
