"""Tests of artifacts: bytes of any size are returned unchanged; damaged files are reported and never served."""
from __future__ import annotations

import base64
import hashlib
import json
import os
import pathlib
import random
import tempfile

from support import DaemonCase, main, wait_until

MIB = 1 << 20


class Bytes(DaemonCase):
    shared = True

    def put(self, data: bytes, **more: object) -> dict:
        stored = self.client.put(self.run_id, data, **more)
        self.assertEqual(stored["hash"], hashlib.sha256(data).hexdigest())
        self.assertEqual(stored["size_bytes"], len(data))
        return stored

    def test_every_size_comes_back_as_it_went(self) -> None:
        source = random.Random(1)
        for size in (0, 1, 511, 512 * 1024, 512 * 1024 + 1, MIB - 1, MIB, MIB + 1, 5 * MIB + 17):
            with self.subTest(size=size):
                data = source.randbytes(size)
                self.assertEqual(self.client.get(self.put(data, step_id=f"s{size}")["artifact_id"]), data)

    def test_a_file_is_on_disk_where_the_row_says(self) -> None:
        stored = self.put(b"a line\n", mime_type="text/plain", step_id="step:1")
        path = self.daemon.data / "artifacts" / stored["path"]
        self.assertEqual(path.read_bytes(), b"a line\n")
        self.assertTrue(stored["path"].startswith(f"runs/{self.run_id}/"))
        staging = self.daemon.data / "artifacts" / "staging"
        wait_until(lambda: not list(staging.iterdir()), "the staging name is gone")   # after the reply
        row = self.daemon.sql(f"SELECT path, hash, size_bytes, seq FROM artifact WHERE artifact_id = '{stored['artifact_id']}'")
        self.assertEqual(row, [[stored["path"], stored["hash"], "7", str(stored["seq"])]])

    def test_put_as_text_and_as_base64(self) -> None:
        for field, value, data in (("text", "h\u00e9", "h\u00e9".encode()), ("base64", base64.b64encode(b"\x00\xff").decode(), b"\x00\xff")):
            with self.subTest(field=field):
                stored = self.call("artifact.put", run_id=self.run_id, mime_type="text/plain", **{field: value})
                self.assertEqual(self.client.get(stored["artifact_id"]), data)

    def test_get_as_text_and_as_base64(self) -> None:
        stored = self.put(b"\x00\xff" * 10)
        got = self.call("artifact.get", artifact_id=stored["artifact_id"], encoding="base64")
        self.assertEqual(base64.b64decode(got["base64"]), b"\x00\xff" * 10)
        stored = self.put("h\u00e9llo".encode())
        self.assertEqual(self.call("artifact.get", artifact_id=stored["artifact_id"], encoding="text")["text"], "h\u00e9llo")

    def test_bad_base64(self) -> None:
        with self.refused("invalid_argument", "base64"):
            self.call("artifact.put", run_id=self.run_id, mime_type="text/plain", base64="a*b=")

    def test_a_slice(self) -> None:
        data = bytes(range(256)) * 20_000
        stored = self.put(data)
        for offset, length in ((0, 1), (255, 2), (MIB, 3 * MIB), (len(data) - 1, 1)):
            with self.subTest(offset=offset, length=length):
                self.assertEqual(self.client.get(stored["artifact_id"], offset, length), data[offset:offset + length])

    def test_equal_bytes_in_a_step_are_one_artifact(self) -> None:
        first = self.put(b"same", step_id="s1")
        again = self.put(b"same", step_id="s1")
        other = self.put(b"same", step_id="s2")
        self.assertEqual(again["artifact_id"], first["artifact_id"])
        self.assertNotEqual(other["artifact_id"], first["artifact_id"])
        self.assertEqual(len(self.call("artifact.list", run_id=self.run_id)["artifacts"]), 2)

    def test_a_file_streams_in_constant_memory(self) -> None:
        with tempfile.NamedTemporaryFile() as file:
            block = os.urandom(MIB)
            for i in range(96):
                file.write(bytes([i]) + block[1:])
            file.flush()
            stored = self.client.put(self.run_id, file.name)
            self.assertEqual(stored["size_bytes"], 96 * MIB)
            with open(f"/proc/{self.daemon.process.pid}/status") as status:
                peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
            if not self.daemon.sanitized():
                self.assertLess(peak, 128 * 1024, "the daemon's peak memory in KiB")
            file.seek(0)
            self.assertEqual(stored["hash"], hashlib.file_digest(file, "sha256").hexdigest())

    def test_metadata(self) -> None:
        stored = self.put(b"x", metadata={"tool": "ls", "n": 1})
        self.assertEqual(self.call("artifact.stat", artifact_id=stored["artifact_id"])["artifact"]["metadata"], {"tool": "ls", "n": 1})

    def test_an_unknown_artifact(self) -> None:
        with self.refused("not_found", "artifact_unknown"):
            self.client.get("01900000-0000-7000-8000-000000000000")

    def test_the_event_says_what_the_row_says(self) -> None:
        stored = self.put(b"abc", mime_type="text/plain", step_id="s1")
        event = self.call("event.get", seq=stored["seq"])["event"]
        self.assertEqual((event["type"], event["body"]["artifact_id"], event["body"]["hash"]),
                         ("artifact.stored", stored["artifact_id"], stored["hash"]))


