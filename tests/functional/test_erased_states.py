"""Tests of snapshot states: an erasure deletes those that contain erased content; the verifier reports others that
are missing, and detects substituted reads."""
from __future__ import annotations

import json
import subprocess
from typing import Any

from support import BUILD, main
from test_redact import SECRET, Redacting

PAST = "SET session_replication_role = replica; "


class States(Redacting):
    def test_a_large_state_by_its_own_file(self) -> None:
        for by in ("artifact_id", "seq"):
            with self.subTest(by=by):
                run_id = self.new_run(by)
                self.client.append(run_id, "state.patched", {"format": "merge", "patch": {"who": f"{SECRET} " * 4_000}}, spill=True)
                self.call("snapshot.take", run_id=run_id)
                [stored] = [event for event in self.events(run_id) if event["type"] == "artifact.stored" and event["body"].get("metadata", {}).get("what") != "patch"][-1:]
                done = self.redact(**({"seq": stored["seq"]} if by == "seq" else {"artifact_id": stored["body"]["artifact_id"]}))
                self.assertEqual(done["snapshots"], 1)
                self.assert_verified()
                self.assertIn(SECRET, self.call("run.rehydrate", run_id=run_id)["state"]["working"]["who"])
                bundle = self.daemon.folder / f"{by}.muniment.tar.zst"
                subprocess.run([BUILD / "muniment", "--data", self.daemon.data, "audit", "export", run_id, "-o", bundle], check=True, capture_output=True, timeout=60)
                self.redact(run_id=run_id)
        self.assert_gone()

    def verified(self) -> tuple[int, dict[str, Any]]:
        self.followed()
        done = subprocess.run([BUILD / "muniment-verify", "--data", self.daemon.data, "--unsigned-ok", "--json"], capture_output=True, text=True, timeout=120)
        return done.returncode, json.loads(done.stdout)

    def test_a_state_that_no_erasure_took_is_missed(self) -> None:
        run_id = self.new_run("missed")
        seq = self.client.append(run_id, "state.patched", {"format": "merge", "patch": {"a": 1}})["seq"]
        self.redact(seq=seq)
        self.note(run_id, n=1)
        taken = self.call("snapshot.take", run_id=run_id)["seq"]
        self.assertEqual(self.verified()[0], 0)
        column = "salt, state, state_hash"
        where = f"FROM snapshot WHERE seq = {taken}"
        self.daemon.sql(f"CREATE TABLE kept AS SELECT {column} {where}")
        self.addCleanup(self.daemon.sql, "DROP TABLE kept")
        for change in ("state = NULL", "state = NULL, salt = NULL, state_hash = decode(repeat('0', 64), 'hex')", "state = NULL, salt = NULL"):
            with self.subTest(change=change):
                self.daemon.sql(PAST + f"UPDATE snapshot SET {change} WHERE seq = {taken}")
                code, report = self.verified()
                self.assertEqual((code, {finding["check"] for finding in report["findings"]}), (1, {"snapshot_hash"}), report["findings"])
                self.daemon.sql(PAST + f"UPDATE snapshot s SET ({column}) = (SELECT {column} FROM kept) WHERE seq = {taken}")
        self.assertEqual(self.verified()[0], 0)

    def test_what_would_be_called_in_the_place_of_postgres_own(self) -> None:
        made = {"function public.mod": ("CREATE FUNCTION public.mod(bigint, integer) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT -1::bigint'",
                                        "DROP FUNCTION public.mod(bigint, integer)"),
                "operator public.=": ("CREATE FUNCTION public.never(oid, regclass) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT false'; "
                                      "CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = public.never)",
                                      "DROP OPERATOR public.= (oid, regclass); DROP FUNCTION public.never(oid, regclass)")}
        for name, (make, drop) in made.items():
            with self.subTest(name=name):
                self.daemon.sql(make)
                try:
                    code, report = self.verified()
                finally:
                    self.daemon.sql(drop)
                self.assertEqual((code, report["verdict"]), (1, "tampered"))
                self.assertTrue(any(name in finding["actual"] for finding in report["findings"]), report["findings"])
        self.daemon.sql("CREATE FUNCTION public.own_helper(text) RETURNS text LANGUAGE sql AS 'SELECT $1'")
        self.addCleanup(self.daemon.sql, "DROP FUNCTION public.own_helper(text)")
        self.assertEqual(self.verified()[0], 0, "a function of somebody's own, which nothing here calls")

    def test_settings_of_the_database_change_no_verdict(self) -> None:
        for setting in ("quote_all_identifiers = on", "intervalstyle = 'iso_8601'", "standard_conforming_strings = off", "row_security = off",
                        "statement_timeout = '1ms'", "datestyle = 'German'", "timezone = 'Asia/Tokyo'", "bytea_output = 'escape'"):
            with self.subTest(setting=setting):
                name = setting.split(" ")[0]
                self.daemon.sql(f"ALTER DATABASE muniment SET {setting}")
                try:
                    code, report = self.verified()
                finally:
                    self.daemon.sql(f"ALTER DATABASE muniment RESET {name}")
                self.assertEqual((code, report["findings"]), (0, []), report.get("problem"))


if __name__ == "__main__":
    main()
