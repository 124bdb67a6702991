#!/usr/bin/env python3
"""Writes the SQL files of migrations/ as one C++ file, so that a binary carries its own schema.

usage: embed_migrations.py MIGRATIONS_DIR OUT.cpp DEPFILE

A file is NNNN_what.sql, numbered from 0001 without a gap. The depfile names the folder too: a
migration that is added makes ninja run this again.
"""
import pathlib
import re
import sys

HEAD = """// Written by scripts/embed_migrations.py from migrations/; edit the files there instead.
#include "store/migrations.hpp"

namespace muniment::store {

std::vector<Migration> embedded_migrations() {
  return {
"""

TAIL = """  };
}

}  // namespace muniment::store
"""


def main() -> int:
    root, out, depfile = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    files = sorted(root.glob("*.sql"))
    text = HEAD
    for number, file in enumerate(files, start=1):
        named = re.fullmatch(r"(\d{4})_[a-z0-9_]+\.sql", file.name)
        if not named or int(named.group(1)) != number:
            sys.exit(f"{file}: expected {number:04}_what.sql here")
        content = file.read_text(encoding="utf-8")
        if ')sql"' in content:
            sys.exit(f"{file}: contains the raw string's end")
        text += f'      {{{number}, "{file.name}", R"sql({content})sql"}},\n'
    out.write_text(text + TAIL, encoding="utf-8")
    inputs = " ".join(str(p).replace(" ", "\\ ") for p in [root, *files])
    pathlib.Path(depfile).write_text(f"{out}: {inputs}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
