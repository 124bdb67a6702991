"""Evidence completes one task also if two runs complete their tasks at the same moment."""
from __future__ import annotations

from support import main
from test_completion import TESTED
from test_send_order import AGENT, Held

HELD_AT = "task.judged"


class TwoRuns(Held):
    """Failpoints hold both completions after they were judged."""

    def test_evidence_of_one_run_completes_one_task(self) -> None:
        self.begin(f"{HELD_AT}@1+")
        evidence = self.call("evidence.record", run_id=self.run_id, type="test_output", content={"text": TESTED})["evidence_id"]
        raws = {self.run_id: self.raw(), self.call("run.start", agent=AGENT)["run_id"]: self.raw()}
        for run, raw in raws.items():
            task = self.call("task.open", run_id=run, content="Fix the off-by-one in pagination")["task_id"]
            raw.request("task.complete", run_id=run, task_id=task, evidence_ids=[evidence])
        self.reached(HELD_AT, 2)
        self.release()
        answers = sorted((raw.line()["result"] for raw in raws.values()), key=lambda one: bool(one["completed"]))
        self.assertEqual([one["completed"] for one in answers], [False, True])
        self.assertIn("duplicate: this evidence, or the same content, completed task", answers[0]["reason"])


if __name__ == "__main__":
    main()
