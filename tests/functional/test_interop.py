"""Tests of interoperability: golden notes, proofs and tiles are read and signed by Go's sumdb library
(tests/support/tlog_reference), and the two verifiers of Muniment agree about any change.
"""
from __future__ import annotations

import base64
import io
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "audit"
VERIFY = pathlib.Path(os.environ.get("MUNIMENT_BUILD", ROOT / "build-test")) / "muniment-verify"
VERIFY_PY = ROOT / "clients" / "python" / "muniment_verify.py"
CASES = pathlib.Path(os.environ.get("MUNIMENT_SHARED", ROOT.parent / "shared")) / "cases"
SEED = int(os.environ.get("SEED") or random.randrange(10**9))
sys.path.insert(0, str(ROOT / "tests" / "support"))

from bundle import tar_of  # noqa: E402
from published_log import files_of, write_tar  # noqa: E402
from tlog_reference import reference  # noqa: E402
from zstd_frame import zstd_frame  # noqa: E402


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-interop-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name: str, text: str) -> pathlib.Path:
        path = self.folder / name
        path.write_text(text)
        return path


class Golden(Case):
    def test_notes(self) -> None:
        for name in ("checkpoint", "older", "cosigned"):
            text = (GOLDEN / name).read_text()
            self.assertEqual(reference("note", GOLDEN / "log.pub", GOLDEN / name), text[:text.index("\n\n") + 1])
        for name in ("forged", "unsigned"):
            with self.assertRaises(AssertionError):
                reference("note", GOLDEN / "log.pub", GOLDEN / name)

    def test_our_private_key_signs_the_same_bytes_there(self) -> None:
        note = (GOLDEN / "checkpoint").read_text()
        text = self.path("text", note[:note.index("\n\n") + 1])
        self.assertEqual(reference("sign", GOLDEN / "log.key", text), note)

    def test_an_inclusion_proof(self) -> None:
        proof = GOLDEN / "event.tlog-proof"
        self.assertEqual(reference("inclusion", GOLDEN / "log.pub", proof), "5\n")
        lines = proof.read_text().split("\n")
        with self.assertRaises(AssertionError):
            reference("inclusion", GOLDEN / "log.pub", self.path("cut", "\n".join(lines[:4] + lines[5:])))

    def test_a_consistency_proof(self) -> None:
        given = json.loads((GOLDEN / "consistency.json").read_text())
        hashes = [base64.b64decode(value).hex() for value in given["hashes"]]
        answer = reference("consistency", GOLDEN / "log.pub", GOLDEN / "older", GOLDEN / "checkpoint", self.path("hashes", "\n".join(hashes)))
        self.assertEqual(answer, f"{given['first']} {given['second']}\n")
        with self.assertRaises(AssertionError):
            reference("consistency", GOLDEN / "log.pub", GOLDEN / "older", GOLDEN / "checkpoint", self.path("hashes", "\n".join(hashes[1:])))

    def test_tiles(self) -> None:
        self.assertEqual(reference("tiles", GOLDEN / "log.pub", GOLDEN / "tiles"), "26\n")


