#!/usr/bin/env python3
"""Prints the schema of a database as the reference dump in schema/sql/ has it.

usage: dump_schema.py URI

pg_dump's output without what differs from one machine or minor version to the next: comments,
session settings, owners, privileges, blank lines.
"""
import glob
import re
import shutil
import subprocess
import sys

HEAD = """-- What migrations/ make, for reading and for comparing; nothing is made from this file.
-- Written by: MUNIMENT_ACCEPT=1 meson test -C build pg_store
"""

DROPPED = re.compile(r"^(--.*|SET .*;|SELECT pg_catalog\.set_config.*;|\\(un)?restrict .*|)$")


def pg_dump() -> str:
    installed = sorted(glob.glob("/usr/lib/postgresql/*/bin/pg_dump"),
                       key=lambda path: int(path.split("/")[4]))
    return installed[-1] if installed else shutil.which("pg_dump") or sys.exit("pg_dump is not installed")


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    dump = subprocess.run(
        [pg_dump(), "--schema-only", "--no-owner", "--no-privileges", "--schema=public", "--schema=report", sys.argv[1]],
        check=True, capture_output=True, text=True).stdout
    # CREATE SCHEMA public is left out by some minor versions.
    lines = [line for line in dump.splitlines()
             if not DROPPED.match(line) and " SCHEMA public" not in line]
    print(HEAD + "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
