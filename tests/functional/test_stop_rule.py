"""Tests of the stop rule: a pointer on which a run depends and that does not resolve is retried once, then the run
is halted with SYSTEM_ERROR."""
from __future__ import annotations

import itertools
import os
import pathlib

from support import DaemonCase, main, muniment


class PointerCase(DaemonCase):
    def artifact(self, run_id: str | None = None, text: bytes = b"the evidence") -> tuple[str, pathlib.Path]:
        stored = self.client.put(run_id or self.run_id, text, mime_type="text/plain")
        return f"artifact://{run_id or self.run_id}/{stored['artifact_id']}", self.daemon.data / "artifacts" / stored["path"]

    def resolve(self, pointer: str, **more: object) -> dict:
        return self.call("pointer.resolve", pointers=[pointer], **more)["results"][0]

    def status(self, run_id: str | None = None) -> str:
        return self.call("run.get", run_id=run_id or self.run_id)["run"]["status"]

    def types(self, run_id: str | None = None) -> list[str]:
        return [event["type"] for event in self.events(run_id)]

    def resolve_critical(self, pointer: str, run_id: str | None = None) -> None:
        """Resolves the pointer as critical, and checks that the reply has the reason and that it halted the run."""
        answer = self.call("pointer.resolve", pointers=[pointer], critical=True, run_id=run_id or self.run_id)
        self.assertFalse(answer["results"][0]["ok"])
        self.assertEqual([(halt["run_id"], halt["code"]) for halt in answer["halted"]], [(run_id or self.run_id, "SYSTEM_ERROR")])


