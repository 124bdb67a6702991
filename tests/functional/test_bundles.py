"""Tests of run bundles: an export has exactly the log's data, with a proof; an import is complete or fails."""
from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from typing import Any, Callable

from support import BUILD, ROOT, main

from bundling import Bundling, Importing, lines, muniment, packed, unpacked

MEMBERS = ["bundle.json", "checkpoint", "keys", "events.jsonl", "nodes", "artifacts.jsonl", "manifests.jsonl", "snapshots.jsonl",
           "claims.jsonl", "evidence.jsonl", "README.md", "report.html"]


def subtree_root(start: int, end: int, leaves: dict[int, bytes], nodes: dict[tuple[int, int], bytes]) -> bytes:
    """Computes RFC 6962's hash of [start, end) from the run's leaves and the proof's nodes."""
    count = end - start
    level = count.bit_length() - 1
    if count == 1 << level and (level, start >> level) in nodes:
        return nodes.pop((level, start >> level))
    if count == 1:
        return leaves[start]
    split = 1 << ((count - 1).bit_length() - 1)
    left = subtree_root(start, start + split, leaves, nodes)
    right = subtree_root(start + split, end, leaves, nodes)
    return hashlib.sha256(b"\x01" + left + right).digest()


class Export(Bundling):
    shared = True

    def test_the_members_come_in_their_order_with_their_hashes(self) -> None:
        members = unpacked(self.export(self.recorded_run()))
        header = json.loads(members["bundle.json"])
        artifacts = [row["artifact_id"] for row in lines(members, "artifacts.jsonl")]
        self.assertEqual(list(members), MEMBERS + ["artifacts/" + name for name in artifacts])
        self.assertEqual([file["path"] for file in header["files"]], list(members)[1:])
        for file in header["files"]:
            content = members[file["path"]]
            self.assertEqual((file["sha256"], file["size_bytes"]), (hashlib.sha256(content).hexdigest(), len(content)), file["path"])

    def test_the_rows_are_those_of_the_tables(self) -> None:
        run = self.recorded_run()
        members = unpacked(self.export(run))
        for table, key, value in (("artifact", "run_id", run), ("manifest", "run_id", run), ("claim", "run_id", run),
                                  ("evidence", "run_id", run), ("snapshot", "run_no", json.loads(members["bundle.json"])["run_no"])):
            name = table if table == "evidence" else table + "s"
            shown = lines(members, name + ".jsonl")
            self.assertTrue(shown, table)
            columns = self.daemon.sql(f"SELECT string_agg(column_name, ',' ORDER BY ordinal_position) FROM information_schema.columns "
                                      f"WHERE table_schema = 'public' AND table_name = '{table}'")[0][0].split(",")
            self.assertEqual(list(shown[0]), columns, table)
            order = "event_seq" if table == "snapshot" else "seq"
            picked = ", ".join(f"coalesce({'encode(' + c + ', $$hex$$)' if c in ('hash', 'salt', 'state_hash') and table in ('manifest', 'snapshot') else c + '::text'}, '-')"
                               for c in columns if c != "created_at")
            rows = self.daemon.sql(f"SELECT {picked} FROM {table} WHERE {key} = '{value}' AND {order} < {self.exported['size']} ORDER BY {order}")
            self.assertEqual([["-" if row[c] is None else str(row[c]) for c in columns if c != "created_at"] for row in shown], rows, table)

    def test_the_events_are_what_the_daemon_answers(self) -> None:
        run = self.recorded_run()
        members = unpacked(self.export(run))
        origins = ("", "observed", "reported", "imported")
        answered = self.events(run)
        shown = lines(members, "events.jsonl")
        self.assertEqual(len(shown), len(answered))
        for event, other in zip(shown, answered):
            self.assertEqual(event["body_hash"], hashlib.sha256(bytes.fromhex(event["salt"]) + event["body"].encode()).hexdigest())
            self.assertEqual(json.loads(event["body"]), other["body"])
            self.assertEqual(origins[event["origin"]], other["origin"])
            for name in ("seq", "run_seq", "recorded_at", "type", "schema_version", "actor", "event_id", "body_hash", "salt", "run_hash"):
                self.assertEqual(event[name], other[name], name)
            for name in ("step_id", "occurred_at"):
                self.assertEqual(event[name], other.get(name), name)

    def test_the_independent_verifier_agrees(self) -> None:
        path = self.export(self.recorded_run())
        done = subprocess.run([sys.executable, ROOT / "clients" / "python" / "muniment_verify.py", "--bundle", path,
                               "--key", self.daemon.folder / "log.pub"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_readme_and_the_verdict_say_whether_the_run_ended(self) -> None:
        run = self.new_run("not-ended")
        self.note(run, n=1)
        for words, verdict in (("open after the last of these events", "run OPEN at the end of this bundle"), ("ended with failure at seq", "run ended with failure at seq")):
            path = self.export(run, name=words[:4])
            readme = unpacked(path)["README.md"].decode()
            self.assertIn("- The run: " + words, readme)
            self.assertNotIn("complete", readme)
            for page in re.findall(r"docs/\w+\.md", readme):
                self.assertTrue((ROOT / page).is_file(), page)
            self.assertIn("docs/auditor.md", readme)
            for verifier in ([BUILD / "muniment-verify"], [sys.executable, ROOT / "clients" / "python" / "muniment_verify.py"]):
                done = subprocess.run([*verifier, "--bundle", path, "--key", self.daemon.folder / "log.pub"], capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn(verdict, done.stdout)
            if words.startswith("open"):
                self.call("run.end", run_id=run, outcome="failure")

    def offline_report(self, path: object, *more: object, name: str = "offline.md", code: int = 0) -> tuple[str, dict[str, Any]]:
        """Writes a report of a bundle where there is neither a daemon nor its data folder."""
        output = self.daemon.folder / f"{self._testMethodName}.{name}"
        done = subprocess.run([BUILD / "muniment", "--data", self.daemon.folder / "none", "--json", "audit", "report", "--bundle", path, "-o", output, *more],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertFalse((self.daemon.folder / "none").exists())
        return output.read_text() if output.exists() else "", json.loads(done.stdout)

    def test_the_report_of_the_bundle_is_that_of_the_daemon(self) -> None:
        run, key = self.recorded_run(), self.daemon.folder / "log.pub"
        self.call("run.start", run_id=run, agent={"name": "test"}, reopen=True)
        self.call("run.annotate", run_id=run, labels={"team": "a", "gone": None})
        self.client.append(run, "tool.called", {"call_id": "c9", "name": "never-answered", "kind": "function", "arguments": {}})
        path, online = self.export(run), self.daemon.folder / "online.md"
        self.assertEqual(muniment(self.daemon, "audit", "report", run, "-o", online).returncode, 0)
        text, said = self.offline_report(path, "--key", key)
        self.assertEqual((said["run_id"], said["events"], said["status"], said["proven"], said["signed"]), (run, len(self.events(run)), "open", True, True))
        offline, online = ({part.split("\n")[0]: part for part in report.split("\n## ")[1:]} for report in (text, online.read_text()))
        self.assertEqual(list(offline), list(online))
        for title, part in online.items():
            if not any(word in title for word in ("Custody", "Gaps", "Times", "prove", "Repeating")):   # these name the source
                self.assertEqual(offline[title], part)
        for title, words in (("Gaps", "never-answered"), ("Gaps", "The run is OPEN at the end of this bundle"), ("Custody", "muniment-verify checked the inclusion proof and the signature"),
                             ("Times", "Whether the clock stepped is unknown")):
            self.assertIn(words, next(part for name, part in offline.items() if title in name).replace("\\", ""))

    def test_a_report_of_a_bundle_without_the_right_key_or_with_a_change(self) -> None:
        path, other = self.export(self.recorded_run()), self.daemon.folder / "other.pub"
        other.write_text((ROOT / "tests" / "golden" / "audit" / "other.pub").read_text())
        text, said = self.offline_report(path, name="unsigned.md")
        self.assertEqual((said["proven"], said["signed"]), (True, False))
        self.assertIn("no key was given to check the signature of the checkpoint", text.replace("\\", ""))
        text, said = self.offline_report(path, "--key", other, name="wrong.md", code=1)
        self.assertEqual((said["proven"], said["signed"]), (False, False))
        self.assertIn("end not verified", text)
        self.assertIn("none of the given keys signed the checkpoint", text)
        members = unpacked(path)
        members["events.jsonl"] = members["events.jsonl"].replace(b"find it", b"hide it")
        changed = self.daemon.folder / "changed.muniment.tar.zst"
        packed(members, changed)
        text, said = self.offline_report(changed, name="changed.md", code=2)
        self.assertEqual((text, said["error"]["code"]), ("", "corrupt"))
        self.assertIn("no report was written: muniment-verify reports: tampered", said["error"]["message"])
        text, said = self.offline_report(other, name="none.md", code=1)
        self.assertEqual((text, said["error"]["code"]), ("", "invalid_argument"))
        text, said = self.offline_report(self.daemon.folder / "absent", name="none.md", code=1)
        self.assertIn("unreadable: ", said["error"]["message"])
        self.assertIn("No such file", said["error"]["message"])
        text, said = self.offline_report(self.export("_log", name="log"), name="log.md", code=1)
        self.assertIn("which has no report", said["error"]["message"])

    def test_a_run_whose_tasks_were_completed_verifies(self) -> None:
        run = self.new_run("tasks")
        self.call("task.open", run_id=run, task_id="parser", content="Write the parser of the configuration")
        review = self.call("evidence.record", run_id=run, type="review", task_id="parser", content={"approved": True, "reviewer": "kim", "text":
            "Read src/config/parser.cpp and ran 14 cases: the parser of the configuration reads all 9 keys, and refuses 5 unknown ones with their line."})
        self.call("evidence.record", run_id=run, type="review", content={"approved": True, "findings": []})
        done = self.call("task.complete", run_id=run, task_id="parser", evidence_ids=[review["evidence_id"]])
        self.assertTrue(done["completed"], done)
        path = self.export(run)
        self.assertEqual([row["task_id"] for row in lines(unpacked(path), "evidence.jsonl")], ["parser", None])
        for verifier in ([BUILD / "muniment-verify"], [sys.executable, ROOT / "clients" / "python" / "muniment_verify.py"]):
            seen = subprocess.run([*verifier, "--bundle", path, "--key", self.daemon.folder / "log.pub"], capture_output=True, text=True, timeout=120)
            self.assertEqual(seen.returncode, 0, seen.stdout + seen.stderr)

    def test_the_leaves_and_the_nodes_give_the_signed_root_and_none_is_left_over(self) -> None:
        run = self.recorded_run()
        members = unpacked(self.export(run))
        size, root = members["checkpoint"].decode().split("\n")[1:3]
        leaves = {event["seq"]: bytes.fromhex(self.leaf_hash(event["seq"])) for event in lines(members, "events.jsonl")}
        nodes = {}
        for line in members["nodes"].decode().splitlines():
            level, index, value = line.split()
            nodes[int(level), int(index)] = base64.b64decode(value)
        self.assertEqual(list(nodes), sorted(nodes))
        self.assertEqual(base64.b64encode(subtree_root(0, int(size), leaves, nodes)).decode(), root)
        self.assertEqual(nodes, {})

    def leaf_hash(self, seq: int) -> str:
        return self.call("audit.prove", seq=seq)["leaf_hash"]

    def test_an_older_checkpoint_gives_the_same_bytes_each_time(self) -> None:
        run = self.recorded_run()
        note = self.daemon.folder / f"{self._testMethodName}.note"
        self.call("audit.prove", run_id=run)
        self.assertEqual(muniment(self.daemon, "audit", "checkpoint", "-o", note, json_output=False).returncode, 0)
        first = unpacked(self.export(run, "--checkpoint", note, name="first"))
        self.note(self.new_run("more"), n=1)
        second = unpacked(self.export(run, "--checkpoint", note, name="second"))
        headers = [json.loads(members.pop("bundle.json")) for members in (first, second)]
        for header, members in zip(headers, (first, second)):   # the report contains its time
            self.assertIn("<html", members.pop("report.html").decode())
            header["files"] = [file for file in header["files"] if file["path"] != "report.html"]
        self.assertEqual(first, second)
        self.assertIn(f"# The run {run}", first["README.md"].decode())
        for header in headers:
            self.assertRegex(header.pop("exported_at"), r"^\d{4}-\d\d-\d\dT")
        self.assertEqual(headers[0], headers[1])

    def test_a_checkpoint_of_another_log_is_refused(self) -> None:
        run = self.recorded_run()
        note = self.daemon.folder / "other.note"
        note.write_text("muniment.local/00000000-0000-4000-8000-000000000000\n5\n" + base64.b64encode(bytes(32)).decode() + "\n")
        path = self.daemon.folder / "refused.tar.zst"
        done = muniment(self.daemon, "audit", "export", run, "-o", path, "--checkpoint", note)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertFalse(path.exists())

    def test_it_is_an_event_of_the_log(self) -> None:
        run = self.recorded_run()
        self.export(run)
        event = list(self.pages("event.list", "events", run_id="_log", types=["log.exported"]))[-1]
        self.assertEqual((event["body"]["format"], event["body"]["runs"]), ("muniment-bundle", [run]))
        seqs = [event["seq"] for event in self.events(run)]
        self.assertEqual((event["body"]["from_seq"], event["body"]["to_seq"]), (seqs[0], seqs[-1]))

    def test_the_run_of_the_log_itself_is_exported_too(self) -> None:
        """The event that records the export names it. In this build the daemon aborts if an event of its own violates its schema."""
        path = self.export("_log")
        done = subprocess.run([BUILD / "muniment-verify", "--bundle", path, "--key", self.daemon.folder / "log.pub"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(list(self.pages("event.list", "events", run_id="_log", types=["log.exported"]))[-1]["body"]["runs"], ["_log"])

    def test_a_damaged_artifact_is_not_exported_and_nothing_is_left(self) -> None:
        run = self.new_run("damaged")
        put = self.call("artifact.put", run_id=run, text="to be damaged")
        (self.daemon.data / "artifacts" / put["path"]).write_text("to be DAMAGED")
        folder = self.daemon.folder / "damaged-out"
        folder.mkdir()
        done = muniment(self.daemon, "audit", "export", run, "-o", folder / "x.tar.zst")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("nothing was exported", done.stdout)
        self.assertEqual(list(folder.iterdir()), [])

    def test_a_run_that_was_changed_is_not_exported_and_never_called_proven(self) -> None:
        past = "SET session_replication_role = replica; "
        changes = {"body": ("tampered: seq {} (body_hash)", "body = '{\"n\":2}'"), "gone": ("event {} lacks its body, which no event erased", "body = NULL, salt = NULL"),
                   "actor": ("event {} or the tree was changed", "actor = 'uid:99'")}   # the daemon refuses to prove these events
        folder = self.daemon.folder / "changed-out"
        folder.mkdir()
        for name, (words, change) in changes.items():
            with self.subTest(name):
                run = self.new_run("changed-" + name)
                self.note(run, n=1)
                self.call("audit.prove", run_id=run)
                seq = self.events(run)[-1]["seq"]
                self.daemon.sql(past + f"UPDATE event SET {change} WHERE seq = {seq}")
                done = muniment(self.daemon, "audit", "export", run, "-o", folder / "x.tar.zst", json_output=False)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn(words.format(seq), done.stderr)
                self.assertEqual(done.stdout, "")
                self.assertEqual(list(folder.iterdir()), [])

    def test_a_row_beside_the_events_that_was_changed_is_not_exported(self) -> None:
        run = self.new_run("changed-row")
        self.call("claim.record", run_id=run, text="It is there.", pointers=[])
        self.daemon.sql(f"SET session_replication_role = replica; UPDATE claim SET text = 'It is not.' WHERE run_id = '{run}'")
        path = self.daemon.folder / "changed-row.tar.zst"
        done = muniment(self.daemon, "audit", "export", run, "-o", path, json_output=False)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("a row of claim.recorded", done.stderr)
        self.assertFalse(path.exists())

    def test_many_events_and_a_large_artifact(self) -> None:
        run, other = self.new_run("large"), self.new_run("beside")
        for batch in range(6):
            self.call("event.append", run_id=run, events=[{"type": "x.test.noted", "body": {"n": n, "text": "x" * 900}} for n in range(900)])
            self.note(other, batch=batch)
        content = os.urandom(5 << 20)
        put = self.client.put(run, content)
        members = unpacked(self.export(run))
        self.assertEqual(self.exported["events"], len(self.events(run, limit=1000)))
        self.assertEqual(members["artifacts/" + put["artifact_id"]], content)
        events = lines(members, "events.jsonl")
        self.assertEqual([event["run_seq"] for event in events], list(range(len(events))))


class Import(Importing):
    shared = True

    def test_what_was_there_is_there_and_says_where_it_came_from(self) -> None:
        run = self.recorded_run()
        path = self.export(run)
        brought = self.bring(path)
        self.assertTrue(brought["added"])
        new = brought["run_id"]
        self.assertRegex(new, f"^{run}-[0-9a-f]{{8}}$")
        was, now = self.events(run), self.held("event.list", "events", new, limit=1000)
        self.assertEqual({event["origin"] for event in now if not event["type"].startswith("snapshot.")}, {"imported"})
        self.assertEqual(now[0]["body"]["import"], {"format": "muniment-bundle", "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                                                    "importer": now[0]["body"]["import"]["importer"]})
        places = {old["artifact_id"]: next(item["artifact_id"] for item in self.held("artifact.list", "artifacts", new) if item["hash"] == old["hash"])
                  for old in self.pages("artifact.list", "artifacts", run_id=run)}
        with self.other.client() as client:
            for old, copy in places.items():
                self.assertEqual(client.get(copy), self.client.get(old))
        by_id = {event["event_id"]: event for event in now}
        for event in was:
            if event["type"] in ("tool.called", "tool.returned"):
                text = json.dumps(event["body"])
                for old, copy in places.items():
                    text = text.replace(old, copy)
                copied = by_id[event["event_id"]]
                self.assertEqual((copied["type"], copied["body"], copied["occurred_at"]), (event["type"], json.loads(text), event["recorded_at"]))
        originals = [item for event in now if event["type"] == "x.muniment.imported" for item in event["body"]["events"]]
        self.assertEqual([(item["run_seq"], item["seq"], item["recorded_at"], item["run_hash"]) for item in originals],
                         [(event["run_seq"], event["seq"], event["recorded_at"], event["run_hash"]) for event in was[:len(originals)]])
        self.assertEqual(len(originals), self.exported["events"])
        self.assertEqual(sum(brought[way] for way in ("events", "recorded_anew")) + sum(brought["only_in_bundle"].values()), len(originals))
        self.assertEqual(brought["bundle_events"], len(originals))
        self.assertEqual(set(brought["only_in_bundle"]), {"snapshot.taken"})
        self.compare_the_rest(run, new, places)

    def compare_the_rest(self, run: str, new: str, places: dict[str, str]) -> None:
        """Compares the ledger, the manifest, the commands, the end, and the bundle itself."""
        (claim,), (was,) = self.held("claim.list", "claims", new), self.pages("claim.list", "claims", run_id=run)
        (place,) = places.values()
        self.assertEqual((claim["text"], claim["pointers"]), (was["text"], [f"artifact://{new}/{place}"]))
        shown = [[(item["type"], item.get("content"), item["hash"]) for item in items]
                 for items in (self.held("evidence.list", "evidence", new), self.pages("evidence.list", "evidence", run_id=run))]
        self.assertEqual(*shown)
        now = self.held("event.list", "events", new, limit=1000)
        recorded = next(event for event in now if event["type"] == "manifest.recorded")
        with self.other.client() as client:
            manifest = client.call("manifest.get", manifest_id=recorded["body"]["manifest_id"])["manifest"]
            self.assertEqual(manifest["entries"][0]["artifact_id"], place)
            state = client.rehydrate(new)["state"]
            self.assertEqual(state["working"], {"manifest": recorded["body"]["manifest_id"]})
            self.assertEqual((state["run"]["status"], state["run"]["outcome"], state["pending"]["calls"]), ("ended", "success", []))
        command = next(event for event in now if event["type"] == "command.started")
        self.assertEqual((command["body"]["argv"], command["origin"]), (["make", "test"], "imported"))
        bundle = next(item for item in self.held("artifact.list", "artifacts", new) if item["mime_type"] == "application/zstd")
        self.assertEqual(bundle["hash"], now[0]["body"]["import"]["sha256"])

    def test_every_event_is_in_one_of_the_numbers(self) -> None:
        """Also true of a run that ended twice because it was reopened."""
        run = self.recorded_run()
        self.call("run.start", run_id=run, agent={"name": "test"}, reopen=True)
        self.note(run, n=3)
        self.call("run.end", run_id=run, outcome="failure")
        path = self.export(run)
        done = muniment(self.other, "audit", "import", path, "--key", self.daemon.folder / "log.pub", json_output=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = [(int(number), what) for number, what in re.findall(r"(?m)^  (\d+) (.*)$", done.stdout)]
        new, total = re.search(r"(?m)^(\S+)  of the bundle's (\d+) events:$", done.stdout).groups()
        self.assertEqual((sum(number for number, _ in told), int(total)), (self.exported["events"],) * 2, done.stdout)
        self.assertIn((1, "only in the bundle: run.ended"), told)
        came = [item["came"] for event in self.held("event.list", "events", new, limit=1000) if event["type"] == "x.muniment.imported" for item in event["body"]["events"]]
        ways = {"unchanged": "as_it_was", "with this log's ids": "rewritten", "recorded again": "recorded_anew", "only in the bundle": "only_in_bundle"}
        for words, way in ways.items():
            self.assertEqual(sum(number for number, what in told if what.startswith(words)), came.count(way), words)
        ends = [event for event in self.held("event.list", "events", new, limit=1000) if event["type"] == "run.ended"]
        self.assertEqual([event["body"]["outcome"] for event in ends], ["failure"])

    def test_the_same_bundle_twice_changes_nothing(self) -> None:
        path = self.export(self.recorded_run())
        first = self.bring(path)
        size = self.size()
        again = self.bring(path)
        self.assertEqual((again["added"], again["run_id"]), (False, first["run_id"]))
        self.assertEqual(self.size(), size)

    def test_a_run_id_that_is_taken_is_refused_and_another_can_be_chosen(self) -> None:
        path = self.export(self.recorded_run())
        with self.other.client() as client:
            client.call("run.start", run_id="taken", agent={"name": "somebody"})
        size = self.size()
        self.assertEqual(self.bring(path, "--as", "taken", code=1)["error"]["code"], "conflict")
        self.assertEqual(self.size(), size)
        self.assertEqual(self.bring(path, "--as", "chosen")["run_id"], "chosen")

    def test_without_a_key_that_is_trusted_it_is_refused(self) -> None:
        path = self.export(self.recorded_run())
        size = self.size()
        done = muniment(self.other, "audit", "import", path)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        wrong = self.daemon.folder / "wrong.pub"
        self.assertEqual(muniment(self.other, "audit", "key", "init", "-o", wrong, json_output=False).returncode, 0)
        done = muniment(self.other, "audit", "import", path, "--key", wrong)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(self.size(), size + 1)   # the key.rotated event

    def test_every_tampering_is_refused_whole(self) -> None:
        path = self.export(self.recorded_run())
        size = self.size()
        for name, change in TAMPERINGS.items():
            with self.subTest(name):
                members = unpacked(path)
                change(members)
                if name != "a hash in bundle.json":
                    restate(members)
                changed = self.daemon.folder / "changed.tar.zst"
                packed(members, changed)
                error = self.bring(changed, code=1)["error"]
                self.assertIn("nothing was imported", error["message"])
        cut = self.daemon.folder / "cut.tar.zst"
        cut.write_bytes(path.read_bytes()[:-200])
        self.bring(cut, code=1)
        self.assertEqual(self.size(), size)

    def test_an_untouched_bundle_that_was_packed_anew_is_taken(self) -> None:
        """Repacking by itself is not a reason for a refusal."""
        members = unpacked(self.export(self.recorded_run()))
        restate(members)
        again = self.daemon.folder / "again.tar.zst"
        packed(members, again)
        self.assertTrue(self.bring(again)["added"])


def restate(members: dict[str, bytes]) -> None:
    """Rewrites bundle.json with the hashes of the current members, as an attacker would."""
    header = json.loads(members["bundle.json"])
    header["files"] = [{"path": name, "sha256": hashlib.sha256(content).hexdigest(), "size_bytes": len(content)}
                       for name, content in members.items() if name != "bundle.json"]
    header["events"] = members["events.jsonl"].count(b"\n")
    members["bundle.json"] = json.dumps(header).encode()


def swapped(members: dict[str, bytes], name: str, old: bytes, new: bytes) -> None:
    assert members[name].count(old) >= 1, (name, old)
    members[name] = members[name].replace(old, new, 1)


def without_line(members: dict[str, bytes], name: str, index: int) -> None:
    rows = members[name].splitlines(keepends=True)
    del rows[index]
    members[name] = b"".join(rows)


def artifact_of(members: dict[str, bytes]) -> str:
    return next(name for name in members if name.startswith("artifacts/"))


TAMPERINGS: dict[str, Callable[[dict[str, bytes]], Any]] = {
    "a body": lambda m: swapped(m, "events.jsonl", b"grep", b"gerp"),
    "an actor": lambda m: swapped(m, "events.jsonl", b'"actor":"uid:', b'"actor":"uid:7'),
    "a time": lambda m: swapped(m, "events.jsonl", b'"recorded_at":"2', b'"recorded_at":"1'),
    "an origin": lambda m: swapped(m, "events.jsonl", b'"origin":2', b'"origin":1'),
    "an event less": lambda m: without_line(m, "events.jsonl", 3),
    "the last event less": lambda m: without_line(m, "events.jsonl", -1),
    "an event twice": lambda m: m.update({"events.jsonl": m["events.jsonl"] + m["events.jsonl"].splitlines(keepends=True)[-1]}),
    "an erased event that nothing names": lambda m: m.update({"events.jsonl": b"".join(
        json.dumps({**json.loads(line), **({"body": None, "salt": None} if number == 4 else {})}).encode() + b"\n"
        for number, line in enumerate(m["events.jsonl"].splitlines()))}),
    "a node": lambda m: m.update({"nodes": m["nodes"].replace(m["nodes"].split()[2], base64.b64encode(bytes(32)), 1)}),
    "a node less": lambda m: without_line(m, "nodes", 0),
    "a node more": lambda m: m.update({"nodes": m["nodes"] + b"40 0 " + base64.b64encode(bytes(32)) + b"\n"}),
    "the checkpoint's size": lambda m: m.update({"checkpoint": re.sub(rb"\n(\d+)\n", lambda found: b"\n%d\n" % (int(found[1]) + 1), m["checkpoint"], count=1)}),
    "the signature": lambda m: m.update({"checkpoint": m["checkpoint"][:-6] + b"AAAA=\n"}),
    "an artifact's bytes": lambda m: m.update({artifact_of(m): b"twelve BYTES"}),
    "an artifact less": lambda m: m.pop(artifact_of(m)),
    "an artifact that nothing names": lambda m: m.update({"artifacts/00000000-0000-7000-8000-000000000000": b"x"}),
    "an artifact's row": lambda m: swapped(m, "artifacts.jsonl", b"text/plain", b"text/other"),
    "a manifest": lambda m: swapped(m, "manifests.jsonl", b"read", b"seen"),
    "a state": lambda m: swapped(m, "snapshots.jsonl", b"find it", b"find me"),
    "a claim": lambda m: swapped(m, "claims.jsonl", b"It is there.", b"It is here.."),
    "a claim's status": lambda m: swapped(m, "claims.jsonl", b'"status":"open"', b'"status":"accepted"'),
    "evidence": lambda m: swapped(m, "evidence.jsonl", b"agreed", b"agreeD"),
    "the run's id": lambda m: swapped(m, "bundle.json", b'"run_id":"test', b'"run_id":"tset'),
    "a member less": lambda m: m.pop("claims.jsonl"),
    "a member more": lambda m: m.update({"extra": b"x"}),
    "a hash in bundle.json": lambda m: swapped(m, "bundle.json", b'"sha256":"', b'"sha256":"0'),
}


class Unsigned(Bundling):
    signed = False

    def test_without_a_key_the_checkpoint_has_no_signature(self) -> None:
        members = unpacked(self.export(self.recorded_run()))
        self.assertFalse(self.exported["signed"])
        self.assertEqual((len(members["checkpoint"].decode().split("\n")), members["keys"]), (4, b""))

    def test_z_a_bundle_from_before_the_log_had_a_key(self) -> None:
        """The last test of this class, because it creates the log's key."""
        path, key = self.export(self.recorded_run("before")), self.daemon.folder / "log.pub"
        self.assertEqual(muniment(self.daemon, "audit", "key", "init", "-o", key, json_output=False).returncode, 0)
        for verifier in ([BUILD / "muniment-verify"], [sys.executable, ROOT / "clients/python/muniment_verify.py"]):
            done = subprocess.run([*verifier, "--bundle", path, "--key", key, "--json"], capture_output=True, text=True, timeout=120)
            report = json.loads(done.stdout)
            self.assertEqual((done.returncode, report["verdict"], report["first_bad"]), (2, "wrong_key", None), done.stdout)


if __name__ == "__main__":
    main()
