"""Bundles of runs of which something was erased: they verify, hold none of it, and what is left of them imports."""
from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

from support import BUILD, ROOT, main

from bundling import Importing, lines, unpacked


class Erased(Importing):
    WORD = "Quagga-5519"

    def told_run(self) -> str:
        """The word in an event, in an artifact with what leans on it, in a patch that was spilled, and in what began and ended it."""
        run = self.new_run("told", goal=self.WORD)
        self.client.append(run, "message.added", {"message_id": "m1", "role": "user", "content": [{"type": "text", "content": self.WORD}]})
        put = self.call("artifact.put", run_id=run, step_id="s1", text=f"a file of {self.WORD}", metadata={"title": self.WORD})
        kept = self.call("artifact.put", run_id=run, step_id="s1", text="a file of nobody")
        pointers = [f"artifact://{run}/{item['artifact_id']}" for item in (put, kept)]
        self.call("manifest.put", run_id=run, manifest={"items": [], "of": pointers})
        self.call("claim.record", run_id=run, text="It is there.", pointers=pointers)
        self.call("evidence.record", run_id=run, type="file", pointer=pointers[0])
        self.client.append(run, "state.patched", {"format": "merge", "patch": {"before": 1}})
        self.client.append(run, "state.patched", {"format": "merge", "patch": {"who": f"{self.WORD} " * 5_000}}, spill=True)
        self.call("snapshot.take", run_id=run)   # too large for its row
        self.client.append(run, "state.patched", {"format": "merge", "patch": {"after": 2}})
        command = self.call("command.start", run_id=run, argv=["echo", self.WORD], cwd="/src", env={})
        self.call("command.end", run_id=run, command_id=command["command_id"], exit_code=0)
        self.call("run.end", run_id=run, outcome="success", summary=self.WORD)
        return run

    def redact(self, **target: Any) -> dict[str, Any]:
        return self.call("audit.redact", reason="asked", **target, _meta={"deadline_ms": 60_000})

    def checked(self, run: str, redacted: set[int], name: str) -> pathlib.Path:
        """Its bundle, once both verifiers have said that it is whole and what of it is redacted."""
        path = self.export(run, name=name)
        trusted = ["--bundle", path, "--key", self.daemon.folder / "log.pub"]
        done = subprocess.run([BUILD / "muniment-verify", *trusted], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"VERIFIED run {run}", done.stdout)
        self.assertIn(f"{len(redacted)} redacted ({min(redacted)}", done.stdout)
        for verifier in ([BUILD / "muniment-verify"], [sys.executable, ROOT / "clients" / "python" / "muniment_verify.py"]):
            done = subprocess.run([*verifier, *trusted, "--json"], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stdout)
            report = json.loads(done.stdout)
            self.assertEqual((report["verdict"], set(report["redactions"])), ("verified", redacted))
        return path

    def imported(self, path: pathlib.Path) -> tuple[str, list[dict[str, Any]]]:
        """The run that was made of it, which the other log's verifier finds in order."""
        brought = self.bring(path)
        self.assertTrue(brought["added"])
        self.assertEqual(sum(brought[way] for way in ("events", "recorded_anew")) + sum(brought["only_in_bundle"].values()),
                         self.exported["events"])
        self.assertFalse(self.bring(path)["added"])
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.other.data, "--unsigned-ok", "--json"], capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout)
        return brought["run_id"], self.held("event.list", "events", brought["run_id"], limit=1000)

    def state(self, run: str) -> dict[str, Any]:
        with self.other.client() as client:
            return client.rehydrate(run)["state"]

    def holds_the_word(self, path: pathlib.Path) -> list[str]:
        return [name for name, content in unpacked(path).items() if self.WORD.encode() in content]

    def test_an_event(self) -> None:
        run = self.told_run()
        told = next(event for event in self.events(run) if event["type"] == "message.added")
        done = self.redact(seq=told["seq"])
        path = self.checked(run, {told["seq"]}, "event")
        erased = next(event for event in lines(unpacked(path), "events.jsonl") if event["seq"] == told["seq"])
        self.assertEqual((erased["body"], erased["salt"], erased["body_hash"]), (None, None, told["body_hash"]))
        self.assertEqual(done["seqs"], [told["seq"]])
        new, events = self.imported(path)
        self.assertEqual([event for event in events if event["type"] == "message.added"], [])
        self.assertEqual((self.state(new)["working"]["before"], self.state(new)["run"]["outcome"]), (1, "success"))

    def test_an_artifact_and_what_leans_on_it(self) -> None:
        run = self.told_run()
        gone, kept = [item for item in self.pages("artifact.list", "artifacts", run_id=run) if item["step_id"] == "s1"]
        done = self.redact(artifact_id=gone["artifact_id"])
        path = self.checked(run, set(done["seqs"]), "artifact")
        members = unpacked(path)
        self.assertNotIn("artifacts/" + gone["artifact_id"], members)
        row = next(row for row in lines(members, "artifacts.jsonl") if row["artifact_id"] == gone["artifact_id"])
        self.assertEqual((row["hash"], row["metadata"]), ("0" * 64, "{}"))
        new, events = self.imported(path)
        (claim,) = self.held("claim.list", "claims", new)
        copy = next(item for item in self.held("artifact.list", "artifacts", new) if item["hash"] == kept["hash"])
        self.assertEqual(claim["pointers"], [f"artifact://{new}/{copy['artifact_id']}"])
        self.assertEqual([event for event in events if event["type"] == "evidence.recorded"], [], "it stood on the file alone")

    def test_a_patch_that_was_spilled(self) -> None:
        run = self.told_run()
        patched = next(event for event in self.events(run) if event["type"] == "state.patched" and "ref" in event["body"])
        done = self.redact(artifact_id=patched["body"]["ref"]["artifact_id"])
        self.assertIn(patched["seq"], done["seqs"], "it shows its beginning")
        path = self.checked(run, set(done["seqs"]), "patch")
        new, _ = self.imported(path)
        self.assertEqual(self.state(new)["working"], {"before": 1, "after": 2})

    def test_what_leans_on_an_erased_patch(self) -> None:
        """Patches that apply no more, and one whose artifact alone is gone: the fold passes over them, and so does an import."""
        run = self.new_run("leaning")

        def patched(**body: Any) -> dict[str, Any]:
            return self.client.append(run, "state.patched", {"format": "json_patch", **body})

        def added(path: str, value: Any) -> dict[str, Any]:
            return patched(patch=[{"op": "add", "path": path, "value": value}])

        added("/kept", [1])
        told = added("/who", {"name": self.WORD})
        added("/kept/-", 2)
        added("/who/age", 7)
        put = self.call("artifact.put", run_id=run, text=json.dumps([{"op": "add", "path": "/more", "value": self.WORD}]))
        patched(ref={name: put[name] for name in ("artifact_id", "hash", "size_bytes", "mime_type")})
        tested = patched(patch=[{"op": "test", "path": "/more", "value": self.WORD}, {"op": "replace", "path": "/more", "value": 3}])
        added("/more", 4)
        self.redact(artifact_id=put["artifact_id"])
        for seq in (tested["seq"], told["seq"]):
            self.redact(seq=seq)
        erased = {event["seq"] for event in self.events(run) if event.get("redacted")}
        new, events = self.imported(self.checked(run, erased, "leaning"))
        working = self.client.rehydrate(run)["state"]["working"]
        self.assertEqual(working, {"kept": [1, 2], "more": 4})
        self.assertEqual(self.state(new)["working"], working)
        self.assertEqual(len([event for event in events if event["type"] == "state.patched"]), 3)

    def test_a_whole_run(self) -> None:
        run = self.told_run()
        self.assertIn("events.jsonl", self.holds_the_word(self.export(run, name="before")))
        done = self.redact(run_id=run)
        path = self.checked(run, set(done["seqs"]), "run")
        self.assertEqual(self.holds_the_word(path), [])
        members = unpacked(path)
        self.assertEqual([name for name in members if name.startswith("artifacts/")], [])
        self.assertEqual({event["type"] for event in lines(members, "events.jsonl") if event["body"] is not None},
                         {"event.redacted", "artifact.redacted", "snapshot.taken"})
        new, events = self.imported(path)
        self.assertEqual(events[0]["body"]["agent"]["name"], "unknown")
        ended = self.state(new)["run"]
        self.assertEqual((ended["status"], ended["outcome"]), ("ended", "unknown"))
        self.assertEqual(self.held("claim.list", "claims", new), [])


if __name__ == "__main__":
    main()
