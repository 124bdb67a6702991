"""Tests of numbers that jsonb writes with other digits than the client sent: replies, verification, exports,
restores and reads keep their value."""
from __future__ import annotations

import decimal
import json
import shutil
import subprocess
from typing import Any

from bundling import muniment
from support import BUILD, DaemonCase, ROOT, main, wait_until

NUMBERS = {"loss": "1e20", "most": "1.797e308", "least": "1e-308", "signed": "-2.50E+21", "none": "0e-300", "minus": "-0", "plain": "1.50",
           "long": "18446744073709551615", "wide": "1234567890123456789012345678901234567890e2", "text": '"1e20 \\" 100000000000000000000000"'}
OBJECT = "{" + ",".join(f'"{name}":{token}' for name, token in NUMBERS.items()) + "}"
TOO_WIDE = "{" + ",".join(f'"n{i}":1e308' for i in range(220)) + "}"   # jsonb needs over 65,000 bytes for these numbers


def decimals(text: str) -> Any:
    return json.loads(text, parse_int=decimal.Decimal, parse_float=decimal.Decimal)


class Numbers(DaemonCase):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.key = cls.daemon.folder / "log.pub"
        done = muniment(cls.daemon, "audit", "key", "init", "-o", cls.key, json_output=False)
        assert done.returncode == 0, done.stderr

    def ask(self, method: str, params: str) -> str:
        """Returns the bytes of the reply to these bytes: a client's JSON library must not choose the numbers' form."""
        raw = self.raw()
        raw.send(f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}\n'.encode())
        while b"\n" not in raw.buffer:
            raw.buffer += raw.socket.recv(1 << 16)
        reply = raw.buffer.decode()
        self.assertNotIn('"error"', reply)
        return reply

    def cli(self, *words: object) -> Any:
        done = muniment(self.daemon, *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return decimals(done.stdout)

    def verified(self, *more: object) -> dict[str, Any]:
        done = subprocess.run([BUILD / "muniment-verify", "--json", "--key", self.key, *map(str, more)], stdout=subprocess.PIPE, timeout=60, check=False)
        report = json.loads(done.stdout)
        self.assertEqual((done.returncode, report["findings"]), (0, []), report)
        return report

    def signed(self) -> None:
        self.followed()
        size = self.call("server.status")["log"]["size"]
        wait_until(lambda: self.call("audit.checkpoint")["size"] >= size, "signed")

    def recorded(self) -> tuple[str, str]:
        """Starts a run with such labels, and stores an artifact with such metadata. Returns their ids."""
        run = self._testMethodName + ".n"
        self.ask("run.start", f'{{"run_id":"{run}","agent":{{"name":"test"}},"labels":{OBJECT}}}')
        self.ask("run.annotate", f'{{"run_id":"{run}","labels":{{"more":3e40}}}}')
        put = json.loads(self.ask("artifact.put", f'{{"run_id":"{run}","text":"x","metadata":{OBJECT}}}'))
        return run, put["result"]["artifact_id"]

    def test_they_are_verified_by_both_verifiers_and_restored(self) -> None:
        run, _ = self.recorded()
        self.signed()
        self.verified("--data", self.daemon.data)
        bundle = self.daemon.folder / "numbers.muniment.tar.zst"
        self.assertEqual(muniment(self.daemon, "audit", "export", run, "-o", bundle).returncode, 0)
        self.verified("--bundle", bundle)
        done = subprocess.run(["python3", ROOT / "clients/python/muniment_verify.py", "--bundle", bundle, "--key", self.key], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        backups, other = self.daemon.folder / "backups", self.daemon.folder / "restored"
        self.cli("backup", backups)
        done = subprocess.run([BUILD / "muniment", "--data", other, "--no-autostart", "restore", backups, "--key", self.key], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        shutil.rmtree(other)

    def test_replies_and_commands_say_their_value(self) -> None:
        run, artifact = self.recorded()
        self.followed()
        wanted = decimals(OBJECT)
        self.assertEqual(decimals(self.ask("artifact.stat", f'{{"artifact_id":"{artifact}"}}'))["result"]["artifact"]["metadata"], wanted)
        done = muniment(self.daemon, "run", "list")
        self.assertEqual(done.returncode, 0, done.stderr)
        row = next(row for row in map(decimals, done.stdout.splitlines()) if row["run_id"] == run)
        self.assertEqual(row["labels"], {**wanted, "more": decimal.Decimal("3e40")})

    def test_labels_that_the_table_cannot_hold_stop_nobody(self) -> None:
        run = self._testMethodName + ".wide"
        self.ask("run.start", f'{{"run_id":"{run}","agent":{{"name":"test"}},"labels":{TOO_WIDE}}}')
        self.ask("run.annotate", f'{{"run_id":"{run}","labels":{{"more":1}}}}')
        note = self.note(run, secret="x")
        self.signed()
        self.verified("--data", self.daemon.data)
        self.assertEqual(self.daemon.sql(f"SELECT labels FROM run WHERE run_id = '{run}'"), [["{}"]])
        self.cli("rebuild")
        self.cli("audit", "redact", note["seq"], "--reason", "a test", "--yes")
        changes = ",".join(f'"n{i}":null' for i in range(220))
        self.ask("run.annotate", f'{{"run_id":"{run}","labels":{{{changes}}}}}')
        self.signed()
        self.assertEqual(self.daemon.sql(f"SELECT labels FROM run WHERE run_id = '{run}'"), [['{"more": 1}']])
        self.verified("--data", self.daemon.data)


if __name__ == "__main__":
    main()
