"""Makes a database cluster with initdb as munimentd does (src/store/postgres/postgres_cluster.cpp), to which munimentd applies the
migrations. scripts/test makes one, and the daemons of functional tests start with copies of it: initdb and the migrations take most
of the processor time of a first start.
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


def make_migrated_cluster(folder: pathlib.Path, munimentd: pathlib.Path) -> None:
    """Makes the cluster, and starts the daemon, which has failpoints, until it has applied the migrations: no log has begun."""
    data = folder.with_name("first")
    data.mkdir(0o711)
    make_cluster(data / "postgres")
    env = {**os.environ, "MUNIMENT_ENCODER": "none", "MUNIMENT_FAILPOINT": "start.migrated=error@1"}
    done = subprocess.run([munimentd, "--data", data], env=env, capture_output=True, text=True)
    if "stopped after the migrations" not in done.stderr or (data / "postgres" / "postmaster.pid").exists():
        raise RuntimeError(f"munimentd ended with {done.returncode}: {done.stderr}")
    (data / "postgres" / "server.log").unlink()
    (data / "postgres").rename(folder)
    shutil.rmtree(data)
