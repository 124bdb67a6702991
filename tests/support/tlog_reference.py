"""Builds and runs tests/support/tlog_reference, which reads published files with Go's transparency log library."""
from __future__ import annotations

import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent / "tlog_reference" / "main.go"
GOPATH = "/usr/share/gocode"   # the path of Debian's golang-golang-x-mod-dev


@functools.lru_cache(maxsize=1)
def binary() -> str:
    folder = tempfile.mkdtemp(prefix="muniment-tlog-reference-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    env = {**os.environ, "GO111MODULE": "off", "GOPATH": GOPATH, "GOFLAGS": "", "GOCACHE": os.path.join(folder, "cache"), "CGO_ENABLED": "0"}
    subprocess.run(["go", "build", "-o", os.path.join(folder, "tlog_reference"), str(SOURCE)], env=env, cwd=folder, check=True, timeout=600)
    return os.path.join(folder, "tlog_reference")


def reference(*arguments: object) -> str:
    """Returns the program's output. AssertionError: it rejected the input."""
    done = subprocess.run([binary(), *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise AssertionError(f"tlog_reference {arguments[0]}: {done.stderr}")
    return done.stdout
