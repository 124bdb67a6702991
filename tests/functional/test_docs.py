"""Tests that a fresh daemon gives the answers in docs/protocol.md, member for member.

Values that differ each time (ids, hashes, times, numbers) are compared by kind and substituted: a request that
contains an id of an earlier answer is sent with the current one. MUNIMENT_ACCEPT=1 writes the actual exchanges into
the document.
"""
from __future__ import annotations

import json
import os
import re
from typing import Any

from support import ROOT, DaemonCase, main, wait_until

DOCUMENT = ROOT / "docs" / "protocol.md"
FOLLOWERS = {"document", "pointer", "publisher", "report", "run", "search", "snapshot"}
CHANGING = re.compile(r"^((sha256:)?[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+Z|/.*|postgresql://.*"
                      r"|artifact://r1/[0-9a-f-]+|manifest://[0-9a-f-]+|runs/.*|uid:\d+|\d+\.\d+\.\d+|muniment\.local/\S+|muniment-executor-[0-9a-f]+)$")


class Protocol(DaemonCase):
    def setUp(self) -> None:
        self.client = self.daemon.client()
        self.addCleanup(self.client.close)
        self.connection = self.raw()
        self.now: dict[str, str] = {}   # value in the document → current value

    def test_every_exchange(self) -> None:
        lines, out = DOCUMENT.read_text().splitlines(), []
        fenced = False
        raw_bytes = 0
        for number, line in enumerate(lines, 1):
            fenced ^= line.startswith("```")
            if fenced and line.startswith("→ {"):
                request = line[2:]
                for shown, actual in self.now.items():
                    request = request.replace(shown, actual)
                if '"run.list"' in request or '"server.rebuild"' in request:
                    self.followed()
                if '"server.status"' in request:
                    wait_until(lambda: FOLLOWERS <= set(self.call("server.status")["followers"]), "every follower has kept its position")
                    wait_until(lambda: self.call("server.status")["checkpoint"]["signed"], "a signed checkpoint")
                self.connection.send(request.encode() + b"\n")
                line = "→ " + request
                raw_bytes = json.loads(request).get("params", {}).get("body_bytes", 0)
            elif fenced and line.startswith("→ ") and raw_bytes:
                self.connection.send(line[2:].encode()[:raw_bytes])
                raw_bytes = 0
            elif fenced and line.startswith("← {"):
                answer = self.connection.line()
                try:
                    self.compare(json.loads(line[2:]), answer, f"{DOCUMENT.name}:{number}")
                except AssertionError:
                    if os.environ.get("MUNIMENT_ACCEPT") != "1":
                        raise
                line = "← " + json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
                raw_bytes = answer.get("result", {}).get("body_bytes", 0) if isinstance(answer.get("result"), dict) else 0
            elif fenced and line.startswith("← ") and raw_bytes:
                self.assertEqual(line[2:], self.connection.exactly(raw_bytes).decode())
            out.append(line)
        if os.environ.get("MUNIMENT_ACCEPT") == "1":
            DOCUMENT.write_text("\n".join(out) + "\n")

    def compare(self, shown: Any, actual: Any, where: str) -> None:
        if isinstance(shown, dict) and isinstance(actual, dict):
            self.assertEqual(sorted(shown), sorted(actual), where)
            for name, value in shown.items():
                self.compare(value, actual[name], f"{where} {name}")
        elif isinstance(shown, list) and isinstance(actual, list):
            self.assertEqual(len(shown), len(actual), where)
            for one, other in zip(shown, actual):
                self.compare(one, other, where)
        elif isinstance(shown, str) and isinstance(actual, str) and CHANGING.match(shown):
            self.now[shown] = actual
            self.assertRegex(actual, CHANGING, where)
        elif isinstance(shown, (int, float)) and not isinstance(shown, bool):
            self.assertIsInstance(actual, type(shown), where)
        else:
            self.assertEqual(shown, actual, where)

    def test_every_method_is_there(self) -> None:
        text = DOCUMENT.read_text()
        methods = [path.stem for path in (ROOT / "schema" / "rpc").glob("*.json") if path.stem != "common"]
        self.assertTrue(methods)
        self.assertEqual([method for method in methods if f"`{method}" not in text and f'"{method}"' not in text], [])


if __name__ == "__main__":
    main()
