"""Base class of tests that stop, kill, truncate or forge a log and start a daemon on it."""
from __future__ import annotations

import glob
import json
import os
import pathlib
import subprocess
import sys
import time
import uuid
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support import BUILD, Daemon, DaemonCase, wait_until  # noqa: E402
from hashing import encode_entry, run_hash, sha256  # noqa: E402

OTHER_BOOT = "written_end.other_boot=error@1+"   # the machine has restarted since the daemon was killed
COLUMNS = ("log_no, seq, run_no, run_seq, recorded_at, occurred_at, origin, type, schema_version, step_id, actor, event_id, body_hash, salt, body, run_hash")


class StartCase(DaemonCase):
    keyed = True

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.key = cls.daemon.folder / "log.pub"
        if cls.keyed:
            done = subprocess.run([BUILD / "muniment", "--data", cls.daemon.data, "audit", "key", "init", "-o", cls.key], capture_output=True, timeout=120)
            assert done.returncode == 0, done.stderr

    def note(self, **body: Any) -> int:
        return self.call("event.append", run_id=self.run_id, type="x.test.noted", body=body)["seq"]

    def verify(self, *more: object) -> tuple[int, dict[str, Any]]:
        key = ("--key", self.key) if self.keyed else ()
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, *key, "--json", *map(str, more)], stdout=subprocess.PIPE,
                              timeout=120, check=False)
        return done.returncode, json.loads(done.stdout)

    def verified(self) -> None:
        """Waits until the checkpoint covers and signs every event."""
        wait_until(lambda: self.verify()[0] == 0, "all of it is signed")

    def again(self, failpoint: str = "") -> None:
        """Restarts the daemon and reconnects."""
        self.client.close()
        self.daemon.start(failpoint=failpoint)
        self.client = self.daemon.client()

    def stop_and_forge(self, **more: Any) -> None:
        self.note(n=1)
        self.assertEqual(self.daemon.stop(), 0)
        self.forge(self.run_id, **more)

    def refused(self) -> str:
        with self.assertRaises(Exception) as caught:
            self.note(after="the forgery")
        return str(caught.exception)

    def remove_forged(self) -> None:
        """Deletes the forged events that no start has adopted."""
        with self.postgres() as sql:
            sql("SET session_replication_role = replica; DELETE FROM event WHERE body->>'forged' IS NOT NULL"
                " AND seq > (SELECT max(seq) FROM event WHERE type = 'log.started')")

    def started(self) -> dict[str, Any]:
        """Returns the body and the seq of the newest log.started."""
        rows = self.daemon.sql("SELECT seq, body FROM event WHERE type = 'log.started' ORDER BY seq DESC LIMIT 1")
        return {"seq": int(rows[0][0]), **json.loads(rows[0][1])}

    def postgres(self) -> "Postgres":
        return Postgres(self.daemon)

    def forge(self, run_id: str, count: int = 3, kind: str = "x.test.noted", ahead_s: int = 0) -> None:
        """Appends events with correct hashes, as a superuser who writes while no daemon runs."""
        with self.postgres() as sql:
            log_id = sql("SELECT log_id FROM log_head WHERE log_no = 1")[0][0]
            size = int(sql("SELECT max(seq) + 1 FROM event")[0][0])
            run_no, run_seq, last = sql("SELECT run_no, run_seq + 1, encode(run_hash, 'hex') FROM event WHERE run_no = (SELECT run_no FROM event"
                                        f" WHERE type = 'run.started' AND body ->> 'run_id' = '{run_id}') ORDER BY run_seq DESC LIMIT 1")[0]
            previous = bytes.fromhex(last)
            at = (int(time.time()) + ahead_s) * 1_000_000
            for n in range(count):
                body = json.dumps({"forged": n}, separators=(",", ":"))
                salt = bytes([n]) * 32
                event = {"seq": size + n, "run_no": int(run_no), "run_seq": int(run_seq) + n, "recorded_at": at, "occurred_at": None,
                         "origin": 2, "type": kind, "schema_version": 1, "step_id": None, "actor": "uid:0",
                         "event_id": str(uuid.UUID(int=10**30 + n)), "body_hash": sha256(salt, body.encode())}
                previous = run_hash(encode_entry(log_id, run_id, event, previous))
                sql(f"INSERT INTO event ({COLUMNS}) VALUES (1, {size + n}, {run_no}, {int(run_seq) + n}, to_timestamp({at // 1_000_000}), NULL, 2,"
                    f" '{event['type']}', 1, NULL, 'uid:0', '{event['event_id']}', '\\x{event['body_hash'].hex()}', '\\x{salt.hex()}', '{body}',"
                    f" '\\x{previous.hex()}')")


class Postgres:
    """Runs the private server of a stopped daemon."""

    def __init__(self, daemon: Daemon):
        self.daemon = daemon
        self.begun = False

    def __enter__(self) -> Any:
        if self.daemon.postgres_pid() is None:
            self.control("start")
            self.begun = True
        uri = (self.daemon.data / "database.uri").read_text().strip()
        return lambda text: self.daemon.sql_at(uri, text)

    def __exit__(self, *_: object) -> None:
        if self.begun:
            self.control("stop", "-m", "fast")

    def control(self, *words: str) -> None:
        program = sorted(glob.glob("/usr/lib/postgresql/*/bin/pg_ctl"))[-1]
        as_owner = []
        folder = self.daemon.data / "postgres"
        if os.geteuid() == 0:
            owner = folder.stat()
            as_owner = ["setpriv", f"--reuid={owner.st_uid}", f"--regid={owner.st_gid}", "--clear-groups"]
        done = subprocess.run([*as_owner, program, "-D", str(folder), "-w", *words, *(("-l", "/dev/null", "-o", f"-k {folder} -c listen_addresses=''") if words[0] == "start" else ())],
                              cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120)
        assert done.returncode == 0, done.stderr
