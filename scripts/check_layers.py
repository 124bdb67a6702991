#!/usr/bin/env python3
"""Checks the code against docs/architecture.md: includes between folders, owners of third-party headers, no include
cycles, files of at most 900 lines, functions of at most 70, folders of at most 25 source files, lines of a folder within its budget.

    scripts/check_layers.py [ROOT]       prints each violation as path:line: text; exits with 1 if there is one
    scripts/check_layers.py --self-test  creates one violation of each kind and expects it to be found

A third-party header that no table below lists is a violation, so that every new dependency requires a decision.
"""
from __future__ import annotations

import collections
import fnmatch
import pathlib
import re
import sys
import tempfile
from typing import Iterator, NamedTuple

FILE_LINES_MAX = 900
FUNCTION_LINES_MAX = 70
FOLDER_FILES_MAX = 25
DAEMON_MAIN_LINES_MAX = 70

# Folders beside src/ that hold programs of their own; their includes begin with the folder's name.
HOUSES = ("adapters", "verify")

# Folder → folders it may include; transitive includes are computed below.
FOLDERS = {
    "base": [],
    "http": ["base"],
    "mcp": ["base"],
    "events": ["base"],
    "store": ["events"],
    "webhook": ["events", "store"],
    "snapshot": ["events", "store"],
    "evidence": ["events", "store"],
    "audit": ["events", "store", "snapshot", "evidence"],
    "retrieval": ["events", "store", "evidence"],
    "capsule": ["events", "store", "snapshot", "evidence", "retrieval", "mcp"],
    "bridge": ["base"],
    "gateway": ["webhook", "snapshot", "evidence", "audit", "retrieval", "capsule", "bridge"],
    "daemon": ["gateway", "mcp", "http"],
    "client": ["events"],
    "cli": ["client", "webhook", "snapshot", "evidence", "audit", "retrieval", "capsule", "bridge", "http"],
    "adapters": ["client", "http", "bridge"],
    "verify": ["base"],
}

# Folder of src/, or house → lines that its .hpp and .cpp files may have together. A change that needs more raises the number here,
# and its commit says why; a change that shrinks a folder lowers it.
BUDGETS = {
    "adapters": 19_100,  # import --mine and --watch, sessions that go on
    "audit": 3_800,
    "base": 10_420,  # with the price list, the rules of retention, CRC-32C and the limits of capsules, the names of the corpora of memory, failpoint_none.cpp, two settings of the sanitiser, and starting children
    "bridge": 3_700,  # with the questions that may leave and their table, the settings of the sanitiser, and the calls of cloud services
    "capsule": 4_190,  # a file format, its indexes, its methods with ask, MCP, diff, merge, signatures, and its config with the trust in it, the loop of an agent, and encryption, and the checks of its rows against its frames
    "cli": 27_760,   # cost, retention and disk, ingest --watch, the commands of an agent's memory, those on capsules
    "client": 3_020,  # with folder_events, which cli had, and the server of a capsule
    "daemon": 4_460,  # with the metrics over HTTP, program.cpp, which the daemon of the conformance suite shares, and the settings of a cloud service
    "events": 2_740,
    "evidence": 19_950,
    "gateway": 14_070,  # with the answers that an erased document leaves, erasing a document, summaries in lists, and cloud services
    "http": 1_700,
    "mcp": 3_880,  # with what a session under review is refused
    "retrieval": 23_990,  # with the answers that gateway had, packed indexes, the packs that gateway had, newer facts in answers, the comparison of statements
    "snapshot": 1_500,
    "store": 16_600,  # with the answers that an erasure lists, and followers, blank states, owners and terms that are held against the log
    "verify": 12_130,  # with the reader of capsules
    "webhook": 600,
}

# The append connection uses libpq directly, with its own deadlines: one class and a file for each of its two write paths.
APPEND_CONNECTION = ["store/append/append_connection.cpp", "store/append/append_copy.cpp", "store/append/append_pipeline.cpp"]

