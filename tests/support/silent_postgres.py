"""A proxy of a Postgres server that can fall silent: it still accepts and greets connections, but answers no query."""
import contextlib
import os
import shutil
import socket
import struct
import tempfile
import threading

CHUNK_BYTES = 1 << 16
READY = b"Z"     # ReadyForQuery, which ends the greeting


class SilentPostgres:
    """The proxy of `server` (a PrivatePostgres), with a socket in a folder of its own."""

    def __init__(self, server):
        self.server, self.folder = server, tempfile.mkdtemp(prefix="muniment-way-", dir="/tmp")
        self._speaks = threading.Event()
        self._speaks.set()
        self._links = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(os.path.join(self.folder, ".s.PGSQL.5432"))
        self._listener.listen(100)
        self.greeted = 0                 # connections since the proxy fell silent
        threading.Thread(target=self._accept, daemon=True).start()

    def uri(self, database="postgres"):
        return f"postgresql:///{database}?host={self.folder}&user=muniment"

    def fall_silent(self, cut=False):
        """Stops answering. `cut`: also closes the existing connections, so that clients reconnect."""
        self._speaks.clear()
        self.greeted = 0
        for end in self._links if cut else ():
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def speak(self):
        self._speaks.set()

    def stop(self):
        self.speak()
        self._listener.close()
        for end in self._links:
            end.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(os.path.join(self.server.folder, ".s.PGSQL.5432"))
                self._links += [client, server]
                threading.Thread(target=self._carry, args=(client, server), daemon=True).start()
                threading.Thread(target=self._answer, args=(server, client), daemon=True).start()

    @staticmethod
    def _carry(client, server):
        with contextlib.suppress(OSError):
            while data := client.recv(CHUNK_BYTES):
                server.sendall(data)
            server.shutdown(socket.SHUT_RDWR)

    def _answer(self, server, client):
        """Forwards single messages, so that the whole greeting is passed on, and nothing after it."""
        waiting, ready = bytearray(), False
        with contextlib.suppress(OSError):
            while data := server.recv(CHUNK_BYTES):
                waiting += data
                while len(waiting) >= 5 and len(waiting) > (size := struct.unpack(">I", waiting[1:5])[0]):
                    message = bytes(waiting[:size + 1])
                    del waiting[:size + 1]
                    if ready:
                        self._speaks.wait()
                    elif message[:1] == READY:
                        ready = True
                        self.greeted += not self._speaks.is_set()
                    client.sendall(message)
            client.shutdown(socket.SHUT_RDWR)
