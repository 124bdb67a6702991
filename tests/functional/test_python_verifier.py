"""Tests of clients/python/muniment_verify.py with logs that the test creates and signs: a complete log is verified,
and each change is refused by the check that it violates.
"""
from __future__ import annotations

import base64
import contextlib
import copy
import importlib.util
import io
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from typing import Any, Callable, Optional

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "audit"
BUILD = pathlib.Path(os.environ.get("MUNIMENT_BUILD", ROOT / "build-test"))
SCRIPT = ROOT / "clients" / "python" / "muniment_verify.py"
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "tests" / "golden")]

import make_audit  # noqa: E402
from make_log import LogMaker  # noqa: E402
from published_log import Key, PublishedLog, audited_run, b64, files_of, inclusion, lines_of, note, write_tar  # noqa: E402

spec = importlib.util.spec_from_file_location("muniment_verify", SCRIPT)
assert spec and spec.loader
muniment_verify = importlib.util.module_from_spec(spec)
spec.loader.exec_module(muniment_verify)

RUN = "audited"
SEED = int(os.environ.get("SEED") or random.randrange(10**9))


class Case(unittest.TestCase):
    """Each test has a log of its own, its key in `key`, and a folder for the verified files."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-pyverify-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.log = PublishedLog(audited_run(LogMaker(str(cls.folder / "artifacts"))))
        cls.key = cls.folder / "log.pub"
        cls.key.write_text(cls.log.trusted())

    def verify(self, *arguments: Any, key: Optional[pathlib.Path] = None, keyless: bool = False) -> tuple[int, dict[str, Any]]:
        """Verifies in this process: a thousand calls take a second."""
        keys = [] if keyless else ["--key", str(key or self.key)]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = muniment_verify.main([*map(str, arguments), *keys, "--json"])
        return code, json.loads(out.getvalue())

    def good(self, *arguments: Any, **more: Any) -> dict[str, Any]:
        code, report = self.verify(*arguments, **more)
        self.assertEqual((code, report["verdict"], report["first_bad"]), (0, "verified", None), report)
        return report

    def bad(self, check: str, *arguments: Any, **more: Any) -> dict[str, Any]:
        code, report = self.verify(*arguments, **more)
        self.assertEqual((code, report["verdict"]), (1, "tampered"), report)
        self.assertEqual(report["first_bad"]["check"], check, report["first_bad"])
        return report["first_bad"]

    def wrong_key(self, *arguments: Any, **more: Any) -> None:
        """Expects a wrong key as the only problem, with the needed and the given keys (for a note without signatures, only these)."""
        code, report = self.verify(*arguments, **more)
        self.assertEqual((code, report["verdict"], report["first_bad"]), (2, "wrong_key", None), report)
        self.assertTrue(report["wrong_key"]["needed"] and report["wrong_key"]["given"], report["wrong_key"])

    def path(self, name: str, data: str | bytes) -> pathlib.Path:
        path = self.folder / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def flips(self, data: bytes, count: Optional[int] = None) -> list[tuple[int, bytes]]:
        """Returns (position, bytes) with one byte changed, at every position or at `count` random ones."""
        rng = random.Random(SEED)
        positions = range(len(data)) if count is None or count >= len(data) else sorted(rng.sample(range(len(data)), count))
        return [(at, data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]) for at in positions]


class Proofs(Case):
    def test_every_event_at_every_size(self) -> None:
        for size in range(1, len(self.log.leaves) + 1):
            text = self.log.note(size)
            for seq in range(size):
                report = self.good("--proof", self.path("p", self.log.proof(seq, size, text)))
                self.assertEqual((report["upto"], report["event"]["seq"]), (seq, seq))

    def test_a_receipt(self) -> None:
        proof = self.path("p", self.log.proof(7))
        receipt = self.log.receipt(7)
        self.good("--proof", proof, "--receipt", self.path("r", json.dumps(receipt)))
        for name, value in {"seq": 8, "run_seq": 99, "event_id": self.log.receipt(8)["event_id"], "body_hash": "0" * 64,
                            "run_hash": receipt["leaf_hash"], "leaf_hash": receipt["run_hash"],
                            "recorded_at": self.log.receipt(8)["recorded_at"]}.items():
            with self.subTest(name):
                self.bad("receipt", "--proof", proof, "--receipt", self.path("r", json.dumps({**receipt, name: value})))
        del receipt["run_hash"]
        self.bad("receipt", "--proof", proof, "--receipt", self.path("r", json.dumps(receipt)))

    def test_a_signature_line_without_a_signature_is_refused(self) -> None:
        proof = self.path("p", self.log.proof(7) + f"— grease {b64(b'abcd')}\n")   # a key id without a signature
        self.assertEqual(self.verify("--proof", proof)[0], 4)
        self.assertEqual(subprocess.run([BUILD / "muniment-verify", "--proof", proof, "--key", self.key], capture_output=True).returncode, 4)

    def test_every_byte_of_a_proof_counts(self) -> None:
        with self.subTest(f"SEED={SEED}"):
            for at, data in self.flips(self.log.proof(7).encode()):
                code, report = self.verify("--proof", self.path("p", data))
                self.assertIn(code, (1, 2, 4), (at, report))

    def test_what_is_not_the_proof_of_this_event(self) -> None:
        head, _, text = self.log.proof(7).partition("\n\n")
        lines = head.split("\n")
        other = self.log.proof(8).split("\n")
        cases = {"a middle removed": (lines[:4] + lines[5:], "inclusion"), "the last removed": (lines[:-1], "inclusion"),
                 "one added": (lines + [lines[3]], "inclusion"), "two swapped": (lines[:3] + [lines[4], lines[3]] + lines[5:], "inclusion"),
                 "another entry": ([lines[0], other[1], *lines[2:]], "inclusion"), "another index": (lines[:2] + other[2:3] + lines[3:], "inclusion"),
                 "no entry": ([lines[0], *lines[2:]], "proof"), "another version": (["c2sp.org/tlog-proof@v2", *lines[1:]], "proof"),
                 "an index with a zero": (lines[:2] + ["index 07"] + lines[3:], "proof"),
                 "a byte after the entry": ([lines[0], "extra " + b64(self.log.entries[7] + b"\0"), *lines[2:]], "proof"),
                 "nothing": ([], "proof")}
        for name, (changed, check) in cases.items():
            with self.subTest(name):
                path = self.path("p", "\n".join(changed) + "\n\n" + text)
                if check == "proof":   # an invalid proof
                    self.assertEqual(self.verify("--proof", path)[0], 4)
                else:
                    self.bad(check, "--proof", path)
        self.bad("inclusion", "--proof", self.path("p", self.log.proof(7, text=self.log.note(7))))

    def test_an_event_that_the_tree_does_not_hold(self) -> None:
        """The entry is well-formed and the proof's arithmetic is correct, but for another tree."""
        leaves = self.log.leaves[:9]
        forged = bytearray(self.log.entries[4])
        forged[-1] ^= 1
        lines = ["c2sp.org/tlog-proof@v1", f"extra {b64(bytes(forged))}", "index 4", *map(b64, inclusion(leaves, 4))]
        self.assertEqual(self.bad("inclusion", "--proof", self.path("p", "\n".join(lines) + "\n\n" + self.log.note(9)))["seq"], 4)


