"""Gives the tests an empty /tmp in memory, so that their daemons do not wait for the disk: a Postgres that is created, stopped and
removed there takes a fifth of the time. No test cuts the power but power_cut, which scripts/test runs on the disk.
"""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = "MUNIMENT_TESTS_IN_MEMORY"   # set in the program that was started again
BYTES_MIN = 4 << 30


def run_again_in_memory() -> None:
    """Starts this program again in a mount namespace of its own. Returns if it is that program, or on a machine without the
    permission to mount, or with little memory, or if the checkout is in /tmp: the tests then use the disk."""
    found = re.search(r"^MemAvailable: *(\d+) kB", pathlib.Path("/proc/meminfo").read_text(), re.M)
    size = int(found[1]) * 1024 // 2 if found else 0
    if HERE in os.environ or ROOT.is_relative_to("/tmp") or size < BYTES_MIN:
        return
    mount = f"mount -t tmpfs -o mode=1777,size={size} tmpfs /tmp"
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "sh", "-c", mount], capture_output=True).returncode != 0:
        return
    os.environ[HERE] = str(size)
    sys.stdout.flush()
    os.execvp("unshare", ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh", sys.executable, *sys.argv])
