"""Tests of the command line's texts: mentioned commands exist, errors name the mistake, lists state that there are
more items, and a number has only one meaning.
"""
from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import unittest
from typing import Any, Iterator, Optional

from support import BUILD, ROOT, Daemon, DaemonCase, main

FINISH_S = 90.0
NOBODY = 65_534
OTHERS_TOO = f"allowed_uids = [{NOBODY}]\n"
# Options that munimentd passes to itself; no help text mentions them.
INTERNAL = {"--search-child", "--text-child"}
PROGRAMS = ("muniment", "munimentd", "muniment-verify")


def ran(*words: object, data: object = None, user: Optional[int] = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
    if data is not None:
        environment["MUNIMENT_DATA"] = str(data)   # keeps suggested commands as short as the sentences expect
    return subprocess.run([BUILD / "muniment", *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FINISH_S,
                          env=environment, user=user, group=user, extra_groups=[] if user else None, cwd="/")


class Words(unittest.TestCase):
    """Checks that the commands in documents, help texts and messages exist."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.trees = {name: json.loads(subprocess.run([BUILD / name, "--command-tree"], capture_output=True, check=True, timeout=FINISH_S).stdout)
                     for name in PROGRAMS}

    def problem(self, line: str) -> str:
        """Returns the first error in this command line ("" if there is none). Characters special to a shell end the command."""
        words = re.split(r"[ \t]+", re.split(r" (?:[|;&<>#]|--(?= |$))|[()]", line.strip())[0].strip())
        program, words = words[0], words[1:]
        node = self.trees[program]
        options = {name for option in node["options"] for name in option["names"]} | {"--help", "--version"} | INTERNAL
        if words[:2] == ["audit", "verify"]:   # audit verify passes these options on
            options |= {name for option in self.trees["muniment-verify"]["options"] for name in option["names"]}
        commands = node["commands"]
        for word in words:
            if word.startswith("-") and re.fullmatch(r"--?[a-z][a-z-]*", word.split("=")[0]):
                if word.split("=")[0] not in options:
                    return f"no option {word}"
                continue
            below = {command["name"]: command for command in commands}
            if word in below:
                options |= {name for option in below[word]["options"] for name in option["names"]}
                commands = below[word]["commands"]
            elif commands and re.fullmatch(r"[a-z][a-z-]*", word) and not self.is_value(words, word):
                return f"no command {word}"
        return ""

    @staticmethod
    def is_value(words: list[str], word: str) -> bool:
        """Returns whether the word is the value of the preceding option."""
        at = words.index(word)
        return at > 0 and words[at - 1].startswith("--")

    def test_a_checker_that_finds_nothing_is_none(self) -> None:
        self.assertEqual(self.problem("muniment run rehydrate r1"), "no command rehydrate")
        self.assertEqual(self.problem("muniment rehydrate r1 --at 3"), "no option --at")
        self.assertEqual(self.problem("muniment --data d run show r1 --full | less -z"), "")

    def test_each_command_is_declared_alone(self) -> None:
        """Only the commands of the word in the command line are declared."""
        for command in self.trees["muniment"]["commands"]:
            with self.subTest(command=command["name"]):
                alone = json.loads(subprocess.run([BUILD / "muniment", "--command-tree", command["name"]], capture_output=True, check=True,
                                                  timeout=FINISH_S).stdout)
                found = {one["name"]: one for one in alone["commands"]}
                self.assertEqual(found[command["name"]], command)
                if command["name"] != "help":
                    self.assertLess(len(found), 8)

    def named_in_documents(self) -> Iterator[tuple[str, str]]:
        for path in sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "packaging").rglob("*.md")]):
            fenced = False
            for number, line in enumerate(path.read_text().splitlines(), 1):
                fenced ^= line.startswith("```")
                found = re.findall(r"^(?:\$ )?((?:%s) .*)" % "|".join(PROGRAMS), line) if fenced else \
                    re.findall(r"`(?:sudo )?((?:%s) [^`]+)`" % "|".join(PROGRAMS), line)
                found = [command for command in found if not re.match(r"[a-z-]+ [a-z]+: ", command)]   # a line of output, not a command
                yield from ((f"{path.name}:{number}", command) for command in found)

    def named_in_messages(self) -> Iterator[tuple[str, str]]:
        """Yields the commands in message texts: from `muniment` to the end of the text or clause."""
        for path in sorted([*(ROOT / "src").rglob("*.[ch]pp"), *(ROOT / "adapters").rglob("*.[ch]pp"), *(ROOT / "verify").rglob("*.[ch]pp")]):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                for text in re.findall(r'"((?:[^"\\]|\\.)*)"', line):
                    for command in re.findall(r"(?:^|[:(`]|(?<!user) )(muniment (?:--data DIR )?[a-z][^.,;:`)\\{]*)", text):
                        yield f"{path.name}:{number}", command

    def assert_all_exist(self, named: Iterator[tuple[str, str]], at_least: int) -> None:
        seen = 0
        for place, command in named:
            seen += 1
            with self.subTest(place=place, command=command):
                self.assertEqual(self.problem(command), "")
        self.assertGreater(seen, at_least)

    def test_what_documents_name(self) -> None:
        self.assert_all_exist(self.named_in_documents(), 150)

    def test_what_messages_name(self) -> None:
        self.assert_all_exist(self.named_in_messages(), 60)

    def test_an_unknown_word_is_named(self) -> None:
        for words, said in ((("run", "shwo"), 'muniment run: there is no command "shwo". Did you mean "show"? See: muniment run --help'),
                            (("staus",), 'muniment: there is no command "staus". Did you mean "status"? See: muniment --help'),
                            (("audit", "key", "xyzzy"), 'muniment audit key: there is no command "xyzzy". See: muniment audit key --help'),
                            (("run", "\x1b[31m"), 'muniment run: there is no command "\\x1b[31m".'),
                            (("help", "xyzzyx"), 'muniment: there is no command "xyzzyx". See: muniment --help'),
                            (("run", "shwo", "--help"), 'muniment run: there is no command "shwo".'),
                            (("run", "--nope"), 'muniment run: there is no option "--nope". See: muniment run --help')):
            with self.subTest(words=words):
                done = ran(*words)
                self.assertEqual(done.returncode, 3)
                self.assertIn(said, done.stderr)
        for words in (("help",), ("help", "run", "show"), ("run", "--help"), ("run", "show", "--help")):
            with self.subTest(words=words):
                self.assertEqual(ran(*words).returncode, 0)


class Lists(DaemonCase):
    config = OTHERS_TOO
    shared = True

    def muniment(self, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = ran(*words, data=self.daemon.data)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_a_run_says_how_many_events_a_list_of_them_has(self) -> None:
        self.note(n=1)
        self.call("snapshot.take", run_id=self.run_id)
        self.note(n=2)
        listed = len(self.muniment("--json", "event", "list", "--run", self.run_id, "-n", "0").stdout.splitlines())
        self.assertIn(f"so far   {listed} events", self.muniment("run", "show", self.run_id).stdout)

    def test_a_tree_as_json_is_json(self) -> None:
        child = self.new_run("child", parent={"run_id": self.run_id})
        runs = [json.loads(line) for line in self.muniment("--json", "run", "show", self.run_id, "--tree").stdout.splitlines()]
        self.assertEqual([(run["run_id"], run["parent"]) for run in runs], [(self.run_id, None), (child, self.run_id)])

    def test_what_was_stored_already_is_said_to_keep_its_type(self) -> None:
        file = self.daemon.folder / "twice.txt"
        file.write_text("the same bytes")
        put = ("artifact", "put", file, "--run", self.run_id, "--mime-type")
        self.assertEqual(self.muniment(*put, "text/plain").stderr, "")
        self.assertIn("already stored; the existing type and metadata are kept", self.muniment(*put, "text/html").stderr)

    def test_an_empty_answer_explains_itself(self) -> None:
        for command in ("query", "context"):
            unknown = self.muniment(command, "--corpus", "nosuch", "lighthouse", code=1)
            self.assertEqual(unknown.stdout, "")
            self.assertIn("muniment: not_found: no such corpus: nosuch. See: muniment", unknown.stderr)
            self.client.call("corpus.ingest", corpus="notes", documents=[{"id": "a", "text": "The lamp is lit at dusk."}], wait=True)
            done = self.muniment(command, "--corpus", "notes", '"zebra crossing"')
            self.assertEqual((done.stdout + done.stderr).strip(), "no match")
            self.client.call("corpus.ingest", corpus="emptied", documents=[{"id": "a", "text": "The lamp is lit at dusk."}], wait=True)
            self.client.call("document.retract", corpus="emptied", document="a", reason="wrong")
            size = self.client.call("server.status")["log"]["size"]   # the indexes have the retraction too
            self.client.call("evidence.retrieve", queries=[{"query": "lamp", "corpus": "emptied"}], min_seq=size - 1)
            for question, advice in ((("--corpus", "emptied", "lamp"), "nothing is indexed in corpus emptied. Add documents: muniment ingest FOLDER --corpus emptied"),
                                     (("in:run lamp",), "no event of these runs is indexed."), ((f"run:{self.run_id} lamp",), "To search an existing run: muniment run grep RUN PATTERN")):
                done = self.muniment(command, *question)
                self.assertIn(advice, done.stdout + done.stderr)

    def test_a_question_from_standard_input(self) -> None:
        self.client.call("corpus.ingest", corpus="stdin", documents=[{"id": "a", "text": "The lamp is lit at dusk."}], wait=True)
        for command in ("query", "context"):
            words = [BUILD / "muniment", "--data", self.daemon.data, command, "-", "--corpus", "stdin"]
            done = subprocess.run(words, input="when is the\nlamp lit?\n", capture_output=True, text=True, timeout=FINISH_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("The lamp is lit at dusk.", done.stdout)
            done = subprocess.run(words, input=" \n", capture_output=True, text=True, timeout=FINISH_S)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("standard input has no question", done.stderr)
            done = subprocess.run(words, input="x" * ((1 << 20) + 1), capture_output=True, text=True, timeout=FINISH_S)
            self.assertEqual(done.returncode, 1)
            self.assertIn("too_large", done.stderr)

    def test_exec_names_the_separator(self) -> None:
        self.assertIn("Write: muniment exec -- ls -la", self.muniment("exec", "ls", "-la", code=3).stderr)

    def test_a_pointer_that_halts_a_run_says_so(self) -> None:
        run_id = self.call("run.start", agent={"name": "t"})["run_id"]
        stored = self.call("artifact.put", run_id=run_id, text="to be lost")
        path = self.daemon.data / "artifacts" / stored["path"]
        path.rename(path.with_name("away"))
        self.addCleanup(path.with_name("away").rename, path)
        found = self.muniment("pointer", "resolve", "--critical", f"artifact://{run_id}/{stored['artifact_id']}", "--run", run_id, code=2)
        self.assertIn(f"halted  {run_id}  See: muniment", found.stdout)

    def test_a_log_pointer_shows_its_text(self) -> None:
        self.assertIn("# TYPE muniment_", self.muniment("pointer", "resolve", "log://metrics").stdout)

    def test_advice_is_of_the_command_line(self) -> None:
        found = self.muniment("pointer", "resolve", "--critical", "manifest://01900000-0000-4000-8000-000000000001", code=1)
        self.assertIn("set --run to the run that halts", found.stderr)
        found = self.muniment("source", "revoke", "https://hoax.example/", "--reason", "a hoax", code=1)
        self.assertIn("muniment document get CORPUS DOCUMENT", found.stderr)
        found = self.muniment("event", "append", "task.created", "{}", "--run", self.run_id, code=1)
        self.assertIn("unknown event type", found.stderr)
        self.assertNotIn("task.", found.stderr.replace("task.created", ""))

    def test_recover_fails_where_something_is_damaged(self) -> None:
        stored = self.call("artifact.put", run_id=self.run_id, text="to be lost")
        self.call("claim.record", run_id=self.run_id, text="it is there", pointers=[f"artifact://{self.run_id}/{stored['artifact_id']}"])
        path = self.daemon.data / "artifacts" / stored["path"]
        path.rename(path.with_name("away"))
        self.assertIn("damaged", self.muniment("recover", self.run_id, code=1).stdout)
        path.with_name("away").rename(path)
        self.muniment("recover", self.run_id)

    def test_one_that_goes_on_says_so(self) -> None:
        for number in range(3):
            self.new_run(str(number))
            self.note(n=number)
        for words, said in ((("run", "list", "-n", "2"), f"2 of {len(self.muniment('run', 'list', '-n', '0').stdout.splitlines())} runs; --limit N shows more"),
                            (("event", "list", "--run", self.run_id, "-n", "3"), "the first 3 events; there are more: -n 0 shows all"),
                            (("event", "list", "--run", self.run_id, "-n", "3", "--newest"), "the newest 3 events; there are more: -n 0 shows all")):
            for more in ((), ("--json",)):
                with self.subTest(words=words, more=more):
                    done = self.muniment(*more, *words)
                    self.assertEqual(done.stderr.strip(), f"muniment: {said}")
                    self.assertNotIn("there are more", done.stdout)
                    whole = self.muniment(*more, *words[:-1 if words[-1] != "--newest" else -2], "0")
                    self.assertEqual(whole.stderr, "")
                    self.assertGreater(len(whole.stdout.splitlines()), len(done.stdout.splitlines()))
        self.assertEqual(self.muniment("event", "list", "--run", self.run_id, "-n", "4").stderr, "", "those were all")

    def test_a_hint_names_a_command(self) -> None:
        for words, said in ((("run", "end", "nope"), "See: muniment run list, or start it: muniment run start RUN --agent AGENT"), (("manifest", "show", "01a201f4-8535-793f-8007-fa9a2b0449d7"), "no manifest"),
                            (("artifact", "get", "01a201f4-8535-793f-8007-fa9a2b0449d7"), "List them: muniment artifact list --run RUN"),
                            (("evidence", "get", "01a201f4-8535-793f-8007-fa9a2b0449d7"), "List it: muniment evidence list"), (("why", "99999999"), "See: muniment event list")):
            with self.subTest(words=words):
                self.assertIn(said, self.muniment(*words, code=1).stderr)
        self.call("run.end", run_id=self.run_id, outcome="success")
        said = self.muniment("event", "append", "x.test.noted", "{}", "--run", self.run_id, code=1).stderr
        self.assertIn("Start it again with muniment run start RUN --agent AGENT --reopen", said)

    def test_what_was_sent_is_said_as_it_was(self) -> None:
        """An argument that is also a method's name must not be translated to a command."""
        for words, said, never in ((("run", "show", "event.append"), "no run event.append. See: muniment run list", "muniment event"),
                                   (("artifact", "get", "run.list"), "run.list", "muniment run list"),
                                   (("event", "append", "x.test.noted", "{}", "--run", "run.list"), "no run run.list. See: muniment run list", "no run muniment"),
                                   (("document", "list", "server.status"), "server.status", "muniment status")):
            with self.subTest(words=words):
                told = self.muniment(*words, code=1).stderr
                self.assertIn(said, told)
                self.assertNotIn(never, told)

    def test_what_is_yet_to_come_is_not_answered_for(self) -> None:
        seq = self.note(n=1)["seq"]
        self.call("corpus.ingest", corpus="notes", documents=[{"id": "a", "text": "the heron stands in the reeds"}], wait=True)
        last = self.call("server.status")["log"]["size"] - 1
        self.call("run.rehydrate", run_id=self.run_id, asof=seq)
        self.call("evidence.retrieve", queries=[{"query": "heron"}], asof=last)
        asked: list[tuple[str, dict[str, Any]]] = [
            ("run.rehydrate", {"run_id": self.run_id}), ("snapshot.latest", {"run_id": self.run_id}), ("document.get", {"corpus": "notes", "document": "a"}),
            ("pointer.validate", {"pointers": [f"run://{self.run_id}"]}), ("pointer.resolve", {"pointers": [f"run://{self.run_id}"]}),
            ("evidence.retrieve", {"queries": [{"query": "heron"}]}), ("context.build", {"query": "heron"})]
        for method, params in asked:
            for when in (last + 1000, "2999-01-01T00:00:00Z"):
                with self.subTest(method=method, when=when), self.refused("invalid_argument") as caught:
                    self.call(method, **params, asof=when)
                self.assertIn(f"asof: {when} is in the future", str(caught[0]))
        with self.refused("invalid_argument") as caught:
            self.call("evidence.retrieve", queries=[{"query": "heron asof:2999-01-01"}])
        self.assertIn("filter asof: 2999-01-01", str(caught[0]))
        today = self.events()[0]["recorded_at"][:10]
        self.assertEqual(self.call("evidence.retrieve", queries=[{"query": f"heron asof:{today} in:notes"}])["results"][0]["cards"][0]["document"], "a")
        self.assertIn("is in the future", self.muniment("query", "heron", "--asof", "99999999", code=1).stderr)
        self.assertIn("is in the future", self.muniment("rehydrate", self.run_id, "--asof", "2999-01-01T00:00:00Z", code=1).stderr)

    def test_the_files_that_doctor_counts_are_those_that_verify_counts(self) -> None:
        for number in range(3):
            self.call("artifact.put", run_id=self.run_id, text=f"the bytes {number}")
        files = json.loads(subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--json"], capture_output=True, timeout=FINISH_S).stdout)["counts"]["files"]
        self.assertGreaterEqual(files, 3)
        self.assertIn(f"{files} files, each named by an event", ran("doctor", data=self.daemon.data).stdout)


class ClosedLog(unittest.TestCase):
    """A closed log: one that was restored, with a daemon that continues in a new one."""

    @classmethod
    def setUpClass(cls) -> None:
        first = Daemon()
        cls.addClassCleanup(first.destroy)
        first.start()
        with first.client() as client:
            for name in ("alpha", "beta", *(f"gamma-{number}" for number in range(8))):
                client.call("run.start", run_id=name, agent={"name": "test"})
            cls.halt(first, client)
        assert ran("backup", first.folder / "backups", data=first.data).returncode == 0
        first.stop()
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.daemon.destroy)
        done = ran("restore", first.folder / "backups", data=cls.daemon.data)
        assert done.returncode == 0, done.stderr
        cls.daemon.start("--continue-restored")

    @classmethod
    def halt(cls, daemon: Daemon, client: Any) -> None:
        """Damages a file on which beta depends, and repairs it afterwards, so that it can be backed up."""
        artifact = client.call("artifact.put", run_id="beta", text="to be lost")
        path = daemon.data / "artifacts" / artifact["path"]
        good = path.read_bytes()
        client.call("claim.record", run_id="beta", text="it is there", pointers=[f"artifact://beta/{artifact['artifact_id']}"])
        path.chmod(0o600)
        path.write_bytes(b"to be gone")
        client.call("pointer.resolve", run_id="beta", pointers=[f"artifact://beta/{artifact['artifact_id']}"], critical=True)
        path.write_bytes(good)
        assert client.call("run.get", run_id="beta")["run"]["status"] == "halted"

    def muniment(self, *words: object, code: int = 0) -> str:
        done = ran(*words, data=self.daemon.data)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def test_a_number_that_two_runs_have_is_told(self) -> None:
        with self.daemon.client() as client:
            client.call("run.start", run_id="delta", agent={"name": "test"})
            number = client.call("run.get", run_id="delta")["run"]["run_no"]
            numbers = {run["run_no"]: run["run_id"] for run in client.call("run.list")["runs"] if run.get("log_no") == 1}
        said = self.muniment("run", "show", f"@{number}", code=1)
        self.assertIn(f"@{number} matches 2 runs: delta of the current log, {numbers[number]} of the closed log 1. Name one by its id", said)
        last = max(numbers)
        self.assertIn(numbers[last], self.muniment("run", "show", f"@{last}"))
        self.assertIn("there is no run @99", self.muniment("run", "show", "@99", code=1))
        listed = self.muniment("run", "list")
        self.assertRegex(listed, rf"(?m)^@{number}\s+delta")
        self.assertRegex(listed, rf"(?m)^@{number} log 1\s+{numbers[number]}")

    def test_a_closed_run_says_so_and_is_gone_on_from(self) -> None:
        self.assertNotIn("halted", self.muniment("status"), "beta was, in the log that is closed")
        shown = self.muniment("run", "show", "alpha")
        self.assertIn("log      1, which is closed: this run accepts no events", shown)
        self.assertIn("muniment run start NAME --agent AGENT --continues alpha", shown)
        self.assertNotIn("muniment recover", self.muniment("run", "show", "beta"))
        said = self.muniment("event", "append", "x.test.noted", "{}", "--run", "alpha", code=1)
        self.assertIn("muniment run start NAME --agent AGENT --continues THIS", said)
        self.assertEqual(self.muniment("run", "start", "alpha-2", "--agent", "test", "--continues", "alpha").strip(), "alpha-2")
        with self.daemon.client() as client:
            self.assertEqual(client.call("event.list", run_id="alpha-2")["events"][0]["body"]["continues"], "alpha")
        self.assertIn("alpha", self.muniment("run", "show", "alpha-2"))
        self.assertIn("no run nope", self.muniment("run", "start", "other", "--agent", "test", "--continues", "nope", code=1))

    def test_status_names_the_logs_that_this_one_goes_on_from(self) -> None:
        with self.daemon.client() as client:
            [closed] = client.call("server.status")["earlier_logs"]
        self.assertIn(f"earlier    {closed['log_id'][:8]}  {closed['size']} events, log 1, closed\n", self.muniment("status"))

    def test_nothing_is_erased_from_a_closed_log(self) -> None:
        said = self.muniment("audit", "redact", "alpha", "--reason", "x", code=1)
        self.assertIn("conflict: run alpha is in log 1, which was restored and is closed: nothing can be erased from it", said)
        self.assertIn("delete that database and the backups that hold it", said)
        self.assertNotIn("run start", said)

    def test_doctor_and_metrics_mean_the_same_runs(self) -> None:
        halted = re.search(r'muniment_runs\{status="halted"\} (\d+)', self.muniment("metrics"))
        assert halted
        self.assertEqual(halted[1], "0")
        findings = [finding for finding in json.loads(self.muniment("--json", "doctor"))["findings"] if finding["subject"] == "runs"]
        self.assertEqual([(finding["level"], finding["text"]) for finding in findings],
                         [("ok", "none is halted"), ("note", "1 in closed logs was halted and cannot be recovered: continue each in a new run")])
        self.assertNotIn("muniment recover", findings[1]["fix"])
        self.assertIn("--continues", findings[1]["fix"])
        top = json.loads(self.muniment("--json", "top", "--once", "--interval", "0.2"))
        self.assertEqual(top["runs_halted"], 0)
        self.assertNotIn("alpha", [run["run_id"] for run in top["runs"]], "open in a log in which nothing happens any more")


@unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
class NotForYou(DaemonCase):
    """A file that may not be read is not reported as missing."""

    config = OTHERS_TOO
    shared = True

    def test_it_says_so(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            secret = os.path.join(folder, "secret")
            os.mkdir(secret, 0o700)
            backups = self.daemon.folder / "backups"
            self.assertEqual(ran("backup", backups, data=self.daemon.data).returncode, 0)
            self.daemon.let_others_in()
            for words in ((BUILD / "muniment-verify", "--data", self.daemon.data),
                          (BUILD / "muniment", "--data", f"{folder}/new", "restore", backups),
                          (BUILD / "muniment", "--socket", self.daemon.socket, "ingest", f"{secret}/file", "--corpus", "notes"),
                          (BUILD / "muniment", "--socket", self.daemon.socket, "sql", "-f", f"{secret}/query.sql"),
                          (BUILD / "muniment", "--socket", self.daemon.socket, "artifact", "put", f"{secret}/file", "--run", self.run_id),
                          (BUILD / "muniment", "--socket", self.daemon.socket, "import", f"{secret}/file")):
                with self.subTest(words=words[1:]):
                    done = subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FINISH_S, user=NOBODY, group=NOBODY,
                                          extra_groups=[], cwd="/", env={"HOME": folder, "PATH": os.environ["PATH"]})
                    self.assertNotEqual(done.returncode, 0)
                    self.assertIn("Permission denied", done.stderr)
                    self.assertTrue(any(path in done.stderr for path in (secret, str(backups), str(self.daemon.data / "database.uri"))), done.stderr)
                    self.assertNotRegex(done.stderr, "there is no |is no folder|no such file")


if __name__ == "__main__":
    main()
