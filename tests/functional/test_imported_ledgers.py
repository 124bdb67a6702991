"""Claims, what became of them and what they stand on come with a run, as a bundle and as an export, also where part of it was erased."""
from __future__ import annotations

import json
from typing import Any

from support import main

from bundling import Importing, muniment

ENTRIES = [{"from_run_seq": 0, "to_run_seq": 0, "why": "the start"}]


class Ledgers(Importing):
    def taken_over(self, run: str) -> dict[str, tuple[str, dict[str, int]]]:
        """Of each way: the new run, and what was left out. Twice, and the second time adds nothing."""
        path = self.export(run)
        brought = self.bring(path)
        self.assertTrue(brought["added"])
        self.assertFalse(self.bring(path)["added"])
        lines, files = self.daemon.folder / f"{run}.jsonl", self.daemon.folder / f"{run}.files"
        done = muniment(self.daemon, "export", run, "--format", "jsonl", "--output", lines, "--artifacts", files, json_output=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        first, again = [muniment(self.other, "import", "--format", "jsonl", "--artifacts", files, lines) for _ in range(2)]
        self.assertEqual([(done.returncode, json.loads(done.stdout)["added"]) for done in (first, again)], [(0, True), (0, False)], first.stderr)
        left = {}
        for line in first.stderr.splitlines():
            if line.endswith(" are left out"):
                count, what = line.removesuffix(" are left out").split(": ", 2)[2].split(" ", 1)
                left[what] = int(count)
        return {"bundle": (brought["run_id"], brought["only_in_bundle"]), "jsonl": (json.loads(first.stdout)["run_id"], left)}

    def claims(self, run: str) -> dict[str, tuple[str, list[tuple[str, str]]]]:
        """By its text: its status, and the evidence with its hash."""
        hashes = {item["evidence_id"]: item["hash"] for item in self.held("evidence.list", "evidence", run)}
        return {claim["text"]: (claim["status"], [(link["relation"], hashes[link["evidence_id"]]) for link in claim["evidence"]])
                for claim in self.held("claim.list", "claims", run)}

    def state(self, run: str) -> dict[str, Any]:
        with self.other.client() as client:
            return client.rehydrate(run)["state"]

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