class Agreement(Case):
    """muniment-verify and muniment_verify.py share no code."""

    def verdicts(self, *arguments: object) -> list[tuple[int, str]]:
        """Returns the exit code and the verdict of each."""
        done = [subprocess.run([*program, *map(str, arguments), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
                for program in ([VERIFY], [sys.executable, VERIFY_PY])]
        return [(one.returncode, json.loads(one.stdout)["verdict"]) for one in done]

    def codes(self, *arguments: object) -> list[int]:
        return [code for code, _ in self.verdicts(*arguments)]

    def both(self, *arguments: object) -> int:
        ours, theirs = self.verdicts(*arguments)
        self.assertEqual(ours, theirs, arguments)
        return ours[0]

    def test_on_proofs(self) -> None:
        proof, key = (GOLDEN / "event.tlog-proof").read_bytes(), GOLDEN / "log.pub"
        self.assertEqual(self.both("--proof", GOLDEN / "event.tlog-proof", "--key", key, "--receipt", GOLDEN / "receipt.json"), 0)
        self.assertEqual(self.both("--proof", GOLDEN / "event.tlog-proof", "--key", GOLDEN / "other.pub"), 2)
        self.assertEqual(self.both("--proof", self.folder / "none", "--key", key), 4)
        rng = random.Random(SEED)
        with self.subTest(f"SEED={SEED}"):
            for at in sorted(rng.sample(range(len(proof)), 40)):
                path = self.folder / "flipped"
                path.write_bytes(proof[:at] + bytes([proof[at] ^ 1 << rng.randrange(8)]) + proof[at + 1:])
                # The result may be a changed proof or an invalid file.
                self.assertLessEqual(set(self.codes("--proof", path, "--key", key)), {1, 2, 4}, at)
        head, _, _ = proof.decode().partition("\n\n")
        for name, code in {"checkpoint": 0, "cosigned": 0, "unsigned": 2, "forged": 2, "older": 1}.items():
            with self.subTest(name):
                self.assertEqual(self.both("--proof", self.path("p", f"{head}\n\n{(GOLDEN / name).read_text()}"), "--key", key), code)

    @unittest.skipUnless(CASES.is_dir(), "the shared cases are not beside the checkout")
    def test_on_proofs_of_other_writers(self) -> None:
        accepted = {"good", "witness-before", "witness-after", "other-key-same-name"}
        proofs = sorted((CASES / "proofs").glob("*.tlog-proof"))
        self.assertLessEqual(accepted, {proof.stem for proof in proofs})
        for proof in proofs:
            with self.subTest(proof.stem):
                code = self.both("--proof", proof, "--key", CASES / "proofs" / "log.pub")
                self.assertEqual(code == 0, proof.stem in accepted, code)

    def golden_members(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        unpacked = subprocess.run(["zstd", "-dcq", GOLDEN / "run.muniment.tar.zst"], stdout=subprocess.PIPE, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(unpacked)) as tar:
            whole = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
        return json.loads(whole.pop("bundle.json")), whole

    def test_on_the_file_of_a_bundle(self) -> None:
        """A bundle is one frame with one archive, and nothing after either."""
        head, whole = self.golden_members()
        tar = tar_of({"bundle.json": json.dumps(head).encode(), **whole}, tarfile.PAX_FORMAT)
        frame, skippable = zstd_frame(tar), b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"what"
        end = len(tar.rstrip(b"\0")) // 512 * 512 + 512
        link = tarfile.TarInfo("bundle.json.link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        cases = {"as it is": (frame, 0), "the shortest end": (zstd_frame(tar[:end] + bytes(1024)), 0), "two frames": (frame + zstd_frame(b""), 4),
                 "twice": (frame * 2, 4), "cut between two frames": (zstd_frame(tar[:10240]) + zstd_frame(tar[10240:]), 4),
                 "a skippable frame before": (skippable + frame, 4), "a skippable frame behind": (frame + skippable, 4), "a plain tar": (tar, 4),
                 "zeros behind the frame": (frame + bytes(512), 4), "zeros behind the archive": (zstd_frame(tar + bytes(10240)), 4),
                 "bytes behind the archive": (zstd_frame(tar[:-1] + b"x"), 4), "no end": (zstd_frame(tar[:end]), 4), "half an end": (zstd_frame(tar[:end] + bytes(512)), 4),
                 "a link": (zstd_frame(tar[:end] + link.tobuf(tarfile.USTAR_FORMAT) + bytes(1024)), 4), "cut": (frame[:-700], 4), "its magic alone": (frame[:4], 4), "nothing": (b"", 4),
                 "no archive": (zstd_frame(b"nothing" * 300), 4), "an empty archive": (zstd_frame(bytes(10240)), 4)}
        for name, (data, code) in cases.items():
            with self.subTest(name):
                path = self.folder / "file"
                path.write_bytes(data)
                self.assertEqual(self.both("--bundle", path, "--key", GOLDEN / "log.pub"), code)

    def test_on_the_members_of_a_bundle(self) -> None:
        head, whole = self.golden_members()
        events, people = whole["events.jsonl"], {"README.md": b"# A run\n", "report.html": b"<p>What happened"}
        texts = {name: data for name, data in whole.items() if not name.startswith("artifacts/")}
        files = {name: data for name, data in whole.items() if name.startswith("artifacts/")}
        lines = whole["nodes"].splitlines(keepends=True)
        rows = json.loads(whole["claims.jsonl"].splitlines()[0])
        note = whole["checkpoint"].decode()
        for name, (change, code) in {
                "as it is": (({}, whole), 0), "version 2": (({"version": 2}, {**texts, **people, **files}), 0),
                "version 2 without its texts": (({"version": 2}, whole), 1), "version 1 with them": (({}, {**texts, **people, **files}), 1),
                "version 3": (({"version": 3}, whole), 4), "version 1.0": (({"version": 1.5}, whole), 4), "another format": (({"format": "zip"}, whole), 4),
                "no log_id": (({"log_id": None}, whole), 1), "run 0": (({"run_no": 0}, whole), 1), "_log": (({"run_id": "_log"}, whole), 1), "a smaller size": (({"size": 3}, whole), 1),
                "nodes in another order": (({}, {**whole, "nodes": b"".join(reversed(lines))}), 1), "a node twice": (({}, {**whole, "nodes": b"".join(lines[:1] + lines)}), 1),
                "events without their last line feed": (({}, {**whole, "events.jsonl": events[:-1]}), 1), "an empty line": (({}, {**whole, "events.jsonl": events + b"\n"}), 1),
                "nodes without their last line feed": (({}, {**whole, "nodes": whole["nodes"][:-1]}), 1),
                "a member of an event twice": (({}, {**whole, "events.jsonl": events.replace(b'{', b'{"origin":3,', 1)}), 1),
                "a member of a row twice": (({}, {**whole, "claims.jsonl": whole["claims.jsonl"].replace(b'{', b'{"status":"open",', 1)}), 1),
                "no claims": (({}, {**whole, "claims.jsonl": b""}), 1), "a row that is no object": (({}, {**whole, "claims.jsonl": b"[]\n"}), 1),
                "a claim's status": (({}, {**whole, "claims.jsonl": json.dumps({**rows, "status": "won"}).encode() + b"\n"}), 1),
                "no note": (({}, {**whole, "checkpoint": b"?\n"}), 1), "an unsigned note": (({}, {**whole, "checkpoint": note[:note.index("\n\n") + 2].encode()}), 2),
                "a note that another key signed": (({}, {**whole, "checkpoint": (GOLDEN / "forged").read_bytes()}), 2)}.items():
            with self.subTest(name):
                (more, members), path = change, self.folder / "members"
                write_tar(path, {"bundle.json": json.dumps({**head, **more, "files": files_of(members)}).encode(), **members})
                self.assertEqual(self.both("--bundle", path, "--key", GOLDEN / "log.pub"), code)
        for name, text in {"bundle.json twice a member": b'{"format":"muniment-bundle",' + json.dumps(head).encode()[1:], "bundle.json no JSON": b"{"}.items():
            with self.subTest(name):
                write_tar(self.folder / "members", {"bundle.json": text, **whole})
                self.assertEqual(self.both("--bundle", self.folder / "members", "--key", GOLDEN / "log.pub"), 4)

    def test_on_bundles(self) -> None:
        key, bundle = GOLDEN / "log.pub", GOLDEN / "run.muniment.tar.zst"
        self.assertEqual(self.both("--bundle", bundle, "--key", key), 0)
        self.assertEqual(self.both("--bundle", bundle, "--key", GOLDEN / "other.pub"), 2)
        self.assertEqual(self.both("--bundle", self.folder / "none", "--key", key), 4)
        head, whole = self.golden_members()

        def refused(members: dict[str, bytes], what: str) -> None:
            path = self.folder / "changed.muniment.tar.zst"
            write_tar(path, {"bundle.json": json.dumps({**head, "files": files_of(members)}).encode(), **members})
            with self.subTest(what):
                self.assertIn(self.both("--bundle", path, "--key", key), (1, 2, 4))   # 2: the note names another key

        for name, member in (("evidence.jsonl", b"validator_id"), ("events.jsonl", b"occurred_at"), ("claims.jsonl", b"step_id")):
            refused({**whole, name: whole[name].replace(member, b"X" + member[1:], 1)}, f"{name}: {member!r} is called otherwise")
        rng = random.Random(SEED)
        with self.subTest(f"SEED={SEED}"):
            for name in [name for name in whole if name != "keys"]:
                for _ in range(3):
                    data = whole[name]
                    at = rng.randrange(len(data))
                    if b"log_no" in data[max(0, at - 12):at + 12]:
                        continue   # the exporting database's number, which nothing proves
                    refused({**whole, name: data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]}, f"{name} at {at}")


if __name__ == "__main__":
    unittest.main()
