"""Tests of muniment ingest and query: a folder becomes a corpus, only changes are sent, any file may be in the
folder; and of their output."""
from __future__ import annotations

import hashlib
import json
import os
import pathlib
import pty
import shutil
import subprocess
import tempfile
import threading
from typing import Any

from support import BUILD, DaemonCase, main, shared_data, wait_until

FINISH_S = 180.0


def pdf(text: str) -> bytes:
    """Returns a PDF of one page with one line of text and a correct cross-reference table."""
    content = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode()
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
               b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>",
               b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
               b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1, table, len(objects) + 1, len(out))


class IngestCase(DaemonCase):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-ingest-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.corpus = self._testMethodName[5:60]

    def write(self, path: str, data: bytes | str) -> pathlib.Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
        return file

    failpoint = ""   # armed in the command's process

    def command(self, *words: Any) -> list[str]:
        return [str(word) for word in (BUILD / "muniment", "--data", self.daemon.data, *words)]

    def muniment(self, *words: Any, code: int = 0) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        environment["MUNIMENT_FAILPOINT"] = self.failpoint
        done = subprocess.run(self.command(*words), stdin=subprocess.DEVNULL, capture_output=True, timeout=FINISH_S, env=environment)
        self.assertEqual(done.returncode, code, done.stderr.decode() + done.stdout.decode())
        self.errors = done.stderr.decode()
        return done.stdout.decode()

    def ingest(self, *words: Any, code: int = 0) -> dict[str, Any]:
        lines = self.muniment("--json", "ingest", self.folder, "--corpus", self.corpus, *words, code=code).splitlines()
        self.assertEqual(len(lines), 1)
        return json.loads(lines[0])

    def documents(self) -> dict[str, dict[str, Any]]:
        return {row["document"]: row for row in self.pages("document.list", "documents", corpus=self.corpus)}

    def query(self, text: str, *words: Any) -> dict[str, Any]:
        return json.loads(self.muniment("--json", "query", text, "--corpus", self.corpus, *words))["results"][0]


