"""Tests of runs that another log takes over, as a bundle and as an export, with their claims, decisions and
evidence; and of bundles of partly erased runs: they verify, contain no erased content, and the rest can be imported.
"""
from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

from support import BUILD, ROOT, main

from bundling import Importing, lines, muniment, unpacked

ENTRIES = [{"from_run_seq": 0, "to_run_seq": 0, "why": "the start"}]


class TakenOver(Importing):
    shared = True

    def state(self, run: str) -> dict[str, Any]:
        with self.other.client() as client:
            return client.rehydrate(run)["state"]


class Erased(TakenOver):
    WORD = "Quagga-5519"

    def told_run(self) -> str:
        """Records the word in an event, in an artifact and its dependants, in a spilled patch, and in the run's first and last events."""
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
        """Returns the run's bundle after both verifiers have confirmed that it is complete and which events are redacted."""
        path = self.export(run, name=name)
        trusted = ["--bundle", path, "--key", self.daemon.folder / "log.pub"]
        done = subprocess.run([BUILD / "muniment-verify", *trusted], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"VERIFIED run {run}", done.stdout)
        self.assertIn(f"{len(redacted)} redacted ({min(redacted)}", done.stdout)
        for verifier in ([BUILD / "muniment-verify"], [sys.executable, ROOT / "clients" / "python" / "muniment_verify.py"]):
            done = subprocess.run([*verifier, *trusted, "--json"], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stdout)
            report = json.loads(done.stdout)
            self.assertEqual((report["verdict"], set(report["redactions"])), ("verified", redacted))
        return path

    def imported(self, path: pathlib.Path) -> tuple[str, list[dict[str, Any]]]:
        """Imports the bundle. Returns the new run, which the other log's verifier accepts."""
        brought = self.bring(path)
        self.assertTrue(brought["added"])
        self.assertEqual(sum(brought[way] for way in ("events", "recorded_anew")) + sum(brought["only_in_bundle"].values()),
                         self.exported["events"])
        self.assertFalse(self.bring(path)["added"])
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.other.data, "--unsigned-ok", "--json"], capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout)
        return brought["run_id"], self.held("event.list", "events", brought["run_id"], limit=1000)

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
        """Later patches that no longer apply, and one of which only the artifact is erased: the fold and an import skip them."""
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


