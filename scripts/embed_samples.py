#!/usr/bin/env python3
"""Writes the documents of artifacts/sample/ as one C++ file, so that every binary carries the sample set.

usage: embed_samples.py SAMPLE_DIR OUT.cpp DEPFILE
"""
import pathlib
import sys

HEAD = """// Written by scripts/embed_samples.py from artifacts/sample/; edit the files there instead.
#include "evidence/sample_set.hpp"

namespace muniment::evidence {

std::string_view embedded_sample(std::string_view file) {
"""

TAIL = """  return {};
}

}  // namespace muniment::evidence
"""


def main() -> int:
    root, out, depfile = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    files = sorted(root.glob("*.md"))
    text = HEAD
    for file in files:
        content = file.read_text(encoding="utf-8")
        if ')sample"' in content:
            sys.exit(f"{file}: contains the raw string's end")
        text += f'  if (file == "{file.name}") return R"sample({content})sample";\n'
    out.write_text(text + TAIL, encoding="utf-8")
    inputs = " ".join(str(p).replace(" ", "\\ ") for p in [root, *files])
    pathlib.Path(depfile).write_text(f"{out}: {inputs}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
