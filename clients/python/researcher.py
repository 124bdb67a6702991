"""The researcher: answers questions from the documents of a Muniment daemon, ingests documents, and reports the daemon's status.

    researcher ingest docs
    echo "How is a run recovered?" | researcher ask --stdin
    researcher status

`python -m researcher` is the same program. Standard input is a question, or a request in JSON:
{"id", "query", "mode": "ask" | "ingest", "context": {"tags", "files"}, "settings": {"k", "cloud_allowed"}}.
docs/retrieval.md ("The researcher") describes the responses, config/local.yaml, logs/local.log and logs/cloud/.
"""
from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
import unicodedata
import uuid
from datetime import datetime, timezone
from typing import Any, NoReturn, Optional

from muniment import Client, Json, MunimentError, NoDaemon, connect
from muniment.place import find_program

CONFIG = pathlib.Path("config", "local.yaml")
CORPUS = "researcher"                  # target of ingest without a setting
RESPONSE = ("id", "answer", "provenance", "confidence", "logs_ref")
REQUEST_BYTES_MAX = 1 << 20
REPLY_BYTES_MAX = 1 << 16              # of a command that asks a cloud service
COMMAND_S_MAX = 120
NOT_CALLS = ("no_bridge", "confident")   # reasons without a call and without a refusal
CONFIG_BYTES_MAX = 1 << 16
EXIT_CODES = {"unavailable": 4, "deadline_exceeded": 4, "run_halted": 2, "corrupt": 2, "system_error": 2, "usage": 3}   # others: 1

# Keys of config/local.yaml that set an option, with their type.
OPTIONS: dict[str, type] = {"corpus": str, "retrieval.k": int, "daemon.data": str, "data.raw": str, "logs.local": str, "logs.cloud": str,
                           "cloud.mode": str}
# Keys that belong to the daemon: its settings in muniment.toml. `researcher status` compares them.
SETTINGS = {"model.url": "answer_url", "model.name": "answer_model", "embeddings.model": "encoder", "embeddings.url": "embed_url",
            "cloud.url": "cloud_url", "cloud.provider": "cloud_provider", "cloud.model": "cloud_model"}

