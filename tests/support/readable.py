"""Copies what tests run as other users of the machine, for a checkout in a folder that those users cannot enter.

scripts/test makes one copy; the tests find it by MUNIMENT_BUILD (a build folder) and MUNIMENT_READABLE (the folder that replaces
the root of the checkout).
"""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLIENT = pathlib.Path("clients", "python")


def is_readable(path: pathlib.Path) -> bool:
    """Returns whether all users may enter or execute the path and the folders above it."""
    return all(one.stat().st_mode & 0o001 for one in (path, *path.parents))


def readable_checkout(build: pathlib.Path, folder: pathlib.Path) -> dict[str, str]:
    """Returns the variables of the tests' environment. The copy is in `folder`, which other users can enter.

    It holds the programs and the Python client; everything else is a link.
    """
    programs = [path for path in build.iterdir() if path.is_file() and os.access(path, os.X_OK)]
    if os.geteuid() != 0 or all(is_readable(path) for path in (ROOT / CLIENT / "muniment", *programs)):
        return {"MUNIMENT_BUILD": str(build)}
    copy = folder / "checkout"
    shutil.copytree(ROOT / CLIENT, copy / CLIENT)
    copied = copy / "build"
    copied.mkdir()
    for path in programs:
        shutil.copy(path, copied)
    for origin, place in ((ROOT, copy), (build, copied)):
        for path in origin.iterdir():
            if not (place / path.name).exists():
                (place / path.name).symlink_to(path)
    subprocess.run(["chmod", "-R", "a+rX", copy], check=True)
    return {"MUNIMENT_BUILD": str(copied), "MUNIMENT_READABLE": str(copy)}