class Notes(Case):
    """Tests of notes, by means of proofs, which contain one."""

    def proof(self, text: str) -> pathlib.Path:
        return self.path("p", self.log.proof(3, text=text))

    def test_keys(self) -> None:
        old, new, stranger = self.log.keys[0], Key(self.log.origin, "new"), Key(self.log.origin, "stranger")
        both = self.path("both", f"# rotated\n\n{old.vkey}\n{new.vkey}\n")
        self.assertEqual(len(self.good("--proof", self.proof(self.log.note(keys=[old, new])), key=both)["signed_by"]), 2)
        self.good("--proof", self.proof(self.log.note(keys=[stranger, old])))
        self.good("--proof", self.proof(self.log.note(keys=[new])), key=both)
        self.wrong_key("--proof", self.proof(self.log.note(keys=[new])))
        self.wrong_key("--proof", self.proof(self.log.note(keys=[stranger])), key=both)

    def test_a_key_of_another_name_does_not_sign_for_this_origin(self) -> None:
        other = Key("muniment.test/another", "log")
        self.wrong_key("--proof", self.proof(self.log.note(keys=[other])), key=self.path("k", other.vkey))

    def test_a_signature_that_a_trusted_key_never_made_spoils_the_note(self) -> None:
        old, new = self.log.keys[0], Key(self.log.origin, "new")
        both = self.path("both", f"{old.vkey}\n{new.vkey}\n")
        good, other = self.log.note(keys=[old]), note(self.log.origin, 5, bytes(32), [new])
        self.bad("signature", "--proof", self.proof(good + other.split("\n\n")[1]), key=both)

    def test_cosignatures(self) -> None:
        witness = Key("witness.test/w", "w", 4)
        keys = self.path("keys", self.log.trusted() + witness.vkey + "\n")
        self.assertEqual(len(self.good("--proof", self.proof(self.log.note(keys=[*self.log.keys, witness])), key=keys)["witnesses"]), 1)
        alone = self.log.note(keys=[witness])
        self.wrong_key("--proof", self.proof(alone), key=keys)
        moved = witness.sign(self.log.note().partition("\n\n")[0] + "\n", 7)
        forged = b64(witness.id + (8).to_bytes(8, "big") + base64.b64decode(moved.split()[2])[12:])
        self.bad("signature", "--proof", self.proof(self.log.note() + f"— {witness.name} {forged}\n"), key=keys)

    def test_forms_that_are_no_notes(self) -> None:
        text = self.log.note()
        origin, size, root, empty, signature = text.split("\n")[:5]
        for name, lines in {"four lines": [origin, size, root, "more", "", signature], "two lines": [origin, root, "", signature],
                            "a leading zero": [origin, "0" + size, root, "", signature], "no empty line": [origin, size, root, signature],
                            "a second empty line": [origin, size, root, "", "", signature], "a short root": [origin, size, root[4:], "", signature],
                            "text after": [origin, size, root, "", signature, "text"], "a bell": [origin, size, root, "", signature + "\a"],
                            "a hyphen": [origin, size, root, "", signature.replace("—", "-")]}.items():
            with self.subTest(name):
                self.assertEqual(self.verify("--proof", self.proof("\n".join(lines) + "\n"))[0], 4)

    def test_without_signatures_it_is_unsigned(self) -> None:
        text = self.log.note(keys=[])
        for unsigned in (text, text[:-1], self.log.note()):
            code, report = self.verify("--proof", self.proof(unsigned), keyless=True)
            self.assertEqual((code, report["verdict"], report["signed_by"]), (2, "unsigned", []))
        self.wrong_key("--proof", self.proof(text))   # perhaps older than the log's key, and not stripped of its signatures
        both = self.path("both", Key("muniment.test/01a20208-075f-763d-bb4a-c157df958f8f", "x").vkey + "\n" + self.log.trusted())
        self.wrong_key("--proof", self.proof(text), key=both)

    def test_another_logs_key_misses_no_signature(self) -> None:
        other = Key("muniment.test/01a20208-075f-763d-bb4a-c157df958f8f", "x")
        code, report = self.verify("--proof", self.proof(self.log.note(keys=[])), key=self.path("other", other.vkey + "\n"))
        self.assertEqual((code, report["verdict"], report["first_bad"]), (2, "wrong_key", None), report)
        self.assertEqual((report["wrong_key"]["needed"], report["wrong_key"]["signed by"]), ([self.log.origin], []))

    def test_a_file_that_holds_no_key_cannot_be_read(self) -> None:
        for text in ("", "\n", "# none\n"):
            code, report = self.verify("--proof", self.proof(self.log.note()), key=self.path("none", text))
            self.assertEqual((code, report["verdict"], report["first_bad"]["check"]), (4, "unreadable", "key"), report)


