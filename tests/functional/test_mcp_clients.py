"""Tests of public MCP clients, pinned in tests/mcp, with the daemon: over stdio through `muniment mcp`, and over HTTP."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Optional

from support import BUILD, Daemon, ROOT, main

import mcp_packages

PROGRAMS = ROOT / "tests" / "mcp"
CLIENT_S_MAX = 240
OLD, NEW = "2025-11-25", "2026-07-28"
TEXT = "The lighthouse at Skerryvore was lit in 1844. Its lamp burned sperm oil behind eight lenses."
DEFAULT_TOOLS = {"remember", "recall", "forget", "memories", "history", "retrieve_evidence", "render_with_pointers", "resolve_pointer", "run_start",
                 "run_end", "record_event", "record_claim", "rehydrate", "feedback", "status"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def report_of(command: list[str], env: dict[str, str], folder: pathlib.Path) -> Any:
    """Returns the last line of a client program. Its other output explains a failure."""
    done = subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=CLIENT_S_MAX, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)[:500]} exited with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-8000:]}")
    return json.loads(done.stdout.splitlines()[-1])


class ClientCase(unittest.TestCase):
    """One daemon with an HTTP port for the file, and a folder in which Node finds the packages."""

    daemon: Daemon
    packages: mcp_packages.Packages
    folder: pathlib.Path
    url: str

    @classmethod
    def setUpClass(cls) -> None:
        if not hasattr(ClientCase, "packages"):
            try:
                ClientCase.packages = mcp_packages.installed()
            except mcp_packages.Unavailable as error:
                if mcp_packages.required():
                    raise
                raise unittest.SkipTest(f"the clients could not be fetched: {error}") from None
            cls.prepare_folder()
            cls.start_daemon()

    @classmethod
    def prepare_folder(cls) -> None:
        ClientCase.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-clients-"))
        unittest.addModuleCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        for program in PROGRAMS.glob("*.mjs"):
            shutil.copy(program, cls.folder)
        (cls.folder / "node_modules").symlink_to(cls.packages.modules)

    @classmethod
    def start_daemon(cls) -> None:
        port = free_port()
        ClientCase.url = f"http://127.0.0.1:{port}/mcp"
        ClientCase.daemon = Daemon(config=f'http_listen = "127.0.0.1:{port}"\n')
        unittest.addModuleCleanup(cls.daemon.destroy)
        cls.daemon.start()

    def setUp(self) -> None:
        self.client = self.daemon.client()
        self.addCleanup(self.client.close)

    def env(self, **more: str) -> dict[str, str]:
        """Returns an environment without the settings of the machine's user."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "NO_COLOR": "1", **more}

    def mcp_command(self, *more: str) -> list[str]:
        return [str(BUILD / "muniment"), "--data", str(self.daemon.data), "--no-autostart", "mcp", *more]

    def stdio(self, *more: str) -> dict[str, Any]:
        command, *arguments = self.mcp_command(*more)
        return {"command": command, "args": arguments, "env": self.env()}

    def http(self) -> dict[str, Any]:
        return {"url": self.url, "token": self.token()}

    def token(self) -> str:
        return (self.daemon.data / "keys" / "http.token").read_text().strip()

    def node(self, program: str, settings: dict[str, Any]) -> Any:
        return report_of([str(self.packages.node), str(self.folder / program), json.dumps(settings)], self.env(), self.folder)

    def python(self, program: str, settings: dict[str, Any]) -> Any:
        return report_of([sys.executable, str(PROGRAMS / program), json.dumps(settings)], self.env(PYTHONPATH=str(self.packages.python)), self.folder)

    def events(self, run: str) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = self.client.call("event.list", run_id=run)["events"]
        return events


