"""Makes a database cluster with initdb as munimentd does (src/store/postgres/postgres_cluster.cpp). scripts/test makes one, and the
daemons of functional tests start with copies of it: initdb takes half of the processor time of a first start.
"""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

PROGRAMS = pathlib.Path("/usr/lib/postgresql")
OPTIONS = ["-U", "muniment", "-E", "UTF8", "--no-locale", "--data-checksums", "--auth-local=trust", "--auth-host=reject", "--no-instructions"]


def make_cluster(folder: pathlib.Path) -> None:
    """Makes the cluster in `folder`, which belongs to the user postgres if this process is root's. Other users can enter its parent."""
    newest = max(PROGRAMS.iterdir(), key=lambda path: int(path.name))
    folder.mkdir(0o700)
    user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
    if user:
        shutil.chown(folder, "postgres", "postgres")
    subprocess.run([newest / "bin" / "initdb", "-D", folder, *OPTIONS], check=True, capture_output=True, cwd="/", **user)
    with (folder / "postgresql.conf").open("a") as settings:
        settings.write("\ninclude_if_exists = 'muniment.conf'\n")
