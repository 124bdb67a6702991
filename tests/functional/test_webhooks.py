"""Tests of webhooks with real receivers: signed, in order, retried, and never in the way of the log."""
from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import http.server
import json
import mmap
import os
import pathlib
import re
import ssl
import struct
import subprocess
import tempfile
import threading
import time
import unittest
from typing import Any, NamedTuple, Optional

from support import BUILD, ROOT, Daemon, main, wait_until

from muniment import MunimentError  # noqa: E402  (found through the path that support sets)
import prometheus  # noqa: E402
from backup_case import BackupCase  # noqa: E402

SECRET = "whsec_" + base64.b64encode(b"a secret of thirty-two bytes ...").decode()
NOTED = "x.test.noted"


class Message(NamedTuple):
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.raw)

    @property
    def n(self) -> int:
        """Returns the run_seq, by which a test recognizes its notes."""
        return self.body["data"]["run_seq"]


class Receiver:
    """An HTTP server that answers with the queued statuses and then with `status`. It waits before each answer while `hangs` is set."""

    def __init__(self, *answers: int, port: int = 0, certificate: str = ""):
        self.answers, self.status, self.location = list(answers), 200, ""
        self.got: list[Message] = []
        self.released = threading.Event()
        self.released.set()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                receiver.got.append(Message(self.path, {name.lower(): value for name, value in self.headers.items()}, raw))
                status = receiver.answers.pop(0) if receiver.answers else receiver.status
                receiver.released.wait(120)
                try:
                    self.send_response(status)
                    if receiver.location:
                        self.send_header("location", receiver.location)
                    self.send_header("content-length", "0")
                    self.end_headers()
                except OSError:
                    pass   # the daemon has given up

            do_GET = do_POST

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.handle_error = lambda *_: None   # a client that refuses the certificate
        self.port = self.server.server_address[1]
        self.scheme = "https" if certificate else "http"
        if certificate:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(certificate)
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/hook?token=of-the-query"

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def numbers(self) -> list[int]:
        return [message.n for message in self.got]


def verifier_of_the_docs() -> Any:
    """Returns the function `verified` of docs/operations.md."""
    code = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "operations.md").read_text(), re.S)
    assert code
    names: dict[str, Any] = {}
    exec(code[1], names)
    return names["verified"]


