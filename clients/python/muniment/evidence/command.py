"""Runs a command of the program `muniment` and returns its JSON."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from collections.abc import Sequence
from typing import Optional

from ..client import Json
from ..errors import MunimentError
from ..place import Path
from .errors import EvidenceError


def command_reply(command: Sequence[str], *, data: Optional[Path] = None, program: str = "muniment",
                  folder: Optional[Path] = None) -> Json:
    """Returns the object that the command prints, whatever its exit code. `data`: data folder or socket. `folder`: working folder
    (default: the current one). Raises EvidenceError if `muniment` is not installed, and MunimentError with the daemon's code if the
    command failed."""
    found = shutil.which(program)
    if found is None:
        raise EvidenceError(f"no program {program} in PATH. Install Muniment, or add its folder to PATH")
    words = [found, "--json"]
    if data is not None:
        words += ["--socket" if pathlib.Path(data).is_socket() else "--data", os.fspath(data)]
    done = subprocess.run([*words, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder)
    try:
        reply: Json = json.loads(done.stdout)
    except ValueError:
        raise EvidenceError(f"muniment {' '.join(command[:1])}: {done.stderr.strip() or f'exit {done.returncode}'}") from None
    if not isinstance(reply, dict):
        raise EvidenceError(f"muniment {' '.join(command[:1])}: expected a JSON object, got {done.stdout.strip():.100}")
    if "error" in reply:
        raise MunimentError(reply["error"].get("message", ""), reply["error"].get("code", "system_error"))
    return reply