class Steps(ClientCase):
    """Each library performs the same steps (tests/mcp/steps.mjs, python_client.py); its report equals the daemon's data."""

    def settings(self, library: str, era: str, transport: dict[str, Any]) -> dict[str, Any]:
        name = f"{library}-{era}-{'http' if 'url' in transport else 'stdio'}"
        return {"library": name, "era": era, "run": f"by-{name}", "corpus": f"notes-{name}", "text": TEXT, **transport}

    def check(self, report: dict[str, Any], settings: dict[str, Any], revision: str) -> None:
        self.assertEqual(report["server"]["name"], "muniment")
        self.assertEqual(report["revision"], revision)
        self.check_offer(report)
        self.check_evidence(report, settings)
        self.check_run(report, settings)

    def check_offer(self, report: dict[str, Any]) -> None:
        self.assertLessEqual(DEFAULT_TOOLS, {tool["name"] for tool in report["tools"]})
        for tool in report["tools"]:
            self.assertEqual(tool["inputSchema"]["type"], "object", tool["name"])
            self.assertTrue(tool["description"], tool["name"])
        self.assertIn("log://validation", report["resources"])
        self.assertTrue(report["prompts"])

    def check_evidence(self, report: dict[str, Any], settings: dict[str, Any]) -> None:
        (document,) = report["remembered"]["structuredContent"]["documents"]
        self.assertFalse(document.get("unchanged", False))
        self.assertIn("Stored", report["remembered"]["content"][0]["text"])
        (listed,) = self.client.call("document.list", corpus=settings["corpus"])["documents"]
        self.assertEqual((listed["document"], listed["source"]), ("lighthouse", settings["library"]))
        card = report["found"]["results"][0]["cards"][0]
        self.assertTrue(card["id"].startswith(f"ev://{settings['corpus']}/lighthouse"), card["id"])
        self.assertEqual(report["cited"]["content"], "The lamp was lit. [1]")
        (citation,) = report["cited"]["citations"]
        self.assertEqual(citation["pointer"], card["id"])
        self.assertEqual((report["passage"]["uri"], report["passage"]["text"]), (card["id"], TEXT))
        self.assertTrue(report["refused"], "a draft that is a number was accepted")

    def check_run(self, report: dict[str, Any], settings: dict[str, Any]) -> None:
        run = settings["run"]
        self.assertEqual(report["started"]["run_id"], run)
        stored = self.events(run)
        types = [event["type"] for event in stored]
        self.assertEqual((types[0], types.count("run.ended")), ("run.started", 1))
        (noted,) = [event for event in stored if event["type"] == "x.client.noted"]
        self.assertEqual((noted["body"], noted["seq"]), ({"by": settings["library"]}, report["recorded"]["seq"]))
        self.assertEqual(report["updated"], f"log://runs/{run}/events")
        lines = [json.loads(line) for line in report["events"]["text"].splitlines()]
        self.assertIn("x.client.noted", [line["type"] for line in lines])

    def take(self, program: str, library: str, era: str, transport: dict[str, Any], revision: str) -> None:
        settings = self.settings(library, era, transport)
        report = self.python(program, settings) if program.endswith(".py") else self.node(program, settings)
        self.check(report, settings, revision)

    def test_the_first_typescript_library_over_stdio(self) -> None:
        self.take("sdk_client.mjs", "sdk", "legacy", self.stdio(), OLD)

    def test_the_first_typescript_library_over_http(self) -> None:
        self.take("sdk_client.mjs", "sdk", "legacy", self.http(), OLD)

    def test_the_second_typescript_library_over_stdio(self) -> None:
        self.take("modern_client.mjs", "client", "auto", self.stdio(), NEW)

    def test_the_second_typescript_library_over_http(self) -> None:
        self.take("modern_client.mjs", "client", "auto", self.http(), NEW)

    def test_the_second_typescript_library_in_the_older_revision(self) -> None:
        self.take("modern_client.mjs", "client", "legacy", self.http(), OLD)

    def test_the_python_library_over_stdio(self) -> None:
        self.take("python_client.py", "python", "auto", self.stdio(), NEW)

    def test_the_python_library_over_http(self) -> None:
        self.take("python_client.py", "python", "auto", self.http(), NEW)

    def test_the_python_library_in_the_older_revision(self) -> None:
        self.take("python_client.py", "python", "legacy", self.stdio(), OLD)


class Memory(ClientCase):
    """An agent with the official Python library remembers, corrects, recalls, lists and forgets with plain strings."""

    def test_plain_strings(self) -> None:
        report = self.python("python_memory.py", self.stdio())
        said: dict[str, str] = report["said"]
        self.assertIn("Stored: ev://memory/home#p0", said["remembered"])
        self.assertIn("It replaces ev://memory/home#p0", said["corrected"])
        self.assertIn("The same is known already as ev://memory/home#p0", said["repeated"])
        self.assertRegex(said["recalled"], r'"subject":"home","date":"\d{4}-\d\d-\d\d","source":"run://chat-2","replaces":"the text of [^"]*","text":"Kim lives in Porto\."')
        self.assertNotIn("Lisbon", said["recalled"])
        self.assertIn("home: Kim lives in Porto.", said["listed"])
        self.assertIn("Kim lives in Lisbon.", said["told"])
        self.assertIn("Forgotten: memory/home", said["forgotten"])
        self.assertNotIn("Porto", said["after"])
        self.assertIn("Erased: memory/food", said["erased"])
        self.assertEqual(said["nothing"], "Nothing is recalled: nothing stored is about it.")


