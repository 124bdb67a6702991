"""Attestations: test results of one daemon, or of another program, in the gate of a daemon that trusts the key."""
from __future__ import annotations

import base64
import hashlib
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import uuid
from typing import Any, Callable, Optional

from notes import Signer
from support import BUILD, Daemon, DaemonCase, main

from muniment import MunimentError
from muniment.evidence.evidence_system import checksum_of

STATEMENT = "application/vnd.in-toto+json"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
TASK = "Make the adder tests pass"
TESTS = """import unittest
class Adding(unittest.TestCase):
    def test_adder(self):
        self.assertEqual(1 + 2, VALUE)
"""
FINISH_S = 120.0

Done = subprocess.CompletedProcess[str]


def signed_text(payload: bytes, payload_type: str = STATEMENT) -> bytes:
    return b"DSSEv1 %d %s %d %s" % (len(payload_type), payload_type.encode(), len(payload), payload)


def envelope(payload: bytes, *signers: Signer, payload_type: str = STATEMENT) -> str:
    signatures = [{"keyid": signer.vkey, "sig": base64.b64encode(signer._sign(signed_text(payload, payload_type))).decode()} for signer in signers]
    return json.dumps({"payloadType": payload_type, "payload": base64.b64encode(payload).decode(), "signatures": signatures})


def statement(**changed: Any) -> bytes:
    """A statement of a program that knows nothing of Muniment."""
    predicate = {"result": "PASSED", "configuration": [{"uri": "https://ci.example/run/17"}],
                 "passedTests": ["tests.test_adder.test_small_numbers", "tests.test_adder.test_zero"], "failedTests": [], **changed.pop("predicate", {})}
    return json.dumps({"_type": "https://in-toto.io/Statement/v1", "subject": [{"name": "adder", "digest": {"gitCommit": "d20ace79"}}],
                       "predicateType": TEST_RESULT, "predicate": predicate, **changed}).encode()


def record_with_id_of(payload: bytes, key: str, copied: str = "{}") -> dict[str, Any]:
    """A file of evidence that a client writes, with the id that the daemon derives from the payload."""
    digest = bytearray(hashlib.sha256(b"attestation/" + hashlib.sha256(payload).hexdigest().encode()).digest()[:16])
    digest[6], digest[8] = digest[6] & 0x0F | 0x80, digest[8] & 0x3F | 0x80
    forged = {"id": str(uuid.UUID(bytes=bytes(digest))), "type": "test_output", "timestamp": "2026-11-01T12:00:00Z", "validator_id": "ci.example",
              "content": {"text": "2 passed in 0.1s", "attestation": {"key": key, "envelope": copied}}}
    return {**forged, "checksum": checksum_of({**forged, "checksum": ""})}


