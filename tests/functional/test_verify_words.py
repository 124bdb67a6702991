"""Tests of muniment-verify's suggestions: they can be run as printed, and are shown only to users who can run them."""
from __future__ import annotations

import json
import os
import re
import subprocess

from support import BUILD, DaemonCase, main, wait_until

VERIFY = BUILD / "muniment-verify"
PAST = "SET session_replication_role = replica; "


class WordsCase(DaemonCase):
    def verify(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "MUNIMENT_DATA"}
        return subprocess.run([VERIFY, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False, env=environment)

    def followed(self) -> int:
        """Returns the size of the log when every follower has reached its end."""
        size = self.call("server.status")["log"]["size"]
        wait_until(lambda: self.daemon.sql(f"SELECT count(*) FROM follower WHERE name IN ('document', 'pointer', 'report', 'run') AND next_seq >= {size}") == [["4"]],
                   "the followers are at the end")
        return size


class Bundle(WordsCase):
    def test_whoever_has_a_bundle_has_no_database(self) -> None:
        run, path = self.new_run("bundle"), self.daemon.folder / "b.muniment.tar.zst"
        exported = subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "audit", "export", run, "-o", path], capture_output=True, timeout=60)
        self.assertEqual(exported.returncode, 0, exported.stderr)
        data = subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout
        changed = data.replace(b"\\\"test\\\"", b"\\\"tess\\\"").replace(b"run.started", b"run.sturted")
        self.assertNotEqual(data, changed)
        path.write_bytes(subprocess.run(["zstd", "-cq"], input=changed, capture_output=True, check=True).stdout)
        done = self.verify("--bundle", path)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("  meaning ", done.stdout)
        for words in ("  next ", "psql", "doctor"):
            self.assertNotIn(words, done.stdout)
        self.assertNotIn("next", json.loads(self.verify("--bundle", path, "--json").stdout)["first_bad"])


class Words(WordsCase):
    shared = True   # every change is undone

    def test_the_next_command_runs_as_it_is_printed(self) -> None:
        run = self.new_run("next")
        self.note(run, n=1)
        event = self.events(run)[-1]
        body = self.daemon.sql(f"SELECT body::text FROM event WHERE seq = {event['seq']}")[0][0]
        self.addCleanup(self.daemon.sql, PAST + f"UPDATE event SET body = '{body}' WHERE seq = {event['seq']}")
        self.daemon.sql(PAST + f"UPDATE event SET body = '{{\"n\":2}}' WHERE seq = {event['seq']}")
        done = self.verify("--data", os.path.relpath(self.daemon.data))
        self.assertEqual(done.returncode, 1, done.stdout)
        command = re.search(r"^  next +(.*)$", done.stdout, re.M)[1]
        self.assertTrue(command.startswith(f'psql "$(cat {self.daemon.data}/database.uri)" -c '), command)
        ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, cwd="/")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn(event["event_id"], ran.stdout)
        self.assertNotIn("MUNIMENT_DATA", done.stdout)

    def test_a_folder_whose_name_a_shell_would_take_apart(self) -> None:
        link = self.daemon.folder / "it's a folder"
        link.symlink_to(self.daemon.data)
        run = self.new_run("quoted")
        seq = self.events(run)[-1]["seq"]
        self.addCleanup(self.daemon.sql, PAST + f"UPDATE event SET schema_version = 1 WHERE seq = {seq}")
        self.daemon.sql(PAST + f"UPDATE event SET schema_version = 2 WHERE seq = {seq}")
        command = json.loads(self.verify("--data", link, "--json").stdout)["first_bad"]["next"]
        self.assertIn("'\\''", command)
        self.assertEqual(subprocess.run(["sh", "-c", command], capture_output=True, timeout=60).returncode, 0, command)

    def test_a_follower_that_is_behind(self) -> None:
        self.new_run("behind")
        size = self.followed()
        for name in ("document", "pointer", "report", "run"):   # the daemon does not notice the change before the next event
            self.daemon.sql(f"UPDATE follower SET next_seq = {size - 1} WHERE name = '{name}'")
        said = [words for words in json.loads(self.verify("--data", self.daemon.data, "--json").stdout)["not_checked"] if "follower" in words]
        self.assertEqual(said, [f"the rows that the tables corpus, document, chunk, feedback, pointer, report_run, report_span, report_place, run hold for events from {size - 1} on: the follower has not processed them yet. Verify again"])


class GoesOn(WordsCase):
    """A verify that resumes from another one on an unsigned log: no checkpoint needs to have the size at which the other one ended."""

    shared = True

    def published(self) -> int:
        return max(int(path.name) for path in (self.daemon.data / "tiles" / "tile" / "0" / "000.p").iterdir())

    def test_a_tile_that_begins_with_what_was_verified_will_do(self) -> None:
        run, state = self.new_run("resumed"), self.daemon.folder / "state"
        for number in range(6):
            self.note(run, n=number)
            saved = self.verify("--data", self.daemon.data, "--unsigned-ok", "--save", state)
            self.assertEqual(saved.returncode, 0, saved.stdout)
            size = json.loads(state.read_text())["size"]
            self.note(run, n=number)
            wait_until(lambda: self.published() > size, "more is published")
            (self.daemon.data / "tiles" / "tile" / "0" / "000.p" / str(size)).unlink(missing_ok=True)
            done = self.verify("--data", self.daemon.data, "--unsigned-ok", "--resume", state)
            self.assertEqual(done.returncode, 0, done.stdout)


class Killed(DaemonCase):
    def test_a_follower_that_nobody_moves(self) -> None:
        self.new_run("killed")
        size = self.call("server.status")["log"]["size"]
        wait_until(lambda: self.daemon.sql(f"SELECT count(*) FROM follower WHERE name IN ('pointer', 'run') AND next_seq >= {size}") == [["2"]], "followed")
        self.daemon.kill()
        uri = (self.daemon.data / "database.uri").read_text().strip()
        subprocess.run(["psql", "-qX", uri, "-c", "UPDATE follower SET next_seq = 1 WHERE name = 'pointer'"], check=True, timeout=60)
        done = subprocess.run([VERIFY, "--data", self.daemon.data, "--json"], capture_output=True, text=True, timeout=60, check=False)
        self.assertIn("the rows that the table pointer holds for events from 1 on: the follower has not processed them, and no daemon holds the log. Run muniment rebuild",
                      json.loads(done.stdout)["not_checked"], done.stdout)


if __name__ == "__main__":
    main()