# Prefix of a third-party header → files below src/, or of a house, that may include it; * matches across folders.
OWNERS = {
    "simdjson": ["base/json/json.cpp"],
    "openssl/": ["base/*.cpp"],
    "spdlog/": ["base/*.cpp"],
    "toml++": ["base/config*.cpp", "evidence/completion/policy.cpp", "evidence/workflow/spec.cpp", "bridge/rule_toml.cpp"],
    "pqxx": ["store/*.cpp", "store/read/pq.hpp"],
    "libpq-fe.h": APPEND_CONNECTION + ["verify/*.cpp", "cli/export/connection.cpp", "cli/sql/connection.cpp", "store/postgres/reporter_login.cpp"],
    "libpq/": APPEND_CONNECTION + ["verify/*.cpp"],
    "uv.h": ["daemon/*.cpp", "daemon/*.hpp", "http/*.cpp", "adapters/commands/otlp.cpp"],
    "CLI11.hpp": ["base/config/command_tree.cpp", "cli/*.cpp", "client/*.cpp", "adapters/*.cpp", "daemon/program.cpp", "verify/main.cpp", "verify/options.cpp"],
    "CLI/": ["base/config/command_tree.cpp", "cli/*.cpp", "client/*.cpp", "adapters/*.cpp", "daemon/program.cpp", "verify/main.cpp", "verify/options.cpp"],
    "xapian": ["retrieval/*.cpp", "retrieval/lexical/*.hpp"],
    "utf8proc.h": ["retrieval/*.cpp"],
    "immintrin.h": ["retrieval/vector/codes.cpp"],
    "rocksdb/": ["retrieval/*.cpp"],
    "curl/": ["base/http.cpp"],
    "hiredis/": ["retrieval/query/shared_cache.cpp"],
    "re2/": ["cli/show/line_match.cpp", "evidence/run_judge/words.cpp", "bridge/sanitiser.cpp"],
    "sodium.h": ["capsule/encryption.cpp"],
    "hs/": ["bridge/sanitiser.cpp", "bridge/compile_rules.cpp"],
    "seccomp.h": ["base/process/sandbox_calls.cpp"],
    "microhttpd.h": ["audit/witness/witness_server.cpp", "http/*.cpp"],
    "zstd.h": ["base/files/zstd.cpp"],
    "zlib.h": ["base/files/gzip.cpp"],
    "google/protobuf/": ["adapters/receive/otlp_protobuf.cpp"],
    "archive.h": ["base/files/tar_archive.cpp"],
    "archive_entry.h": ["base/files/tar_archive.cpp"],
    "fmt/": ["*.cpp"],
    "unicode/": ["retrieval/text/*.cpp"],
    "uchardet/": ["retrieval/text/encoding.cpp"],
    "cld2/": ["retrieval/text/language.cpp"],
    "poppler-": ["retrieval/text/formats/pdf.cpp"],
    "dlfcn.h": ["retrieval/embed/encoder/onnx_runtime.cpp"],
    "expat.h": ["evidence/reports/xml/xml.cpp"],
    "iconv.h": ["retrieval/text/formats/pdf.cpp", "evidence/reports/xml/characters.cpp"],
}
# In verify/, only one file may include each of these.
ONE_FILE_OF_VERIFY = ["libpq-fe.h"]

