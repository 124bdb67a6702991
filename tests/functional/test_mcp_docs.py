"""Tests of docs/mcp.md and the MCP part of README.md: each configuration block starts a server that answers, and the
tables equal its answers.

MUNIMENT_ACCEPT=1 writes the actual tables into docs/mcp.md.
"""
from __future__ import annotations

import json
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import tomllib
import unittest
import urllib.request
from typing import Any, Iterator, NamedTuple, Optional

from support import BUILD, ROOT, Daemon, main

import mcp_packages
from mcp_host import INITIALIZE, Host, notification, request

DOCUMENT = ROOT / "docs" / "mcp.md"
README = ROOT / "README.md"
AGENT = ROOT / "scripts" / "examples" / "mcp_agent.py"
STUB = [sys.executable, str(ROOT / "tests" / "support" / "mcp_server.py")]
PUBLIC_SERVER = ["npx", "-y", "@modelcontextprotocol/server-memory"]
TOOLSETS = ("runs", "ledger", "tasks", "documents")
AGENT_S_MAX = 240


class Server(NamedTuple):
    """A server as a configuration describes it."""

    where: str
    name: str
    command: list[str]                     # empty for HTTP
    env: dict[str, str] = {}
    url: str = ""
    headers: Optional[dict[str, str]] = None


def blocks(path: pathlib.Path, *languages: str) -> Iterator[tuple[str, str, str]]:
    """Yields the position, the language and the text of each fenced block in these languages."""
    text = path.read_text()
    for match in re.finditer(r"^```(\w+)\n(.*?)^```$", text, flags=re.M | re.S):
        if match[1] in languages:
            yield f"{path.name}:{text[:match.start()].count(chr(10)) + 1}", match[1], match[2]


def from_table(where: str, name: str, table: dict[str, Any]) -> Server:
    headers = table.get("headers")
    if "bearer_token_env_var" in table:
        headers = {"Authorization": f"Bearer ${{{table['bearer_token_env_var']}}}"}
    command = [table["command"], *table["args"]] if "command" in table else []
    return Server(where, name, command, table.get("env", {}), table.get("url", ""), headers)


def from_shell(where: str, line: str) -> Optional[Server]:
    words = shlex.split(line)
    if words[:3] != ["claude", "mcp", "add"]:
        return None
    if "--" in words:
        return Server(where, words[3], words[words.index("--") + 1:])
    name, value = words[words.index("--header") + 1].split(": ")
    return Server(where, words[5], [], {}, words[6], {name: value})


def servers(path: pathlib.Path) -> list[Server]:
    found: list[Server] = []
    for where, language, text in blocks(path, "json", "toml", "console"):
        if language == "console":
            found += [server for line in text.splitlines() if line.startswith("$ ") and (server := from_shell(where, line[2:]))]
            continue
        block = json.loads(text) if language == "json" else tomllib.loads(text)
        for key in ("mcpServers", "servers", "mcp_servers"):
            found += [from_table(where, name, table) for name, table in block.get(key, {}).items()]
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def settings() -> str:
    """Returns the block of docs/mcp.md that configures the daemon."""
    (found,) = [text for _, _, text in blocks(DOCUMENT, "toml") if "http_listen" in tomllib.loads(text)]
    return found


def documented_address() -> str:
    return str(tomllib.loads(settings())["http_listen"])


class DocumentCase(unittest.TestCase):
    """One daemon with the document's HTTP settings, on a port of its own."""

    daemon: Daemon
    address: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.address = f"127.0.0.1:{free_port()}"
        cls.daemon = Daemon(config=settings().replace(documented_address(), cls.address))
        cls.addClassCleanup(cls.daemon.destroy)
        cls.daemon.start()

    def host(self, command: list[str], env: Optional[dict[str, str]] = None) -> Host:
        """Runs the command with the program under test as `muniment` and the daemon's data folder."""
        self.assertEqual(command[0], "muniment")
        host = Host([str(BUILD / "muniment"), *command[1:]], str(self.daemon.folder), **{**(env or {}), "MUNIMENT_DATA": str(self.daemon.data)})
        self.addCleanup(host.destroy)
        return host

    def asked(self, method: str, *options: str, **params: Any) -> dict[str, Any]:
        host = self.host(["muniment", "mcp", "--no-run", *options])
        host.initialize()
        result: dict[str, Any] = host.ask(method, 1, **params)["result"]
        host.end()
        return result


