"""No value over 64 KB in any column of any table, after everything that is large was sent in every way there is."""
from __future__ import annotations

from support import DaemonCase, main, muniment

import pgcopy


class NoLargeValue(DaemonCase):
    def test_every_column_of_every_table(self) -> None:
        large = "\u00fc" * 40_000
        attempts = [
            lambda: self.client.append(self.run_id, "tool.returned", {"call_id": "c", "status": "ok", "content": [{"type": "text", "content": large}]}),
            lambda: self.client.append(self.run_id, "x.test.a", {"t": "a" * 61_430}, spill=False),
            lambda: self.client.append(self.run_id, "state.patched", {"format": "merge", "patch": {"t": large}}),
            lambda: self.call("manifest.put", run_id=self.run_id, manifest={"t": "a" * 61_000}),
            lambda: self.client.put(self.run_id, b"a" * 500_000, metadata={"t": "a" * 8_000}),
            lambda: self.client.put(self.run_id, b"a" * 500_000, metadata={"t": "a" * 9_000}),
            lambda: self.call("run.annotate", run_id=self.run_id, labels={f"k{i}": "v" * 1000 for i in range(60)}),
            lambda: self.call("run.annotate", run_id=self.run_id, note="n" * 60_000),
            lambda: self.call("claim.record", run_id=self.run_id, text="c" * 60_000, pointers=[f"run://{self.run_id}"]),
            lambda: self.call("claim.record", run_id=self.run_id, text="c", pointers=[f"run://{self.run_id}"] * 1000),
            lambda: self.call("evidence.record", run_id=self.run_id, type="note", content={"text": "e" * 60_000}),
            lambda: self.call("run.start", run_id=f"{self.run_id}.goal", agent={"name": "a" * 200}, goal="g" * 60_000),
            lambda: self.call("command.start", run_id=self.run_id, argv=["a" * 50_000], cwd="/", env={}),
            lambda: self.call("snapshot.take", run_id=self.run_id),
            lambda: self.call("run.end", run_id=self.run_id, outcome="success", summary="s" * 60_000),
        ]
        taken = 0
        for attempt in attempts:
            try:
                attempt()
                taken += 1
            except muniment.MunimentError as error:
                self.assertIn(error.code, ("too_large", "invalid_argument"), error)
        self.assertGreater(taken, 8)
        self.daemon.wait_healthy()
        status = self.followed()
        self.assertEqual(pgcopy.oversized(status["database"], 65_536), [])
        # The scan can see one: the largest value there is lies just below the limit.
        self.assertTrue(pgcopy.oversized(status["database"], 61_000))


if __name__ == "__main__":
    main()
