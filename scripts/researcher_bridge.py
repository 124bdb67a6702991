#!/usr/bin/env python3
"""Answers one question, like `researcher ask`, from the source tree:

    echo "How is a run recovered?" | python3 scripts/researcher_bridge.py --stdin
    echo "What is recursion?" | python3 scripts/researcher_bridge.py --stdin --cloud-mode always --cloud-cmd "llm {prompt}"
"""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "clients" / "python"))
if (ROOT / "build" / "muniment").exists():
    os.environ.setdefault("MUNIMENT_BIN", str(ROOT / "build"))
from researcher import main  # noqa: E402  (found through the path above)

sys.exit(main(["ask", *sys.argv[1:]]))
