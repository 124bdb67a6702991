"""The weights of use-lite: a daemon without them is well, and says how to get them; installed by root they serve every user."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest
from typing import Any

from support import BUILD, Daemon, main, muniment, wait_until

NOBODY = 65534
OF_ALL = pathlib.Path("/var/cache/muniment/use-lite-0.2.0")


def environment(home: pathlib.Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MUNIMENT_", "XDG_"))}
    return {**kept, "HOME": str(home)}


class Weights(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-weights-"))
        self.folder.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def asked(self, client: Any) -> dict[str, Any]:
        """An answer that a lane of vectors had a part in, or could have."""
        client.call("corpus.ingest", corpus="notes", documents=[{"id": "a", "text": "# Ports\n\nThe proxy listens on port 8080.\n"}], wait=True)
        return client.call("evidence.retrieve", queries=[{"query": "where does the proxy listen"}])["results"][0]

    def test_a_daemon_without_them_is_well_and_says_how_to_get_them(self) -> None:
        daemon = Daemon(config=f'use_lite = "{self.folder}/none"\n')
        self.addCleanup(daemon.destroy)
        daemon.start()
        with daemon.client() as client:
            self.assertEqual([card["document"] for card in self.asked(client)["cards"]], ["a"])
            status = client.call("server.status")
            self.assertEqual((status["degraded"], status["notes"]), ([], ["search: use-lite: not installed"]))
            self.assertTrue(client.call("server.health")["ok"])
        done = subprocess.run([BUILD / "muniment", "--data", daemon.data, "doctor", "--json"], capture_output=True, text=True, timeout=120, env=environment(self.folder))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (note,) = [finding for finding in json.loads(done.stdout)["findings"] if "use-lite" in finding["text"]]
        self.assertEqual((note["level"], note["text"]), ("note", "search: use-lite: not installed"))
        self.assertRegex(note["mend"], "fetch[-_]use[-_]lite")

    @unittest.skipUnless(os.geteuid() == 0 and (OF_ALL / "model.json").exists(), f"root starts a daemon as another user, and {OF_ALL} has the weights")
    def test_those_that_root_installed_are_found_by_every_user(self) -> None:
        home = self.folder / "home"
        home.mkdir()
        os.chown(home, NOBODY, NOBODY)
        data = home / "data"
        with open(self.folder / "log", "wb") as log:
            process = subprocess.Popen([BUILD / "munimentd", "--data", data], stdin=subprocess.DEVNULL, stdout=log, stderr=log, user=NOBODY, group=NOBODY, extra_groups=[],
                                       env=environment(home), start_new_session=True, cwd=home)

        def stop() -> None:
            process.terminate()
            process.wait(60)
        self.addCleanup(stop)

        def healthy() -> bool:
            self.assertIsNone(process.poll(), (self.folder / "log").read_text())
            try:
                with muniment.connect(str(data / "munimentd.sock"), deadline_s=5, retry_for_s=0) as client:
                    return client.call("server.health")["database"] == "up"
            except muniment.MunimentError:
                time.sleep(0.1)
                return False
        wait_until(healthy, "it serves", 60)
        with muniment.connect(str(data / "munimentd.sock")) as client:
            status = client.call("server.status")
            self.assertEqual((status["degraded"], status["notes"]), ([], []))
            wait_until(lambda: any("use-lite" in lane for lane in self.asked(client)["lanes"]), "the lane answers", 60)
            wait_until(lambda: "degraded" not in self.asked(client), "nothing is behind any more", 60)


if __name__ == "__main__":
    main()
