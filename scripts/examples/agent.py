#!/usr/bin/env python3
"""An agent that records its run: `agent.py RUN [--careful]`. The model's answer is scripted; everything else is real.

Requires a running daemon (muniment up), selected by MUNIMENT_DATA.
"""
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))

import muniment  # noqa: E402  (found through the path above)

SOURCE = "def lines(text):\n    return text.split('\\n')[:-1]\n"


@muniment.tool
def read_file(path: str) -> str:
    return pathlib.Path(path).read_text()


@muniment.tool
def edit(path: str, old: str, new: str) -> int:
    file = pathlib.Path(path)
    file.write_text(file.read_text().replace(old, new))
    return file.stat().st_size


@muniment.tool(kind="command")
def pytest(path: str) -> str:
    names: dict = {}
    exec(pathlib.Path(path).read_text(), names)
    assert names["lines"]("a\nb") == ["a", "b"], "the last line is dropped"
    return "1 passed"


def main(run_id: str, careful: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, \
            muniment.run(agent="coder", goal="make the tests pass", run_id=run_id, cwd=folder) as run:
        os.chdir(folder)
        path = "parser.py"
        pathlib.Path(path).write_text(SOURCE)
        run.message("user", "make the tests pass")
        with run.model("example", "scripted", parameters={"temperature": 0}) as answer:
            answer.returns("The slice drops the last line.", usage={"input_tokens": 120, "output_tokens": 8})
        if careful:
            read_file(path)
        edit(path, "[:-1]" if careful else "'\\n'", "" if careful else "'\\r\\n'")
        run.append("file.changed", {"path": path, "change": "modified"})
        run.patch({"tried": ["without the slice" if careful else "another separator"]})
        pytest(path)


if __name__ == "__main__":
    main(sys.argv[1], "--careful" in sys.argv)
