#!/usr/bin/env python3
"""Writes the texts of a folder to one C++ file, so that every binary contains its migrations, schemas and samples.

usage: embed_texts.py migrations|schemas|samples|definitions DIR OUT.cpp DEPFILE

The depfile also names the folders, so that ninja runs this again when a text is added.
"""
import dataclasses
import pathlib
import re
import sys
from typing import Callable


def migration(root: pathlib.Path, file: pathlib.Path, number: int) -> str:
    """Entry for NNNN_name.sql; the files are numbered from 0001 without gaps."""
    named = re.fullmatch(r"(\d{4})_[a-z0-9_]+\.sql", file.name)
    if not named or int(named.group(1)) != number:
        sys.exit(f"{file}: expected {number:04}_NAME.sql here")
    return f'    {{{number}, "{file.name}", %s}},'


def schema(root: pathlib.Path, file: pathlib.Path, number: int) -> str:
    """Returns a schema's entry. The suffix sv gives the length, because clang limits the evaluation of constants."""
    return f'    {{"{file.relative_to(root).with_suffix("").as_posix()}", %ssv}},'


def sample(root: pathlib.Path, file: pathlib.Path, number: int) -> str:
    return f'  if (file == "{file.name}") return %s;'


@dataclasses.dataclass
class Kind:
    pattern: str
    include: str
    namespace: str
    head: str
    entry: Callable[[pathlib.Path, pathlib.Path, int], str]   # with %s in place of the text
    tail: str


KINDS = {
    "migrations": Kind("*.sql", "store/postgres/migrations.hpp", "muniment::store", "std::vector<Migration> embedded_migrations() {\n  return {",
                       migration, "  };\n}"),
    "schemas": Kind("*.json", "base/json/schema.hpp", "muniment", "using namespace std::string_view_literals;\n\nstatic constexpr SchemaText embedded_texts[] = {", schema,
                    "};\n\nstd::span<const SchemaText> embedded_schema_texts() { return embedded_texts; }"),
    "samples": Kind("*.md", "evidence/sample_set.hpp", "muniment::evidence", "std::string_view embedded_sample(std::string_view file) {", sample,
                    "  return {};\n}"),
    "definitions": Kind("definitions.*", "verify/postgres/definitions.hpp", "muniment::verify", "std::string_view embedded_definitions(std::string_view file) {",
                        sample, "  return {};\n}"),
}


def raw_string(file: pathlib.Path) -> str:
    content = file.read_text(encoding="utf-8")
    if ')text"' in content:
        sys.exit(f"{file}: contains the terminator of the raw string")
    return f'R"text({content})text"'


def main() -> int:
    kind, root, out, depfile = KINDS[sys.argv[1]], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
    files = sorted(root.rglob(kind.pattern))
    folders = [root, *sorted(path for path in root.rglob("*") if path.is_dir())]
    entries = [kind.entry(root, file, number).replace("%s", raw_string(file)) for number, file in enumerate(files, start=1)]
    out.write_text("\n".join([
        f"// Written by scripts/embed_texts.py from {root.name}/; edit the files there instead.",
        f'#include "{kind.include}"', "", f"namespace {kind.namespace} {{", "", kind.head, *entries, kind.tail, "",
        f"}}  // namespace {kind.namespace}", ""]), encoding="utf-8")
    inputs = " ".join(str(path).replace(" ", "\\ ") for path in [*folders, *files])
    depfile.write_text(f"{out}: {inputs}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