# Headers of the C library and the kernel; headers of the C++ library have no extension.
SYSTEM_FOLDERS = ("sys/", "linux/", "netinet/", "arpa/")
SYSTEM_HEADERS = {
    "dirent.h", "endian.h", "fcntl.h", "fnmatch.h", "ftw.h", "getopt.h", "glob.h", "grp.h", "netdb.h", "poll.h",
    "pthread.h", "pty.h", "pwd.h", "sched.h", "signal.h", "spawn.h", "stdio.h", "termios.h", "time.h", "unistd.h", "utmp.h",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


class Violation(NamedTuple):
    path: pathlib.Path
    line: int
    text: str


def reachable(folder: str) -> set[str]:
    found = {folder}
    for below in FOLDERS[folder]:
        found |= reachable(below)
    return found


def source_files(root: pathlib.Path, *folders: str, suffixes: tuple[str, ...]) -> Iterator[pathlib.Path]:
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file() and "node_modules" not in path.parts:
                yield path


def product_files(root: pathlib.Path, *, suffixes: tuple[str, ...] = (".hpp", ".cpp")) -> Iterator[tuple[pathlib.Path, pathlib.PurePath]]:
    """Yields (path, the name by which it is included) of each source file of the programs."""
    for path in source_files(root, "src", *HOUSES, suffixes=suffixes):
        inside = path.relative_to(root)
        yield path, inside.relative_to("src") if inside.parts[0] == "src" else inside


def includes(path: pathlib.Path) -> Iterator[tuple[int, bool, str]]:
    """Yields (line, whether the header is of this project, header)."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1] == '"', match[2]


def check_include(path: pathlib.Path, inside: pathlib.PurePath, ours: bool, header: str) -> str | None:
    """Returns the problem of including `header` in the file `inside` src/, if any."""
    folder = inside.parts[0]
    if ours:
        if "/" not in header or header.startswith("."):
            return f'write "{folder}/{header}": includes are from src/'
        below = header.split("/")[0]
        if below not in FOLDERS:
            return f"{below}/ is not a folder of the architecture"
        if below not in reachable(folder):
            return f"{folder}/ may not include {below}/ (it may: {', '.join(sorted(reachable(folder)))})"
        return None
    for name, patterns in OWNERS.items():
        if header.startswith(name):
            allowed = any(fnmatch.fnmatch(inside.as_posix(), pattern) for pattern in patterns)
            return None if allowed else f"<{header}> belongs to {', '.join(patterns)}"
    if "." not in header or header in SYSTEM_HEADERS or header.startswith(SYSTEM_FOLDERS):
        return None
    return f"<{header}> is not listed in scripts/check_layers.py: add its owner"


def check_includes(root: pathlib.Path) -> Iterator[Violation]:
    graph: dict[str, list[str]] = {}
    users: dict[str, set[pathlib.Path]] = {name: set() for name in ONE_FILE_OF_VERIFY}
    for path, inside in product_files(root):
        if inside.parts[0] not in FOLDERS:
            yield Violation(path, 1, f"src/{inside.parts[0]}/ is not a folder of the architecture")
            continue
        for number, ours, header in includes(path):
            if wrong := check_include(path, inside, ours, header):
                yield Violation(path, number, wrong)
            if ours:
                graph.setdefault(inside.as_posix(), []).append(header)
            for name in ONE_FILE_OF_VERIFY:
                if inside.parts[0] == "verify" and not ours and header.startswith(name):
                    users[name].add(path)
    for name, paths in users.items():
        for path in sorted(paths)[1:]:
            yield Violation(path, 1, f"<{name}> already has its one file in verify/: {min(paths).name}")
    for cycle in cycles(graph):
        yield Violation(root / ("" if cycle[0].split("/")[0] in HOUSES else "src") / cycle[0], 1, "include cycle: " + " → ".join(cycle))


def cycles(graph: dict[str, list[str]]) -> Iterator[list[str]]:
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> Iterator[list[str]]:
        if name in trail:
            yield trail[trail.index(name):] + [name]
        elif name not in done:
            for header in graph.get(name, []):
                yield from visit(header, trail + [name])
            done.add(name)

    for name in sorted(graph):
        yield from visit(name, [])


def blank_out(text: str) -> str:
    """Returns the code with comments and literals replaced by spaces, with the same lines."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
                         r"(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.S)
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def functions(text: str) -> Iterator[tuple[int, int]]:
    """Yields (first line, number of lines) of each function body: a heuristic based on braces formatted by clang-format."""
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m[0].count("\n"), blank_out(text), flags=re.M)
    scopes: list[tuple[str, int]] = []   # (kind, line of the opening brace)
    head_start, line = 0, 1
    for position, char in enumerate(code):
        if char == "\n":
            line += 1
        elif char == "{":
            head = code[head_start:position].strip()
            outer = scopes[-1][0] if scopes else "scope"
            if outer != "scope":
                kind = "inner"
            elif re.match(r"(inline )?namespace\b|extern\b\s*$", head) or \
                    re.search(r"\b(class|struct|union|enum)\b[^()=]*$", re.sub(r"alignas\([^)]*\)", "", head)):
                kind = "scope"
            elif re.search(r"\)\s*(noexcept\s*)?:[^:].*\w$", head, re.S):
                kind = "inner"   # member_{…} in a constructor's list: its body follows
            else:
                kind = "function" if ")" in head and not head.endswith("=") else "inner"
            scopes.append((kind, line - code[head_start:position].lstrip().count("\n")))
            if kind != "inner":
                head_start = position + 1
        elif char == "}" and scopes:
            kind, opened = scopes.pop()
            if kind == "function":
                yield opened, line - opened + 1
            if kind != "inner":
                head_start = position + 1
        elif char == ";":
            head_start = position + 1


