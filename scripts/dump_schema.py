#!/usr/bin/env python3
"""Prints the schema of a database in the form of the reference dump in schema/sql/, or the hashes of its definitions.

usage: dump_schema.py [--definitions] URI

The dump is the output of pg_dump without parts that depend on the machine or minor version: comments,
session settings, owners, privileges, blank lines. --definitions: the definitions that muniment-verify compares
(schema/sql/definitions.sql) in each of Postgres' spellings, and the hashes of migrations/.
"""
import glob
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

HEAD = """-- The schema that migrations/ create, for reading and comparison. No database is created from this file.
-- Written by: MUNIMENT_ACCEPT=1 meson test -C build pg_store
"""

DROPPED = re.compile(r"^(--.*|SET .*;|SELECT pg_catalog\.set_config.*;|\\(un)?restrict .*|)$")


def pg_dump() -> str:
    installed = sorted(glob.glob("/usr/lib/postgresql/*/bin/pg_dump"),
                       key=lambda path: int(path.split("/")[4]))
    return installed[-1] if installed else shutil.which("pg_dump") or sys.exit("pg_dump is not installed")


ROOT = pathlib.Path(__file__).resolve().parents[1]
DEFINITIONS_HEAD = """# Definitions that the migrations create, with the SHA-256 of each spelling (definitions.sql). muniment-verify compares a database with them.
# Written by: MUNIMENT_ACCEPT=1 meson test -C build pg_store
"""


def rows(uri: str, query: str) -> list[list[str]]:
    done = subprocess.run(["psql", "-X", "-qAt", "-F", "\x1f", "-R", "\x1e", "-v", "ON_ERROR_STOP=1", uri, "-c", query], check=True,
                          capture_output=True, text=True, env={**os.environ, "PGOPTIONS": "-c search_path=pg_catalog,public,pg_temp"})
    return [row.split("\x1f") for row in done.stdout.rstrip("\n").split("\x1e") if row]


def restored(uri: str, query: str) -> list[list[str]]:
    """Returns the definitions of a copy made with pg_dump, since Postgres prints some conditions differently after a restore."""
    name = rows(uri, "SELECT current_database() || '_restored'")[0][0]
    rows(uri, f'CREATE DATABASE "{name}"')
    try:
        copy = re.sub(r"(postgresql://[^/]*/)[^?]*", lambda found: found[1] + name, uri)
        dump = subprocess.run([pg_dump(), uri], check=True, capture_output=True).stdout
        subprocess.run(["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", copy], input=dump, check=True, stdout=subprocess.DEVNULL)
        return rows(copy, query)
    finally:
        rows(uri, f'DROP DATABASE "{name}"')


def definitions(uri: str) -> str:
    query = (ROOT / "schema/sql/definitions.sql").read_text()
    version = int(rows(uri, "SHOW server_version_num")[0][0]) // 10_000
    lines = [f"{version} postgres"]
    lines += [f"{hashlib.sha256(path.read_bytes()).hexdigest()} migration {path.name}" for path in sorted((ROOT / "migrations").glob("*.sql"))]
    wordings = sorted({(name, text) for name, text in [*rows(uri, query), *restored(uri, query)]}, key=lambda one: one[0])
    lines += sorted((f"{hashlib.sha256(text.encode()).hexdigest()} {name}" for name, text in wordings), key=lambda line: (line[65:], line))
    return DEFINITIONS_HEAD + "\n".join(lines)


def main() -> int:
    if len(sys.argv) == 3 and sys.argv[1] == "--definitions":
        print(definitions(sys.argv[2]))
        return 0
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    dump = subprocess.run(
        [pg_dump(), "--schema-only", "--no-owner", "--no-privileges", "--schema=public", "--schema=report", sys.argv[1]],
        check=True, capture_output=True, text=True).stdout
    # Some minor versions omit CREATE SCHEMA public.
    lines = [line for line in dump.splitlines()
             if not DROPPED.match(line) and " SCHEMA public" not in line]
    print(HEAD + "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
