"""Tests of a user of the machine whom allowed_uids admits, but who cannot read the data folder: permitted commands
work, and refusals name the users who may run them."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
from typing import Any, Optional

from support import BUILD, Daemon, DaemonCase, main
from test_advice import NOBODY, ran


@unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
class Stranger(DaemonCase):
    file: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.daemon.destroy)
        cls.daemon.data.mkdir(0o700)
        cls.file = cls.daemon.data / "muniment.toml"   # the file may contain passwords
        cls.file.write_text(f"allowed_uids = [{NOBODY}]\n")
        cls.file.chmod(0o600)
        cls.daemon.start()
        assert ran("--data", cls.daemon.data, "audit", "key", "init").returncode == 0
        cls.daemon.let_others_in()

    def asked(self, *words: object, code: Optional[int] = 0, place: Optional[pathlib.Path] = None) -> Any:
        done = ran("--data", place or self.daemon.data, *words, user=NOBODY)
        self.assertIn(code, (None, done.returncode), done.stdout + done.stderr)
        return done

    def own_run(self) -> str:
        run_id = f"{self._testMethodName[:60]}.own"
        self.asked("run", "start", run_id, "--agent", "stranger")
        return run_id

    def close_folder(self) -> None:
        data = self.daemon.data
        self.addCleanup(data.chmod, data.stat().st_mode & 0o7777)
        data.chmod(0o700)

    def test_a_configuration_that_he_may_not_read_does_not_lock_him_out(self) -> None:
        run_id = self.own_run()
        self.asked("event", "append", "x.test.noted", '{"n":1}', "--run", run_id)
        self.assertIn(run_id, self.asked("run", "list").stdout)
        self.assertIn("munimentd", self.asked("status").stdout)
        self.assertIn("Permission denied", self.asked("--config", self.file, "run", "list", code=1).stderr, "one that was named is read")

    def test_it_is_not_said_to_be_absent(self) -> None:
        said = f"{self.file} is not readable by you (uid {NOBODY})"
        for is_closed in (False, True):
            with self.subTest(is_closed=is_closed):
                checked = self.asked("config", "check", code=1)
                self.assertIn(f"denied: {said}", checked.stderr)
                self.assertNotIn("is good", checked.stdout)
                as_json = json.loads(self.asked("--json", "config", "check", code=1).stdout)
                self.assertEqual((as_json["ok"], as_json["file"]), (False, str(self.file)))
                self.assertIn(said, as_json["problems"][0])
                self.assertIn(said, self.asked("config", "print").stderr)
                [finding] = [one for one in json.loads(self.asked("--json", "doctor", code=None).stdout)["findings"] if one["subject"] == "config"]
                self.assertEqual(finding["level"], "note")
                self.assertIn(said, finding["text"])
                if not is_closed:
                    self.close_folder()

    def test_a_daemon_does_not_start_without_it(self) -> None:
        done = subprocess.run([BUILD / "munimentd", "--data", self.daemon.data], user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True, timeout=60, cwd="/")
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"opening {self.file}: Permission denied", done.stderr)

    def test_where_no_daemon_answers_the_socket_may_be_elsewhere(self) -> None:
        place = self.daemon.folder / "other"
        place.mkdir(0o711)
        (place / "muniment.toml").write_text("")
        (place / "muniment.toml").chmod(0o600)
        for words in (("status",), ("run", "list")):
            said = self.asked(*words, code=4, place=place).stderr
            self.assertIn(f"{place}/muniment.toml is not readable by you; if it names another socket, pass --socket PATH", said)
            self.assertNotIn("Start it", said)

    def test_the_database_is_denied_and_it_is_said_who_may(self) -> None:
        run_id = self.own_run()
        for words, instead in ((("sql", "-c", "SELECT 1"), "docs/sql.md (From other programs)"), (("sql", "--uri"), "docs/sql.md (From other programs)"),
                               (("export", run_id, "--format", "jsonl"), f"muniment --data {self.daemon.data} audit export RUN")):
            with self.subTest(words=words):
                said = self.asked(*words, code=1).stderr
                self.assertIn(f"denied: no permission to open the database (uid {NOBODY})", said)
                self.assertIn("only root and the owner of the data folder may use its socket folder", said)
                self.assertIn(instead, said)
                self.assertNotIn("Is the server running", said)
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            self.asked("audit", "export", run_id, "-o", f"{folder}/own.muniment.tar.zst")

    def test_what_is_advised_is_not_denied(self) -> None:
        run_id = self.own_run()
        place = f"muniment --data {self.daemon.data}"
        for seq in (2, 99_999_999):   # another user's event, and one that does not exist
            self.assertTrue(self.asked("why", seq, code=1).stderr.endswith(f"no event {seq}. See: {place} event list --run RUN\n"))
        self.asked("event", "list", "--run", run_id)
        for words in (("event", "list"), ("why", "no/such/file")):
            self.assertIn("Name one that is yours: --run RUN.", self.asked(*words, code=1).stderr)
        nothing = "01a203dd-ff24-7a4d-8ec3-27afee7588ef"
        self.assertIn(f"List it: {place} evidence list --run RUN", self.asked("evidence", "get", nothing, code=1).stderr)
        self.asked("evidence", "list", "--run", run_id)

    def test_what_a_claim_of_his_rests_on(self) -> None:
        run_id = self.own_run()
        [claim] = [json.loads(line) for line in self.asked("--json", "claim", "record", "it is so", "--run", run_id).stdout.splitlines()]
        self.assertIn("claim.recorded", self.asked("why", claim["claim_id"], "--run", run_id).stdout)
        self.assertIn("--run RUN", self.asked("why", claim["claim_id"], code=1).stderr)


if __name__ == "__main__":
    main()