def check_sizes(root: pathlib.Path) -> Iterator[Violation]:
    for path in source_files(root, "src", *HOUSES, "tests", "scripts", "clients", "migrations",
                             suffixes=(".hpp", ".cpp", ".py", ".sql", ".ts", ".sh")):
        count = len(path.read_text(errors="replace").splitlines())
        if count > FILE_LINES_MAX:
            yield Violation(path, count, f"{count} lines, limit {FILE_LINES_MAX}: split it")
    for path in source_files(root, "src", *HOUSES, "tests", suffixes=(".hpp", ".cpp")):
        for start, count in functions(path.read_text()):
            if count > FUNCTION_LINES_MAX:
                yield Violation(path, start, f"a function of {count} lines, limit {FUNCTION_LINES_MAX}: "
                "split it")
    folders = collections.Counter(path.parent for path, _ in product_files(root))
    for folder, count in sorted(folders.items()):
        if count > FOLDER_FILES_MAX:
            yield Violation(folder, count, f"{count} source files, limit {FOLDER_FILES_MAX}: make a subfolder")
    lines: collections.Counter[str] = collections.Counter()
    for path, inside in product_files(root):
        lines[inside.parts[0]] += len(path.read_text().splitlines())
    for name, count in sorted(lines.items()):
        if count > BUDGETS.get(name, count):
            yield Violation(root / ("" if name in HOUSES else "src") / name, count, f"{count} lines, budget {BUDGETS[name]}: make it smaller, or raise BUDGETS")
    main = root / "src" / "daemon" / "main.cpp"
    if main.exists() and (count := len(main.read_text().splitlines())) > DAEMON_MAIN_LINES_MAX:
        yield Violation(main, count, f"{count} lines, limit {DAEMON_MAIN_LINES_MAX}: wiring belongs to wiring.cpp")


class Path(NamedTuple):
    section: str          # heading in docs/architecture.md
    files: int
    calls: dict[str, str]   # file of the path → its call to the next file


PATHS = (
    Path("One append", 5, {
        "src/daemon/session.cpp": "dispatcher_.run(",
        "src/gateway/request/dispatcher.cpp": "method->function(",
        "src/gateway/methods/log/events.cpp": "PendingAppend",
        "src/store/append/appender.cpp": "connection_.commit(",
    }),
    Path("One tools/call", 6, {
        "src/daemon/session.cpp": "mcp_->session().receive(",
        "src/mcp/session.cpp": "method->function(",
        "src/mcp/offer/tool_call.cpp": "->native(",
        "src/daemon/mcp/mcp_peer.cpp": "dispatcher().admit(",
    }),
)


def check_paths(root: pathlib.Path) -> Iterator[Violation]:
    """Checks the files that docs/architecture.md names for an append and a tools/call: they exist and contain the named calls."""
    document = root / "docs" / "architecture.md"
    if not document.exists():
        return
    for path in PATHS:
        section = document.read_text().split(f"## {path.section}\n", 1)[-1].split("\n## ", 1)[0]
        items = re.findall(r"^\d\. (.*?)(?=^\d\. |^$)", section, flags=re.M | re.S)
        if len(items) != path.files:
            yield Violation(document, 1, f"{path.section}: {len(items)} files, expected {path.files}")
        for item in items:
            for problem in problems_of(root, item, path.calls):
                yield Violation(document, 1, f"{path.section}: {problem}")


def problems_of(root: pathlib.Path, item: str, calls: dict[str, str]) -> Iterator[str]:
    name = re.search(r"`(src/[^`]+\.cpp)`", item)
    if not name or not (path := root / name[1]).exists():
        yield f"no such file: {name[1] if name else item[:40]}"
        return
    texts = path.read_text() + "".join(other.read_text() for other in path.parent.glob(path.stem.removesuffix("er") + "_*.cpp"))
    for called in re.findall(r"`[\w:]*?(\w+)`", item):
        if called not in ("params",) and f"{called}(" not in texts:
            yield f"{name[1]} has no {called}()"
    if name[1] in calls and calls[name[1]] not in texts:
        yield f"{name[1]} does not call {calls[name[1]]}"