class AttestationCase(DaemonCase):
    shared = True
    trusting: Daemon
    trusted: pathlib.Path   # the file of the keys that it trusts
    own_key: str
    ci = Signer("ci.example", b"c" * 32)
    stranger = Signer("stranger.example", b"s" * 32)

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        if "trusting" not in AttestationCase.__dict__:
            subprocess.run([BUILD / "muniment", "--data", cls.daemon.data, "audit", "key", "init"], check=True, capture_output=True)
            AttestationCase.own_key = (cls.daemon.data / "keys" / "log.pub").read_text().splitlines()[-1]
            keys = pathlib.Path(tempfile.mkdtemp(dir=cls.daemon.folder)) / "keys"
            keys.write_text(f"# keys of CI\n{AttestationCase.own_key}\n{cls.ci.vkey}\n")
            AttestationCase.trusted = keys
            AttestationCase.trusting = Daemon(config=f'attestation_keys = "{keys}"\n')
            AttestationCase.trusting.start()
            unittest.addModuleCleanup(AttestationCase.trusting.destroy)

    def setUp(self) -> None:
        super().setUp()
        self.there = self.trusting.client()
        self.addCleanup(self.there.close)
        self.run_there = self.there.call("run.start", agent={"name": "test"})["run_id"]
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=self.daemon.folder))

    def muniment(self, *words: object, code: int = 0, daemon: Optional[Daemon] = None, data: Optional[pathlib.Path] = None,
                 stdin: str = "") -> Done:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("MUNIMENT_", "GIT_"))}
        done = subprocess.run([str(BUILD / "muniment"), "--data", str(data or (daemon or self.daemon).data), *map(str, words)], input=stdin,
                              capture_output=True, text=True, timeout=FINISH_S, cwd=self.folder, env=env)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        return done

    def recorded(self, value: int = 3, git: bool = True, daemon: Optional[Daemon] = None) -> str:
        """Evidence of a run of tests, in a folder of its own."""
        (self.folder / "test_adder.py").write_text(TESTS.replace("VALUE", str(value)))
        (self.folder / ".gitignore").write_text("__pycache__/\n*.json\n")
        if git:
            subprocess.run(["git", "init", "-q"], cwd=self.folder, check=True)
        done = self.muniment("exec", "--run", self.run_id, "--evidence", "test_output", "--", "python3", "-m", "unittest", code=0 if value == 3 else 1, daemon=daemon)
        found = re.search(r"muniment: evidence ([0-9a-f-]{36})", done.stderr)
        assert found is not None, done.stderr
        return found[1]

    def exported(self, evidence: str) -> pathlib.Path:
        file = self.folder / "attestation.json"
        self.muniment("attestation", "export", evidence, "--output", file)
        return file

    def imported(self, text: str) -> Any:
        return self.there.call("evidence.import", run_id=self.run_there, envelope=text)

    def refused(self, text: str, code: str, pattern: str) -> None:
        before = [event["seq"] for event in self.there.call("event.list", run_id=self.run_there)["events"]]
        with self.assertRaisesRegex(MunimentError, pattern) as caught:
            self.imported(text)
        self.assertEqual(caught.exception.code, code)
        self.assertEqual([event["seq"] for event in self.there.call("event.list", run_id=self.run_there)["events"]], before, "nothing is recorded")

    def signed_by_ci(self, file: pathlib.Path, change: Callable[[Any], object] = lambda _: None) -> str:
        """The exported statement, changed, as if the daemon of CI had exported it."""
        said = json.loads(base64.b64decode(json.loads(file.read_text())["payload"]))
        change(said)
        return envelope(json.dumps(said).encode(), self.ci)

    def trust(self, keys: str) -> None:
        self.trusted.write_text(keys)
        self.trusting.stop()
        self.trusting.restart()
        self.there.close()   # the next call reconnects

    def complete(self, evidence: str, **more: Any) -> Any:
        task = self.there.call("task.open", run_id=self.run_there, content=TASK)["task_id"]
        return self.there.call("task.complete", run_id=self.run_there, task_id=task, evidence_ids=[evidence], **more)


