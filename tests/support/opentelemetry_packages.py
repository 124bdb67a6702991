"""Installs OpenTelemetry's SDK, the OpenAI Agents SDK and its instrumentation; tests/opentelemetry/requirements.txt pins them by hash.

pip installs them once into the folder that the MCP clients share (mcp_packages.py); later uses need no network.
"""
from __future__ import annotations

import pathlib
import sys
import unittest

import mcp_packages

PINNED = pathlib.Path(__file__).resolve().parents[1] / "opentelemetry"


def installed() -> pathlib.Path:
    """Returns a folder for PYTHONPATH. Skips the test if it is missing; in CI, fails."""
    name = f"opentelemetry-python{sys.version_info[0]}.{sys.version_info[1]}"
    try:
        return mcp_packages.installed_once(name, [PINNED / "requirements.txt"], mcp_packages.pip_command) / "python"
    except mcp_packages.Unavailable as error:
        if mcp_packages.required():
            raise
        raise unittest.SkipTest(f"OpenTelemetry could not be fetched: {error}") from None