class Folders(IngestCase):
    def test_a_folder_becomes_documents_but_for_what_is_ignored(self) -> None:
        self.write("README.md", "# Bridge\n\nThe bridge opens at noon.\n")
        self.write("src/deep/a.py", "def toll():\n    return 3\n")
        self.write(".gitignore", "*.log\nout/\n")
        self.write("src/.gitignore", "!wanted.log\n")
        for path in ("x.log", "src/wanted.log", "src/x.log", "out/a.txt", ".hidden/a.txt", ".git/config"):
            self.write(path, "text of " + path)
        os.symlink(self.folder, self.folder / "src" / "loop")
        os.symlink("/etc/passwd", self.folder / "passwd")
        self.write("logo.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(40))
        report = self.ingest("--tag", "town", "--trust", "trusted")
        documents = self.documents()
        self.assertEqual(sorted(documents), ["README.md", "src/deep/a.py", "src/wanted.log"])
        self.assertEqual((report["added"], report["changed"], report["unchanged"]), (3, 0, 0))
        self.assertEqual({note["path"]: note["why"] for note in report["skipped"]["files"]},
                         {"src/loop": "a symbolic link; links are not followed", "passwd": "a symbolic link; links are not followed", "logo.png": "binary: a PNG image"})
        readme = documents["README.md"]
        self.assertEqual((readme["tags"], readme["trust"], readme["source"]), (["town"], "trusted", f"file://{self.folder.resolve()}"))
        # The command waited for the indexes.
        self.assertEqual(self.query("when does the bridge open")["cards"][0]["document"], "README.md")
        self.assertEqual(self.call("run.list", limit=1)["runs"][0]["run_id"], self.run_id)   # no run was started

    def test_only_what_changed_is_sent(self) -> None:
        for i in range(30):
            self.write(f"f{i}.txt", f"Fact number {i}.")
        self.assertEqual(self.ingest()["added"], 30)
        size = self.call("server.status")["log"]["size"]
        again = self.ingest()
        self.assertEqual((again["added"], again["changed"], again["unchanged"], again["seq"]), (0, 0, 30, -1))
        self.assertEqual(self.call("server.status")["log"]["size"], size)
        os.utime(self.folder / "f1.txt", (1, 1))   # a new modification time alone is not a change
        self.write("f2.txt", "Fact number 2 was wrong.")
        report = self.ingest()
        self.assertEqual((report["added"], report["changed"], report["unchanged"]), (0, 1, 29))
        self.assertEqual(self.ingest("--tag", "new")["changed"], 30)   # other metadata changes every document

    def test_a_dry_run_changes_nothing(self) -> None:
        self.write("a.txt", "A lantern.")
        self.assertEqual(self.ingest("--dry-run")["added"], 1)
        with self.refused("not_found"):
            self.call("document.list", corpus=self.corpus)
        text = self.muniment("ingest", self.folder, "--corpus", self.corpus, "--dry-run")
        self.assertRegex(text, r"(?m)^new +a\.txt$")

    def test_what_is_gone_is_reported_and_retracted_on_request(self) -> None:
        self.write("stays.txt", "The tower stands.")
        self.write("sub/goes.txt", "The shed stands.")
        self.call("corpus.ingest", corpus=self.corpus, documents=[{"id": "of-an-agent", "text": "No file at all."}])
        self.ingest()
        shutil.rmtree(self.folder / "sub")
        report = self.ingest()
        self.assertEqual([note["path"] for note in report["gone"]["files"]], ["sub/goes.txt"])
        self.assertIn("sub/goes.txt", self.documents())
        self.assertEqual(self.ingest("--prune", "--dry-run")["retracted"], 0)
        self.assertEqual(self.ingest("--prune", "--include", "*.md")["retracted"], 1)   # excluded files are not treated as deleted
        self.assertEqual(sorted(self.documents()), ["of-an-agent", "stays.txt"])

    def test_other_encodings_pdf_and_what_is_large_go_as_artifacts(self) -> None:
        self.write("latin.txt", "Le café est fermé pendant l'été à Genève.".encode("latin-1"))
        self.write("paper.pdf", pdf("The comet passed in the spring of 1910."))
        large = "".join(f"Line {i} of the ledger of the harbour.\n" for i in range(14_000))
        self.write("ledger.txt", large + "The whale was sold.\n")
        self.write("quotes.txt", '"' * 470_000)   # twice as long in JSON
        report = self.ingest()
        self.assertEqual((report["added"], report["failed"]["count"]), (4, 0))
        self.assertEqual(self.call("run.get", run_id=report["run_id"])["run"]["status"], "ended")
        self.assertEqual(self.documents()["paper.pdf"]["format"], "pdf")
        self.assertEqual(self.query("in which spring did the comet pass")["cards"][0]["document"], "paper.pdf")
        self.assertEqual(self.query('"café est fermé"', "--mode", "lexical")["cards"][0]["document"], "latin.txt")
        self.assertEqual(self.ingest()["unchanged"], 4)
        self.muniment("document", "get", self.corpus, "ledger.txt", "-o", self.folder / "back")
        self.assertEqual((self.folder / "back").read_bytes(), (self.folder / "ledger.txt").read_bytes())
        row = self.documents()["latin.txt"]
        bytes_hash = hashlib.sha256((self.folder / "latin.txt").read_bytes()).digest()
        self.assertEqual(row["hash"], hashlib.sha256(bytes_hash + row["chunker"].encode()).hexdigest())

    def test_what_cannot_be_a_document_is_named_and_the_rest_goes_in(self) -> None:
        self.write("good.txt", "Good.")
        with open(self.folder / "huge.txt", "wb") as file:
            file.truncate((256 << 20) + 1)
        pathlib.Path(os.fsdecode(os.fsencode(self.folder) + b"/na\xefve.txt")).write_text("a name")
        self.write("new\nline.txt", "two lines")
        self.write("broken.pdf", b"%PDF-1.4\nnothing else")
        report = self.ingest(code=1)
        why = {note["path"]: note["why"] for note in report["failed"]["files"]}
        self.assertEqual((report["added"], len(why)), (1, 4), why)
        self.assertRegex(why["huge.txt"], "larger than 256")
        self.assertRegex(" ".join(why.values()), "not UTF-8.*|control characters")
        text = self.muniment("ingest", self.folder, "--corpus", self.corpus, code=1)
        self.assertIn("could not be ingested", text)
        self.assertIn("huge.txt", self.errors)

    def test_wide_text_without_a_mark_is_read_and_a_nul_elsewhere_is_named(self) -> None:
        self.write("a.md", "The first note.")
        self.write("le.csv", "Date,Bid\r\n2026-01-02,7 pangolins\r\n".encode("utf-16-le"))
        self.write("be.txt", "Насос и сурикат\n".encode("utf-16-be"))
        self.write("ja.txt", "排水ポンプの一\n".encode("utf-16-le"))
        self.write("late.log", "A line of the log.\n" * 2_000 + "\0 and more\n")
        self.write("z.md", "The last note.")
        report = self.ingest(code=1)
        self.assertEqual([note["path"] for note in report["failed"]["files"]], ["late.log"])
        self.assertIn("NUL", report["failed"]["files"][0]["why"])
        self.assertEqual((report["added"], report["skipped"]["count"]), (5, 0))
        self.assertEqual(self.query("pangolins", "--mode", "lexical")["cards"][0]["document"], "le.csv")
        self.assertEqual(self.query("сурикат", "--mode", "lexical")["cards"][0]["document"], "be.txt")
        self.assertEqual(self.ingest(code=1)["unchanged"], 5)

    def test_a_table_in_wide_text_beside_notes(self) -> None:
        case = shared_data().parent / "cases" / "utf16-nobom"
        if not case.is_dir():
            self.skipTest(f"no {case}")
        report = json.loads(self.muniment("--json", "ingest", case, "--corpus", self.corpus, "--exclude", "README.md"))
        self.assertEqual((report["added"], report["failed"]["count"]), (3, 0))

    def test_a_file_that_never_holds_still_is_said_and_the_rest_goes_in(self) -> None:
        self.write("calm.txt", "Calm.")
        busy = self.write("busy.txt", "word")
        stop = threading.Event()

        def touch() -> None:
            with open(busy, "r+b") as file:
                while not stop.is_set():
                    file.seek(0)
                    file.write(b"W")
                    file.flush()

        writer = threading.Thread(target=touch)
        writer.start()
        try:
            self.failpoint = "ingest.read=sleep:500@1+"   # ensures that the writer runs between the read and the check
            report = self.ingest(code=1)
        finally:
            stop.set()
            writer.join()
        self.assertEqual([(note["path"], note["why"][:7]) for note in report["failed"]["files"]], [("busy.txt", "changed")])
        self.assertEqual(sorted(self.documents()), ["calm.txt"])

    def test_a_call_that_was_killed_is_made_again_and_loses_nothing(self) -> None:
        for i in range(1_500):
            self.write(f"d{i % 7}/f{i}.txt", f"Entry {i} of the register, written by clerk {i % 13}.")
        process = subprocess.Popen(self.command("ingest", self.folder, "--corpus", self.corpus), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def some() -> int:
            return next((row["documents"] for row in self.call("corpus.list")["corpora"] if row["corpus"] == self.corpus), 0)

        try:
            wait_until(lambda: some() > 0 or process.poll() is not None, "the first batch is in")
        finally:
            process.kill()
            process.wait()
        had = some()
        report = self.ingest()
        self.assertEqual(report["added"] + report["unchanged"], 1_500)
        self.assertGreaterEqual(report["unchanged"], had)
        self.assertEqual(some(), 1_500)
        self.assertEqual(self.ingest()["unchanged"], 1_500)

    def test_two_folders_with_the_same_names_do_not_overwrite_each_other(self) -> None:
        self.write("one/a.txt", "One.")
        self.write("two/a.txt", "Two.")
        report = json.loads(self.muniment("--json", "ingest", self.folder / "one", self.folder / "two", "--corpus", self.corpus, code=1))
        self.assertEqual((report["added"], report["failed"]["count"]), (1, 1))

    def test_a_single_file_is_taken_whatever_the_rules_say(self) -> None:
        self.write(".gitignore", "*\n")
        file = self.write("note.txt", "The ferry leaves at six.")
        report = json.loads(self.muniment("--json", "ingest", file, "--corpus", self.corpus, "--source", "diary"))
        self.assertEqual(report["added"], 1)
        self.assertEqual({name: row["source"] for name, row in self.documents().items()}, {"note.txt": "diary"})


class Words(IngestCase):
    def test_cards_and_why_there_are_none(self) -> None:
        self.write("ports.md", "# Ports\n\n## Proxy\n\nThe proxy listens on port 8080.\n")
        seq = self.ingest()["seq"]
        text = self.muniment("query", "proxy port", "--corpus", self.corpus, "--full")
        self.assertRegex(text, r"(?m)^ 1  Ports")
        self.assertRegex(text, rf"ev://{self.corpus}/ports\.md#p0\?v=[0-9a-f]{{16}}")
        self.assertIn("│ The proxy listens on port 8080.", text)
        self.assertIn("verified  sha256 ", text)
        self.write("ports.md", "# Ports\n\n## Proxy\n\nThe proxy listens on port 9090.\n")
        self.ingest()
        self.assertIn("9090", self.muniment("query", "proxy port", "--corpus", self.corpus))
        then = self.muniment("query", "proxy port", "--corpus", self.corpus, "--asof", seq, "--full")
        self.assertIn("8080", then)
        self.assertIn("verified", then)
        for question, command in ((("x", "--corpus", "nowhere"), "corpus list"), (("run:nobody x",), "run list")):
            self.assertEqual(self.muniment("query", *question, code=1), "")
            self.assertRegex(self.errors, rf"muniment: not_found: .* See: muniment --data \S+ {command}")
        self.assertIn("no match", self.muniment("query", "xylophone", "--corpus", self.corpus, "--mode", "lexical"))
        self.assertRegex(self.muniment("query", "proxy", "--corpus", self.corpus, "--explain"), "(?s)score .*plan .*lanes ")
        history = self.muniment("document", "history", self.corpus, "ports.md").splitlines()
        self.assertEqual([line.split("\t")[-1].split()[0] for line in history], ["current", "revised"])
        self.assertRegex(self.muniment("document", "diff", self.corpus, "ports.md"), "1 removed, 1 added")

    def test_what_stands_in_a_document_cannot_drive_the_terminal(self) -> None:
        self.write("evil.txt", "Gondola \x1b[31mred\x1b]0;title\x07 \u202eright to left.")
        self.ingest()
        main_end, other_end = pty.openpty()
        done = subprocess.Popen(self.command("query", "gondola", "--corpus", self.corpus, "--full"), stdin=subprocess.DEVNULL, stdout=other_end, stderr=other_end,
                                env={**os.environ, "NO_COLOR": "1"})
        os.close(other_end)
        shown = b""
        with os.fdopen(main_end, "rb", buffering=0) as terminal:
            while True:
                try:
                    piece = terminal.read(65536)
                except OSError:   # the other end is closed
                    break
                if not piece:
                    break
                shown += piece
        self.assertEqual(done.wait(FINISH_S), 0, shown)
        self.assertIn(b"Gondola", shown)
        for character in ("\x1b", "\x07", "\u202e"):
            self.assertNotIn(character.encode(), shown)

    def test_retract_revoke_and_feedback(self) -> None:
        self.write("a.txt", "The mill grinds wheat.")
        self.write("b.txt", "The mill grinds barley.")
        self.ingest("--source", "hearsay:" + self.corpus)
        card = self.query("mill barley")["cards"][0]["id"]
        self.assertRegex(self.muniment("feedback", card, "-1"), r"^recorded  seq \d+$")
        self.muniment("feedback", card, "2", code=3)
        self.assertIn("retracted", self.muniment("document", "retract", self.corpus, "a.txt", "--reason", "it was wrong"))
        self.muniment("document", "retract", self.corpus, "a.txt", "--reason", "again", code=1)
        self.assertRegex(self.muniment("source", "revoke", "hearsay:" + self.corpus, "--reason", "made up"), r"^revoked with \d revisions  seq \d+$")
        self.assertEqual(self.query("mill")["cards"], [])
        self.assertEqual(self.muniment("pointer", "resolve", card, code=1).split()[0], "NOT_FOUND")
        self.assertIn(self.corpus, [line.split("\t")[0] for line in self.muniment("corpus", "list").splitlines()])


if __name__ == "__main__":
    main()