class Tiles(Case):
    def tiles(self, log: Optional[PublishedLog] = None, size: Optional[int] = None, text: Optional[str] = None) -> pathlib.Path:
        folder = self.folder / "tiles"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (log or self.log).write_tiles(folder, size, text)
        return folder

    def test_every_size_and_every_older_checkpoint(self) -> None:
        for size in range(1, len(self.log.leaves) + 1):
            folder = self.tiles(size=size)
            self.assertEqual(self.good("--tiles", folder)["upto"], size - 1)
        for older in range(1, len(self.log.leaves) + 1):
            self.good("--tiles", folder, "--checkpoint", self.path("old", self.log.note(older)))
        self.good("--tiles", folder, "--checkpoint", self.path("old", self.log.note(20, keys=[])))   # older than the log's key

    def test_an_empty_log(self) -> None:
        self.assertEqual(self.good("--tiles", self.tiles(size=0))["upto"], -1)

    def test_levels(self) -> None:
        plain = LogMaker(str(self.folder / "none"))
        plain.append("_log", "log.started", {}, origin=1)
        for n in range(65_600):
            plain.append("_log", "x.test.noted", f'{{"n":{n}}}')
        log = PublishedLog(plain, keys=[Key(f"muniment.test/{plain.log_id}")])
        key = self.path("plain.pub", log.trusted())
        for size in (255, 256, 257, 512):
            self.good("--tiles", self.tiles(log, size), key=key)
        folder = self.tiles(log)
        self.assertEqual(self.good("--tiles", folder, key=key)["upto"], 65_600)
        path = folder / "tile/2/000.p/1"
        path.write_bytes((folder / "tile/1/000").read_bytes()[:32])
        self.bad("tile", "--tiles", folder, key=key)

    def test_every_byte_counts(self) -> None:
        folder = self.tiles(size=9)
        with self.subTest(f"SEED={SEED}"):
            for path in [path for path in folder.rglob("*") if path.is_file()]:
                whole = path.read_bytes()
                for at, data in self.flips(whole):
                    path.write_bytes(data)
                    self.assertIn(self.verify("--tiles", folder)[0], (1, 2, 4), f"{path.relative_to(folder)} at {at}")
                path.write_bytes(whole)
        self.good("--tiles", folder)

    def test_files_may_be_ahead_of_the_checkpoint_and_older_widths_stay(self) -> None:
        folder = self.tiles(size=9)
        self.log.write_tiles(folder, 20)
        (folder / "checkpoint").write_text(self.log.note(9))
        self.good("--tiles", folder)
        (folder / "checkpoint").write_text(self.log.note(20))
        self.good("--tiles", folder)
        old = folder / "tile/0/000.p/9"
        old.write_bytes(old.read_bytes()[:-1] + b"\0")
        self.bad("tile", "--tiles", folder)

    def test_what_lies_beside_the_tiles_is_named_or_listed(self) -> None:
        for name in ("stray", "tile/0/x000/001", "tile/0/0", "tile/8/000", "tile/0/000.p/256", "tile/0/000.p/300", "tile/0/000.p/01", "tile/entries/000.p/x", "tile/entries/.new"):
            with self.subTest(name):
                folder = self.tiles()
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(b"?")
                self.assertIn(name, self.bad("tile", "--tiles", folder)["actual"])
        folder = self.tiles()
        (folder / "link").symlink_to(folder / "checkpoint")
        self.bad("tile", "--tiles", folder)
        folder = self.tiles()
        self.assertEqual(self.good("--tiles", folder)["not_checked"], [])
        (folder / ".new").write_bytes(b"half of a ti")
        (folder / "tile/0/001").write_bytes(b"?")
        self.assertEqual([text.split(" ")[0] for text in sorted(self.good("--tiles", folder)["not_checked"])], ["1", "tiles/.new"])

    def test_another_history(self) -> None:
        """Signed by the right key and consistent, but different from the history that was signed earlier."""
        other = LogMaker(str(self.folder / "other"), seed="sample")
        audited_run(other, "another")
        other = PublishedLog(other, keys=self.log.keys)
        self.assertEqual(other.origin, self.log.origin)
        folder, kept = self.tiles(other), self.path("old", self.log.note(20))
        self.good("--tiles", folder)
        self.bad("consistency", "--tiles", folder, "--checkpoint", kept)
        self.bad("consistency", "--tiles", self.tiles(size=19), "--checkpoint", kept)
        self.wrong_key("--tiles", self.tiles(), "--checkpoint", self.path("old", self.log.note(20, keys=[Key(self.log.origin, "x")])))

    def test_a_signed_log_whose_run_does_not_chain(self) -> None:
        log = copy.copy(self.log)
        log.entries = [*self.log.entries[:-1], self.log.entries[-1][:-64] + bytes(32) + self.log.entries[-1][-32:]]
        log.leaves = [muniment_verify.sha256(b"\0", entry) for entry in log.entries]
        self.assertEqual(self.bad("run_chain", "--tiles", self.tiles(log))["seq"], len(log.entries) - 1)


