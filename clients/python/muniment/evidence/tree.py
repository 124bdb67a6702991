"""Computes the digest of a working tree like `muniment exec` and `muniment task` (src/cli/exec/tree_digest.cpp)."""
from __future__ import annotations

import hashlib
import os
import pathlib
import re
import stat
import subprocess
from typing import Optional

from ..place import Path

PIECE_BYTES = 1 << 18
ROOT_DIGITS = 16   # of the hash of the tree's path
GIT_PATIENCE_S = 20.0   # a FIFO among its settings blocks git
EVIDENCE_FILE = re.compile(rb"(?:^|/)\.beads/evidence/[^/]*\.json\Z")


def working_tree(folder: Path) -> dict[str, str]:
    """Returns the parameters `folder` and `tree_digest` of a request about a task. The daemon computes the digest itself if it can."""
    digest = tree_digest(folder)
    return {"folder": os.path.abspath(folder), **({} if digest is None else {"tree_digest": digest})}


def tree_digest(folder: Path) -> Optional[str]:
    """Returns "git:<commit> v3 root:<path> sha256:<digest>" over mode, SHA-256 and name of every file that git tracks or would add, sorted by
    name, without .beads/evidence/*.json; None outside a git tree or without git. An unreadable file counts as absent."""
    found = _git(folder, "rev-parse", "--show-toplevel")
    if found is None:
        return None
    top = os.fsdecode(found.rstrip(b"\n"))
    commit = _git(folder, "rev-parse", "--verify", "-q", "HEAD")
    listed = _git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed is None:
        return None
    digest = hashlib.sha256()
    for name in sorted(set(listed.split(b"\0")) - {b""}):
        if EVIDENCE_FILE.search(name):
            continue
        if (line := _line_of(os.fsencode(top), name)) is not None:
            digest.update(line + b"\0")
    root = hashlib.sha256(os.fsencode(top)).hexdigest()[:ROOT_DIGITS]
    return f"git:{commit.decode().strip() if commit else 'none'} v3 root:{root} sha256:{digest.hexdigest()}"


def _line_of(top: bytes, name: bytes) -> Optional[bytes]:
    """Returns None for anything but a file or a symbolic link."""
    path = os.path.join(top, name)
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            mode, content = b"120000", hashlib.sha256(os.readlink(path)).hexdigest()
        elif stat.S_ISREG(status.st_mode):
            mode, content = b"100755" if status.st_mode & stat.S_IXUSR else b"100644", _hash_of(path)
        else:
            return None
    except OSError:
        return None
    return b" ".join((mode, content.encode(), name))


def _hash_of(path: bytes) -> str:
    hashed = hashlib.sha256()
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb", buffering=0) as file:
        while piece := file.read(PIECE_BYTES):
            hashed.update(piece)
    return hashed.hexdigest()


def _git(folder: Path, *words: str) -> Optional[bytes]:
    try:
        done = subprocess.run(["git", "-C", os.fspath(pathlib.Path(folder)), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False, timeout=GIT_PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
