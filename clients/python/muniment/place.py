"""Finds the daemon in the same places as the command line, and starts one.

The socket is MUNIMENT_SOCKET, else the setting `socket` of the configuration file, else munimentd.sock in the data folder. The
data folder is MUNIMENT_DATA, else /var/lib/muniment for root, else $XDG_DATA_HOME/muniment, else ~/.local/share/muniment. The
configuration file is muniment.toml in the data folder. If no place is named and the user has no data folder, it is the system's
/etc/muniment/muniment.toml, if readable. `muniment config print` shows the same places.
"""
from __future__ import annotations

import logging
import os
import shutil
import stat
import subprocess
import tomllib
from typing import Any, NamedTuple, Optional, Union

from .errors import MunimentError, NoDaemon

Path = Union[str, "os.PathLike[str]"]

ROOT_DATA = "/var/lib/muniment"
MACHINE_FILE = "/etc/muniment/muniment.toml"
SOCKET_NAME = "munimentd.sock"
START_S = 150.0   # the command allows the daemon 120 s, since the first start creates the Postgres cluster

log = logging.getLogger("muniment")


class Place(NamedTuple):
    """The socket of a daemon. `data`: the named data folder; `startable`: true if the daemon for it can be started."""

    socket: str
    data: Optional[str] = None
    startable: bool = True


def socket_path(path: Optional[Path] = None) -> str:
    """Returns the socket itself or that of a data folder (default: the socket that the command line uses).
    Raises MunimentError (invalid_argument) for a configuration file that cannot be read as TOML."""
    return place_of(path).socket


def place_of(path: Optional[Path] = None) -> Place:
    """A path that does not exist is a new data folder unless it ends in .sock. Raises MunimentError (invalid_argument)."""
    if path is None:
        return _default_place()
    named = os.path.abspath(os.fspath(path))
    if os.path.isdir(named) or not os.path.exists(named) and not named.endswith(".sock"):
        return Place(_socket_of(_settings(os.path.join(named, "muniment.toml")), named), named)
    return Place(named, startable=False)


def start_daemon(place: Place) -> None:
    """Runs `muniment up`, which starts a daemon and waits until it answers. Raises NoDaemon, with the next step."""
    nothing = f"no daemon at {place.socket}"
    if not place.startable:
        raise NoDaemon(f"{nothing}. Start it: muniment up")
    program = find_program()
    if program is None:
        where = f"MUNIMENT_BIN={os.environ['MUNIMENT_BIN']} is not a program" if os.environ.get("MUNIMENT_BIN") else "muniment is not in PATH"
        raise NoDaemon(f"{nothing}, and none can be started: {where}. Install Muniment (docs/install.md), or set "
                       "MUNIMENT_BIN=/path/to/muniment, or start the daemon: muniment up")
    env = dict(os.environ)
    command = [program, "up"]
    if place.data is not None:
        command += ["--data", place.data]
        env.pop("MUNIMENT_SOCKET", None)   # the named folder has its own socket
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", env=env, timeout=START_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoDaemon(f"{nothing}, and {program} up failed: {error}. See: muniment doctor") from None
    if done.returncode != 0:
        raise NoDaemon(f"{nothing}, and {program} up failed (exit {done.returncode}): {done.stdout.strip()}")
    log.info("started munimentd for %s; stop it with: muniment down", place.data or place.socket)


def find_program() -> Optional[str]:
    """Returns the path of `muniment`, by MUNIMENT_BIN (the program or its folder) or in PATH; None if it is missing."""
    named = os.environ.get("MUNIMENT_BIN")
    if named and os.path.isdir(named):
        named = os.path.join(named, "muniment")
    return shutil.which(named or "muniment")


def _default_place() -> Place:
    named = os.environ.get("MUNIMENT_DATA")
    if named and _is_socket(named):
        return Place(os.path.abspath(named), startable=False)
    data = os.path.abspath(named) if named else _default_data()
    settings = _settings(_file(data))
    if not named and isinstance(settings.get("data"), str):
        data = settings["data"]
    return Place(os.path.abspath(os.environ.get("MUNIMENT_SOCKET") or _socket_of(settings, data)))


def _default_data() -> str:
    if os.geteuid() == 0:
        return ROOT_DATA
    home = os.environ.get("XDG_DATA_HOME", "")
    return os.path.join(home if home.startswith("/") else os.path.expanduser("~/.local/share"), "muniment")


def _file(data: str) -> str:
    """Returns the configuration file to read; "" if there is none."""
    beside = os.path.join(data, "muniment.toml")
    if os.path.exists(beside):
        return beside
    own = data != ROOT_DATA and os.path.exists(data)
    placed = any(os.environ.get(name) for name in ("MUNIMENT_DATA", "MUNIMENT_SOCKET", "MUNIMENT_DATABASE"))
    return MACHINE_FILE if not own and not placed and os.access(MACHINE_FILE, os.R_OK) else ""


def _settings(file: str) -> dict[str, Any]:
    """Returns the settings of a file; empty if it is missing or unreadable."""
    try:
        with open(file, "rb") as opened:
            return tomllib.load(opened)
    except OSError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MunimentError(f"{file} is not TOML: {error}. See: muniment config check", "invalid_argument") from None


def _socket_of(settings: dict[str, Any], data: str) -> str:
    named = settings.get("socket")
    return os.path.abspath(named) if isinstance(named, str) and named else os.path.join(data, SOCKET_NAME)


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False