class StopRule(PointerCase):
    def test_a_good_pointer_resolves(self) -> None:
        pointer, _ = self.artifact()
        result = self.resolve(pointer, critical=True)
        self.assertTrue(result["ok"])
        self.assertEqual(self.status(), "open")

    def test_a_slice_of_an_artifact(self) -> None:
        pointer, _ = self.artifact()
        self.assertEqual(self.resolve(pointer + "#b4-12")["text"], "evidence")

    def test_run_and_snapshot_pointers(self) -> None:
        taken = self.call("snapshot.take", run_id=self.run_id)
        for pointer in (f"run://{self.run_id}", f"snap://{self.run_id}/{taken['seq']}"):
            with self.subTest(pointer=pointer):
                self.assertTrue(self.resolve(pointer)["ok"])

    def test_a_missing_file_not_critical_is_only_told(self) -> None:
        pointer, path = self.artifact()
        path.unlink()
        result = self.resolve(pointer)
        self.assertEqual((result["ok"], result["reason"]), (False, "NOT_FOUND"))
        self.assertEqual(self.status(), "open")

    def test_a_missing_file_halts_after_one_retry(self) -> None:
        pointer, path = self.artifact()
        path.unlink()
        self.resolve_critical(pointer)
        self.assertEqual(self.status(), "halted")
        types = self.types()
        self.assertEqual(types.count("pointer.retried"), 1)
        self.assertEqual(types[-2:], ["pointer.unresolved", "run.halted"])
        halted = self.events()[-1]["body"]
        self.assertEqual((halted["code"], halted["pointer"]), ("SYSTEM_ERROR", pointer))

    def test_a_run_that_was_stopped_is_not_taken_up_by_way_of_its_end(self) -> None:
        pointer, path = self.artifact()
        kept = path.read_bytes()
        self.call("claim.record", run_id=self.run_id, text="it is there", pointers=[pointer])
        path.unlink()
        self.resolve_critical(pointer)
        self.call("run.end", run_id=self.run_id, outcome="abandoned")
        start = {"run_id": self.run_id, "agent": {"name": "test"}, "reopen": True}
        with self.refused("run_halted", run_id=self.run_id):
            self.call("run.start", **start)
        self.daemon.stop()
        self.client.close()
        self.daemon.start()
        with self.refused("run_halted", run_id=self.run_id):
            self.call("run.start", **start)
        path.write_bytes(kept)
        self.assertTrue(self.call("run.start", **start)["reopened"])
        self.assertEqual(self.status(), "open")

    def test_damage_of_every_kind_halts(self) -> None:
        def flip(path: pathlib.Path) -> None:
            path.chmod(0o644)
            path.write_bytes(b"tHe evidence")

        def cut(path: pathlib.Path) -> None:
            path.chmod(0o644)
            os.truncate(path, 3)

        def link(path: pathlib.Path) -> None:
            path.rename(path.with_name("moved"))
            path.symlink_to(path.with_name("moved"))

        def fifo(path: pathlib.Path) -> None:
            path.unlink()
            os.mkfifo(path)

        for damage in (flip, cut, link, fifo):
            with self.subTest(damage=damage.__name__):
                run_id = self.new_run(damage.__name__)
                pointer, path = self.artifact(run_id)
                damage(path)
                self.resolve_critical(pointer, run_id)   # a request never hangs
                self.assertEqual(self.status(run_id), "halted")

    def test_a_run_that_somebody_else_stops_meanwhile_does_not_keep_another_going(self) -> None:
        for turn in range(5):
            runs = [self.new_run(f"{turn}.{name}") for name in "ab"]
            found = [self.artifact(run_id) for run_id in runs]
            for _, path in found:
                path.unlink()
            pointers = [pointer for pointer, _ in found]
            first, second = self.raw(), self.raw()
            first.request("pointer.resolve", pointers=pointers[:1], critical=True)
            second.request("pointer.resolve", pointers=pointers, critical=True)
            told = [sorted(halt["run_id"] for halt in raw.line()["result"]["halted"]) for raw in (first, second)]
            # The first request halts the run that both depend on; the other request does not halt it again.
            self.assertIn(told[0], (runs[:1], []))
            self.assertEqual(sorted({*told[0], *told[1]}), runs)
            self.assertIn(runs[1], told[1])
            for run_id in runs:
                self.assertEqual([event["type"] for event in self.events(run_id)].count("run.halted"), 1)

    def test_a_halted_run_takes_nothing_more(self) -> None:
        pointer, path = self.artifact()
        path.unlink()
        self.resolve_critical(pointer)
        attempts = {
            "append": lambda: self.client.append(self.run_id, "x.test.a", {}),
            "put": lambda: self.client.put(self.run_id, b"x"),
            "manifest": lambda: self.call("manifest.put", run_id=self.run_id, manifest={"entries": []}),
            "claim": lambda: self.call("claim.record", run_id=self.run_id, text="so", pointers=[pointer]),
            "start": lambda: self.call("run.start", run_id=self.run_id, agent={"name": "test"}),
            "command": lambda: self.call("command.start", run_id=self.run_id, argv=["true"], cwd="/", env={}),
        }
        for name, attempt in attempts.items():
            with self.subTest(attempt=name), self.refused("run_halted", run_id=self.run_id):
                attempt()
        with self.refused("run_halted", "run_halted"):
            self.client.append(self.run_id, "x.test.a", {})
        before = len(self.events())
        self.assertIn(self.status(), "halted")
        self.call("run.annotate", run_id=self.run_id, note="seen")
        self.assertEqual(len(self.events()), before + 1)

    def test_what_a_halted_run_tried_is_counted_in_the_log(self) -> None:
        pointer, path = self.artifact()
        path.unlink()
        self.resolve_critical(pointer)
        for _ in range(3):
            with self.refused("run_halted"):
                self.client.append(self.run_id, "x.test.a", {})
        with self.refused("run_halted"):
            self.client.put(self.run_id, b"x")
        self.daemon.stop()   # stores the counts of the current minute
        self.restart()
        told = [event["body"] for event in self.call("event.list", run_id="_log", types=["access.refused"], limit=1000)["events"]
                if event["body"].get("run_id") == self.run_id]
        self.assertEqual(sum(body["count"] for body in told), 4)
        self.assertEqual({body["reason"] for body in told}, {"run_halted"})
        self.assertEqual({method for body in told for method in body["methods"]}, {"event.append", "artifact.put"})

    def test_reads_of_a_halted_run_are_served(self) -> None:
        pointer, path = self.artifact()
        path.unlink()
        self.resolve_critical(pointer)
        self.assertIsNotNone(self.call("run.rehydrate", run_id=self.run_id)["state"]["halt"])
        self.assertTrue(self.events())

    def test_the_halt_survives_a_restart(self) -> None:
        pointer, path = self.artifact()
        path.unlink()
        self.resolve_critical(pointer)
        self.daemon.kill()
        self.restart()
        with self.refused("run_halted"):
            self.client.append(self.run_id, "x.test.a", {})

    def test_a_halted_run_may_be_ended(self) -> None:
        pointer, path = self.artifact()
        path.unlink()
        self.resolve_critical(pointer)
        self.call("run.end", run_id=self.run_id, outcome="failure")
        self.assertEqual(self.status(), "ended")

    def test_the_parent_hears_of_it_and_the_children_go_on(self) -> None:
        middle = self.new_run("middle", parent={"run_id": self.run_id})
        child = self.new_run("child", parent={"run_id": middle})
        pointer, path = self.artifact(middle)
        path.unlink()
        self.resolve_critical(pointer, middle)
        self.assertEqual(self.types()[-1], "child.halted")
        self.assertEqual((self.status(), self.status(middle), self.status(child)), ("open", "halted", "open"))
        self.note(child, goes="on")

    def test_what_a_claim_needs_is_critical_without_the_flag(self) -> None:
        pointer, path = self.artifact()
        self.call("claim.record", run_id=self.run_id, text="it works", pointers=[pointer])
        path.unlink()
        self.assertFalse(self.resolve(pointer, critical=False)["ok"])   # the parameter cannot make a critical pointer uncritical
        self.assertEqual(self.status(), "halted")

    def test_a_claim_on_what_was_lost_halts(self) -> None:
        pointer, path = self.artifact()
        path.unlink()
        with self.refused("run_halted", run_id=self.run_id):
            self.call("claim.record", run_id=self.run_id, text="it works", pointers=[pointer])
        self.assertEqual(self.status(), "halted")

    def test_a_mistyped_pointer_halts_nothing(self) -> None:
        pointer, _ = self.artifact()
        nowhere = "01900000-0000-7000-8000-000000000000"
        for claimed in (False, True):
            for typed in (f"artifact://{self.run_id}/{nowhere}", f"manifest://{nowhere}", "run://no-such-run", f"{pointer}#b0-999",
                          "ev://nowhere/a#p0?v=1"):
                with self.subTest(pointer=typed, claimed=claimed):
                    found = self.resolve(typed, critical=True, run_id=self.run_id)
                    self.assertEqual((found["ok"], found["reason"], found["critical"]), (False, "NOT_FOUND", False))
                    self.assertEqual(self.events()[-1]["body"]["critical"], False)
                    with self.refused("not_found", pointer=typed):
                        self.call("claim.record", run_id=self.run_id, text="it works", pointers=[pointer, typed])
            self.call("claim.record", run_id=self.run_id, text="it works", pointers=[pointer])
        self.assertEqual(self.status(), "open")
        self.assertNotIn("pointer.retried", self.types())

    def test_what_a_record_names_halts_also_if_the_log_never_had_it(self) -> None:
        pointer = f"artifact://{self.run_id}/01900000-0000-7000-8000-000000000000"
        imported = self.new_run("imported", **{"import": {"format": "test", "sha256": "0" * 64, "importer": "test 1"}})
        self.call("manifest.put", run_id=imported, manifest={"entries": [{"pointer": pointer}]})
        self.resolve_critical(pointer, run_id=self.run_id)
        self.assertEqual(self.status(), "halted")

    def test_recover_takes_the_file_back_only_if_it_is_the_one(self) -> None:
        pointer, path = self.artifact()
        self.call("claim.record", run_id=self.run_id, text="it works", pointers=[pointer])
        path.unlink()
        self.resolve_critical(pointer)
        shown = self.call("run.recover", run_id=self.run_id, resume=False)
        self.assertEqual([damage["pointer"] for damage in shown["damage"]], [pointer])
        file = self.daemon.folder / "repair"
        file.write_bytes(b"something else")
        with self.assertRaises(muniment.MunimentError):
            self.call("run.recover", run_id=self.run_id, repair={"pointer": pointer, "file": str(file)})
        self.assertEqual(self.status(), "halted")
        file.write_bytes(b"the evidence")
        back = self.call("run.recover", run_id=self.run_id, repair={"pointer": pointer, "file": str(file)}, why="from the backup")
        self.assertTrue(back["resumed"])
        self.assertEqual(self.status(), "open")
        self.assertEqual(self.events()[-1]["type"], "run.resumed")
        self.note(it="goes on")

    def test_a_pointer_that_does_not_parse_never_halts(self) -> None:
        for pointer in ("nonsense", "artifact://", f"artifact://{self.run_id}/x#z", "http://a/b"):
            with self.subTest(pointer=pointer):
                result = self.resolve(pointer, critical=True, run_id=self.run_id)
                self.assertEqual((result["ok"], result["reason"]), (False, "PARSE_ERROR"))
        self.assertEqual(self.status(), "open")
        self.assertNotIn("pointer.retried", self.types())

    def test_a_critical_resolve_must_name_a_run(self) -> None:
        with self.refused("invalid_argument", "critical_without_run"):
            self.call("pointer.resolve", pointers=["manifest://01900000-0000-7000-8000-000000000000"], critical=True)

    def test_a_swapped_file_is_a_hash_mismatch(self) -> None:
        pointer, path = self.artifact()
        _, other = self.artifact(text=b"something else")
        path.unlink()
        path.write_bytes(other.read_bytes()[:12])
        result = self.resolve(pointer)
        self.assertEqual(result["reason"], "HASH_MISMATCH")
        self.assertNotEqual(result["expected_hash"], result["actual_hash"])

    def test_the_derived_tables_follow_from_the_log(self) -> None:
        stored = self.client.put(self.run_id, b"x", mime_type="text/plain")
        self.call("claim.record", run_id=self.run_id, text="so", pointers=[f"artifact://{self.run_id}/{stored['artifact_id']}"])
        self.call("evidence.record", run_id=self.run_id, type="note", content={"text": "seen"})
        self.call("run.end", run_id=self.run_id, outcome="success")
        rebuilt = self.call("server.rebuild")
        self.assertTrue(rebuilt["equal"], rebuilt)
        self.daemon.sql("SET session_replication_role = replica; UPDATE run SET status = 'open' WHERE status = 'ended'; DELETE FROM claim")
        rebuilt = self.call("server.rebuild")
        self.assertFalse(rebuilt["equal"])
        self.assertTrue(self.call("server.rebuild")["equal"])
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["status"], "ended")
        self.assertEqual(len(self.call("claim.list", run_id=self.run_id)["claims"]), 1)

    def test_one_failed_read_is_one_retry_and_no_halt(self) -> None:
        """A disk error that occurs once: after the retry, the run continues."""
        stored = self.client.put(self.run_id, b"the evidence", mime_type="text/plain")
        pointer = f"artifact://{self.run_id}/{stored['artifact_id']}"
        self.daemon.stop()
        self.daemon.restart(failpoint="artifact.read_eio=error@1")
        self.client.close()
        result = self.call("pointer.resolve", pointers=[pointer], critical=True, run_id=self.run_id)["results"][0]
        self.assertTrue(result["ok"], result)
        self.assertIn("artifact.read_eio", self.daemon.failpoint_log.read_text())
        self.assertEqual([e["type"] for e in self.events() if e["type"].startswith("pointer.")], ["pointer.resolved", "pointer.retried"])
        self.assertEqual(self.call("run.get", run_id=self.run_id)["run"]["status"], "open")


