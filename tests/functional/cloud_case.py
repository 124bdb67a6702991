"""A cloud service for tests: a real HTTPS server with a certificate of its own authority, which records every byte."""
from __future__ import annotations

import contextlib
import hashlib
import json
import pathlib
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
from typing import Any, Callable, Optional

from support import Daemon, DaemonCase

FAKE_KEY = "sk-fake-key-of-the-tests"
Reply = Callable[[ssl.SSLSocket, bytes], None]


def make_certificates(folder: pathlib.Path, name: str = "IP:127.0.0.1") -> tuple[pathlib.Path, pathlib.Path]:
    """Makes an authority and a server's certificate for `name`. Returns the authority's certificate, and the server's with its key."""
    def openssl(*words: object) -> None:
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, cwd=folder)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=Authority of the tests", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", *key, "-subj", "/CN=cloud", "-addext", f"subjectAltName={name}", "-keyout", "server.key", "-out", "server.csr")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-copy_extensions", "copy",
            "-out", "server.crt")
    both = folder / "server.pem"
    both.write_text((folder / "server.key").read_text() + (folder / "server.crt").read_text())
    return folder / "ca.pem", both


def completion(text: str, **more: Any) -> Reply:
    """Replies as the API does."""
    return plain(json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}], **more}).encode())


def plain(body: bytes, status: str = "200 OK", *headers: str) -> Reply:
    def reply(connection: ssl.SSLSocket, _: bytes) -> None:
        lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    return reply


class Provider:
    """The server. `reply` makes the reply to a request; `received` has the bytes of each TCP connection as they came,
    `requests` the decrypted requests."""

    def __init__(self, certificate: pathlib.Path):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate)
        self.reply: Reply = completion("An answer.")
        self.received: list[bytes] = []
        self.requests: list[bytes] = []
        self.stopped = threading.Event()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self.socket.getsockname()[1]}"
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.stopped.set()
        self.socket.shutdown(socket.SHUT_RDWR)   # ends `accept`, which could otherwise resume on a later socket of the same number
        self.thread.join()
        self.socket.close()

    def accept(self) -> None:
        while not self.stopped.is_set():
            with contextlib.suppress(OSError):
                raw, _ = self.socket.accept()
                self.received.append(b"")
                threading.Thread(target=self.serve, args=(raw, len(self.received) - 1), daemon=True).start()

    def serve(self, raw: socket.socket, index: int) -> None:
        # The bytes pass through a pair of sockets, so that they are recorded before TLS reads them.
        inside, outside = socket.socketpair()

        def copy(source: socket.socket, target: socket.socket, record: bool) -> None:
            with contextlib.suppress(OSError, IndexError):
                while data := source.recv(1 << 16):
                    if record:
                        self.received[index] += data
                    target.sendall(data)
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_WR)

        for pair in ((raw, outside, True), (outside, raw, False)):
            threading.Thread(target=copy, args=pair, daemon=True).start()
        with contextlib.suppress(OSError):
            with self.context.wrap_socket(inside, server_side=True) as connection:
                request = b""
                while b"\r\n\r\n" not in request:
                    request += connection.recv(1 << 16)
                head, body = request.split(b"\r\n\r\n", 1)
                length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
                while len(body) < length:
                    body += connection.recv(1 << 16)
                self.requests.append(head + b"\r\n\r\n" + body)
                self.reply(connection, body)

    def prompts(self) -> list[str]:
        return [json.loads(request.split(b"\r\n\r\n", 1)[1])["messages"][0]["content"] for request in self.requests]


class CloudCase(DaemonCase):
    """A daemon with a cloud service, whose settings `more` completes."""

    more = ""

    @classmethod
    def setUpClass(cls) -> None:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-cloud-"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        authority, certificate = make_certificates(folder)
        cls.provider = Provider(certificate)
        cls.addClassCleanup(cls.provider.close)
        cls.daemon = Daemon(config=cls.settings(cls.provider, authority), env={"OPENAI_API_KEY": FAKE_KEY})
        cls.addClassCleanup(cls.daemon.destroy)
        cls.daemon.start()

    @classmethod
    def settings(cls, provider: Provider, authority: pathlib.Path) -> str:
        return (f'cloud_url = "{provider.url}"\ncloud_provider = "test"\ncloud_model = "tiny"\ncloud_ca = "{authority}"\ncloud_ms = 15000\n'
                f'cloud_rate = 600\n{cls.more}')

    def setUp(self) -> None:
        super().setUp()
        self.provider.reply = completion("An answer.")
        self.provider.received.clear()
        self.provider.requests.clear()

    def ask(self, query: str, **more: Any) -> dict[str, Any]:
        settings = {"cloud_allowed": True, **more.pop("settings", {})}
        return self.client.call("ask", query=query, settings=settings, run_id=self.run_id, **more)

    def cloud_events(self, run_id: Optional[str] = None) -> list[dict[str, Any]]:
        return self.events(run_id, types=["cloud.*"])

    def sha256(self, text: str | bytes) -> str:
        return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()
