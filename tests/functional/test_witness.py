"""Tests of checkpoints outside the operator's reach: a witness (another account, process and state), folders, S3
buckets. Cosignatures are checked with Python's cryptography, S3 signatures by computing them."""
from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import http.server
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest
from typing import Any, Optional

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from support import BUILD, Daemon, main, wait_until

NOBODY = 65534


class Signer:
    """A log's key: signs notes with any tree that a test chooses."""

    def __init__(self, name: str):
        self.name, self.key = name, Ed25519PrivateKey.generate()
        public = b"\x01" + self.key.public_key().public_bytes_raw() if hasattr(self.key.public_key(), "public_bytes_raw") else b"\x01" + raw(self.key)
        self.id = hashlib.sha256(name.encode() + b"\n" + public).digest()[:4]
        self.vkey = f"{name}+{self.id.hex()}+{base64.b64encode(public).decode()}"

    def note(self, size: int, root: bytes) -> str:
        text = f"{self.name}\n{size}\n{base64.b64encode(root).decode()}\n"
        signature = base64.b64encode(self.id + self.key.sign(text.encode())).decode()
        return f"{text}\n— {self.name} {signature}\n"


def raw(key: Ed25519PrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization as s
    return key.public_key().public_bytes(s.Encoding.Raw, s.PublicFormat.Raw)


def leaf(data: bytes) -> bytes:
    return hashlib.sha256(b"\0" + data).digest()


def node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def cosignature_verifies(note: str, vkey: str) -> bool:
    name, key_id, public = vkey.split("+", 2)
    text, lines = note.rsplit("\n\n", 1)
    for line in lines.splitlines():
        _, signer, blob = line.split(" ")
        data = base64.b64decode(blob)
        if signer != name or data[:4].hex() != key_id:
            continue
        seconds = int.from_bytes(data[4:12], "big")
        try:
            Ed25519PublicKey.from_public_bytes(base64.b64decode(public)[1:]).verify(
                data[12:], f"cosignature/v1\ntime {seconds}\n{text}\n".encode())
            return True
        except InvalidSignature:
            return False
    return False


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str):
        super().__init__("witness", timeout=60)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


class Witness:
    """Runs `muniment audit witness`, under another account if the tests run as root."""

    def __init__(self, *keys: str):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-test-"))
        self.folder.chmod(0o755)
        self.state = self.folder / "state"
        self.state.mkdir(mode=0o755)
        (self.folder / "keys").write_text("".join(key + "\n" for key in keys))
        self.other = {"user": NOBODY, "group": NOBODY} if os.geteuid() == 0 else {}
        if self.other:
            os.chown(self.state, NOBODY, NOBODY)
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [str(BUILD / "muniment"), "audit", "witness", "--state", str(self.state), "--log-key", str(self.folder / "keys")],
            stdout=subprocess.PIPE, text=True, env={"PATH": os.environ["PATH"], "HOME": str(self.folder)}, **self.other)
        assert self.process.stdout is not None
        self.listen, self.vkey = self.process.stdout.readline().split()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def destroy(self) -> None:
        if self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, method: str, path: str, body: str = "") -> tuple[int, str, str]:
        connection = UnixConnection(self.listen.removeprefix("unix:"))
        connection.request(method, path, body.encode())
        answer = connection.getresponse()
        got = answer.status, answer.read().decode(), answer.getheader("Content-Type", "")
        connection.close()
        return got

    def add(self, old: int, proof: list[bytes], note: str) -> tuple[int, str, str]:
        lines = "".join(base64.b64encode(hash_).decode() + "\n" for hash_ in proof)
        return self.ask("POST", "/add-checkpoint", f"old {old}\n{lines}\n{note}")