class WebhookCase(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-hooks-"))
        self.addCleanup(subprocess.run, ["rm", "-r", str(self.folder)], check=True)
        self.secret = self.folder / "secret"
        self.secret.write_text(SECRET + "\n")
        self.secret.chmod(0o600)

    def receiver(self, *answers: int) -> Receiver:
        receiver = Receiver(*answers)
        self.addCleanup(receiver.close)
        return receiver

    def settings(self, *, types: Optional[list[str]] = None, **urls: str) -> str:
        listed = "" if types is None else f"types = {json.dumps(types)}\n"
        return "".join(f'[webhooks.{name}]\nurl = "{url}"\nsecret_file = "{self.secret}"\n{listed}' for name, url in urls.items())

    def daemon_with(self, settings: str, *, start: bool = True, failpoint: str = "") -> Daemon:
        daemon = Daemon(config=settings)
        self.addCleanup(daemon.destroy)
        return daemon.start(failpoint=failpoint) if start else daemon

    def noting(self, *receivers: Receiver, **more: Any) -> Daemon:
        """Starts a daemon whose receivers, named a, b, …, receive only the notes of the tests."""
        return self.daemon_with(self.settings(types=[NOTED], **{"abc"[i]: receiver.url for i, receiver in enumerate(receivers)}), **more)

    def note(self, daemon: Daemon, count: int = 1, run_id: str = "r1") -> list[int]:
        """Appends notes; returns their run_seqs."""
        with daemon.client() as client:
            if run_id not in [run["run_id"] for run in client.call("run.list")["runs"]]:
                client.call("run.start", run_id=run_id, agent={"name": "test"})
            return [client.append(run_id, NOTED, {"text": "private"})["run_seq"] for _ in range(count)]

    def state(self, daemon: Daemon, name: str = "a") -> dict[str, Any]:
        with daemon.client() as client:
            return next(webhook for webhook in client.call("server.status")["webhooks"] if webhook["name"] == name)

    def cli(self, daemon: Daemon, *words: str) -> str:
        done = subprocess.run([str(BUILD / "muniment"), "--data", str(daemon.data), *daemon.arguments, "--no-autostart", *words], capture_output=True,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout


class Https(WebhookCase):
    def setUp(self) -> None:
        super().setUp()
        self.certificate = self.folder / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=hook",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.folder / "key.pem", "-out", self.certificate], check=True, capture_output=True)
        (self.folder / "both.pem").write_text((self.folder / "key.pem").read_text() + self.certificate.read_text())
        self.receiver_ = Receiver(certificate=str(self.folder / "both.pem"))
        self.addCleanup(self.receiver_.close)

    def test_a_certificate_that_the_system_does_not_trust_gets_no_message(self) -> None:
        daemon = self.noting(self.receiver_)
        self.note(daemon)
        state = wait_until(lambda: (state := self.state(daemon))["failed"] > 0 and state, "a delivery failed")
        self.assertIn("certificate", state["problem"])
        self.assertEqual(self.receiver_.got, [])

    @unittest.skipUnless(os.geteuid() == 0, "only root can replace the system's certificates for one process")
    def test_a_certificate_that_the_system_trusts_gets_the_message(self) -> None:
        build = self.folder / "build"
        build.mkdir()
        for program in BUILD.iterdir():
            (build / program.name).symlink_to(program)
        (build / "munimentd").unlink()
        (build / "munimentd").write_text(f"""#!/bin/sh
exec unshare --mount sh -c 'mount --bind {self.certificate} /etc/ssl/certs/ca-certificates.crt && exec {BUILD}/munimentd "$@"' sh "$@"
""")
        (build / "munimentd").chmod(0o755)
        daemon = Daemon(config=self.settings(types=[NOTED], a=self.receiver_.url), build=build)
        self.addCleanup(daemon.destroy)
        daemon.start()
        noted = self.note(daemon)
        wait_until(lambda: self.receiver_.numbers() == noted, "the message is delivered")


class Messages(WebhookCase):
    def test_evidence_and_the_end_of_a_run_are_signed_messages_without_content(self) -> None:
        receiver = self.receiver()
        daemon = self.daemon_with("")
        with daemon.client() as client:   # history, which a new webhook does not get
            client.call("run.start", run_id="r0", agent={"name": "test"})
            client.call("run.end", run_id="r0", outcome="success")
        daemon.stop()
        (daemon.folder / "muniment.toml").write_text(self.settings(ci=receiver.url))
        daemon.arguments += ["--config", str(daemon.folder / "muniment.toml")]
        daemon.start()
        with daemon.client() as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
            client.append("r1", NOTED, {"text": "private"})
            client.call("evidence.record", run_id="r1", type="review", content={"text": "Read and agreed: private."})
            client.call("run.end", run_id="r1", outcome="success")
            events = [event for event in client.call("event.list", run_id="r1")["events"] if event["type"] in ("evidence.recorded", "run.ended")]
            log_id = client.call("server.status")["log"]["log_id"]
        wait_until(lambda: len(receiver.got) >= 2, "both messages are delivered")
        verified = verifier_of_the_docs()
        for message, event in zip(receiver.got, events):
            with self.subTest(message.body["type"]):
                self.assertEqual(message.path, "/hook?token=of-the-query")
                self.assertEqual(message.headers["content-type"], "application/json")
                signed = b".".join([message.id.encode(), message.headers["webhook-timestamp"].encode(), message.raw])
                wanted = base64.b64encode(hmac.digest(base64.b64decode(SECRET[6:]), signed, hashlib.sha256)).decode()
                self.assertEqual(message.headers["webhook-signature"], f"v1,{wanted}")
                self.assertTrue(verified(SECRET, message.headers, message.raw))
                self.assertFalse(verified(SECRET, message.headers, message.raw + b" "))
                self.assertFalse(verified(SECRET, {**message.headers, "webhook-timestamp": str(int(time.time()) - 3_600)}, message.raw))
                self.assertEqual(message.id, f"ci_{event['event_id']}")
                self.assertEqual(message.body["type"], event["type"])
                self.assertEqual(message.body["timestamp"], event["recorded_at"])
                self.assertEqual(message.body["data"]["log_id"], log_id)
                for member in ("seq", "run_id", "run_seq", "event_id", "actor", "origin", "body_hash"):
                    self.assertEqual(message.body["data"][member], event[member], member)
                self.assertNotIn("private", message.raw.decode())
        wait_until(lambda: self.state(daemon, "ci")["behind"] == 0, "the position reaches the end")
        self.assertEqual(self.state(daemon, "ci")["delivered"], 2)
        self.assertIn("2 messages delivered", self.cli(daemon, "status"))
        for text in (daemon.log.read_text(), json.dumps(self.state(daemon, "ci")), self.cli(daemon, "status"), self.cli(daemon, "doctor")):
            self.assertNotIn(SECRET[6:], text)
            self.assertNotIn("of-the-query", text)

    def test_a_failed_delivery_is_repeated_before_the_next_event(self) -> None:
        receiver = self.receiver(500)
        daemon = self.noting(receiver)
        noted = self.note(daemon, 3)
        wait_until(lambda: len(receiver.got) >= 4, "all are delivered")
        self.assertEqual(receiver.numbers(), [noted[0], *noted])
        self.assertEqual(receiver.got[0].id, receiver.got[1].id)
        self.assertEqual(receiver.got[0].raw, receiver.got[1].raw)
        wait_until(lambda: self.state(daemon)["delivered"] == 3, "the last is counted")
        state = self.state(daemon)
        self.assertEqual((state["failed"], state["skipped"], state.get("problem")), (1, 0, None))
        self.assertIn("the receiver answered 500", daemon.log.read_text())

    def test_a_redirect_is_a_failure(self) -> None:
        elsewhere, receiver = self.receiver(), self.receiver(302)
        receiver.location = elsewhere.url
        daemon = self.noting(receiver)
        self.note(daemon)
        wait_until(lambda: len(receiver.got) >= 2, "the delivery is repeated")
        self.assertEqual(elsewhere.got, [])
        self.assertIn("the receiver answered 302", daemon.log.read_text())

    def test_gone_ends_the_deliveries_until_a_restart(self) -> None:
        receiver = self.receiver(410)
        daemon = self.noting(receiver)
        noted = self.note(daemon, 2)
        wait_until(lambda: "410 Gone" in self.state(daemon).get("problem", ""), "the webhook is stopped")
        self.assertEqual(receiver.numbers(), noted[:1])
        daemon.stop()
        daemon.start()
        wait_until(lambda: len(receiver.got) >= 3, "both are delivered")
        self.assertEqual(receiver.numbers(), [noted[0], *noted])


class Faults(WebhookCase):
    def test_a_receiver_that_hangs_delays_nobody_else(self) -> None:
        slow, quick = self.receiver(), self.receiver()
        slow.released.clear()
        daemon = self.noting(slow, quick)
        noted = self.note(daemon)
        wait_until(lambda: slow.got, "the slow receiver has a request")
        noted += self.note(daemon, 20)
        wait_until(lambda: len(quick.got) >= 21, "the other receiver has all messages")
        self.assertEqual(quick.numbers(), noted)
        self.assertEqual(self.state(daemon)["delivered"], 0)
        wait_until(lambda: self.state(daemon, "b")["delivered"] == 21, "the positions are stored")
        self.assertEqual(daemon.stop(), 0)   # while the receiver hangs
        slow.released.set()
        seen = len(slow.got)
        daemon.start()
        wait_until(lambda: slow.numbers()[seen:] == noted, "a restart delivers everything")
        self.assertEqual(slow.got[0].id, slow.got[seen].id)
        self.assertEqual(quick.numbers(), noted)   # nothing is repeated

    def test_a_crash_loses_nothing(self) -> None:
        receiver = self.receiver()
        daemon = self.noting(receiver, failpoint="webhook.delivered=kill@2")
        with daemon.client() as client:
            client.call("run.start", run_id="r1", agent={"name": "test"})
            with contextlib.suppress(MunimentError):   # the daemon may end before it answers
                client.call("event.append", run_id="r1", events=[{"type": NOTED, "body": {"text": "private"}}] * 3)
        assert daemon.process is not None
        daemon.process.wait(60)
        daemon.start()
        with daemon.client() as client:
            noted = [event["run_seq"] for event in client.call("event.list", run_id="r1", types=[NOTED])["events"]]
        wait_until(lambda: len(receiver.got) >= 4, "the rest is delivered")
        first, second, third = noted
        self.assertEqual(receiver.numbers(), [first, second, second, third])   # the position after the second was not stored
        self.assertEqual(receiver.got[1].id, receiver.got[2].id)

    def test_events_of_a_dead_receiver_wait_in_the_log(self) -> None:
        receiver = self.receiver(*[503] * 20)
        daemon = self.noting(receiver)
        noted = self.note(daemon, 5)
        wait_until(lambda: receiver.got, "an attempt has failed")
        daemon.kill()
        daemon.kill_postgres()
        receiver.answers.clear()
        daemon.start()
        noted += self.note(daemon)
        wait_until(lambda: noted[-1] in receiver.numbers(), "all are delivered")
        self.assertEqual(list(dict.fromkeys(receiver.numbers())), noted)

    def test_an_event_that_failed_for_three_days_is_skipped(self) -> None:
        receiver = self.receiver(*[500] * 1_000)
        daemon = self.daemon_with(self.settings(types=[NOTED], a=receiver.url), start=False)
        built, clock = daemon.folder / "clock.so", daemon.folder / "clock"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", built, ROOT / "tests" / "sim" / "clock.c", "-ldl"], check=True)
        clock.write_bytes(bytes(8))
        daemon.env.update(LD_PRELOAD=str(built), MUNIMENT_CLOCK=str(clock))
        daemon.start()
        self.note(daemon, 3)
        wait_until(lambda: receiver.got, "an attempt has failed")
        with open(clock, "r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
            shared[:8] = struct.pack("<q", 73 * 3_600)
        noted = self.note(daemon)
        wait_until(lambda: self.state(daemon)["skipped"] == 3, "the old events are skipped")   # the pauses between attempts grow
        receiver.answers.clear()
        wait_until(lambda: self.state(daemon)["delivered"] == 1, "the new event is delivered")
        self.assertEqual(receiver.numbers()[-1:], noted)
        self.assertEqual(daemon.log.read_text().count("events are skipped"), 1)
        self.assertIn("3 events skipped", self.cli(daemon, "status"))
        self.assertIn("a has skipped 3 events", self.cli(daemon, "doctor"))

    def test_a_dead_receiver_is_visible(self) -> None:
        receiver = Receiver()
        receiver.close()
        daemon = self.noting(receiver)
        self.note(daemon)
        state = wait_until(lambda: (now := self.state(daemon)).get("next_attempt_at") and now, "an attempt has failed")
        self.assertEqual(state["url"], f"http://127.0.0.1:{receiver.port}/…")
        self.assertIn("connect", state["problem"])
        self.assertGreaterEqual(state["failed"], 1)
        self.assertGreaterEqual(state["behind"], 1)
        self.assertIn("behind, next attempt at", self.cli(daemon, "status"))
        findings = json.loads(self.cli(daemon, "--json", "doctor"))["findings"]
        levels = {finding["level"]: finding for finding in findings if finding["subject"] == "webhook"}
        self.assertRegex(levels["warning"]["text"], "^a: .*connect")
        self.assertEqual(levels["warning"]["doc"], "docs/runbook.md#webhooks")
        self.assertNotIn("follower", [finding["subject"] for finding in findings])
        with daemon.client() as client:
            text = client.call("server.metrics")["text"]
            status = client.call("server.status")
        self.assertEqual(prometheus.problems(text), [])
        values = {(sample.name, sample.label("result") or sample.label("follower")): sample.value for sample in prometheus.samples(text)}
        self.assertGreaterEqual(values["muniment_webhook_deliveries_total", "failed"], 1)
        self.assertEqual(values["muniment_webhook_deliveries_total", "delivered"], 0)
        self.assertGreaterEqual(values["muniment_follower_lag_events", "webhook:a"], 1)
        self.assertNotIn("webhook:a", status["followers"])
        self.assertIn("webhook a: ", status["degraded"][0])
        for text in (daemon.log.read_text(), json.dumps(status)):
            self.assertNotIn("of-the-query", text)


class Settings(WebhookCase):
    def refusal(self, settings: str) -> str:
        code, said = self.daemon_with(settings, start=False).refused_start()
        self.assertNotEqual(code, 0)
        self.assertNotIn(SECRET[6:], said)
        return said

    def test_a_setting_that_is_wrong_is_refused_at_the_start(self) -> None:
        url = "http://127.0.0.1:1/"
        self.assertIn("user or a password", self.refusal(self.settings(a="http://me:you@127.0.0.1/")))
        self.assertIn('Did you mean "task.completed"?', self.refusal(self.settings(a=url, types=["task.complete"])))
        for mode in (0o640, 0o604):
            self.secret.chmod(mode)
            self.assertIn(f"chmod 600 {self.secret}", self.refusal(self.settings(a=url)))
        daemon = self.daemon_with(self.settings(a=url), start=False)
        done = subprocess.run([str(BUILD / "muniment"), "--data", str(daemon.data), *daemon.arguments, "config", "check"], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("chmod 600", done.stdout + done.stderr)
        self.secret.chmod(0o600)
        self.secret.write_text("whsec_" + base64.b64encode(b"short").decode())
        self.assertIn("openssl rand", self.refusal(self.settings(a=url)))
        self.secret.unlink()
        self.assertIn(str(self.secret), self.refusal(self.settings(a=url)))


class Restored(BackupCase):
    def test_a_restored_log_sends_nothing_until_it_is_continued(self) -> None:
        receiver = Receiver(*[500] * 50)
        self.addCleanup(receiver.close)
        secret = self.daemon.folder / "secret"
        secret.write_text(SECRET)
        secret.chmod(0o600)
        setting = json.dumps({"a": {"url": receiver.url, "secret_file": str(secret), "types": ["run.ended"]}})
        for daemon in (self.daemon, self.restored):
            daemon.env["MUNIMENT_WEBHOOKS"] = setting
        self.daemon.stop()
        self.daemon.start()
        with self.daemon.client() as client:
            client.call("run.start", run_id="first", agent={"name": "test"})
            client.call("run.end", run_id="first", outcome="success")
        wait_until(lambda: receiver.got, "an attempt has failed")
        self.backup()
        self.daemon.stop()
        receiver.answers.clear()
        before = len(receiver.got)
        self.restore()
        self.restored.start()
        with self.restored.client() as client:
            status = client.call("server.status")
        self.assertIn("--continue-restored", status["webhooks"][0]["problem"])
        self.assertEqual(len([text for text in status["degraded"] if "--continue-restored" in text]), 1, status["degraded"])
        self.restored.stop()
        self.assertEqual(len(receiver.got), before)
        self.restored.arguments.append("--continue-restored")
        self.restored.start()
        with self.restored.client() as client:
            client.call("run.start", run_id="second", agent={"name": "test"})
            client.call("run.end", run_id="second", outcome="success")
        wait_until(lambda: receiver.got[before:], "the continued log sends")
        self.assertEqual([message.body["data"]["run_id"] for message in receiver.got[before:]], ["second"])


if __name__ == "__main__":
    main()
