"""Builds a munimentd with a planted bug: applies a patch of planted/ to a copy of the source tree.

A planted bug is a defect that was once found, or that the harness must find. Its patch begins with a sentence that
describes the bug. ccache contains all of the program except for the files that the patch changes.
"""
from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
from typing import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATCHES = pathlib.Path(__file__).parent / "planted"
OPTIONS = ("-Dfailpoints=true", "-Doptimization=1")


def patch_of(bug: str) -> pathlib.Path:
    return PATCHES / f"{bug}.patch"


def must(command: list[str], folder: pathlib.Path, **env: str) -> None:
    """Runs a command. Errors: RuntimeError with the end of its output."""
    clean = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX")}   # which hide ccache from meson
    done = subprocess.run(command, cwd=folder, env={**clean, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout[-3000:]}")


@contextlib.contextmanager
def planted_build(bug: str) -> Iterator[pathlib.Path]:
    """Yields the build folder, which exists during the context."""
    with tempfile.TemporaryDirectory(prefix="muniment-planted-") as folder:
        source = pathlib.Path(folder) / "source"
        shutil.copytree(ROOT, source, symlinks=True, ignore=lambda where, names: {name for name in names if where == str(ROOT) and name.startswith(("build", ".git"))})
        must(["git", "apply", str(patch_of(bug))], source)
        ccache = {"CCACHE_BASEDIR": str(source), "CCACHE_NOHASHDIR": "1"}
        must(["meson", "setup", "build", *OPTIONS], source, CXX_LD="mold", **ccache)
        must(["ninja", "-C", "build", "munimentd"], source, **ccache)
        yield source / "build"
