#!/usr/bin/env python3
"""Starts a daemon, runs append_bench on it, and stops it: one command for the peers' run.py --also.

    with_daemon.py --data DIR -- --clients 8 --secs 6 [--batch 64]

The data folder is kept between runs, so that the log grows during a pass as in use. Prints append_bench's JSON.
"""
import os
import pathlib
import subprocess
import sys

os.environ.setdefault("MUNIMENT_BUILD", str(pathlib.Path(__file__).resolve().parents[2] / "build"))   # the release build
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "functional"))
import support  # noqa: E402


def main() -> int:
    data = pathlib.Path(sys.argv[sys.argv.index("--data") + 1]).absolute()
    arguments = sys.argv[sys.argv.index("--") + 1:]
    daemon = support.Daemon()
    daemon.data = data
    daemon.start()
    try:
        command = [str(support.BUILD / "append_bench"), "--socket", daemon.socket, *arguments]
        return subprocess.run(command, check=False).returncode
    finally:
        daemon.stop()


if __name__ == "__main__":
    sys.exit(main())