class Inspector(ClientCase):
    """The command line of @modelcontextprotocol/inspector: one process, and one session, for each method."""

    def inspect(self, transport: dict[str, Any], *arguments: str, era: str = "legacy") -> Any:
        program = self.packages.module("@modelcontextprotocol/inspector", "clients", "cli", "build", "index.js")
        catalogue = self.folder / "inspector.json"   # a file of servers: as arguments, their options would be taken for the inspector's
        server = {"type": "streamable-http", "url": transport["url"], "headers": {"Authorization": f"Bearer {transport['token']}"}} \
            if "url" in transport else {"type": "stdio", "command": transport["command"], "args": transport["args"], "env": transport["env"]}
        catalogue.write_text(json.dumps({"mcpServers": {"muniment": {**server, "protocolEra": era}}}))
        return report_of([str(self.packages.node), str(program), "--config", str(catalogue), "--server", "muniment", "--format", "json", "--quiet",
                          *arguments], self.env(), self.folder)["result"]

    def call(self, transport: dict[str, Any], tool: str, arguments: dict[str, Any], era: str) -> Any:
        return self.inspect(transport, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments), era=era)

    def remember(self, transport: dict[str, Any], corpus: str, era: str) -> None:
        listed = self.inspect(transport, "--method", "tools/list", "--strict", era=era)   # fails if a host may refuse a schema
        self.assertIn("remember", [tool["name"] for tool in listed["tools"]])
        self.call(transport, "remember", {"corpus": corpus, "id": "lighthouse", "text": TEXT, "source": "inspector"}, era)
        (stored,) = self.client.call("document.list", corpus=corpus)["documents"]
        self.assertEqual(stored["source"], "inspector")

    def read(self, transport: dict[str, Any], uri: str, era: str) -> str:
        (content,) = self.inspect(transport, "--method", "resources/read", "--uri", uri, era=era)["contents"]
        self.assertEqual(content["uri"], uri)
        return str(content["text"])

    def test_over_stdio(self) -> None:
        transport, name, era = self.stdio(), "inspector-stdio", "legacy"
        self.remember(transport, name, era)
        found = self.call(transport, "retrieve_evidence", {"queries": [{"query": "lighthouse lamp", "corpus": name}]}, era)
        pointer = found["structuredContent"]["results"][0]["cards"][0]["id"]
        cited = self.call(transport, "render_with_pointers", {"draft": f"Lit. [ref:{pointer}]"}, era)
        self.assertEqual(cited["structuredContent"]["content"], "Lit. [1]")
        self.call(transport, "run_start", {"run_id": name, "agent": {"name": "inspector"}}, era)
        self.call(transport, "record_event", {"run_id": name, "type": "x.client.noted", "body": {"by": "inspector"}}, era)
        self.assertEqual([event["type"] for event in self.events(name)], ["run.started", "x.client.noted"])
        self.assertEqual(self.read(transport, pointer, era), TEXT)
        self.assertIn("x.client.noted", self.read(transport, f"log://runs/{name}/events", era))

    def test_over_http(self) -> None:
        transport, era = self.http(), "modern"
        self.remember(transport, "inspector-http", era)
        self.assertIn("muniment", self.read(transport, "log://metrics", era))


class Recorded(ClientCase):
    """`muniment mcp --record` in front of a public server."""

    def test_calls_of_the_memory_server(self) -> None:
        server = [str(self.packages.node), str(self.packages.module("@modelcontextprotocol/server-memory", "dist", "index.js"))]
        transport = self.stdio("--record", "memory", "--required", "--label", "test=memory", "--", *server)
        transport["env"] = self.env(MEMORY_FILE_PATH=str(self.folder / "memory.jsonl"))
        report = self.node("memory_client.mjs", transport)
        self.assertIn("create_entities", report["tools"])
        self.assertEqual([entity["name"] for entity in report["graph"]["entities"]], ["Stevenson"])
        run = self.run_with_label("test", "memory")
        self.assertIsNotNone(run, "no run of the recorded server")
        calls = [(event["type"], event["body"].get("name")) for event in self.events(str(run)) if event["type"].startswith("tool.")]
        self.assertEqual([kind for kind, _ in calls], ["tool.called", "tool.returned"] * 2)
        self.assertEqual([name for kind, name in calls if kind == "tool.called"], ["create_entities", "read_graph"])

    def run_with_label(self, name: str, value: str) -> Optional[str]:
        for run in self.client.call("run.list")["runs"]:
            if self.events(run["run_id"])[0]["body"].get("labels", {}).get(name) == value:
                return str(run["run_id"])
        return None


if __name__ == "__main__":
    main()