class WitnessProtocol(unittest.TestCase):
    """Tests of C2SP tlog-witness with a generated log."""

    def setUp(self) -> None:
        self.log = Signer("example.com/log")
        self.witness = Witness(self.log.vkey)
        self.addCleanup(self.witness.destroy)
        self.leaves = [leaf(bytes([i])) for i in range(4)]

    def test_a_log_that_grows_is_cosigned_and_remembered(self) -> None:
        a, b, c, d = self.leaves
        status, line, _ = self.witness.add(0, [], self.log.note(2, node(a, b)))
        self.assertEqual(status, 200, line)
        self.assertTrue(cosignature_verifies(self.log.note(2, node(a, b)) + line, self.witness.vkey))
        self.witness.stop()
        self.witness.start()   # the witness stores its state before it answers
        status, held, content_type = self.witness.add(0, [], self.log.note(4, node(node(a, b), node(c, d))))
        self.assertEqual((status, held, content_type), (409, "2\n", "text/x.tlog.size"))
        status, line, _ = self.witness.add(2, [node(c, d)], self.log.note(4, node(node(a, b), node(c, d))))
        self.assertEqual(status, 200, line)
        name = hashlib.sha256(b"example.com/log").hexdigest()
        status, note, _ = self.witness.ask("GET", f"/{name}/checkpoint")
        self.assertEqual((status, note.splitlines()[1]), (200, "4"))
        self.assertTrue(cosignature_verifies(note, self.witness.vkey))

    def test_a_smaller_or_another_tree_is_refused_and_nothing_changes(self) -> None:
        a, b, c, d = self.leaves
        four = self.log.note(4, node(node(a, b), node(c, d)))
        self.assertEqual(self.witness.add(0, [], four)[0], 200)
        for expected, old, proof, note in (
                (400, 4, [], self.log.note(2, node(a, b))),                                   # smaller
                (409, 2, [], self.log.note(2, node(a, b))),
                (422, 4, [], self.log.note(4, node(a, b))),                                   # the same size, another root
                (422, 4, [a], self.log.note(5, node(a, b))),                                  # a needless proof
                (403, 4, [], Signer("example.com/log").note(5, a)),                           # another key of the same name
                (404, 0, [], Signer("example.com/other").note(5, a)),                         # an unknown log
                (400, 4, [a] * 64, self.log.note(5, a)),                                      # too many hashes
                (400, 4, [], "nonsense"),
                (400, 4, [], self.log.note(5, a).replace("\n5\n", "\n05\n"))):
            with self.subTest(expected=expected, note=note.splitlines()[:2]):
                self.assertEqual(self.witness.add(old, proof, note)[0], expected)
        name = hashlib.sha256(b"example.com/log").hexdigest()
        self.assertTrue(self.witness.ask("GET", f"/{name}/checkpoint")[1].startswith(four.rsplit("\n\n", 1)[0]))

    def test_what_is_no_request_of_the_protocol(self) -> None:
        self.assertEqual(self.witness.ask("GET", "/add-checkpoint")[0], 405)
        self.assertEqual(self.witness.ask("GET", "/../witness.key")[0], 404)
        self.assertEqual(self.witness.ask("GET", "/" + "0" * 64 + "/checkpoint")[0], 404)
        self.assertEqual(self.witness.ask("POST", "/add-checkpoint", "old 0\n" + "a" * 200_000)[0], 413)
        self.assertEqual(self.witness.ask("POST", "/add-checkpoint", "")[0], 400)

    def test_its_key_is_its_own(self) -> None:
        self.assertEqual((self.witness.state / "witness.key").stat().st_mode & 0o777, 0o600)


