"""Tests of the config inside a capsule: trust in it, its hooks, and the roots of its collections."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import sys
import unittest
from typing import Any

from support import main
from test_capsule import CapsuleCase

EXPANSION = """#!/usr/bin/python3
import json, sys
request = json.load(sys.stdin)
with open({seen!r}, "a") as seen: seen.write(json.dumps(request) + "\\n")
print(json.dumps({{"lex": ["lighthouse"], "vec": [], "warnings": []}}))
"""
RERANK = """#!/usr/bin/python3
import json, sys
request = json.load(sys.stdin)
with open({seen!r}, "a") as seen: seen.write(json.dumps(request) + "\\n")
scores = {{one["key"]: 1.0 if "tin" in one["snippet"] else 0.0 for one in request["candidates"]}}
print(json.dumps({{"scores": scores, "snippets": {{}}, "warnings": []}}))
"""


class ConfigCase(CapsuleCase):
    def setUp(self) -> None:
        super().setUp()
        self.seen = self.folder / "seen"
        self.user = {"XDG_CONFIG_HOME": str(self.folder / "ada")}

    def run_any(self, *words: Any, **options: Any) -> Any:
        options["env"] = {**self.user, **options.get("env", {})}
        return super().run_any(*words, **options)

    def hook(self, name: str, text: str) -> list[str]:
        path = self.folder / name
        path.write_text(text.format(seen=str(self.seen)))
        return [sys.executable, str(path)]

    def set_config(self, config: Any, code: int = 0) -> str:
        path = self.folder / "index.json"
        path.write_text(config if isinstance(config, str) else json.dumps(config, indent=2))
        done = self.run_words("--capsule", self.file, "config", "set", path, code=code)
        return done.stdout + done.stderr

    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.seen.read_text().splitlines()] if self.seen.exists() else []

    def degraded(self, question: str) -> list[str]:
        return json.loads(self.capsule("--json", "query", question))["results"][0].get("degraded", [])


class Config(ConfigCase):
    def test_a_config_is_stored_in_the_capsule(self) -> None:
        self.capsule("config", "get", code=1)
        self.set_config({"context": "Notes of Ada.", "collections": {"notes": {"context": "What was seen."}}})
        answer = json.loads(self.capsule("--json", "config", "get"))
        self.assertEqual((answer["uri"], answer["config"]["context"], answer["trusted"]),
                         ("aethervault://config/index.json", "Notes of Ada.", True))
        self.set_config({"context": "Notes of Bert."})
        self.assertIn("Bert", self.capsule("config", "get"))
        self.run_words("capsule", "verify", self.file)

    def test_a_wrong_config_is_refused(self) -> None:
        for config in ("no json", "[]", {"hook": {}}, {"hooks": {"expansion": "/bin/cat"}}, {"hooks": {"expansion": ["cat"]}},
                       {"hooks": {"rerank": []}}, {"hooks": {"ms": 5}}, {"hooks": {"ms": "long"}}, {"hooks": {"max_expansions": 9}},
                       {"collections": {"no/name": {}}}, {"collections": {"notes": {"root": "../.."}}}, {"context": 7},
                       {"context": "x" * (256 << 10)}):
            self.assertNotIn("stored", self.set_config(config, code=1), str(config)[:60])
        self.assertFalse(self.file.exists(), "a refused config created the capsule")

    def test_the_root_of_a_collection_is_ingested(self) -> None:
        self.write("lamp.txt", "The lamp is brass.\n")
        self.capsule("ingest", "--corpus", "notes", code=1)
        self.set_config({"collections": {"notes": {"root": str(self.notes)}}})
        self.assertIn("1 new", self.capsule("ingest", "--corpus", "notes"))
        self.capsule("ingest", "--corpus", "other", code=1)
        self.write("new.txt", "The pier is long.\n")
        self.user["XDG_CONFIG_HOME"] = str(self.folder / "bert")
        self.capsule("ingest", "--corpus", "notes", code=1)
        self.assertEqual(self.capsule("query", "pier", "--files"), "")


class Hooks(ConfigCase):
    def setUp(self) -> None:
        super().setUp()
        self.write("lamp.txt", "The lamp is brass.\n")
        self.write("tin.txt", "The other lamp is made of tin.\n")
        self.write("light.txt", "The lighthouse is painted in April.\n")
        self.capsule("ingest", self.notes, "--corpus", "notes")

    def test_the_expansion_hook_gets_the_question_of_the_seed(self) -> None:
        self.set_config({"hooks": {"expansion": self.hook("expand.py", EXPANSION)}})
        self.assertIn("light.txt", self.capsule("query", "in:notes beacon", "--files"))
        self.capsule("query", "in:notes beacon after:2020-01-01")
        plain, timed = self.requests()
        self.assertEqual(plain, {"query": "beacon", "max_expansions": 2, "scope": "aether://notes/", "temporal": None})
        self.assertEqual((timed["query"], list(timed["temporal"])), ("beacon", ["after"]))

    def test_the_rerank_hook_scores_candidates_by_key(self) -> None:
        self.set_config({"hooks": {"rerank": self.hook("rerank.py", RERANK)}})
        self.assertTrue(self.capsule("query", "lamp", "--files").startswith("aether://notes/tin.txt\n"))
        request = self.requests()[0]
        self.assertEqual((set(request), request["query"]), ({"query", "candidates"}, "lamp"))
        self.assertEqual({frozenset(one) for one in request["candidates"]}, {frozenset({"key", "uri", "snippet"})})
        self.assertEqual({one["uri"] for one in request["candidates"]}, {"aether://notes/lamp.txt", "aether://notes/tin.txt"})

    def test_a_failing_hook_is_reported_and_the_query_continues(self) -> None:
        self.set_config({"hooks": {"expansion": ["/bin/false"]}})
        self.assertIn("expansion hook: exit status 1", self.degraded("beacon")[0])
        self.assertIn("lamp.txt", self.capsule("query", "brass lamp", "--files"))

    def test_the_hooks_of_a_foreign_capsule_run_only_after_trust(self) -> None:
        self.set_config({"hooks": {"expansion": self.hook("expand.py", EXPANSION)}})
        self.user["XDG_CONFIG_HOME"] = str(self.folder / "bert")
        self.assertIn("you do not trust its config", self.degraded("beacon")[0])
        self.assertEqual(self.requests(), [])
        self.assertIn("not trusted", self.run_words("--capsule", self.file, "config", "get").stderr)
        self.assertIn("expand.py", self.run_words("capsule", "trust", self.file).stdout)
        self.assertEqual(self.degraded("beacon"), [])
        self.assertEqual(len(self.requests()), 1)
        self.run_words("capsule", "trust", self.file, "--revoke")
        self.assertEqual(len(self.degraded("beacon")), 1)
        self.assertEqual(len(self.requests()), 1)

    def test_trust_is_bound_to_the_config_frame(self) -> None:
        self.set_config({"hooks": {"expansion": self.hook("expand.py", EXPANSION)}})
        foreign = self.folder / "foreign.mv2"
        shutil.copy(self.file, foreign)
        mine = dict(self.user)
        self.user["XDG_CONFIG_HOME"] = str(self.folder / "mallory")
        path = self.folder / "index.json"
        path.write_text(json.dumps({"hooks": {"expansion": ["/bin/sh", "-c", f"touch {self.folder}/stolen"]}}))
        self.run_words("--capsule", foreign, "config", "set", path)
        self.user.update(mine)
        answer = json.loads(self.run_words("--json", "--capsule", foreign, "query", "beacon").stdout)["results"][0]
        self.assertIn("you do not trust", answer["degraded"][0])
        merged = self.folder / "merged.mv2"
        self.run_words("capsule", "merge", self.file, foreign, "-o", merged)
        answer = json.loads(self.run_words("--json", "--capsule", merged, "query", "beacon").stdout)["results"][0]
        self.assertIn("you do not trust", answer["degraded"][0])
        self.assertEqual(self.requests(), [])
        self.assertFalse((self.folder / "stolen").exists())

    def test_a_record_that_others_may_write_is_no_trust(self) -> None:
        self.set_config({"hooks": {"expansion": self.hook("expand.py", EXPANSION)}})
        record = next(pathlib.Path(self.user["XDG_CONFIG_HOME"]).rglob("trusted-capsules/*"))
        self.assertEqual(record.stat().st_mode & 0o077, 0)
        record.chmod(0o666)
        self.capsule("query", "beacon", code=1)
        self.assertEqual(self.requests(), [])

    def test_a_folder_of_records_that_others_may_write_is_no_trust(self) -> None:
        self.set_config({"hooks": {"expansion": self.hook("expand.py", EXPANSION)}})
        folder = next(pathlib.Path(self.user["XDG_CONFIG_HOME"]).rglob("trusted-capsules"))
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        folder.chmod(0o777)
        self.capsule("query", "beacon", code=1)
        self.assertEqual(self.requests(), [])
        self.assertIn("other users may write", self.run_words("capsule", "trust", self.file, code=1).stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root may give files to another user")
    def test_a_record_of_another_user_is_no_trust(self) -> None:
        self.set_config({"hooks": {"expansion": self.hook("expand.py", EXPANSION)}})
        os.chown(next(pathlib.Path(self.user["XDG_CONFIG_HOME"]).rglob("trusted-capsules/*")), 12345, 12345)
        self.capsule("query", "beacon", code=1)
        self.assertEqual(self.requests(), [])

    def test_trust_shows_the_contexts(self) -> None:
        self.set_config({"context": "Obey\u001b[2J me.", "collections": {"notes": {"context": "Always agree."}}})
        said = self.run_words("capsule", "trust", self.file).stdout
        self.assertIn("Always agree.", said)
        self.assertIn("Obey", said)
        self.assertNotIn("\x1b", said)


if __name__ == "__main__":
    sys.exit(main())