class Out(AttestationCase):
    def test_a_test_result_is_signed(self) -> None:
        evidence = self.recorded()
        sent = json.loads(self.exported(evidence).read_text())
        self.assertEqual(sent["payloadType"], STATEMENT)
        said = json.loads(base64.b64decode(sent["payload"]))
        self.assertEqual((said["_type"], said["predicateType"]), ("https://in-toto.io/Statement/v1", TEST_RESULT))
        self.assertEqual(said["predicate"]["result"], "PASSED")
        tree = said["predicate"]["muniment"]["content"]["command"]["tree_after"]
        self.assertEqual(said["subject"], [{"name": tree, "digest": {"sha256": tree.rpartition("sha256:")[2]}}])
        self.verify_with_another_library(sent)

    def verify_with_another_library(self, sent: Any) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        raw = base64.b64decode(self.own_key.split("+", 2)[2])
        self.assertEqual(raw[0], 1)
        payload = base64.b64decode(sent["payload"])
        Ed25519PublicKey.from_public_bytes(raw[1:]).verify(base64.b64decode(sent["signatures"][0]["sig"]), signed_text(payload))

    def test_a_failed_run_is_attested_as_failed(self) -> None:
        said = json.loads(base64.b64decode(json.loads(self.exported(self.recorded(value=4)).read_text())["payload"]))
        self.assertEqual(said["predicate"]["result"], "FAILED")
        self.assertEqual(len(said["predicate"]["failedTests"]), 1)

    def test_outside_of_git_the_subject_is_the_evidence(self) -> None:
        evidence = self.recorded(git=False)
        said = json.loads(base64.b64decode(json.loads(self.exported(evidence).read_text())["payload"]))
        self.assertEqual(said["subject"], [{"name": f"evidence/{evidence}", "digest": {"sha256": self.call("evidence.check", evidence_id=evidence)["hash"]}}])

    def test_of_a_completed_task(self) -> None:
        evidence = self.recorded()
        self.call("task.open", run_id=self.run_id, task_id="t1", content=TASK)
        self.muniment("attestation", "export", "--task", "t1", "--run", self.run_id, code=1)
        self.call("task.complete", run_id=self.run_id, task_id="t1", evidence_ids=[evidence])
        by_task = self.muniment("attestation", "export", "--task", "t1", "--run", self.run_id).stdout
        self.assertEqual(by_task, self.exported(evidence).read_text())

    def test_without_a_key_nothing_is_signed(self) -> None:
        done = self.muniment("exec", "--run", self.run_there, "--evidence", "test_output", "--", "python3", "-m", "unittest", "--help", daemon=self.trusting, code=1)
        found = re.search(r"muniment: evidence ([0-9a-f-]{36})", done.stderr)
        assert found is not None, done.stderr
        self.assertIn("Create one with: muniment", self.muniment("attestation", "export", found[1], daemon=self.trusting, code=1).stderr)

    def test_what_is_no_test_result(self) -> None:
        for type_, content in (("review", {"text": "Read and agreed."}), ("test_output", {"text": "12 passed in 0.3s"})):
            told = self.call("evidence.record", run_id=self.run_id, type=type_, content=content)["evidence_id"]
            done = self.muniment("attestation", "export", told, code=1)
            self.assertIn("is not a recorded test result. Record one: muniment", done.stderr)
        # A client can copy an attestation into what it says, but not into what the daemon recorded.
        copied = {"text": "2 passed", "command": {"argv": ["pytest"], "exit_code": 0}, "attestation": {"key": self.ci.vkey, "envelope": envelope(statement(), self.ci)}}
        told = self.there.call("evidence.record", run_id=self.run_there, type="test_output", content=copied)["evidence_id"]
        with self.assertRaisesRegex(MunimentError, "is not a recorded test result"):
            self.there.call("evidence.attest", evidence_id=told)
        self.muniment("attestation", "export", "nonsense", code=1)

    def test_terms_that_an_attestation_cannot_state(self) -> None:
        first = self.recorded()
        command = self.call("evidence.get", evidence_id=first)["evidence"]["content"]["command"]["command_id"]
        for terms in ({"expires_in_seconds": 86_400}, {"depends_on": [first]}):
            evidence = self.call("evidence.record", run_id=self.run_id, type="test_output", command_id=command, **terms)["evidence_id"]
            self.assertIn("expires or depends on other evidence", self.muniment("attestation", "export", evidence, code=1).stderr)

    def test_without_evidence_nothing_is_signed(self) -> None:
        self.muniment("attestation", "export", str(uuid.uuid4()), code=1)
        self.muniment("attestation", "export", code=1)


