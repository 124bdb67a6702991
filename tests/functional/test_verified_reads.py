"""Tests that no method returns bytes without the recorded hash: every method that returns or vouches for a file's
bytes, with every damage that keeps the length."""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import threading
from typing import Any

from support import BUILD, main
from test_redact import Redacting

import muniment

MIB = 1 << 20


def overwrite(path: pathlib.Path) -> None:
    path.chmod(0o644)
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.seek(size // 2)
        byte = file.read(1)
        file.seek(size // 2)
        file.write(bytes([byte[0] ^ 1]))


def copy_of_another(path: pathlib.Path) -> None:
    size = path.stat().st_size
    path.unlink()
    path.write_bytes(b"\x7fELF" + bytes(size - 4))


def hard_link_to_another(path: pathlib.Path) -> None:
    other = path.parent.parent.parent.parent.parent / f"another-{path.name}"
    other.write_bytes(b"a" * path.stat().st_size)
    path.unlink()
    os.link(other, path)


DAMAGES = (overwrite, copy_of_another, hard_link_to_another)


class Storing(Redacting):
    def stored(self, size: int, **params: Any) -> tuple[dict[str, Any], pathlib.Path]:
        data = (b"evidence " * (size // 9 + 1))[:size]
        stored = self.client.put(self.run_id, data, mime_type="text/plain", **params)
        return stored, self.daemon.data / "artifacts" / stored["path"]

    def pieces(self, stored: dict[str, Any]) -> pathlib.Path:
        return self.daemon.data / "artifacts" / (stored["path"] + ".pieces")


class Reads(Storing):
    def get(self, stored: dict[str, Any], **params: Any) -> dict[str, Any]:
        return self.call("artifact.get", artifact_id=stored["artifact_id"], **params)

    def reason(self, method: str, pointer: str) -> str:
        result = self.call(method, pointers=[pointer])["results"][0]
        self.assertNotIn("text", result if not result["ok"] else {})
        return result.get("reason", "ok")

    def test_no_way_hands_out_other_bytes(self) -> None:
        for damage in DAMAGES:
            for size in (100, 3 * MIB + 5):
                with self.subTest(damage=damage.__name__, size=size):
                    stored, path = self.stored(size, step_id=f"{damage.__name__}-{size}")
                    self.assertEqual(self.reason("pointer.validate", stored["pointer"]), "ok")
                    damage(path)
                    middle = size // 2
                    for encoding in ("text", "base64", "raw"):
                        with self.refused("corrupt"):
                            self.client.get(stored["artifact_id"], middle - 10, 20) if encoding == "raw" else \
                                self.get(stored, offset=middle - 10, length=20, encoding=encoding)
                    with self.refused("corrupt"):
                        self.call("artifact.stat", artifact_id=stored["artifact_id"])
                    for pointer in (stored["pointer"], f"{stored['pointer']}#b{middle - 10}-{middle + 10}"):
                        for method in ("pointer.resolve", "pointer.validate"):
                            self.assertEqual(self.reason(method, pointer), "HASH_MISMATCH", method)
                        rendered = self.call("pointer.render", draft=f"See [ref:{pointer}].")
                        self.assertEqual((rendered["ok"], rendered["bad"][0]["reason"]), (False, "HASH_MISMATCH"))

    def test_the_command_line_says_so_too(self) -> None:
        stored, path = self.stored(100)
        overwrite(path)
        got = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "artifact", "get", stored["artifact_id"]], stdin=subprocess.DEVNULL,
                             capture_output=True, timeout=60, check=False)
        self.assertNotEqual(got.returncode, 0)
        self.assertEqual(got.stdout, b"")

    def read_bytes(self) -> int:
        """Returns the number of bytes that the daemon has read since its start."""
        return int(pathlib.Path(f"/proc/{self.daemon.process.pid}/io").read_text().split("rchar: ")[1].split()[0])   # type: ignore[union-attr]

    def test_a_sparse_file_of_another_size_is_refused_unread(self) -> None:
        stored, path = self.stored(100)
        path.chmod(0o644)
        os.truncate(path, 5 << 30)
        before = self.read_bytes()
        self.assertEqual(self.reason("pointer.resolve", stored["pointer"]), "HASH_MISMATCH")
        with self.refused("corrupt"):
            self.get(stored)
        self.assertLess(self.read_bytes() - before, 1 << 30)

    def test_the_whole_is_said_to_be_good_only_if_it_is(self) -> None:
        stored, path = self.stored(3 * MIB)
        overwrite(path)
        self.assertEqual(self.get(stored, offset=0, length=10)["text"], "evidence e", "a piece that is whole is told")
        self.assertEqual(self.reason("pointer.validate", stored["pointer"]), "HASH_MISMATCH")

    def test_a_state_that_was_changed_is_not_rehydrated_from(self) -> None:
        self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {f"k{i}": "v" * 1000 for i in range(50)}})
        self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {f"l{i}": "v" * 1000 for i in range(50)}})
        taken = self.call("snapshot.take", run_id=self.run_id)
        self.assertIn("artifact_id", taken)
        row = self.call("artifact.list", run_id=self.run_id)["artifacts"][-1]
        overwrite(self.daemon.data / "artifacts" / row["path"])
        had = self.call("run.rehydrate", run_id=self.run_id, path="/working/k1")
        self.assertEqual((had["state"], had["snapshot_seq"], len(had["skipped"])), ("v" * 1000, None, 1))

    def test_pieces_that_are_gone_or_forged_neither_hide_nor_make_damage(self) -> None:
        stored, path = self.stored(3 * MIB)
        other, _ = self.stored(3 * MIB - 1)
        self.assertTrue(self.pieces(stored).exists())
        self.pieces(stored).unlink()
        self.assertEqual(self.get(stored, offset=MIB, length=9)["length"], 9)
        self.assertTrue(self.pieces(stored).exists(), "made anew")
        self.pieces(stored).unlink()
        self.pieces(stored).write_bytes(self.pieces(other).read_bytes())
        self.assertEqual(self.get(stored, offset=MIB, length=9)["length"], 9)
        overwrite(path)
        with self.refused("corrupt"):
            self.get(stored, offset=stored["size_bytes"] // 2, length=1)

    def test_no_text_is_answered_that_was_not_hashed(self) -> None:
        """The file changes continuously: the returned bytes are the hashed ones."""
        good, bad = b"good" * 250_000, b"evil" * 250_000
        stored = self.client.put(self.run_id, good, mime_type="text/plain")
        path = self.daemon.data / "artifacts" / stored["path"]
        path.chmod(0o644)
        end = threading.Event()

        def swap() -> None:
            descriptor = os.open(path, os.O_WRONLY)
            while not end.is_set():
                os.pwrite(descriptor, bad, 0)
                os.pwrite(descriptor, good, 0)
            os.pwrite(descriptor, good, 0)
            os.close(descriptor)

        thread = threading.Thread(target=swap)
        thread.start()
        answered = 0
        try:
            for _ in range(200):
                with contextlib.suppress(muniment.MunimentError):
                    self.assertEqual(self.client.get(stored["artifact_id"], 400_000, 8), b"goodgood")
                    answered += 1
                result = self.call("pointer.resolve", pointers=[stored["pointer"] + "#b400000-400008"])["results"][0]
                if result["ok"]:
                    self.assertEqual(result["text"], "goodgood")
                    answered += 1
        finally:
            end.set()
            thread.join()
        self.assertEqual(self.client.get(stored["artifact_id"], 400_000, 8), b"goodgood")


class Verified(Storing):
    def assert_found(self, check: str) -> None:
        for _ in range(3):
            done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--json"], capture_output=True, text=True,
                                  timeout=120, check=False)
            if done.returncode not in (4, 5):   # these mean that it could not finish, and ask to verify again
                break
        self.assertEqual({finding["check"] for finding in json.loads(done.stdout)["findings"]}, {check}, done.stdout + done.stderr)

    def test_verify_knows_the_pieces_and_finds_what_is_not_theirs(self) -> None:
        stored, _ = self.stored(3 * MIB)
        erased, _ = self.stored(2 * MIB)
        kept = self.pieces(erased).read_bytes()
        self.assert_verified()
        self.redact(artifact_id=erased["artifact_id"])
        self.assertFalse(self.pieces(erased).exists(), "the hashes of what was erased would tell of it")
        self.assert_verified()
        self.pieces(erased).write_bytes(kept)
        self.assert_found("erasure")
        self.pieces(erased).unlink()
        overwrite(self.pieces(stored))
        self.assert_found("artifact_pieces")
        self.pieces(stored).unlink()
        self.assert_verified()


if __name__ == "__main__":
    main()
