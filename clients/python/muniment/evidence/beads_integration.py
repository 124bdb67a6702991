"""BeadsClient: issues as tasks of a run, which close only with evidence.

    beads = BeadsClient()
    issue_id = beads.create_task("Complete feature X")
    beads.attach_evidence(issue_id, evidence_id)
    beads.close_issue(issue_id)      # raises CompletionBlocked if the evidence is insufficient

Issues and their evidence are stored in the daemon's log; no other program is called.
"""
from __future__ import annotations

import uuid
from typing import Optional

from ..client import Json
from .errors import CompletionBlocked, EvidenceNotFound, InvalidEvidence
from .evidence_system import EvidenceStore
from .results import CONTENT_CHARACTERS_MAX, CompletionResult, Todo, check_text
from .todowrite_integration import BlockingEnforcer

ATTACHED_EVENT = "x.muniment.evidence_attached"
AGENT = "beads"


class BeadsClient:
    """Manages issues of the store's run; without a run, the first issue starts one."""

    def __init__(self, evidence_store: Optional[EvidenceStore] = None, *, enforcer: Optional[BlockingEnforcer] = None):
        if evidence_store is None:
            evidence_store = enforcer.evidence_store if enforcer is not None else EvidenceStore()
        self.evidence_store = evidence_store
        self.enforcer = enforcer if enforcer is not None else BlockingEnforcer(evidence_store)

    def create_task(self, title: str, *, requires_evidence: bool = True, required_type: Optional[str] = None) -> str:
        """Opens an issue and returns its id."""
        check_text("title", title, CONTENT_CHARACTERS_MAX)
        if not self.evidence_store.run_id:
            self._start_run()
        todo = Todo(title, requires_evidence=requires_evidence, required_type=required_type, task_id=f"bd-{uuid.uuid4().hex[:12]}")
        task_id = self.enforcer.open_task(todo).task_id
        assert task_id is not None
        return task_id

    def attach_evidence(self, issue_id: str, evidence_id: str) -> None:
        """Raises EvidenceNotFound if the ledger lacks the evidence or the run lacks the issue."""
        self._task(issue_id)
        self.evidence_store.retrieve_evidence(evidence_id)
        self.evidence_store.client.append(self._run(), ATTACHED_EVENT, {"task_id": issue_id, "evidence_id": evidence_id})

    def attached(self, issue_id: str) -> list[str]:
        """Returns the ids of the attached evidence in order, without duplicates."""
        ids: dict[str, None] = {}
        cursor: Json = {}
        while True:
            page = self.evidence_store.client.call("event.list", run_id=self._run(), types=[ATTACHED_EVENT], **cursor)
            for event in page["events"]:
                body = event.get("body") or {}
                if body.get("task_id") == issue_id:
                    ids[str(body.get("evidence_id"))] = None
            if "cursor" not in page:
                return list(ids)
            cursor = {"cursor": page["cursor"]}

    def close_issue(self, issue_id: str) -> CompletionResult:
        """Completes the issue with its evidence. Raises CompletionBlocked."""
        task = self._task(issue_id)
        todo = Todo(task.get("content", "(erased)"), requires_evidence=task["requires_evidence"], task_id=issue_id)
        result = self.enforcer.complete(todo, self.attached(issue_id))
        if not result:
            raise CompletionBlocked(result.reason, result)
        return result

    def _task(self, issue_id: str) -> Json:
        found = self.evidence_store.client.call("task.list", run_id=self._run(), task_id=issue_id)["tasks"]
        if not found:
            raise EvidenceNotFound(f"there is no issue {issue_id!r:.100} in run {self._run()}. Create it: beads.create_task(title)")
        task: Json = found[0]
        return task

    def _run(self) -> str:
        if not self.evidence_store.run_id:
            raise InvalidEvidence("the issues have no run. Set MUNIMENT_RUN, or create an issue first")
        return self.evidence_store.run_id

    def _start_run(self) -> None:
        client = self.evidence_store.client
        key = {"idempotency_key": str(uuid.uuid4())}
        started = client.again(lambda: client.call("run.start", agent={"name": AGENT}, client="muniment (Python)", _meta=key))
        self.evidence_store.use_run(started["run_id"])
