"""Tests of the stop rule for every use of critical pointers, and not only when they are resolved."""
from __future__ import annotations

import contextlib
import os
import pathlib
from typing import Any, Iterator

from support import DaemonCase, main, muniment

STRANGER = 64_123   # another user of the machine; the id needs no name
NOWHERE = "01900000-0000-7000-8000-000000000000"


class UsesCase(DaemonCase):
    config = f"allowed_uids = [{STRANGER}]\n"

    def artifact(self, run_id: str | None = None, text: bytes = b"the evidence") -> tuple[str, pathlib.Path]:
        stored = self.client.put(run_id or self.run_id, text, mime_type="text/plain")
        return f"artifact://{run_id or self.run_id}/{stored['artifact_id']}", self.daemon.data / "artifacts" / stored["path"]

    def needed(self, run_id: str | None = None, text: bytes = b"the evidence") -> tuple[str, pathlib.Path]:
        """Stores an artifact on which a claim of the run depends. Returns its pointer and path."""
        pointer, path = self.artifact(run_id, text)
        self.call("claim.record", run_id=run_id or self.run_id, text="it works", pointers=[pointer])
        return pointer, path

    def status(self, run_id: str | None = None) -> str:
        return self.call("run.get", run_id=run_id or self.run_id)["run"]["status"]

    def types(self, run_id: str | None = None) -> list[str]:
        return [event["type"] for event in self.events(run_id)]

    def noted(self, pointer: str) -> list[dict[str, Any]]:
        """Returns the bodies in _log about a pointer that did not resolve."""
        found = self.pages("event.list", "events", run_id="_log", types=["pointer.unresolved"])
        return [event["body"] for event in found if event["body"]["pointer"] == pointer]

    @contextlib.contextmanager
    def stops(self, pointer: str, run_id: str | None = None) -> Iterator[None]:
        """Expects run_halted inside the block, and the run to be halted because of the pointer, after one retry."""
        run_id = run_id or self.run_id
        with self.refused("run_halted", run_id=run_id, pointer=pointer):
            yield
        self.assertEqual(self.status(run_id), "halted")
        types = self.types(run_id)
        self.assertEqual(types.count("pointer.retried"), 1)
        self.assertEqual(types[-2:], ["pointer.unresolved", "run.halted"])
        self.assertEqual(self.events(run_id)[-1]["body"]["pointer"], pointer)

    @contextlib.contextmanager
    def stranger(self) -> Iterator[muniment.Client]:
        """Connects as another user, who is neither root nor the daemon's."""
        for path, mode in ((self.daemon.folder, 0o711), (self.daemon.data, 0o711), (pathlib.Path(self.daemon.socket), 0o666)):
            path.chmod(mode)
        groups = os.getgroups()
        os.setgroups([])
        os.setegid(STRANGER)
        os.seteuid(STRANGER)
        try:
            client = muniment.connect(self.daemon.socket)
            client.call("server.health")
        finally:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(groups)
        with client:
            yield client


def flip(path: pathlib.Path) -> None:
    path.chmod(0o644)
    path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))