class Bundles(Case):
    def write(self, members: dict[str, bytes], head: Optional[dict[str, Any]] = None, name: str = "b") -> pathlib.Path:
        """Writes a bundle whose bundle.json has the hashes of its members, as an attacker would."""
        head = head or {**self.log.bundle_head(RUN, {**members, "checkpoint": self.log.note().encode()}), "files": files_of(members)}
        path = self.folder / name
        write_tar(path, {"bundle.json": json.dumps(head).encode(), **members})
        return path

    def setUp(self) -> None:
        self.members = self.log.bundle_members(RUN)

    def test_other_sizes_and_compressed(self) -> None:
        for size in (24, 25, 26):
            self.log.write_bundle(self.folder / "b", RUN, size)
            self.good("--bundle", self.folder / "b")
        self.log.write_bundle(self.folder / "b.muniment.tar.zst", RUN)
        report = self.good("--bundle", self.folder / "b.muniment.tar.zst")
        self.assertEqual((report["redactions"], report["counts"]), ([18], {"events": 19, "files": 2}))

    def test_bytes_of_members_count(self) -> None:
        """Excludes `keys` and the members of bundle.json that are only informative."""
        with self.subTest(f"SEED={SEED}"):
            for name, whole in self.members.items():
                for at, data in self.flips(whole, 60) if name != "keys" else ():
                    if any(whole[max(0, at - back):].startswith(b'"log_no"') for back in range(12)):
                        continue
                    code, report = self.verify("--bundle", self.write({**self.members, name: data}))
                    self.assertIn(code, (1, 2, 4), f"{name} at {at}: {whole[max(0, at - 40):at + 20]!r}")

    def test_bytes_count_without_new_hashes_too(self) -> None:
        head = self.log.bundle_head(RUN, self.members)
        for name, whole in self.members.items():
            for _, data in self.flips(whole, 5):
                self.bad("bundle", "--bundle", self.write({**self.members, name: data}, head))

    def test_a_bundle_cut_anywhere_reads_as_ended_only_with_its_end(self) -> None:
        """The proof of a bundle without the run's last events holds. Both verifiers say that the run is open there."""
        maker = audited_run(LogMaker(str(self.folder / "cut")))
        maker.append(RUN, "run.resumed", {"kind": "reopened", "why": "one more thing"})
        maker.claim(RUN, "The rest passes.", [])
        maker.append(RUN, "run.halted", {"code": "SYSTEM_ERROR", "reason": "r", "pointer": "manifest://m", "attempts": 2}, origin=1)
        maker.append(RUN, "run.resumed", {"kind": "recovered", "why": "it is back"})
        maker.append(RUN, "run.ended", {"outcome": "failure"})
        maker.snapshot(RUN)
        log = PublishedLog(maker)
        events = log.log.runs[RUN]["events"]
        erased = next(event["run_seq"] for event in events if event["body"] is None)
        announced = next(event["run_seq"] for event in events if event["type"] == "event.redacted")
        end, seen = {"status": "open", "outcome": None, "seq": None}, []
        for count, event in enumerate(events, 1):
            if event["type"] in muniment_verify.LIFE:
                status = muniment_verify.LIFE[event["type"]]
                end = {"status": status, "outcome": json.loads(event["body"]).get("outcome") if status == "ended" else None,
                       "seq": None if status == "open" else event["seq"]}
            members = log.bundle_members(RUN, cut=event["seq"] + 1)
            path = self.write(members, {**log.bundle_head(RUN, members), "files": files_of(members)})
            code, report = self.verify("--bundle", path)
            done = subprocess.run([BUILD / "muniment-verify", "--bundle", path, "--key", self.key, "--json"], capture_output=True, text=True)
            with self.subTest(events=count):
                tampered = erased < count <= announced   # an erasure that no event announces
                self.assertEqual((code, done.returncode), (tampered, tampered), done.stdout)
                self.assertEqual([report.get("run_end"), json.loads(done.stdout)["run_end"]], [None if tampered else end] * 2)
                shown = [self.printed(path), subprocess.run([BUILD / "muniment-verify", "--bundle", path, "--key", self.key], capture_output=True, text=True).stdout]
                words = {"open": "run OPEN at the end of this bundle", "halted": f"run HALTED at seq {end['seq']}",
                         "ended": f"run ended with {end['outcome']} at seq {end['seq']}"}
                for text in shown:
                    self.assertEqual([word for word in words.values() if word in text], [] if tampered else [words[end["status"]]], text)
                    self.assertIn("exported_at, README.md and report.html", " ".join(text.split()))
                seen.append(end["status"])
        self.assertEqual(set(seen), {"open", "halted", "ended"})

    def test_the_badges_of_a_report_name_an_outcome_only_beside_a_proof(self) -> None:
        """"success" beside "proven" would read as a proof of success."""
        maker = audited_run(LogMaker(str(self.folder / "badges")))
        maker.append(RUN, "run.resumed", {"kind": "reopened", "why": "one more thing"})
        maker.append(RUN, "run.ended", {"outcome": "success"})
        maker.append("sure", "run.started", {"run_id": "sure", "agent": {"name": "a"}})
        maker.append("sure", "run.ended", {"outcome": "success"})
        log = PublishedLog(maker)
        last = log.log.runs[RUN]["events"][-1]["seq"]
        for run, cut, badge in ((RUN, last + 1, "ended; 1 claim not verified"), (RUN, last, "run OPEN at the end of this bundle"), ("sure", None, "ended: success")):
            with self.subTest(badge):
                members, report = log.bundle_members(run, cut=cut), self.folder / "report.html"
                path = self.write(members, {**log.bundle_head(run, members), "files": files_of(members)})
                done = subprocess.run([BUILD / "muniment", "audit", "report", "--bundle", path, "--key", self.key, "-o", report], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual("run OPEN" in done.stdout, "OPEN" in badge, done.stdout)
                badges = re.findall(r'<span class="badge[^"]*">([^<]*)</span>', report.read_text())
                self.assertEqual([text for text in badges if "erased" not in text and "origin" not in text], [badge, "proven, signed"])

    def printed(self, path: pathlib.Path) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            muniment_verify.main(["--bundle", str(path), "--key", str(self.key)])
        return out.getvalue()

    def rows(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.members[name].splitlines()]

    def test_rows(self) -> None:
        checks = {"artifacts.jsonl": "artifact_row", "manifests.jsonl": "manifest", "snapshots.jsonl": "snapshot", "claims.jsonl": "claim",
                  "evidence.jsonl": "evidence"}
        for name, check in checks.items():
            rows = self.rows(name)
            changes: dict[str, Callable[[], list[dict[str, Any]]]] = {
                "removed": lambda: rows[1:], "twice": lambda: rows + rows[:1], "none": lambda: []}
            for column, value in rows[0].items():
                if column != "log_no":
                    changes[column] = lambda c=column, v=value: [{**rows[0], c: other(v)}, *rows[1:]]
                    changes[f"{column} gone"] = lambda c=column: [{k: v for k, v in rows[0].items() if k != c}, *rows[1:]]
            for what, change in changes.items():
                with self.subTest(f"{name}: {what}"):
                    self.bad(check, "--bundle", self.write({**self.members, name: lines_of(change())}))

    def test_events(self) -> None:
        events = self.rows("events.jsonl")
        def with_change(n: int, **change: Any) -> bytes:
            return lines_of([*events[:n], {**events[n], **change}, *events[n + 1:]])

        for column, value in events[1].items():
            with self.subTest(column):
                check = "body_hash" if column in ("body", "salt", "body_hash") else "run_seq" if column in ("run_no", "run_seq") else None
                found = self.verify("--bundle", self.write({**self.members, "events.jsonl": with_change(1, **{column: other(value)})}))[1]
                self.assertEqual(found["verdict"], "tampered")
                if check:
                    self.assertEqual(found["first_bad"]["check"], check)
        cases = {"erased in silence": (with_change(1, body=None, salt=None), "redaction"), "one removed": (lines_of(events[:4] + events[5:]), "run_seq"),
                 "the first removed": (lines_of(events[1:]), "run_seq"), "the last removed": (lines_of(events[:-1]), "checkpoint_root"),
                 "two swapped": (lines_of([events[0], events[2], events[1], *events[3:]]), "run_seq")}
        for what, (data, check) in cases.items():
            with self.subTest(what):
                self.bad(check, "--bundle", self.write({**self.members, "events.jsonl": data}))

    def test_a_rewritten_run_does_not_lead_to_the_root(self) -> None:
        forged = LogMaker(str(self.folder / "forged"))
        audited_run(forged)
        forged = PublishedLog(forged)
        event = forged.log.runs[RUN]["events"][1]
        event["body"] = event["body"].replace("é", "e")
        event["body_hash"] = muniment_verify.sha256(event["salt"], event["body"].encode())
        last = bytes(32)
        for event in forged.log.runs[RUN]["events"]:
            entry = muniment_verify.decode_entry(forged.entries[event["seq"]])
            last = event["run_hash"] = muniment_verify.sha256(b"\x10", muniment_verify.encode_entry(
                {**entry, "body_hash": event["body_hash"], "previous": last}))
        self.bad("checkpoint_root", "--bundle", self.write({**self.members, "events.jsonl": forged.bundle_members(RUN)["events.jsonl"]}))

    def test_nodes(self) -> None:
        """Both verifiers refuse every form of `nodes` but the canonical one, even if it leads to the root."""
        lines = self.members["nodes"].splitlines(keepends=True)
        level, index, value = lines[-1].split(b" ")
        left, right = (muniment_verify.root_of(self.log.leaves, {}, at, at + (1 << int(level) - 1)) for at in (int(index) << int(level), (2 * int(index) + 1) << int(level) - 1))
        self.assertEqual(b64(muniment_verify.sha256(b"\1", left, right)).encode(), value.strip())
        halves = sorted([*lines[:-1], *(f"{int(level) - 1} {2 * int(index) + n} {b64(half)}\n".encode() for n, half in enumerate((left, right)))],
                        key=lambda line: [int(word) for word in line.split()[:2]])
        first = lines[0].split(b" ")
        raw = base64.b64decode(first[2])
        def with_first(*words: bytes) -> list[bytes]:
            return [b" ".join(words), *lines[1:]]

        for name, changed in {"one removed": lines[1:], "one more": lines + [b"0 9999 " + lines[0].split(b" ")[2]],
                              "one over the run's own leaf": [*lines, b"0 4 " + lines[0].split(b" ")[2]], "swapped": [
                                  b" ".join([*lines[0].split(b" ")[:2], lines[1].split(b" ")[2]]), *lines[1:]], "none": [], "a vertical tab": [lines[0].replace(b"\n", b"\v"), *lines[1:]],
                              "the last one's": [*lines[:-1], lines[-1].replace(b"\n", b"\v")], "two halves of a node": halves, "another order": lines[1:] + lines[:1],
                              "twice": lines[:1] + lines, "a sign": with_first(b"+" + first[0], *first[1:]), "a zero": with_first(first[0], b"0" + first[1], first[2]),
                              "an underscore": with_first(first[0], b"0_" + first[1], first[2]), "two blanks": with_first(first[0], b"", *first[1:]), "a blank at the end": [lines[0][:-1] + b" \n", *lines[1:]],
                              "CR": [lines[0][:-1] + b"\r\n", *lines[1:]], "an empty line": [lines[0], b"\n", *lines[1:]], "31 bytes": with_first(*first[:2], b64(raw[:31]).encode() + b"\n"),
                              "33 bytes": with_first(*first[:2], b64(raw + b"\0").encode() + b"\n"), "no bytes": with_first(*first[:2], b"\n"), "without padding": [lines[0].replace(b"=", b""), *lines[1:]],
                              "other digits": with_first("\u0661".encode(), *first[1:]), "a level of 63": [*lines, b"63 0 " + first[2]], "a negative index": with_first(first[0], b"-1", first[2]),
                              "very many": [*lines, b"\n" * 100_000]}.items():
            with self.subTest(name):
                path = self.write({**self.members, "nodes": b"".join(changed)})
                self.bad("checkpoint_root", "--bundle", path)
                done = subprocess.run([BUILD / "muniment-verify", "--bundle", path, "--key", self.key, "--json"], capture_output=True, text=True)
                self.assertEqual((done.returncode, json.loads(done.stdout)["verdict"]), (1, "tampered"), done.stdout)

    def test_an_event_has_no_other_member(self) -> None:
        first, *rest = self.members["events.jsonl"].splitlines(keepends=True)
        line = json.dumps({**json.loads(first), "approved_by": "the board"}).encode() + b"\n"
        path = self.write({**self.members, "events.jsonl": b"".join([line, *rest])})
        self.bad("run_seq", "--bundle", path)
        done = subprocess.run([BUILD / "muniment-verify", "--bundle", path, "--key", self.key, "--json"], capture_output=True, text=True)
        self.assertEqual((done.returncode, json.loads(done.stdout)["verdict"]), (1, "tampered"), done.stdout)

    def test_a_bundle_is_decompressed_by_a_module_or_a_program(self) -> None:
        """Without either, the problem is neither a change nor a missing file."""
        path = self.folder / "b.muniment.tar.zst"
        self.log.write_bundle(path, RUN)
        whole = unpacked(path)

        class Failed(Exception):
            pass

        class Module:
            ZstdError = Failed
            broken = False

            def decompress(self, data: bytes) -> bytes:   # compression.zstd
                if self.broken:
                    raise Failed("a checksum")
                return whole if data == path.read_bytes() else b""

            def ZstdDecompressor(self) -> Module:   # zstandard
                return self

            def decompressobj(self) -> Module:
                return self

        def report(found: dict[str, Optional[Module]], folder: str) -> tuple[int, dict[str, Any]]:
            modules = {"compression": object(), "compression.zstd": None, "zstandard": None, **found}
            with unittest.mock.patch.dict(sys.modules, modules), unittest.mock.patch.dict(os.environ, {"PATH": folder}):
                return self.verify("--bundle", path)

        empty, broken = str(self.folder / "artifacts"), Module()
        broken.broken = True
        for found, folder in (({"compression.zstd": Module()}, empty), ({"zstandard": Module()}, empty), ({}, os.environ["PATH"])):
            self.assertEqual(report(found, folder)[0], 0)
        for found, words in (({}, "no Zstandard decompressor: install"), ({"zstandard": broken}, "does not decompress: a checksum")):
            code, said = report(found, empty)
            self.assertEqual((code, said["verdict"], said["first_bad"]), (4, "unreadable", None), said)
            self.assertIn(words, said["problem"])

    def test_members(self) -> None:
        artifact = [name for name in self.members if name.startswith("artifacts/")]
        erased = {row["artifact_id"] for row in self.rows("artifacts.jsonl")} - {name.partition("/")[2] for name in artifact}
        swapped = {artifact[0]: self.members[artifact[1]], artifact[1]: self.members[artifact[0]]}
        members = self.members
        for name, (changed, check) in {
                "an artifact removed": ({n: d for n, d in members.items() if n != artifact[0]}, "artifact_file"),
                "an artifact changed": ({**members, artifact[0]: b"13 passed\n"}, "artifact_row"),
                "two swapped": ({**members, **swapped}, "artifact_row"),
                "an erased one is back": ({**members, f"artifacts/{erased.pop()}": b"?"}, "artifact_row"),
                "one added": ({**members, "artifacts/0193f0a0-0000-7000-8000-000000000001": b"?"}, "artifact_file"),
                "another file": ({**members, "README": b"?"}, "artifact_file"),
                "no nodes": ({n: d for n, d in members.items() if n != "nodes"}, "bundle"),
                "another order": ({"keys": members["keys"], **members}, "bundle"),
                "an older checkpoint": ({**members, "checkpoint": self.log.note(20).encode()}, "bundle")}.items():
            with self.subTest(name):
                self.bad(check, "--bundle", self.write(changed))

    def test_bundle_json(self) -> None:
        head = self.log.bundle_head(RUN, self.members)
        for name, value in {"format": "x", "version": 3, "log_id": self.log.log.uuid("x"), "origin": "muniment.test/x", "run_id": "other",
                            "run_no": 1, "size": 25, "events": 18}.items():
            with self.subTest(name):
                self.assertEqual(self.verify("--bundle", self.write(self.members, {**head, name: value}))[0], 4 if name in ("format", "version") else 1)
        head["files"] = head["files"][:-1]
        self.bad("bundle", "--bundle", self.write(self.members, head))

    def test_another_key_and_no_key(self) -> None:
        forged = self.log.note(keys=[Key(self.log.origin, "x")]).encode()
        self.wrong_key("--bundle", self.write({**self.members, "checkpoint": forged}))
        unsigned = self.log.note(keys=[]).encode()
        self.wrong_key("--bundle", self.write({**self.members, "checkpoint": unsigned}))
        self.assertEqual(self.verify("--bundle", self.write({**self.members, "checkpoint": unsigned}), keyless=True)[0], 2)

    def test_what_cannot_be_read(self) -> None:
        self.log.write_bundle(self.folder / "b.tar.zst", RUN)
        data = (self.folder / "b.tar.zst").read_bytes()
        for name, damaged in {"cut": data[:len(data) // 2], "no tar": b"nothing" * 100, "empty": b""}.items():
            with self.subTest(name):
                self.assertEqual(self.verify("--bundle", self.path("damaged", damaged))[0], 4)


def other(value: Any) -> Any:
    """Returns a different value of the same kind: for text, the last character differs."""
    if value is None:
        return "2026-11-22T00:00:00.000000Z"
    if isinstance(value, (int, float)):
        return value + 1
    last = value[-2] if value.endswith(("Z", "}", "]")) else value[-1:]
    return value[:value.rindex(last)] + ("1" if last != "1" else "2") + value[value.rindex(last) + 1:] if value else "x"


class Golden(Case):
    """The tests of the C++ verifier use tests/golden/audit too."""

    def test_it_is_what_make_audit_makes(self) -> None:
        make_audit.make(self.folder / "golden")
        made, kept = ({str(path.relative_to(folder)): unpacked(path) for path in sorted(folder.rglob("*")) if path.is_file()}
                      for folder in (self.folder / "golden", GOLDEN))
        self.assertEqual(made, kept, "look at the difference, then run tests/golden/make_audit.py")

    def test_each_file(self) -> None:
        key = GOLDEN / "log.pub"
        self.good("--proof", GOLDEN / "event.tlog-proof", "--receipt", GOLDEN / "receipt.json", key=key)
        self.good("--tiles", GOLDEN / "tiles", "--checkpoint", GOLDEN / "older", key=key)
        self.good("--tiles", GOLDEN / "tiles", "--checkpoint", GOLDEN / "cosigned", key=key)
        self.good("--bundle", GOLDEN / "run.muniment.tar.zst", key=key)
        self.wrong_key("--tiles", GOLDEN / "tiles", "--checkpoint", GOLDEN / "forged", key=key)
        self.wrong_key("--bundle", GOLDEN / "run.muniment.tar.zst", key=GOLDEN / "other.pub")


def unpacked(path: pathlib.Path) -> bytes:
    """Returns the uncompressed bytes: compressed ones differ between versions of zstd."""
    return subprocess.run(["zstd", "-dcq", path], stdout=subprocess.PIPE, check=True).stdout if path.suffix == ".zst" else path.read_bytes()


class CommandLine(Case):
    def run_it(self, *arguments: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60)

    def test_exit_codes(self) -> None:
        proof = self.path("proof", self.log.proof(3))
        for arguments, code in {("--proof", proof, "--key", self.key): 0, ("--proof", proof): 2, ("--proof", self.key, "--key", self.key): 4, ("--proof", proof, "--key", GOLDEN / "other.pub"): 2,
                                (): 3, ("--proof", proof, "--bundle", proof): 3, ("--nonsense",): 3, ("--proof", proof, "--key", proof): 4,
                                ("--proof", self.folder / "none", "--key", self.key): 4, ("--proof", proof, "--key", self.folder / "none"): 4,
                                ("--proof", self.folder, "--key", self.key): 4, ("--bundle", self.folder, "--key", self.key): 4, ("--proof", proof, "--key", self.folder): 4,
                                ("--help",): 0}.items():
            with self.subTest(arguments):
                done = self.run_it(*arguments)
                self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_it_is_short(self) -> None:
        """The script must be short enough to be reviewed."""
        self.assertLess(len(SCRIPT.read_text().splitlines()), 400)


if __name__ == "__main__":
    unittest.main()