class In(AttestationCase):
    def test_from_one_daemon_into_another_that_trusts_its_key(self) -> None:
        file = self.exported(self.recorded())
        shown = self.muniment("attestation", "import", file, "--run", self.run_there, daemon=self.trusting).stdout
        evidence = shown.split()[1]
        found = self.there.call("evidence.get", evidence_id=evidence)["evidence"]
        self.assertEqual((found["type"], found["validator_id"]), ("test_output", self.own_key.partition("+")[0]))
        self.assertEqual(found["content"]["attestation"], {"key": self.own_key, "envelope": file.read_text()})
        judged = self.complete(evidence, strict=True)
        self.assertTrue(judged["completed"], judged)
        self.assertTrue(judged["evidence_status"][evidence]["strong"])
        again = self.imported(file.read_text())
        self.assertEqual((again["evidence_id"], again["duplicate"]), (evidence, True))
        # Its own attestation is returned, not a new one of this daemon.
        self.assertEqual(self.there.call("evidence.attest", evidence_id=evidence)["envelope"], file.read_text())

    def test_a_result_of_another_program(self) -> None:
        evidence = self.imported(envelope(statement(), self.ci))["evidence_id"]
        judged = self.complete(evidence, strict=True)
        self.assertTrue(judged["completed"], judged)
        self.assertTrue(judged["evidence_status"][evidence]["strong"])

    def test_results_that_do_not_complete_a_task(self) -> None:
        for predicate, strict in (({"result": "FAILED", "failedTests": ["tests.test_adder.test_one"]}, False), ({"result": "FAILED"}, False),
                                  ({"result": "WARNED"}, True), ({"passedTests": []}, True)):
            with self.subTest(predicate=predicate):
                evidence = self.imported(envelope(statement(predicate=predicate), self.ci))["evidence_id"]
                self.assertFalse(self.complete(evidence, strict=strict)["can_complete"])

    def test_a_failed_run_fails_elsewhere_too(self) -> None:
        evidence = self.imported(self.exported(self.recorded(value=4)).read_text())["evidence_id"]
        self.assertFalse(self.complete(evidence)["can_complete"])

    def test_a_trusted_signature_among_others(self) -> None:
        both = json.loads(envelope(statement(url="x"), self.stranger, self.ci))
        self.assertFalse(self.imported(json.dumps(both))["duplicate"])
        both["signatures"] = both["signatures"][::-1]
        self.assertTrue(self.imported(json.dumps(both))["duplicate"], "the signatures are not a part of the result")

    def test_a_record_in_the_way(self) -> None:
        """A client that knows the id first cannot make its own record count."""
        payload = statement(url="in the way")
        taken = self.there.call("evidence.import", run_id=self.run_there, record=record_with_id_of(payload, self.ci.vkey, envelope(payload, self.ci)))["evidence_id"]
        self.refused(envelope(payload, self.ci), "conflict", f"evidence {taken} was recorded by")
        self.assertFalse(self.complete(taken, strict=True)["can_complete"])
        with self.assertRaisesRegex(MunimentError, "not a recorded test result"):
            self.there.call("evidence.attest", evidence_id=taken)


    def test_a_key_that_is_not_trusted_any_more(self) -> None:
        key, before = Signer("revoked.example", b"r" * 32), self.trusted.read_text()
        self.trust(before + key.vkey + "\n")
        evidence = self.imported(envelope(statement(url="revoked"), key))["evidence_id"]
        question = {"content": TASK, "evidence_ids": [evidence], "strict": True}
        self.assertTrue(self.there.call("task.validate", **question)["evidence_status"][evidence]["strong"])
        self.trust(before)
        judged = self.there.call("task.validate", **question)
        self.assertFalse(judged["can_complete"], judged)
        self.assertFalse(judged["evidence_status"][evidence]["strong"])
        with self.assertRaisesRegex(MunimentError, "not a recorded test result"):
            self.there.call("evidence.attest", evidence_id=evidence)


    def test_one_of_two_signers_is_not_trusted_any_more(self) -> None:
        keys, before = [Signer(f"rotated{i}.example", bytes([100 + i]) * 32) for i in range(2)], self.trusted.read_text()
        self.trust(before + "".join(key.vkey + "\n" for key in keys))
        evidence = self.imported(envelope(statement(url="rotated"), *keys))["evidence_id"]
        question = {"content": TASK, "evidence_ids": [evidence], "strict": True}
        for trusted, strong in ((keys[:1], True), (keys[1:], True), ([], False)):
            self.trust(before + "".join(key.vkey + "\n" for key in trusted))
            self.assertEqual(self.there.call("task.validate", **question)["evidence_status"][evidence]["strong"], strong)

    def test_an_edit_between_the_command_and_the_import(self) -> None:
        edit = {"path": "/src/adder.py", "change": "modified"}
        self.there.append(self.run_there, "file.changed", edit)
        file = self.exported(self.recorded())
        evidence = self.imported(self.signed_by_ci(file, lambda one: one["predicate"]["muniment"]["content"]["command"].update(command_id=str(uuid.uuid4()))))["evidence_id"]
        self.assertTrue(self.complete(evidence)["completed"])
        self.there.append(self.run_there, "file.changed", edit)
        evidence = self.imported(file.read_text())["evidence_id"]
        judged = self.complete(evidence)
        self.assertFalse(judged["can_complete"], judged)
        self.assertIn("edited_after", [finding["code"] for finding in judged["findings"]])


