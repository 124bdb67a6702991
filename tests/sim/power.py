"""Simulates a power cut of the artifact root: removes the data that was not synced (see unsynced.c)."""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess


def build_shim(folder: pathlib.Path) -> pathlib.Path:
    shim = folder / "unsynced.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", shim, pathlib.Path(__file__).with_name("unsynced.c"), "-ldl"], check=True)
    return shim


def cut(journal: pathlib.Path, root: pathlib.Path) -> list[str]:
    """Removes, below `root`, the data that was not durable by the journal; starts a new journal. Returns the removed paths."""
    unsynced_names: dict[str, tuple[int, int]] = {}   # path → (inode of the folder, inode of the file), in the order of creation
    unsynced_data: dict[int, str] = {}
    synced: set[int] = set()
    prefix = f"{root}/"
    for line in journal.read_text().splitlines() if journal.exists() else []:
        act, *rest = line.split(" ", 3)
        if act == "sync":
            inode = int(rest[0])
            synced.add(inode)
            unsynced_data.pop(inode, None)
            # A file system's journal keeps the order: a durable name implies the file's earlier names.
            durable: set[int] = set()
            for path, (folder, file) in reversed(list(unsynced_names.items())):
                if folder == inode or file in durable:
                    durable.add(file)
                    del unsynced_names[path]
        elif rest[2].startswith(prefix):
            folder, inode, path = int(rest[0]), int(rest[1]), rest[2]
            unsynced_names.pop(path, None)
            unsynced_names[path] = (folder, inode)
            if inode not in synced and not os.path.isdir(path):
                unsynced_data[inode] = path
    lost = []
    for path in sorted(unsynced_names, reverse=True):   # deeper paths first
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
        else:
            continue
        lost.append(path[len(prefix):])
    for path in unsynced_data.values():
        if os.path.isfile(path):
            os.truncate(path, 0)
            lost.append(f"{path[len(prefix):]} (its bytes)")
    journal.unlink(missing_ok=True)
    return lost