class Bucket(http.server.ThreadingHTTPServer):
    """Accepts the same requests as an S3 bucket if the signature is correct."""

    def __init__(self, key: str, secret: str):
        super().__init__(("127.0.0.1", 0), BucketHandler)
        self.key, self.secret = key, secret
        self.objects: dict[str, bytes] = {}
        self.refused: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class BucketHandler(http.server.BaseHTTPRequestHandler):
    server: Bucket

    def log_message(self, *_: Any) -> None:
        pass

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        problem = self.problem(body)
        if problem is None:
            self.server.objects[self.path] = body
        else:
            self.server.refused.append(problem)
        self.send_response(200 if problem is None else 403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def problem(self, body: bytes) -> Optional[str]:
        """Checks AWS Signature Version 4, from its specification."""
        found = re.match(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d+)/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?Signature=(\w+)",
                         self.headers.get("Authorization", ""))
        if not found:
            return f"no signature: {self.headers.get('Authorization')}"
        key, day, region, names, signature = found.groups()
        content = hashlib.sha256(body).hexdigest()
        if self.headers.get("x-amz-content-sha256", content) != content:
            return "another content hash"
        canonical = "\n".join(["PUT", self.path, "", *(f"{name}:{self.headers[name].strip()}" for name in names.split(";")), "", names, content])
        scope = f"{day}/{region}/s3/aws4_request"
        to_sign = "\n".join(["AWS4-HMAC-SHA256", self.headers["X-Amz-Date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
        secret = ("AWS4" + self.server.secret).encode()
        for part in (day, region, "s3", "aws4_request"):
            secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
        wanted = hmac.new(secret, to_sign.encode(), hashlib.sha256).hexdigest()
        return None if key == self.server.key and wanted == signature else f"signature {signature}, expected {wanted} over {canonical!r}"


class Kept(unittest.TestCase):
    """The daemon delivers its checkpoints. All tests share one log with a key; each has its own keepers."""

    made: Daemon
    key: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.made = Daemon()
        cls.addClassCleanup(cls.made.destroy)
        cls.made.start()
        with cls.made.client() as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
            cls.key = client.call("audit.key", action="init")["keys"][0]
        cls.made.stop()

    def configured(self, witnesses: str, **env: str) -> Daemon:
        config = self.made.folder / "muniment.toml"
        config.write_text(f'witnesses = "{witnesses}"\n')
        self.made.arguments, self.made.env = ["--config", str(config)], env
        return self.made

    def daemon(self, witnesses: str, **env: str) -> Daemon:
        daemon = self.configured(witnesses, **env).start()
        self.addCleanup(daemon.stop)
        return daemon

    def kept(self, daemon: Daemon, size: int) -> list[dict[str, Any]]:
        with daemon.client() as client:
            return wait_until(lambda: (kept := client.call("audit.checkpoint")["kept_by"]) and
                              all(one["size"] >= size and not one.get("problem") for one in kept) and kept, "all have the newest checkpoint")

    def test_a_witness_and_a_folder_have_every_size_and_verify_believes_both(self) -> None:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-test-"))
        self.addCleanup(shutil.rmtree, folder, True)
        witness = Witness(self.key)
        self.addCleanup(witness.destroy)
        daemon = self.daemon(f"{witness.listen} {witness.vkey}, folder:{folder}")
        with daemon.client() as client:
            size = client.append("r1", "x.test.noted", {"n": 1})["seq"] + 1
            self.kept(daemon, size)
            cosigned = client.call("audit.checkpoint")["cosigned"]
        self.assertEqual(len(cosigned), 1)
        self.assertTrue(cosignature_verifies(cosigned[0], witness.vkey))
        notes = sorted(path.name for path in folder.iterdir())
        self.assertIn(f"{size:020}.note", notes)
        self.assertEqual((folder / notes[-1]).stat().st_mode & 0o777, 0o444)
        (daemon.folder / "key").write_text(self.key + "\n")
        verified = subprocess.run([str(BUILD / "muniment-verify"), "--data", str(daemon.data), "--key", str(daemon.folder / "key"),
                                   "--witness", str(witness.state), "--witness", str(folder)], capture_output=True, text=True, timeout=120)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        self.assertIn("witnessed 2 of 2", verified.stdout)

    def test_a_witness_that_is_away_is_named_and_gets_the_newest_when_it_is_back(self) -> None:
        witness = Witness(self.key)
        self.addCleanup(witness.destroy)
        witness.stop()
        daemon = self.daemon(f"{witness.listen} {witness.vkey}")
        with daemon.client() as client:
            wait_until(lambda: client.call("audit.checkpoint")["kept_by"][0].get("problem"), "its absence is noticed")
            self.assertTrue([text for text in client.call("server.status")["degraded"] if "witness.local" in text])
            size = client.append("r1", "x.test.noted", {"n": 1})["seq"] + 1   # appends do not wait for the witness
            witness.start()
            self.kept(daemon, size)

    def test_a_bucket_gets_every_checkpoint_under_a_signature(self) -> None:
        bucket = Bucket("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
        self.addCleanup(bucket.server_close)
        self.addCleanup(bucket.shutdown)
        daemon = self.daemon("s3://evidence/logs", AWS_ENDPOINT_URL=bucket.url, AWS_ACCESS_KEY_ID=bucket.key, AWS_SECRET_ACCESS_KEY=bucket.secret,
                             AWS_REGION="eu-central-1")
        with daemon.client() as client:
            size = wait_until(lambda: (now := client.call("audit.checkpoint"))["signed"] and now["size"], "it is signed")
            wait_until(lambda: bucket.refused or f"/evidence/logs/{size:020}.note" in bucket.objects, "the bucket has it")
            self.assertEqual(bucket.refused, [])
            self.assertEqual(bucket.objects[f"/evidence/logs/{size:020}.note"].decode().splitlines()[1], str(size))
        self.assertNotIn(bucket.secret, daemon.log.read_text())

    def test_a_setting_that_is_wrong_is_said_at_the_start(self) -> None:
        for wrong, named in (("ftp://x", "give folder:/PATH"), ("unix:/x", "witness.pub"), ("folder:/x key", "only a witness has a key")):
            with self.subTest(wrong=wrong):
                code, said = self.configured(wrong).refused_start()
                self.assertNotEqual(code, 0)
                self.assertIn(named, said)


if __name__ == "__main__":
    main()