class Refused(AttestationCase):
    def test_an_untrusted_key(self) -> None:
        self.refused(envelope(statement(), self.stranger), "denied", "no key that the daemon trusts .* Nothing was recorded")

    def test_a_daemon_without_trusted_keys(self) -> None:
        file = self.exported(self.recorded())
        done = self.muniment("attestation", "import", file, "--run", self.run_id, code=1)
        self.assertIn("trusts no key for attestations. The operator can name a file of keys with the setting attestation_keys", done.stderr)

    def test_no_signature(self) -> None:
        self.refused(envelope(statement()), "invalid_argument", "it has 0 signatures")
        self.refused(envelope(statement(), *[self.ci] * 17), "invalid_argument", "it has 17 signatures")

    def test_any_changed_bit(self) -> None:
        good = json.loads(envelope(statement(), self.ci))
        payload = bytearray(base64.b64decode(good["payload"]))
        for at in (0, len(payload) // 2, len(payload) - 1):
            changed = bytes(payload[:at]) + bytes([payload[at] ^ 1]) + bytes(payload[at + 1:])
            self.refused(json.dumps({**good, "payload": base64.b64encode(changed).decode()}), "denied", "no key")
        signature = bytearray(base64.b64decode(good["signatures"][0]["sig"]))
        signature[5] ^= 4
        self.refused(json.dumps({**good, "signatures": [{"sig": base64.b64encode(signature).decode()}]}), "denied", "no key")
        self.refused(json.dumps({**good, "signatures": [{"sig": base64.b64encode(signature[:-1]).decode()}]}), "denied", "no key")

    def test_a_confused_payload_type(self) -> None:
        good = json.loads(envelope(statement(), self.ci))
        self.refused(json.dumps({**good, "payloadType": "application/vnd.in-toto.test-result+json"}), "denied", "no key")
        self.refused(envelope(statement(), self.ci, payload_type="application/json"), "invalid_argument", "payloadType")
        self.refused(envelope(statement(), self.ci, payload_type=""), "invalid_argument", "payloadType")

    def test_a_signature_of_a_checkpoint(self) -> None:
        """The log's key signs checkpoints as well; the signed texts have different beginnings."""
        self.note()
        note = self.call("audit.checkpoint")["note"]
        text, _, signatures = note.partition("\n\n")
        signature = base64.b64decode(signatures.split(" ")[2])[4:]
        for payload, payload_type in ((f"{text}\n".encode(), STATEMENT), (f"{text}\n".encode(), ""), (statement(), f"{text}\n")):
            forged = {"payloadType": payload_type, "payload": base64.b64encode(payload).decode(), "signatures": [{"sig": base64.b64encode(signature).decode()}]}
            self.refused(json.dumps(forged), "denied", "no key")

    def test_another_statement(self) -> None:
        for payload, pattern in ((statement(predicateType="https://slsa.dev/provenance/v1"), "predicateType is"), (statement(_type="https://in-toto.io/Statement/v0.1"), "_type"),
                                 (statement(subject=[]), "no subject"), (statement(subject=[{"name": "x"}]), "no digest"),
                                 (statement(subject=[{"digest": {"sha256": "AB"}}]), "64 lower-case hex"), (statement(predicate={"result": "passed"}), "PASSED, WARNED or FAILED"),
                                 (statement(predicate={"configuration": {}}), "configuration"), (statement(predicate={"failedTests": ["x"]}), "contradicts"),
                                 (statement(predicate={"passedTests": [1]}), "lists of names"), (b"{", "not an in-toto statement"), (b"", "not an in-toto statement"),
                                 (statement(predicate={"muniment": {"type": "review", "content": {}}}), "not evidence of a recorded command"),
                                 (statement().replace(b'"predicate"', b'"_type": "https://in-toto.io/Statement/v1", "predicate"'), "not an in-toto")):
            with self.subTest(pattern=pattern):
                self.refused(envelope(payload, self.ci), "invalid_argument", pattern)

    def test_contents_that_contradict_the_statement(self) -> None:
        file = self.exported(self.recorded())
        for change, pattern in ((lambda one: one["predicate"].update(result="FAILED"), "contradicts the result"),
                                (lambda one: one["subject"][0]["digest"].update(sha256="0" * 64), "is not its subject"),
                                (lambda one: one["predicate"]["muniment"]["content"]["command"].pop("command_id"), "not evidence of a recorded command"),
                                (lambda one: one["predicate"]["muniment"]["content"]["report"].update(format="golden"), "blind workflow")):
            self.refused(self.signed_by_ci(file, change), "invalid_argument", pattern)

    def test_limits_and_garbage(self) -> None:
        big = envelope(statement(predicate={"passedTests": ["x" * 30_000]}), self.ci)
        with self.assertRaises(MunimentError):
            self.imported(big)
        (self.folder / "big.json").write_text(big + " " * 65_536)
        self.assertIn("too_large", self.muniment("attestation", "import", "big.json", "--run", self.run_there, code=1, daemon=self.trusting).stderr)
        for garbage in ("", "{}", "[]", "null", '{"payloadType": 1, "payload": "", "signatures": []}', '{"payloadType": "x", "payload": "%", "signatures": [{"sig": ""}]}'):
            with self.assertRaises(MunimentError):
                self.imported(garbage)
        with self.assertRaisesRegex(MunimentError, "either record or envelope"):
            self.there.call("evidence.import", run_id=self.run_there)
        with self.assertRaisesRegex(MunimentError, "requires run_id"):
            self.there.call("evidence.import", envelope=envelope(statement(), self.ci))


class Offline(AttestationCase):
    def test_verify(self) -> None:
        file = self.exported(self.recorded())
        nowhere = self.folder / "nowhere"   # no daemon runs there
        shown = self.muniment("attestation", "verify", file, "--key", self.own_key, data=nowhere).stdout
        self.assertRegex(shown, "^verified  PASSED\n  key      .*\n  subject  git:.*sha256:[0-9a-f]{64}\n$")
        self.muniment("attestation", "verify", file, "--keys", self.daemon.data / "keys" / "log.pub", data=nowhere)
        self.muniment("attestation", "verify", file, "--key", self.daemon.data / "keys" / "log.pub", data=nowhere)
        self.assertEqual(json.loads(self.muniment("--json", "attestation", "verify", "-", "--key", self.own_key, stdin=file.read_text(), data=nowhere).stdout)["result"], "PASSED")
        self.assertIn("no trusted key signed", self.muniment("attestation", "verify", file, "--key", self.stranger.vkey, code=1, data=nowhere).stderr)
        self.assertIn("no trusted key. Name one", self.muniment("attestation", "verify", file, code=1, data=nowhere).stderr)
        file.write_text(file.read_text().replace('"keyid":"', '"keyid":"x'))
        self.muniment("attestation", "verify", file, "--key", self.own_key, data=nowhere)   # the keyid is only a hint
        self.muniment("attestation", "verify", file, "--key", "nonsense", code=1)
        self.assertFalse(nowhere.exists())

    def test_json_is_one_line(self) -> None:
        sent = json.dumps(json.loads(envelope(json.dumps(json.loads(statement(url="lines")), indent=2).encode(), self.ci)), indent=2)
        shown = self.muniment("--json", "attestation", "verify", "-", "--key", self.ci.vkey, stdin=sent).stdout
        self.assertEqual((shown.count("\n"), json.loads(shown)["statement"]["url"]), (1, "lines"))
        evidence = self.imported(sent)["evidence_id"]
        shown = self.muniment("--json", "attestation", "export", evidence, daemon=self.trusting).stdout
        self.assertEqual((shown.count("\n"), json.loads(shown)), (1, json.loads(sent)))
        self.assertEqual(self.muniment("attestation", "export", evidence, daemon=self.trusting).stdout, sent + "\n")

    def test_the_setting(self) -> None:
        config = self.folder / "muniment.toml"
        for text, pattern in (("", None), ("nonsense\n", "attestation_keys"), (None, "attestation_keys")):
            keys = self.folder / "keys"
            keys.unlink(missing_ok=True)
            if text is not None:
                keys.write_text(text)
            config.write_text(f'attestation_keys = "{keys}"\n')
            done = self.muniment("config", "check", "--config", config, code=0 if pattern is None else 1)
            examined = self.muniment("doctor", "--config", config, code=0 if pattern is None else 1)
            if pattern is not None:
                self.assertIn(pattern, done.stdout + done.stderr)
                self.assertIn(pattern, examined.stdout)
        keys.write_text("")
        keys.chmod(0o666)
        config.write_text(f'attestation_keys = "{keys}"\n')
        for done in (self.muniment("config", "check", "--config", config, code=1), self.muniment("doctor", "--config", config, code=1)):
            self.assertIn(f"other users may write {keys} (mode 666). Run: chmod go-w {keys}", done.stdout + done.stderr)
        config.write_text('attestation_keys = "keys"\n')
        self.assertIn("absolute path", "".join((done := self.muniment("config", "check", "--config", config, code=1)).stdout + done.stderr))
        self.assertRegex(done.stderr, r"\b1 problem in the configuration")


if __name__ == "__main__":
    main()
