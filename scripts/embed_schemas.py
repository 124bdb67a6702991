#!/usr/bin/env python3
"""Writes the JSON schemas of a folder as one C++ file, so that the contract is in the binary.

usage: embed_schemas.py SCHEMA_DIR OUT.cpp DEPFILE

The depfile names the folders too: a schema that is added makes ninja run this again.
"""
import pathlib
import sys

HEAD = """// Written by scripts/embed_schemas.py from schema/; edit the schemas instead.
#include "base/schema.hpp"

namespace muniment {
namespace {

"""

TAIL = """
}  // namespace

std::span<const SchemaText> embedded_schema_texts() { return %s; }

}  // namespace muniment
"""


def main() -> int:
    root, out, depfile = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    files = sorted(root.rglob("*.json"))
    folders = sorted(p for p in root.rglob("*") if p.is_dir())
    text = HEAD
    if files:
        text += "constexpr SchemaText texts[] = {\n"
        for file in files:
            path = file.relative_to(root).with_suffix("").as_posix()
            content = file.read_text(encoding="utf-8")
            if ')schema"' in content:
                sys.exit(f"{file}: contains the raw string's end")
            text += f'    {{"{path}", R"schema({content})schema"}},\n'
        text += "};\n"
    text += TAIL % ("texts" if files else "{}")
    out.write_text(text, encoding="utf-8")
    inputs = [str(p) for p in [root, *folders, *files]]
    escaped = " ".join(p.replace(" ", "\\ ") for p in inputs)
    pathlib.Path(depfile).write_text(f"{out}: {escaped}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