class Damage(DaemonCase):
    """For any damage to a file, the daemon returns an error that names it, without delay, and never wrong bytes."""

    shared = True

    def stored(self) -> tuple[dict, pathlib.Path]:
        stored = self.client.put(self.run_id, b"what was written", mime_type="text/plain")
        return stored, self.daemon.data / "artifacts" / stored["path"]

    def test_missing(self) -> None:
        stored, path = self.stored()
        path.unlink()
        with self.refused("corrupt"):
            self.client.get(stored["artifact_id"])
        self.assert_alive()

    def test_cut(self) -> None:
        stored, path = self.stored()
        path.chmod(0o644)
        os.truncate(path, 3)
        with self.refused("corrupt"):
            self.client.get(stored["artifact_id"])
        self.assert_alive()

    def test_a_symlink_in_its_place(self) -> None:
        stored, path = self.stored()
        path.rename(path.with_name("moved"))
        path.symlink_to(path.with_name("moved"))
        with self.refused("corrupt"):
            self.client.get(stored["artifact_id"])
        self.assert_alive()

    def test_a_fifo_in_its_place(self) -> None:
        stored, path = self.stored()
        path.unlink()
        os.mkfifo(path)
        with self.refused("corrupt"):
            self.client.get(stored["artifact_id"])
        self.assert_alive()

    def test_a_folder_on_the_way_that_became_a_symlink(self) -> None:
        stored, path = self.stored()
        path.parent.rename(self.daemon.folder / "elsewhere")
        path.parent.symlink_to(self.daemon.folder / "elsewhere")
        with self.refused("corrupt"):
            self.client.get(stored["artifact_id"])
        self.assert_alive()


class Uploads(DaemonCase):
    shared = True

    def test_an_upload_goes_on_where_it_stopped(self) -> None:
        data = os.urandom(3 * MIB)
        raw = self.raw()
        first = {"run_id": self.run_id, "mime_type": "text/plain", "upload_id": "up-1", "offset": 0, "body_bytes": MIB}
        raw.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "artifact.put", "params": first}).encode() + b"\n" + data[:MIB])
        self.assertEqual(raw.line()["result"]["offset"], MIB)
        raw.socket.close()   # the client disconnects; the upload is kept
        raw = self.raw()
        second = {**first, "offset": MIB, "body_bytes": 2 * MIB, "final": True}
        raw.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "artifact.put", "params": second}).encode() + b"\n" + data[MIB:])
        stored = raw.line()["result"]
        self.assertEqual(stored["hash"], hashlib.sha256(data).hexdigest())
        self.assertEqual(self.client.get(stored["artifact_id"]), data)


class Budget(DaemonCase):
    config = "artifact_bytes_max = \"1 MiB\"\n"

    def test_an_artifact_over_the_configured_limit(self) -> None:
        self.client.put(self.run_id, b"a" * MIB)
        with self.refused("too_large", "artifact_too_large", limit=MIB):
            self.client.put(self.run_id, b"a" * (MIB + 1))
        self.assert_alive()


class Reserve(DaemonCase):
    config = "disk_reserve_bytes = \"1024 TiB\"\n"

    def test_below_the_reserve_only_artifacts_are_refused(self) -> None:
        with self.refused("over_budget") as caught:
            self.call("artifact.put", run_id=self.run_id, mime_type="text/plain", text="x")
        self.assertRegex(str(caught[0]), r"\d")
        self.note(still="taken")
        self.assertEqual(self.call("run.rehydrate", run_id=self.run_id)["state"]["run"]["status"], "open")
        self.call("run.end", run_id=self.run_id, outcome="success")


if __name__ == "__main__":
    main()
