"""A receiver of OTLP/HTTP (`muniment otlp`) in front of a test's daemon, and requests to it."""
from __future__ import annotations

import gzip
import http.client
import json
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
from typing import Any, Optional

from support import BUILD, Daemon, wait_until

START_S_MAX = 60


class Receiver:
    """Receivers with the same spool go on with each other's traces."""

    def __init__(self, daemon: Daemon, *arguments: str, spool: Optional[pathlib.Path] = None) -> None:
        self.spool = spool or pathlib.Path(tempfile.mkdtemp(prefix="otlp-", dir=daemon.folder))
        self.said: list[str] = []
        self.process = subprocess.Popen([BUILD / "muniment", "--data", daemon.data, "--json", "otlp", "--listen", "127.0.0.1:0", "--spool", self.spool,
                                         *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.runs: list[dict[str, Any]] = []
        self.readers = [threading.Thread(target=self.read_runs, daemon=True), threading.Thread(target=self.read_said, daemon=True)]
        for reader in self.readers:
            reader.start()
        self.url = wait_until(self.announced, "the receiver announces its address", START_S_MAX)
        self.port = int(self.url.rsplit(":", 1)[1])
        self.token_file = pathlib.Path(daemon.data) / "keys" / "http.token"
        self.token = self.token_file.read_text().strip()

    def read_runs(self) -> None:
        for line in self.process.stdout or ():
            self.runs.append(json.loads(line))

    def read_said(self) -> None:
        for line in self.process.stderr or ():
            self.said.append(line)

    def announced(self) -> Optional[str]:
        if self.process.poll() is not None:
            raise AssertionError(f"the receiver exited with {self.process.returncode}: {''.join(self.said)}")
        found = re.search(r"receiving at (http://\S+)\. ", "".join(self.said))
        return found and found.group(1)

    def stop(self) -> int:
        return self.end(signal.SIGTERM)

    def kill(self) -> None:
        self.end(signal.SIGKILL)

    def end(self, number: signal.Signals) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(START_S_MAX)
        for reader in self.readers:
            reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        return code

    def post(self, body: bytes, path: str = "/v1/traces", *, method: str = "POST", token: Optional[str] = None, headers: Optional[dict[str, str]] = None,
             ) -> tuple[int, bytes, str]:
        """Returns the status, the body and the content type of the answer."""
        sent = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token if token is None else token}", **(headers or {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_S_MAX)
        try:
            connection.request(method, path, body, {name: value for name, value in sent.items() if value})
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.getheader("Content-Type") or ""
        finally:
            connection.close()

    def post_json(self, request: Any, path: str = "/v1/traces", *, compressed: bool = False) -> dict[str, Any]:
        body = json.dumps(request).encode()
        status, answer, _ = self.post(gzip.compress(body) if compressed else body, path, headers={"Content-Encoding": "gzip"} if compressed else {})
        assert status == 200, (status, answer)
        return dict(json.loads(answer))
