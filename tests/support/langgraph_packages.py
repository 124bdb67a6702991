"""Installs LangGraph and its checkpointers' conformance suite; tests/langgraph/requirements.txt pins them by hash.

pip installs them once into the folder that the MCP clients share (mcp_packages.py); later uses need no network.
"""
from __future__ import annotations

import pathlib
import sys
import unittest

import mcp_packages

PINNED = pathlib.Path(__file__).resolve().parents[1] / "langgraph"


def installed() -> pathlib.Path:
    """Returns a folder for PYTHONPATH. Errors: mcp_packages.Unavailable."""
    name = f"langgraph-python{sys.version_info[0]}.{sys.version_info[1]}"
    return mcp_packages.installed_once(name, [PINNED / "requirements.txt"], mcp_packages.pip_command) / "python"


def imported() -> pathlib.Path:
    """Makes the folder and the programs of tests/langgraph importable. Skips the test if it is missing; in CI, fails."""
    try:
        packages = installed()
    except mcp_packages.Unavailable as error:
        if mcp_packages.required():
            raise
        raise unittest.SkipTest(f"LangGraph could not be fetched: {error}") from None
    for folder in (PINNED, packages):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    return packages