class Configurations(DocumentCase):
    def test_every_server_that_is_started_answers(self) -> None:
        started = [server for path in (DOCUMENT, README) for server in servers(path) if server.command]
        self.assertGreaterEqual(len(started), 11)
        for server in started:
            with self.subTest(where=server.where, name=server.name):
                recorded = "--record" in server.command
                command, names = server.command, {"retrieve_evidence", "status"}
                if recorded:
                    command, names = self.with_public_server(command)
                host = self.host(command, server.env)
                self.assertEqual(host.initialize()["result"]["protocolVersion"], "2025-11-25")
                self.assertLessEqual(names, {tool["name"] for tool in host.ask("tools/list", 1)["result"]["tools"]})
                self.assertEqual(host.end(), 0, host.errors())

    def with_public_server(self, command: list[str]) -> tuple[list[str], set[str]]:
        """Replaces npx by the pinned package, or by a server of the tests if the packages are not available."""
        at = command.index("--") + 1
        self.assertEqual(command[at:], PUBLIC_SERVER)
        try:
            packages = mcp_packages.installed()
        except mcp_packages.Unavailable:
            if mcp_packages.required():
                raise
            return [*command[:at], *STUB], {"echo"}
        return [*command[:at], str(packages.node), str(packages.module("@modelcontextprotocol/server-memory", "dist", "index.js"))], {"read_graph"}

    def test_every_server_over_http_answers(self) -> None:
        over_http = [server for server in servers(DOCUMENT) if server.url]
        self.assertGreaterEqual(len(over_http), 4)
        token = (self.daemon.data / "keys" / "http.token").read_text().strip()
        for server in over_http:
            with self.subTest(where=server.where):
                self.assertEqual(server.url, f"http://{documented_address()}/mcp")
                scheme, placeholder = (server.headers or {})["Authorization"].split(" ", 1)
                self.assertRegex(placeholder, r"^(\$\{[\w:-]+\}|\$\(cat .*/keys/http\.token\))$")
                headers = {"Authorization": f"{scheme} {token}", "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
                session, _ = self.post(headers, request("initialize", 0, **INITIALIZE))
                headers["Mcp-Session-Id"] = session
                self.post(headers, notification("notifications/initialized"))
                _, answer = self.post(headers, request("tools/list", 1))
                self.assertIn("retrieve_evidence", [tool["name"] for tool in answer["result"]["tools"]])

    def post(self, headers: dict[str, str], message: dict[str, Any]) -> tuple[str, Any]:
        """Posts a message. Returns the session's id and the answer."""
        asked = urllib.request.Request(f"http://{self.address}/mcp", json.dumps(message).encode(), headers)
        with urllib.request.urlopen(asked, timeout=60) as reply:
            body = reply.read().decode()
            return reply.headers["Mcp-Session-Id"] or "", json.loads(body) if body else None

    def test_a_host_without_a_daemon_starts_one(self) -> None:
        server = next(server for server in servers(README) if server.command)
        data = self.daemon.folder / "fresh"
        host = Host([str(BUILD / "muniment"), *server.command[1:]], str(self.daemon.folder), **{**server.env, "MUNIMENT_DATA": str(data)})
        self.addCleanup(subprocess.run, [BUILD / "muniment", "--data", data, "down"], stdin=subprocess.DEVNULL, capture_output=True)
        self.addCleanup(host.destroy)
        self.assertEqual(host.initialize()["result"]["serverInfo"]["name"], "muniment")
        self.assertEqual(len(host.ask("tools/list", 1)["result"]["tools"]), 15)
        self.assertEqual(host.end(), 0)


class Tables(DocumentCase):
    """Each table has one row for each item that the daemon lists, in the same order and with the same words."""

    def check(self, head: str, rows: list[list[str]]) -> None:
        text = DOCUMENT.read_text()
        match = re.search(rf"^{re.escape(head)}\n\|(?:---\|)+\n((?:\|.*\n)*)", text, flags=re.M)
        assert match is not None, f"docs/mcp.md has no table {head}"
        seen = "".join("| " + " | ".join(cell.replace("|", "\\|").replace("<", "\\<") for cell in row) + " |\n" for row in rows)
        if os.environ.get("MUNIMENT_ACCEPT") == "1":
            DOCUMENT.write_text(text[:match.start(1)] + seen + text[match.end(1):])
        else:
            self.assertEqual(match[1], seen)

    def test_tools(self) -> None:
        default = self.asked("tools/list")["tools"]
        sets: dict[str, str] = {}
        tools: list[dict[str, Any]] = list(default)
        config = self.daemon.folder / "muniment.toml"
        before = config.read_text()
        self.addCleanup(self.restart_with, before)
        for name in TOOLSETS:
            self.restart_with(f'{before}mcp_toolsets = ["{name}"]\n')
            offered = self.asked("tools/list")["tools"]
            self.assertEqual(offered[:len(default)], default)
            sets.update({tool["name"]: name for tool in offered[len(default):]})
            tools += offered[len(default):]
        self.assertEqual(len(default), 15)
        self.check("| tool | toolset | description |",
                   [[f"`{tool['name']}`", f"`{sets[tool['name']]}`" if tool["name"] in sets else "", tool["description"]] for tool in tools])

    def restart_with(self, config: str) -> None:
        self.daemon.stop()
        (self.daemon.folder / "muniment.toml").write_text(config)
        self.daemon.start()

    def test_resources(self) -> None:
        rows = [[f"`{one['uri']}`", one["description"]] for one in self.asked("resources/list")["resources"] if one["uri"].startswith("log://")]
        rows += [[f"`{one['uriTemplate']}`", one["description"]] for one in self.asked("resources/templates/list")["resourceTemplates"]]
        self.check("| resource | contents |", rows)

    def test_prompts(self) -> None:
        rows = [[f"`{one['name']}`", ", ".join(f"`{argument['name']}`" for argument in one["arguments"]), one["description"]]
                for one in self.asked("prompts/list", "--toolset", "tasks")["prompts"]]
        self.check("| prompt | arguments | description |", rows)


class Links(unittest.TestCase):
    def test_every_link_of_the_documents_resolves(self) -> None:
        for path in (DOCUMENT, README, ROOT / "docs" / "architecture.md", ROOT / "docs" / "operations.md"):
            for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
                if target.startswith("http"):
                    continue
                file, _, anchor = target.partition("#")
                named = (path.parent / file).resolve() if file else path
                with self.subTest(path=path.name, target=target):
                    self.assertTrue(named.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(named))


def anchors(path: pathlib.Path) -> set[str]:
    """Returns the anchors that GitHub generates from headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Agent(unittest.TestCase):
    """The scripted agent of README.md prints the output that README.md shows."""

    CHANGING = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{16}\b|\d\d:\d\d:\d\dZ|\d+\.\d+s|\d+\.\d+ m?s|\bseq \d+|/tmp/\w+|\d{4}-\d\d-\d\dT[\d:.]+Z")

    def test_its_output_is_what_the_readme_shows(self) -> None:
        shown = self.shown()
        try:
            packages = mcp_packages.installed()
        except mcp_packages.Unavailable as error:
            if mcp_packages.required():
                raise
            self.skipTest(f"the package mcp could not be fetched: {error}")
        daemon = Daemon()
        self.addCleanup(daemon.destroy)
        daemon.start()
        env = {"PATH": f"{BUILD}:{os.environ['PATH']}", "HOME": str(daemon.folder), "MUNIMENT_DATA": str(daemon.data), "PYTHONPATH": str(packages.python)}
        done = subprocess.run([sys.executable, str(AGENT)], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=AGENT_S_MAX, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = [line for line in done.stdout.splitlines() if line]
        for line in shown:   # in this order; README.md omits some lines, and ends a shortened line with an ellipsis
            pattern = self.pattern(line)
            while seen and not re.fullmatch(pattern, seen[0]):
                seen.pop(0)
            self.assertTrue(seen, f"not seen, or not in this order: {line}\n{done.stdout}")
            seen.pop(0)

    def shown(self) -> list[str]:
        (block,) = [text for _, _, text in blocks(README, "text") if "mcp_agent.py" in text]
        return [line for line in block.splitlines()[1:] if line]

    def pattern(self, line: str) -> str:
        parts = [part for part in self.CHANGING.split(line) if part is None or not re.fullmatch(r"-[0-9a-f]{4}", part)]
        text = ".*?".join(re.escape(part) for part in parts if part is not None)
        return text.removesuffix("…") + ".*" if line.endswith("…") else text


if __name__ == "__main__":
    main()
