"""A pooler in front of a PrivatePostgres that, like PgBouncer with pool_mode = transaction, lends a client a session of the server
for one transaction at a time. It serves simple queries only, in Postgres' protocol 3.0."""
from __future__ import annotations

import contextlib
import os
import shutil
import socket
import struct
import tempfile
import threading
from typing import BinaryIO

from private_postgres import PrivatePostgres


def read_message(stream: BinaryIO) -> tuple[bytes, bytes]:
    """Returns the type and the body. Raises struct.error at the end of the stream."""
    kind, size = struct.unpack("!cI", stream.read(5))
    return kind, stream.read(size - 4)


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


class TransactionPooler:
    def __init__(self, server: PrivatePostgres, database: str):
        self.server, self.database = server, database
        self.idle: list[BinaryIO] = []
        self.parameters = b""   # that the server reports to each client
        self.folder = tempfile.mkdtemp(prefix="muniment-pool-", dir="/tmp")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(self.folder, ".s.PGSQL.5432"))
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def stop(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        shutil.rmtree(self.folder, ignore_errors=True)

    def uri(self) -> str:
        return f"postgresql:///{self.database}?host={self.folder}&user=muniment"

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def session(self) -> BinaryIO:
        """Connects to the server, and reads its answer up to ReadyForQuery."""
        link = socket.socket(socket.AF_UNIX)
        link.connect(os.path.join(self.server.folder, ".s.PGSQL.5432"))
        stream = link.makefile("rwb", buffering=0)
        names = f"user\0muniment\0database\0{self.database}\0client_encoding\0UTF8\0\0".encode()
        stream.write(struct.pack("!II", len(names) + 8, 3 << 16) + names)
        self.parameters = b""
        while (answer := read_message(stream))[0] != b"Z":
            self.parameters += message(*answer) if answer[0] == b"S" else b""
        return stream

    def serve(self, link: socket.socket) -> None:
        client = link.makefile("rwb", buffering=0)
        with contextlib.suppress(struct.error, OSError):
            client.read(struct.unpack("!I", client.read(4))[0] - 4)
            self.idle = self.idle or [self.session()]
            own_key = struct.pack("!II", threading.get_native_id() + (1 << 24), 0)
            client.write(message(b"R", bytes(4)) + self.parameters + message(b"K", own_key) + message(b"Z", b"I"))
            lent = None
            while (asked := read_message(client))[0] == b"Q":
                lent = lent or (self.idle.pop() if self.idle else self.session())
                lent.write(message(*asked))
                answer = (b"", b"")
                while answer[0] != b"Z":
                    answer = read_message(lent)
                    client.write(message(*answer))
                if answer[1] == b"I":   # no transaction is open
                    self.idle.append(lent)
                    lent = None
        link.close()