def check(root: pathlib.Path) -> list[Violation]:
    return [*check_includes(root), *check_sizes(root), *check_paths(root)]


PLANTED: dict[str, tuple[str | None, str | None]] = {   # file or folder → (text, expected violation)
    "src/base/back.cpp": ('#include "store/append/appender.hpp"\n', "base/ may not include store/"),
    "verify/reach.cpp": ('#include "events/entry.hpp"\n', "verify/ may not include events/"),
    "src/cli/reach.cpp": ('#include "gateway/call.hpp"\n', "cli/ may not include gateway/"),
    "src/gateway/loop.cpp": ("#include <uv.h>\n", "<uv.h> belongs to daemon/"),
    "src/store/append/rows.hpp": ("#include <pqxx/pqxx>\n", "<pqxx/pqxx> belongs to store/*.cpp"),
    "src/base/other.cpp": ("#include <simdjson.h>\n", "<simdjson.h> belongs to base/json/json.cpp"),
    "verify/a.cpp": ("#include <libpq-fe.h>\n", None),
    "verify/b.cpp": ("#include <libpq-fe.h>\n", "already has its one file in verify/"),
    "src/base/new.cpp": ("#include <boost/asio.hpp>\n", "is not listed in"),
    "src/base/near.cpp": ('#include "near.hpp"\n', "includes are from src/"),
    "src/misc/a.cpp": ("\n", "is not a folder of the architecture"),
    "src/events/x.hpp": ('#include "events/y.hpp"\n', "include cycle"),
    "src/events/y.hpp": ('#include "events/x.hpp"\n', None),
    "src/events/long.cpp": ("\n" * 901, "901 lines"),
    "src/events/body.cpp": ("namespace muniment {\nclass A {\n  int f(int a,\n        int b) {\n" + "    g('{', \"{\");\n" * 70 +
                            "  }\n};\n}\n", "a function of 73 lines"),
    "src/events/made.cpp": ("namespace muniment {\nA::A(int b)\n    : b_{b},\n      c_(b) {\n" + "  g();\n" * 70 + "}\n}\n",
                            "a function of 74 lines"),
    "src/events/fine.cpp": ("#include <sys/stat.h>\n#include <vector>\nnamespace {\nconstexpr int t[] = {\n" + "1,\n" * 90 +
                            "};\nint f() {\n  return 1;\n}\n}\n", None),
    "docs/architecture.md": ("## One append\n\n" + "".join(f"{n}. `src/events/fine.cpp` (`A::f`)\n" for n in range(1, 5)) + "\n" +
                             "## One tools/call\n\n" + "".join(f"{n}. `src/events/fine.cpp` (`f`)\n" for n in range(1, 7)) + "\n",
                             "4 files, expected 5"),
    "src/daemon/main.cpp": ("\n" * 71, "wiring belongs to wiring.cpp"),
    **{f"src/snapshot/file_{number}.cpp": ("\n", None) for number in range(26)},
    "src/snapshot": (None, "26 source files"),
    **{f"src/webhook/file_{number}.cpp": ("\n" * 900, None) for number in range(4)},
    "src/webhook": (None, "3600 lines, budget"),
}


def self_test() -> int:
    with tempfile.TemporaryDirectory(prefix="muniment-layers-") as folder:
        root = pathlib.Path(folder)
        for name, (text, _) in PLANTED.items():
            if text is None:   # the folder of the files above
                continue
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found: dict[str, list[str]] = {}
        for path, _, text in check(root):
            found.setdefault(path.relative_to(root).as_posix(), []).append(text)
    failures = 0
    for name, (_, wanted) in PLANTED.items():
        texts = found.get(name, [])
        good = not texts if wanted is None else len(texts) == 1 and wanted in texts[0]
        if not good:
            failures += 1
            print(f"{name}: expected {wanted or 'nothing'}, found {texts or 'nothing'}")
    print(f"self-test: {len(PLANTED) - failures} of {len(PLANTED)} planted files were judged correctly")
    return 1 if failures else 0


def main(arguments: list[str]) -> int:
    if arguments == ["--self-test"]:
        return self_test()
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent).resolve()
    violations = check(root)
    for path, line, text in violations:
        print(f"{path.relative_to(root)}:{line}: {text}")
    print(f"layers: {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