class Reads(UsesCase):
    shared = True

    def test_artifact_get(self) -> None:
        pointer, path = self.needed()
        path.unlink()
        with self.stops(pointer):
            self.call("artifact.get", artifact_id=pointer.rpartition("/")[2])
        with self.refused("corrupt", pointer=pointer):   # from then on, the reply names the damage
            self.call("artifact.get", artifact_id=pointer.rpartition("/")[2])
        self.assertEqual(self.types().count("run.halted"), 1)

    def test_artifact_get_of_what_nothing_depends_on(self) -> None:
        pointer, path = self.artifact()
        path.unlink()
        with self.refused("corrupt", pointer=pointer):
            self.call("artifact.get", artifact_id=pointer.rpartition("/")[2])
        self.assertEqual(self.status(), "open")
        self.assertEqual([event["body"]["critical"] for event in self.events() if event["type"] == "pointer.unresolved"], [False])

    def ingest(self, *pointers: str) -> dict[str, Any]:
        documents = [{"id": f"d{number}", "artifact_id": pointer.rpartition("/")[2]} for number, pointer in enumerate(pointers)]
        return self.call("corpus.ingest", corpus=self._testMethodName[:40], documents=documents)

    def test_corpus_ingest(self) -> None:
        good, _ = self.artifact(text=b"another")
        pointer, path = self.needed()
        path.unlink()
        with self.stops(pointer):
            self.ingest(good, pointer)
        self.assertEqual([row["corpus"] for row in self.call("corpus.list")["corpora"] if row["corpus"].startswith("test_corpus")], [])
        reply = self.ingest(good, pointer)   # from then on, the reply names the damage
        self.assertEqual([(error["id"], error["code"], error["pointer"]) for error in reply["errors"]], [("d1", "corrupt", pointer)])
        self.assertEqual([document["id"] for document in reply["documents"]], ["d0"])
        self.assertEqual(self.types().count("run.halted"), 1)

    def test_corpus_ingest_of_what_nothing_depends_on(self) -> None:
        good, _ = self.artifact(text=b"another")
        pointer, path = self.artifact()
        flip(path)
        for documents in ((pointer,), (good, pointer)):
            reply = self.ingest(*documents)
            self.assertEqual([(error["code"], error["pointer"]) for error in reply["errors"]], [("corrupt", pointer)])
            self.assertEqual(self.types()[-1], "pointer.unresolved")
            if reply["documents"]:   # `seq` is the position of the accepted documents, even if other events were appended
                [event] = self.call("event.list", from_seq=reply["seq"], limit=1)["events"]
                self.assertEqual(event["type"], "document.revised")
        self.assertEqual([event["body"]["critical"] for event in self.events() if event["type"] == "pointer.unresolved"], [False, False])
        self.assertEqual(self.status(), "open")

    def test_pointer_validate(self) -> None:
        good, _ = self.needed(text=b"another")
        pointer, path = self.needed()
        path.unlink()
        answer = self.call("pointer.validate", pointers=[good, pointer])
        self.assertEqual([result["ok"] for result in answer["results"]], [True, False])
        self.assertEqual([(halt["run_id"], halt["pointer"]) for halt in answer["halted"]], [(self.run_id, pointer)])
        self.assertEqual(self.status(), "halted")

    def test_pointer_render(self) -> None:
        pointer, path = self.needed()
        path.unlink()
        answer = self.call("pointer.render", draft=f"It works [ref:{pointer}].")
        self.assertEqual((answer["ok"], [bad["pointer"] for bad in answer["bad"]]), (False, [pointer]))
        self.assertEqual([halt["run_id"] for halt in answer["halted"]], [self.run_id])
        self.assertEqual(self.status(), "halted")

    def test_manifest_get(self) -> None:
        base = self.call("manifest.put", run_id=self.run_id, manifest={"entries": []})["manifest_id"]
        self.call("manifest.put", run_id=self.run_id, manifest={"base": base, "add": []})
        self.daemon.sql(f"SET session_replication_role = replica; UPDATE manifest SET manifest = '{{}}' WHERE manifest_id = '{base}'")
        with self.stops(f"manifest://{base}"):
            self.call("manifest.get", manifest_id=base)


class Ends(UsesCase):
    shared = True

    def test_a_success_needs_its_evidence(self) -> None:
        pointer, path = self.needed()
        path.unlink()
        with self.stops(pointer):
            self.call("run.end", run_id=self.run_id, outcome="success")
        with self.refused("run_halted"):   # a second request does not succeed either
            self.call("run.end", run_id=self.run_id, outcome="success")
        self.call("run.end", run_id=self.run_id, outcome="failure")
        self.assertEqual(self.status(), "ended")

    def test_other_bytes_are_no_evidence(self) -> None:
        pointer, path = self.needed()
        flip(path)
        with self.stops(pointer):
            self.call("run.end", run_id=self.run_id, outcome="success")

    def test_a_failure_may_end_without_it(self) -> None:
        _, path = self.needed()
        path.unlink()
        self.call("run.end", run_id=self.run_id, outcome="failure")
        self.assertEqual(self.status(), "ended")

    def test_what_nothing_depends_on_is_not_asked_for(self) -> None:
        _, path = self.artifact()
        path.unlink()
        self.call("run.end", run_id=self.run_id, outcome="success")

    def test_a_repeated_success_is_the_first(self) -> None:
        self.needed()
        meta = {"idempotency_key": "end"}
        first = self.call("run.end", run_id=self.run_id, outcome="success", _meta=meta)
        self.assertEqual(self.call("run.end", run_id=self.run_id, outcome="success", _meta=meta)["seq"], first["seq"])