class Ledgers(TakenOver):
    def taken_over(self, run: str) -> dict[str, tuple[str, dict[str, int]]]:
        """Imports the run in both ways, each twice; the second time adds nothing. Returns the new run and the omitted items of each way."""
        path = self.export(run)
        brought = self.bring(path)
        self.assertTrue(brought["added"])
        self.assertFalse(self.bring(path)["added"])
        exported, files = self.daemon.folder / f"{run}.jsonl", self.daemon.folder / f"{run}.files"
        done = muniment(self.daemon, "export", run, "--format", "jsonl", "--output", exported, "--artifacts", files, json_output=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        first, again = [muniment(self.other, "import", "--format", "jsonl", "--artifacts", files, exported) for _ in range(2)]
        self.assertEqual([(done.returncode, json.loads(done.stdout)["added"]) for done in (first, again)], [(0, True), (0, False)], first.stderr)
        left = {}
        for line in first.stderr.splitlines():
            if line.endswith(" are skipped"):
                count, what = line.removesuffix(" are skipped").split(": ", 2)[2].split(" ", 1)
                left[what] = int(count)
        return {"bundle": (brought["run_id"], brought["only_in_bundle"]), "jsonl": (json.loads(first.stdout)["run_id"], left)}

    def claims(self, run: str) -> dict[str, tuple[str, list[tuple[str, str]]]]:
        """Returns each claim by its text: its status, and its evidence with hashes."""
        hashes = {item["evidence_id"]: item["hash"] for item in self.held("evidence.list", "evidence", run)}
        return {claim["text"]: (claim["status"], [(link["relation"], hashes[link["evidence_id"]]) for link in claim["evidence"]])
                for claim in self.held("claim.list", "claims", run)}

    def claim(self, run: str, text: str, *pointers: str) -> str:
        return self.call("claim.record", run_id=run, text=text, pointers=list(pointers))["claim_id"]

    def test_decisions_and_links(self) -> None:
        run = self.new_run("decided")
        put = self.call("artifact.put", run_id=run, step_id="s1", text="what the tests printed")
        pointer = f"artifact://{run}/{put['artifact_id']}"
        passed, fast, nothing = (self.claim(run, text, pointer) for text in ("The tests pass.", "It is fast.", "Nobody looked."))
        file = self.call("evidence.record", run_id=run, type="file", pointer=pointer)
        word = self.call("evidence.record", run_id=run, type="review", content={"text": "Read."})
        self.call("evidence.link", claim_id=passed, evidence_id=file["evidence_id"], relation="supports", step_id="s1")
        self.call("evidence.link", claim_id=passed, evidence_id=word["evidence_id"], relation="supports")
        self.call("evidence.link", claim_id=fast, evidence_id=file["evidence_id"], relation="refutes")
        self.call("claim.decide", claim_id=passed, status="supported", reason="It says so.", step_id="s1")
        self.call("claim.decide", claim_id=fast, status="refuted")
        self.call("run.end", run_id=run, outcome="success")
        for way, (new, left) in self.taken_over(run).items():
            with self.subTest(way):
                self.assertEqual(self.claims(new), {
                    "The tests pass.": ("supported", [("supports", file["hash"]), ("supports", word["hash"])]),
                    "It is fast.": ("refuted", [("refutes", file["hash"])]), "Nobody looked.": ("open", [])})
                kept = self.state(new)["claims"]
                self.assertEqual(len(kept["open"]), 1)
                decided = [event for event in self.held("event.list", "events", new) if event["type"] == "claim.decided"]
                self.assertEqual([(event["body"]["status"], event["body"].get("reason"), event.get("step_id")) for event in decided],
                                 [("supported", "It says so.", "s1"), ("refuted", None, None)])
                self.assertEqual({event["origin"] for event in decided}, {"imported"})
                self.assertFalse({"claim.decided", "evidence.linked", "evidence.recorded"} & set(left), left)

    def test_what_stood_on_an_erased_file(self) -> None:
        run = self.new_run("halved")
        gone, kept = [self.call("artifact.put", run_id=run, text=text)["artifact_id"] for text in ("to be erased", "to be kept")]
        claim = self.claim(run, "Both say so.", f"artifact://{run}/{gone}", f"artifact://{run}/{kept}")
        for artifact in (gone, kept):
            evidence = self.call("evidence.record", run_id=run, type="file", pointer=f"artifact://{run}/{artifact}")
            self.call("evidence.link", claim_id=claim, evidence_id=evidence["evidence_id"], relation="supports")
        self.call("claim.decide", claim_id=claim, status="supported")
        self.call("run.end", run_id=run, outcome="success")
        self.call("audit.redact", reason="asked", artifact_id=gone, _meta={"deadline_ms": 60_000})
        for way, (new, left) in self.taken_over(run).items():
            with self.subTest(way):
                status, links = self.claims(new)["Both say so."]
                self.assertEqual((status, [relation for relation, _ in links]), ("supported", ["supports"]))
                self.assertEqual(left["evidence.linked"], 1)

    def test_a_manifest_whose_base_was_erased(self) -> None:
        run = self.new_run("baseless")
        base = self.call("manifest.put", run_id=run, manifest={"entries": ENTRIES})
        upon = self.call("manifest.put", run_id=run, manifest={"base": base["manifest_id"], "entries": ENTRIES})
        self.call("manifest.put", run_id=run, manifest={"base": upon["manifest_id"], "entries": ENTRIES})
        alone = self.call("manifest.put", run_id=run, manifest={"entries": ENTRIES})
        self.call("manifest.put", run_id=run, manifest={"base": alone["manifest_id"], "entries": ENTRIES})
        self.claim(run, "It was read.", f"manifest://{upon['manifest_id']}")
        self.call("run.end", run_id=run, outcome="success")
        self.call("audit.redact", reason="asked", seq=base["seq"], _meta={"deadline_ms": 60_000})
        for way, (new, left) in self.taken_over(run).items():
            with self.subTest(way):
                ended = self.state(new)["run"]
                self.assertEqual((ended["status"], ended["outcome"]), ("ended", "success"))
                recorded = [event["body"] for event in self.held("event.list", "events", new) if event["type"] == "manifest.recorded"]
                self.assertEqual(len(recorded), 2)
                with self.other.client() as client:
                    last = client.call("manifest.get", manifest_id=recorded[1]["manifest_id"])
                self.assertEqual(last["manifest"]["base"], recorded[0]["manifest_id"])
                (claim,) = self.held("claim.list", "claims", new)
                self.assertEqual(claim["pointers"], [])
                self.assertEqual({what: count for what, count in left.items() if "manifest" in what},
                                 {"manifest.recorded": 3} if way == "bundle" else {"erased manifest.recorded": 1, "manifest.recorded without its base": 2})

    def test_a_patch_of_what_an_erased_patch_made(self) -> None:
        run = self.new_run("leaning")

        def patched(path: str, value: Any) -> dict[str, Any]:
            return self.client.append(run, "state.patched", {"format": "json_patch", "patch": [{"op": "add", "path": path, "value": value}]})

        patched("/kept", 1)
        told = patched("/who", {"name": "somebody"})
        self.note(run, n=1)
        patched("/who/age", 7)
        self.note(run, n=2)
        patched("/more", 2)
        self.call("run.end", run_id=run, outcome="success")
        self.call("audit.redact", reason="asked", seq=told["seq"], _meta={"deadline_ms": 60_000})
        for way, (new, _) in self.taken_over(run).items():
            with self.subTest(way):
                self.assertEqual(self.state(new)["working"], {"kept": 1, "more": 2})
                notes = [event["body"]["n"] for event in self.held("event.list", "events", new) if event["type"].startswith("x.") and "n" in event["body"]]
                self.assertEqual(notes, [1, 2])

    def test_an_erased_end(self) -> None:
        run = self.new_run("endless")
        self.note(run, n=1)
        ended = self.call("run.end", run_id=run, outcome="failure", summary="to be erased")
        self.call("audit.redact", reason="asked", seq=ended["seq"], _meta={"deadline_ms": 60_000})
        for way, (new, _) in self.taken_over(run).items():
            with self.subTest(way):
                (event,) = [event for event in self.held("event.list", "events", new) if event["type"] == "run.ended"]
                self.assertEqual((event["body"]["outcome"], event["body"]["summary"]), ("unknown", "how the run ended was erased"))


if __name__ == "__main__":
    main()
