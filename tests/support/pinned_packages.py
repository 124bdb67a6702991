"""Installs packages of PyPI that a test compares Muniment with; tests/NAME/requirements.txt pins them by hash.

pip installs them once into the folder that the MCP clients share (mcp_packages.py); later uses need no network.
"""
from __future__ import annotations

import pathlib
import sys
import unittest

import mcp_packages

TESTS = pathlib.Path(__file__).resolve().parents[1]


def installed(name: str) -> pathlib.Path:
    """Returns a folder for PYTHONPATH. Skips the test if it is missing; in CI, fails."""
    folder = f"{name}-python{sys.version_info[0]}.{sys.version_info[1]}"
    try:
        return mcp_packages.installed_once(folder, [TESTS / name / "requirements.txt"], mcp_packages.pip_command) / "python"
    except mcp_packages.Unavailable as error:
        if mcp_packages.required():
            raise
        raise unittest.SkipTest(f"the packages of tests/{name} could not be fetched: {error}") from None


def imported(name: str) -> pathlib.Path:
    """Makes the packages and the programs of tests/NAME importable."""
    packages = installed(name)
    for folder in (TESTS / name, packages):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    return packages