class Writes(UsesCase):
    shared = True

    def test_a_manifest_of_what_was_lost(self) -> None:
        for name in ("pointer", "artifact_id"):
            with self.subTest(named_by=name):
                run_id = self.new_run(name)
                pointer, path = self.artifact(run_id)
                path.unlink()
                entry = {"pointer": pointer} if name == "pointer" else {"artifact_id": pointer.rpartition("/")[2]}
                with self.stops(pointer, run_id):
                    self.call("manifest.put", run_id=run_id, manifest={"entries": [entry]})
                self.assertNotIn("manifest.recorded", self.types(run_id))

    def test_a_record_of_what_never_was_is_refused_and_stops_nothing(self) -> None:
        pointer = f"artifact://{self.run_id}/{NOWHERE}"
        body = {"call_id": "c1", "operation": "chat", "provider": "p", "model": "m", "parameters": {}, "manifest_id": NOWHERE}
        for wanted, method, params in (
                (pointer, "manifest.put", {"manifest": {"entries": [{"pointer": pointer}]}}),
                (pointer, "manifest.put", {"manifest": {"entries": [{"artifact_id": NOWHERE}]}}),
                (pointer, "evidence.record", {"type": "note", "pointer": pointer}),
                (f"manifest://{NOWHERE}", "event.append", {"type": "model.called", "body": body})):
            with self.subTest(method=method), self.refused("not_found", pointer=wanted):
                self.call(method, run_id=self.run_id, **params)
        self.assertEqual((self.status(), self.types()), ("open", ["run.started"]))

    def test_what_a_manifest_left_out_need_not_be_there(self) -> None:
        self.call("manifest.put", run_id=self.run_id, manifest={"entries": [], "left_out": [{"pointer": f"artifact://{self.run_id}/{NOWHERE}"}]})
        self.assertEqual(self.status(), "open")

    def test_a_manifest_of_what_is_there(self) -> None:
        pointer, _ = self.artifact()
        put = self.call("manifest.put", run_id=self.run_id, manifest={"entries": [{"pointer": pointer + "#b0-3"}]})
        self.assertEqual(self.events()[-1]["seq"], put["seq"])

    def test_an_event_names_a_manifest_that_is_there(self) -> None:
        manifest_id = self.call("manifest.put", run_id=self.run_id, manifest={"entries": []})["manifest_id"]
        body = {"call_id": "c1", "operation": "chat", "provider": "p", "model": "m", "parameters": {}, "manifest_id": manifest_id}
        first = self.client.append(self.run_id, "model.called", body, event_id=NOWHERE)
        again = self.client.append(self.run_id, "model.called", body, event_id=NOWHERE)
        self.assertEqual((again["seq"], again["duplicate"]), (first["seq"], True))

    def test_evidence_of_no_run_stops_no_run(self) -> None:
        ingested = self.call("corpus.ingest", corpus="lost", documents=[{"id": "a", "text": "to be lost"}])
        pointer = ingested["documents"][0]["uri"]
        [found] = self.call("pointer.resolve", pointers=[pointer])["results"]
        (self.daemon.data / "artifacts" / found["path"]).unlink()
        with self.refused("corrupt", pointer=pointer):
            self.call("evidence.record", type="note", pointer=pointer)
        self.assertEqual([body["critical"] for body in self.noted(pointer)], [True])
        self.call("evidence.record", type="note", content={"text": "the log goes on"})
        self.assertEqual(self.types("_log").count("run.halted"), 0)