class Many(PointerCase):
    """A hundred pointers in one request: each is answered in its place, with the same result as by itself."""

    def setUp(self) -> None:
        super().setUp()
        self.other = self.new_run("other")
        self.pointers: list[str] = []
        self.expected: list[tuple[bool, str | None]] = []
        damages = itertools.cycle((pathlib.Path.unlink, self.cut, self.flip))
        for i in range(60):   # in two runs in turn
            pointer, path = self.artifact(self.other if i % 2 else None, b"evidence %d" % i)
            if i % 5 == 4:
                damage = next(damages)
                damage(path)
                self.add(pointer, "NOT_FOUND" if damage is pathlib.Path.unlink else "HASH_MISMATCH")
            else:
                self.add(pointer + (f"#b0-{8 + i % 2}" if i % 7 == 0 else ""))
        self.add(self.pointers[0])   # twice the same, and once more without the span
        self.add(self.pointers[0].partition("#")[0])
        manifest = self.call("manifest.put", run_id=self.run_id, manifest={"entries": []})["manifest_id"]
        taken = self.call("snapshot.take", run_id=self.run_id)["seq"]
        self.add(f"manifest://{manifest}")
        self.add(f"snap://{self.run_id}/{taken}")
        self.add(f"run://{self.other}")
        for i in range(10):
            self.add(f"artifact://{self.run_id}/01900000-0000-7000-8000-{i:012d}", "NOT_FOUND")
            self.add(f"run://no-such-run-{i}", "NOT_FOUND")
            self.add(f"artifact://{self.run_id}/no-id-{i}", "PARSE_ERROR")
        # The artifact belongs to the other run: the id alone does not make the pointer valid.
        self.add(self.pointers[0].replace(self.run_id, self.other, 1).partition("#")[0], "NOT_FOUND")
        while len(self.pointers) < 100:
            self.add(f"run://{self.run_id}")

    @staticmethod
    def flip(path: pathlib.Path) -> None:
        data = path.read_bytes()
        path.chmod(0o644)
        path.write_bytes(bytes([data[0] ^ 1]) + data[1:])

    @staticmethod
    def cut(path: pathlib.Path) -> None:
        path.chmod(0o644)
        os.truncate(path, 3)

    def add(self, pointer: str, reason: str | None = None) -> None:
        self.pointers.append(pointer)
        self.expected.append((reason is None, reason))

    def found(self, answer: dict) -> list[tuple[bool, str | None]]:
        self.assertEqual([result["pointer"] for result in answer["results"]], self.pointers)
        return [(result["ok"], result.get("reason")) for result in answer["results"]]

    def test_validate(self) -> None:
        answer = self.call("pointer.validate", pointers=self.pointers)
        self.assertEqual(self.found(answer), self.expected)
        self.assertFalse(answer["ok"])
        good = [pointer for pointer, (ok, _) in zip(self.pointers, self.expected) if ok]
        self.assertTrue(self.call("pointer.validate", pointers=good)["ok"])
        self.assertEqual((self.status(), self.status(self.other)), ("open", "open"))
        self.assertNotIn("pointer.retried", self.types() + self.types(self.other))

    def test_resolve(self) -> None:
        answer = self.call("pointer.resolve", pointers=self.pointers)
        self.assertEqual(self.found(answer), self.expected)
        self.assertEqual(answer["halted"], [])
        for i in range(60):
            if self.expected[i][0]:
                whole = f"evidence {i}"
                self.assertEqual(answer["results"][i]["text"], whole[:8 + i % 2] if "#" in self.pointers[i] else whole, self.pointers[i])

    def test_resolve_one_by_one_says_the_same(self) -> None:
        together = self.call("pointer.resolve", pointers=self.pointers)["results"]
        alone = [self.call("pointer.resolve", pointers=[pointer])["results"][0] for pointer in self.pointers]
        self.assertEqual(together, alone)

    def test_a_critical_one_of_many_halts_its_run_once(self) -> None:
        answer = self.call("pointer.resolve", pointers=self.pointers, critical=True, run_id=self.run_id)
        self.assertEqual(self.found(answer), self.expected)
        self.assertEqual([halt["run_id"] for halt in answer["halted"]], [self.run_id])
        self.assertEqual((self.status(), self.status(self.other)), ("halted", "open"))
        self.assertEqual(self.types().count("run.halted"), 1)

    def test_1000_are_taken_and_1001_are_not(self) -> None:
        pointer = f"run://{self.run_id}"
        self.assertEqual(len(self.call("pointer.validate", pointers=[pointer] * 1000)["results"]), 1000)
        for method in ("pointer.validate", "pointer.resolve"):
            with self.refused("too_large", limit=1000):
                self.call(method, pointers=[pointer] * 1001)


if __name__ == "__main__":
    main()
