"""LangGraph and the conformance suite of its checkpointers, as tests/langgraph/requirements.txt pins them by hash.

pip installs them once into the folder that the MCP clients share (mcp_packages.py); later uses need no network.
"""
from __future__ import annotations

import pathlib
import sys
import unittest

import mcp_packages

PINNED = pathlib.Path(__file__).resolve().parents[1] / "langgraph"


def installed() -> pathlib.Path:
    """A folder for PYTHONPATH. Errors: mcp_packages.Unavailable."""
    name = f"langgraph-python{sys.version_info[0]}.{sys.version_info[1]}"
    return mcp_packages.installed_once(name, [PINNED / "requirements.txt"], mcp_packages.pip_command) / "python"


def imported() -> pathlib.Path:
    """The same, now importable here, with the programs of tests/langgraph. Where it is missing, the test is skipped; in CI it fails."""
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