class Strangers(UsesCase):
    """Root and the daemon's user can read every run, but only halt their own."""

    shared = True

    def setUp(self) -> None:
        super().setUp()
        with self.stranger() as client:
            self.theirs = client.call("run.start", run_id=self._testMethodName + ".theirs", agent={"name": "test"})["run_id"]
            stored = client.put(self.theirs, b"the evidence", mime_type="text/plain")
            self.pointer = f"artifact://{self.theirs}/{stored['artifact_id']}"
            client.call("claim.record", run_id=self.theirs, text="it works", pointers=[self.pointer])
        (self.daemon.data / "artifacts" / stored["path"]).unlink()

    def test_a_reader_who_does_not_own_the_run_never_halts_it(self) -> None:
        with self.refused("corrupt", pointer=self.pointer):
            self.call("artifact.get", artifact_id=self.pointer.rpartition("/")[2])
        for method in ("pointer.resolve", "pointer.validate"):
            answer = self.call(method, pointers=[self.pointer])
            self.assertEqual(([result["ok"] for result in answer["results"]], answer["halted"]), ([False], []))
        with self.refused("corrupt", pointer=self.pointer):
            self.call("run.end", run_id=self.theirs, outcome="success")
        self.assertEqual(self.status(self.theirs), "open")
        self.assertNotIn("pointer.unresolved", self.types(self.theirs))
        self.assertEqual([(body["run_id"], body["critical"]) for body in self.noted(self.pointer)], [(self.theirs, True)] * 4)

    def test_of_two_that_are_damaged_it_names_the_one_for_which_a_run_stops(self) -> None:
        mine, path = self.needed()
        path.unlink()
        self.assertLess(self.pointer, mine, "otherwise the first that is found is the one that stops")
        documents = [{"id": name, "artifact_id": pointer.rpartition("/")[2]} for name, pointer in (("theirs", self.pointer), ("mine", mine))]
        with self.stops(mine):
            self.call("corpus.ingest", corpus="two-damages", documents=documents)
        self.assertEqual(self.status(self.theirs), "open")

    def test_its_owner_does(self) -> None:
        with self.stranger() as client, self.assertRaises(muniment.MunimentError) as caught:
            client.call("artifact.get", artifact_id=self.pointer.rpartition("/")[2])
        self.assertEqual((caught.exception.code, self.status(self.theirs)), ("run_halted", "halted"))

    def test_whoever_may_not_see_a_run_learns_nothing_of_it(self) -> None:
        mine, path = self.needed()
        unknown = mine.rpartition("/")[0] + "/" + NOWHERE
        with self.stranger() as client:
            answers = [client.call("pointer.resolve", pointers=[pointer])["results"][0] for pointer in (mine, unknown)]
        told = [{name: value for name, value in answer.items() if name not in ("pointer", "id", "detail")} for answer in answers]
        self.assertEqual(told[0], told[1])
        self.assertEqual(self.status(), "open")


class Restarted(UsesCase):
    def test_rehydrate(self) -> None:
        pointer, path = self.artifact(text=b'{"plan": "long"}')
        artifact_id = pointer.rpartition("/")[2]
        ref = {name: self.call("artifact.stat", artifact_id=artifact_id)["artifact"][name] for name in ("artifact_id", "hash", "size_bytes", "mime_type")}
        self.client.append(self.run_id, "state.patched", {"format": "merge", "ref": ref})
        self.assertEqual(self.call("run.rehydrate", run_id=self.run_id)["state"]["working"], {"plan": "long"})
        path.unlink()
        self.daemon.kill()   # discards the daemon's memory
        self.restart()
        with self.stops(pointer):
            self.call("run.rehydrate", run_id=self.run_id)


class Recovery(UsesCase):
    shared = True

    def test_a_superseded_revision_is_no_damage(self) -> None:
        corpus = "recovery"
        ingested = self.call("corpus.ingest", corpus=corpus, documents=[{"id": "a", "text": "The first text."}], wait=True)["documents"][0]
        cited = f"ev://{corpus}/a#p0?v={ingested['revision']}"
        self.call("claim.record", run_id=self.run_id, text="so", pointers=[cited])
        pointer, path = self.needed()
        content = path.read_bytes()
        path.unlink()
        self.call("pointer.resolve", pointers=[pointer])
        self.call("corpus.ingest", corpus=corpus, documents=[{"id": "a", "text": "The second text."}], wait=True)
        path.write_bytes(content)
        self.assertTrue(self.call("run.recover", run_id=self.run_id)["resumed"])
        self.call("run.end", run_id=self.run_id, outcome="success")


if __name__ == "__main__":
    main()