CONFIG_LINE = re.compile(r"( *)([A-Za-z_][\w-]*):(?: +(.*))?")
# A scalar in quotation marks or a plain one, and a comment.
SCALAR = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|-?[\w./~]\S*(?: +[^\s#]\S*)*)?(?:\s*#.*)?""")
HIDDEN = re.compile("[\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")   # reorders or hides text on a terminal


class Config:
    """The values of config/local.yaml by dotted key, such as "retrieval.k"."""

    def __init__(self, values: dict[str, Any], path: Optional[pathlib.Path]):
        self.values, self.path = values, path
        known = {**OPTIONS, **{key: str for key in SETTINGS}}
        for key, value in values.items():
            if value is None and any(name.startswith(key + ".") for name in known):
                continue   # a section without members
            if key not in known:
                raise MunimentError(f"{path}: unknown key {key}. Known keys: {', '.join(known)}", "invalid_argument")
            if value is not None and not isinstance(value, known[key]):
                raise MunimentError(f"{path}: {key} must be {'a number' if known[key] is int else 'a text'}", "invalid_argument")

    def get(self, key: str, fallback: Any = None) -> Any:
        value = self.values.get(key)
        return fallback if value is None else value


def read_config(path: pathlib.Path = CONFIG) -> Config:
    """Reads the file; without one, all values have their defaults. Raises MunimentError (invalid_argument, too_large)."""
    try:
        with open(path, "rb") as file:
            data = file.read(CONFIG_BYTES_MAX + 1)
    except FileNotFoundError:
        return Config({}, None)
    except OSError as error:
        raise MunimentError(f"{path}: {error.strerror}", "invalid_argument") from None
    if len(data) > CONFIG_BYTES_MAX:
        raise MunimentError(f"{path} has more than {CONFIG_BYTES_MAX} bytes", "too_large", {"limit": CONFIG_BYTES_MAX})
    try:
        return Config(parse_yaml(data.decode()), path)
    except ValueError as error:
        raise MunimentError(f"{path}: {error}", "invalid_argument") from None


def parse_yaml(text: str) -> dict[str, Any]:
    """Returns the scalars of a YAML document by dotted key. Supports mappings of mappings and of scalars on one line.
    Raises ValueError, with the line, for any other construct."""
    values: dict[str, Any] = {}
    sections: list[list[Any]] = [[-1, "", 0]]   # of each open mapping: indentation and prefix of its key, indentation of its members
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#") or line.rstrip() == "---":
            continue
        entry = CONFIG_LINE.fullmatch(line.rstrip())
        scalar = SCALAR.fullmatch(entry[3] or "") if entry else None
        if not entry or not scalar:
            raise ValueError(f"line {number}: expected \"key: value\" with a text or a number on one line")
        indent = len(entry[1])
        while indent <= sections[-1][0]:
            sections.pop()
        prefix = sections[-1][1]
        if sections[-1][2] is None:   # the first member
            sections[-1][2] = indent
            values.pop(prefix[:-1])
        if indent != sections[-1][2]:
            raise ValueError(f"line {number}: unexpected indentation")
        key = prefix + entry[2]
        if key in values or any(name.startswith(key + ".") for name in values):
            raise ValueError(f"line {number}: {key} is named twice")
        values[key] = scalar_of(scalar[1])
        if scalar[1] is None:
            sections.append([indent, key + ".", None])
    return values


def scalar_of(text: Optional[str]) -> Any:
    if text is None or text in ("~", "null"):
        return None
    if text[0] == '"':
        return json.loads(text)
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else text


def printable(text: str) -> str:
    """Escapes control characters, and characters that reorder or hide text."""
    return "".join(char if char == "\n" or unicodedata.category(char) not in ("Cc", "Cs") and not HIDDEN.match(char)
                   else f"\\u{{{ord(char):04x}}}" for char in text)


def one_line(value: Any) -> str:
    return printable(" ".join(str(value).split()))


def read_stdin() -> str:
    data = sys.stdin.buffer.read(REQUEST_BYTES_MAX + 1)
    if len(data) > REQUEST_BYTES_MAX:
        raise MunimentError(f"the request has more than {REQUEST_BYTES_MAX} bytes", "too_large", {"limit": REQUEST_BYTES_MAX})
    try:
        text = data.decode().strip()
    except UnicodeDecodeError:
        raise MunimentError("the request is not UTF-8", "invalid_argument") from None
    if not text:
        raise MunimentError("standard input is empty", "invalid_argument")
    return text


def parse_request(text: str) -> Json:
    """Returns the request; a text that is no JSON object is its query. Raises MunimentError (invalid_argument)."""
    if not text.startswith("{"):
        return {"query": text}
    try:
        request: Json = json.loads(text)
        json.dumps(request, ensure_ascii=False, allow_nan=False).encode()
        uuid.UUID(request.setdefault("id", str(uuid.uuid4())))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise MunimentError(f"the request is not a JSON object with a UUID as its id: {error}", "invalid_argument") from None
    for name in ("context", "settings"):
        if request.get(name, {}) is None:
            del request[name]
    context = request.get("context", {})
    if request.get("mode", "ask") not in ("ask", "ingest"):
        raise MunimentError("mode must be ask or ingest", "invalid_argument")
    if not isinstance(context, dict) or not all(isinstance(words, list) and all(isinstance(word, str) for word in words)
                                                for words in context.values()):
        raise MunimentError("context must be {tags: [text, …], files: [text, …]}", "invalid_argument")
    return request


class Log:
    """logs/local.log: one JSON object a line for each request, without the texts of questions, documents and answers."""

    def __init__(self, path: pathlib.Path, command: str):
        self.path, self.began = path, time.monotonic()
        self.entry: Json = {"time": datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z"), "command": command}

    def write(self) -> None:
        self.entry["ms"] = int((time.monotonic() - self.began) * 1000)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "ab", opener=lambda path, flags: os.open(path, flags, 0o600), buffering=0) as file:
                file.write(json.dumps(self.entry).encode() + b"\n")
        except OSError as error:
            print(f"researcher: the request is not logged: {self.path}: {error.strerror}", file=sys.stderr)


class Researcher:
    """One request of the command line."""

    def __init__(self, options: argparse.Namespace):
        self.options, self.as_json = options, bool(options.json)
        self.request: Json = {}
        self.log = Log(pathlib.Path("logs", "local.log"), options.command)

    def run(self) -> int:
        """Returns an exit code: those of `muniment`."""
        try:
            self.config = read_config()
            self.log.path = pathlib.Path(self.config.get("logs.local", self.log.path))
            self.data = self.options.data or self.config.get("daemon.data")
            code = {"ask": self.ask, "ingest": self.ingest, "status": self.status}[self.options.command]()
        except MunimentError as error:
            self.log.entry["error"] = error.code
            code = self.report(error)
        self.log.write()
        return code

    def report(self, error: MunimentError) -> int:
        if self.as_json:
            self.print_json({"id": self.request.get("id"), "error": {"code": error.code, "message": str(error)}})
        else:
            print(f"researcher: {error.code}: {one_line(error)}", file=sys.stderr)
        return EXIT_CODES.get(error.code, 1)

    def print_json(self, value: Json) -> None:
        print(json.dumps(value, ensure_ascii=sys.stdout.isatty()))

    def read_request(self, words: list[str]) -> None:
        """Sets the request from `words` or standard input, and the options that the command line and the configuration add."""
        text = " ".join(words).strip()
        if self.options.stdin or not text or text == "-":
            text = read_stdin()
            self.as_json = self.as_json or text.startswith("{")
            self.request = parse_request(text)
        else:
            self.request = {"query": text}
        self.request.setdefault("id", str(uuid.uuid4()))
        self.request.setdefault("mode", "ask")
        corpus = self.options.corpus or self.config.get("corpus")
        if corpus:
            self.request.setdefault("corpus", corpus)
        k = getattr(self.options, "k", None)
        k = self.config.get("retrieval.k") if k is None else k
        settings = self.request.setdefault("settings", {})
        if k is not None and isinstance(settings, dict):
            settings.setdefault("k", k)
        self.log.entry |= {"id": self.request["id"], "mode": self.request["mode"], "corpus": self.request.get("corpus")}

    def permit_cloud(self) -> None:
        """Sets the request's settings by --cloud-mode and --cloud-cmd."""
        mode, command = self.options.cloud_mode or self.config.get("cloud.mode"), self.options.cloud_cmd
        settings = self.request["settings"]
        if mode not in (None, "never", "auto", "always"):
            raise MunimentError("cloud.mode must be never, auto or always", "invalid_argument")
        if mode == "never" or (mode is None and command is None) or not isinstance(settings, dict):
            return
        settings["cloud_allowed"] = True
        if mode == "always":
            settings["cloud_mode"] = "always"
        if command is not None:
            words_of(command)
            settings["cloud_by"] = "caller"

    def call_command(self, client: Client, question: Json, answer: Json) -> None:
        """Runs --cloud-cmd with the question that the daemon made and recorded, and has its reply recorded and stored."""
        reply = run_command(self.options.cloud_cmd, question["prompt"])
        outcome: Json = {"response": reply} if reply is not None else {"failed": True}
        result = client.call("cloud.answer", call_id=question["call_id"], **outcome)
        answer["provenance"] |= {name: result[name] for name in ("cloud", "cloud_reason", "cloud_message") if name in result}
        answer.setdefault("degraded", []).extend(result.get("degraded", []))
        if not answer["degraded"]:
            del answer["degraded"]
        for item in result["cloud"]:
            answer["answer"] += f"\n{item['text']} [cloud {item['n']}]"

    def log_cloud(self, answer: Json) -> None:
        """Writes a line about the question to a cloud service, if there was one, to logs/cloud/."""
        provenance = answer["provenance"]
        if not provenance["cloud"] and provenance.get("cloud_reason", NOT_CALLS[0]) in NOT_CALLS:
            return
        log = Log(pathlib.Path(self.config.get("logs.cloud", pathlib.Path("logs", "cloud"))) / "calls.log", "cloud")
        log.entry |= {"id": self.request["id"], "logs_ref": answer["logs_ref"]}
        for item in provenance["cloud"]:
            log.entry |= {name: item[name] for name in ("call_id", "provider", "model", "template", "asked_seq", "answered_seq", "pointer") if name in item}
            log.entry |= {"prompt_sha256": item["prompt_hash"], "response_sha256": item["response_hash"]}
        if "cloud_reason" in provenance:
            log.entry["reason"] = provenance["cloud_reason"]
        log.write()

    def ask(self) -> int:
        self.read_request(self.options.question)
        if self.request["mode"] == "ingest":
            return self.ingest_files([], [])
        self.permit_cloud()
        query = self.request.get("query")
        if isinstance(query, str):
            self.log.entry |= {"query_sha256": hashlib.sha256(query.encode()).hexdigest(), "query_bytes": len(query.encode())}
        with self.connect() as client:
            settings = self.request["settings"]
            asks_cloud = isinstance(settings, dict) and settings.get("cloud_allowed")
            # A question to a cloud service is not repeated after an error.
            answer = client.call("ask", **self.request) if asks_cloud else client.again(lambda: client.call("ask", **self.request))
            if question := answer["provenance"].pop("cloud_question", None):
                self.call_command(client, question, answer)
        self.log_cloud(answer)
        local, reason = answer["provenance"]["local"], answer.get("reason")
        self.log.entry |= {"citations": len(local), "confidence": answer["confidence"]["local"], "logs_ref": answer["logs_ref"]}
        if reason:
            self.log.entry["reason"] = reason
        if "cloud_reason" in answer["provenance"]:
            self.log.entry["cloud_reason"] = answer["provenance"]["cloud_reason"]
        if self.as_json:
            self.print_json({name: answer[name] for name in (*RESPONSE, "reason", "degraded") if name in answer})
        else:
            print_answer(answer)
        return 1 if (reason or "").startswith("unknown_") else 0

    def ingest(self) -> int:
        paths, tags = list(self.options.path), list(self.options.tag)
        if self.options.stdin:
            self.read_request([])
        self.request.setdefault("id", str(uuid.uuid4()))
        self.as_json = True
        return self.ingest_files(paths, tags)

    def ingest_files(self, paths: list[str], tags: list[str]) -> int:
        """Runs `muniment ingest`, which reads the folders, and prints its result: {id, ingested: [{path, chunks}], errors}."""
        context = self.request.get("context", {})
        paths, tags = paths + context.get("files", []), tags + context.get("tags", [])
        paths = paths or [self.config.get("data.raw", "data/raw")]
        corpus = self.request.get("corpus") or self.options.corpus or self.config.get("corpus", CORPUS)
        program = find_program()
        if program is None:
            raise NoDaemon("muniment is not in PATH. Set MUNIMENT_BIN=/path/to/muniment")
        command = [program, "--json", *(["--data", self.data] if self.data else []), "ingest", "--corpus", corpus,
                   *(f"--tag={tag}" for tag in tags), "--", *paths]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
        try:
            report: Json = json.loads(done.stdout)
        except ValueError:
            code = "invalid_argument" if done.returncode == EXIT_CODES["usage"] else "system_error"
            raise MunimentError(f"muniment ingest ended with exit code {done.returncode}", code) from None
        if error := report.get("error"):
            raise MunimentError(error["message"], error["code"], error)
        result = {"id": self.request["id"], "ingested": report["ingested"],
                  "errors": [{"path": note["path"], "message": note["why"]} for note in report["failed"]["files"]]}
        if report["skipped"]["count"]:
            result["skipped"] = [{"path": note["path"], "message": note["why"]} for note in report["skipped"]["files"]]
        self.log.entry |= {"id": result["id"], "corpus": corpus, "ingested": len(result["ingested"]), "unchanged": report["unchanged"],
                           "errors": report["failed"]["count"]}
        self.print_json(result)
        return done.returncode

    def status(self) -> int:
        with self.connect(start=False) as client:
            server, corpora = client.call("server.status"), client.call("corpus.list")["corpora"]
        result = {"version": server["version"], "data": server["data_dir"], "events": server["log"]["size"],
                  "corpora": [{name: corpus[name] for name in ("corpus", "documents", "chunks")} for corpus in corpora],
                  "degraded": server.get("degraded", []), "config": str(self.config.path) if self.config.path else None,
                  "settings": self.settings(), "log": str(self.log.path)}
        if self.as_json:
            self.print_json(result)
            return 0
        print(f"daemon   {result['version']}, {result['data']}, {result['events']:,} events")
        for corpus in result["corpora"]:
            print(f"corpus   {one_line(corpus['corpus'])}  {corpus['documents']:,} documents  {corpus['chunks']:,} passages")
        for words in result["degraded"]:
            print(f"degraded {one_line(words)}")
        print(f"config   {result['config'] or f'defaults (no {CONFIG})'}")
        for one in result["settings"]:
            print(f"setting  {one['setting']} = {one_line(one['value'])}" +
                  ("" if one["equal"] else f"; {one['key']} is {one_line(one['wanted'])}: change muniment.toml and restart the daemon"))
        print(f"log      {result['log']}")
        return 0

    def settings(self) -> list[Json]:
        """Compares the keys that belong to the daemon with its configuration."""
        wanted = {key: self.config.get(key) for key in SETTINGS if self.config.get(key) is not None}
        program = find_program()
        if not wanted or program is None:
            return []
        done = subprocess.run([program, "--json", *(["--data", self.data] if self.data else []), "config", "print"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, errors="replace")
        values = json.loads(done.stdout)
        return [{"key": key, "wanted": value, "setting": SETTINGS[key], "value": values[SETTINGS[key]]["value"],
                 "equal": values[SETTINGS[key]]["value"] == value} for key, value in wanted.items()]

    def connect(self, start: bool = True) -> Client:
        return connect(self.data, start=start)


def words_of(command: str) -> list[str]:
    """Splits a command as a shell does, without running one. Raises MunimentError (invalid_argument)."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise MunimentError(f"--cloud-cmd: {error}", "invalid_argument") from None
    if not words or "{prompt}" in words[0] or sum(word.count("{prompt}") for word in words) > 1:
        raise MunimentError("--cloud-cmd must name a program, and {prompt} at most once as an argument; without it, "
                            "standard input has the prompt", "invalid_argument")
    return words


def run_command(command: str, prompt: str) -> Optional[str]:
    """Returns what the command prints, at most REPLY_BYTES_MAX bytes of it; None if it fails or is late."""
    words = words_of(command)
    as_argument = any("{prompt}" in word for word in words)
    words = [word.replace("{prompt}", prompt) for word in words]
    try:
        # In a group of its own, so that processes which the command has started end with it and do not keep its output open.
        with subprocess.Popen(words, stdin=subprocess.DEVNULL if as_argument else subprocess.PIPE, stdout=subprocess.PIPE,
                              start_new_session=True) as process:
            def end() -> None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

            timer = threading.Timer(COMMAND_S_MAX, end)
            timer.start()
            try:
                if process.stdin:
                    with contextlib.suppress(BrokenPipeError):
                        process.stdin.write(prompt.encode())
                        process.stdin.close()
                assert process.stdout
                data = process.stdout.read(REPLY_BYTES_MAX)
                if len(data) == REPLY_BYTES_MAX:
                    end()
                return data.decode(errors="replace") if process.wait() == 0 else None
            finally:
                timer.cancel()
                if process.returncode is None:
                    end()
    except OSError as error:
        print(f"researcher: --cloud-cmd: {words[0]}: {error.strerror}", file=sys.stderr)
        return None


def print_answer(answer: Json) -> None:
    """Prints the answer and a table of its provenance."""
    print(printable(answer["answer"]))
    rows = [[f"[{item['n']}]", "local", one_line(f"{item['corpus']}/{item['document']}"),
             f"{item['span']['offset']}-{item['span']['offset'] + item['span']['length']}", one_line(item["trust"]), one_line(item["pointer"])]
            for item in answer["provenance"]["local"]]
    rows += [[f"[cloud {item['n']}]", "cloud", one_line(item["provider"]), one_line(item.get("model", item["template"])), item["trust"],
              one_line(item.get("pointer", ""))] for item in answer["provenance"]["cloud"]]
    if rows:
        print()
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
    confidence = answer["confidence"]
    print(f"\nconfidence  local {confidence['local']:.2f}  cloud {confidence['cloud']:.2f}\nlogs_ref    {answer['logs_ref']}")
    if answer.get("reason"):
        print(f"reason      {answer['reason']}")
    if "cloud_reason" in answer["provenance"]:
        print(f"cloud       {answer['provenance']['cloud_reason']}: {one_line(answer['provenance'].get('cloud_message', ''))}")
    for words in answer.get("degraded", []):
        print(f"degraded    {one_line(words)}")


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(EXIT_CODES["usage"], f"researcher: {message}\n")


def parse_words(words: Optional[list[str]]) -> argparse.Namespace:
    common = Parser(add_help=False)
    common.add_argument("--json", action="store_true", help="print the response as JSON")
    common.add_argument("--data", help="socket or data folder of the daemon (default: as for muniment)")
    common.add_argument("--corpus", help=f"corpus (default of ask: all; of ingest: {CORPUS})")
    parser = Parser(prog="researcher", description="Answers questions from documents, with provenance")
    commands = parser.add_subparsers(dest="command", required=True, metavar="ask|ingest|status")
    ask = commands.add_parser("ask", parents=[common], help="answer a question")
    ask.add_argument("question", nargs="*", help="question; - or none reads standard input")
    ask.add_argument("-k", type=int, help="largest number of passages (default 5)")
    ask.add_argument("--cloud-mode", choices=["never", "auto", "always"], help="when to ask a cloud service (default never, with --cloud-cmd auto: if the confidence is low)")
    ask.add_argument("--cloud-cmd", help="program that asks it; {prompt} is the question (default: the daemon's cloud_url; without {prompt}: on standard input)")
    ingest = commands.add_parser("ingest", parents=[common], help="ingest files and folders")
    ingest.add_argument("path", nargs="*", help="files and folders (default: data.raw of config/local.yaml, or data/raw)")
    ingest.add_argument("--tag", action="append", default=[], help="tag of each document")
    for command in (ask, ingest):
        command.add_argument("--stdin", action="store_true", help="read the request from standard input")
    commands.add_parser("status", parents=[common], help="show the daemon and its corpora")
    return parser.parse_args(words)


def main(words: Optional[list[str]] = None) -> int:
    """Runs a command line (default: that of the process). Returns its exit code."""
    try:
        return Researcher(parse_words(words)).run()
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
