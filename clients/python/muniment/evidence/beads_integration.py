"""BeadsClient: issues as tasks of a run, which close only with evidence.

    beads = BeadsClient()
    issue_id = beads.create_task("Complete feature X")
    beads.attach_evidence(issue_id, evidence_id)
    beads.close_issue(issue_id)      # raises CompletionBlocked if the evidence is insufficient

If the program `bd` of Beads is found, the issues are those of Beads, and `muniment bead create | attach | close` calls bd. Without it,
issues and their evidence are stored in the daemon's log only.
"""
from __future__ import annotations

import os
import shutil
import uuid
from typing import Optional, Union

from ..client import Json
from .command import command_reply
from .errors import CompletionBlocked, EvidenceError, EvidenceNotFound, InvalidEvidence
from .evidence_system import EvidenceStore
from .results import CONTENT_CHARACTERS_MAX, CompletionResult, Todo, check_text
from .todowrite_integration import BlockingEnforcer

ATTACHED_EVENT = "x.muniment.evidence_attached"
AGENT = "beads"
BD_TIMEOUT_S = 60
ID_CHARACTERS_MAX = 256


class BeadsClient:
    """Manages issues of the store's run; without a run, the first issue chooses one."""

    def __init__(self, evidence_store: Optional[EvidenceStore] = None, *, enforcer: Optional[BlockingEnforcer] = None,
                 bd: Union[str, bool, None] = None, timeout_s: int = BD_TIMEOUT_S):
        """`bd`: the program of Beads; False: none; True: required; None: MUNIMENT_BD or `bd` in PATH, if it exists. bd runs in the
        store's `base_path`. `timeout_s`: time limit of a call of bd. Raises EvidenceError if a required program is missing."""
        if evidence_store is None:
            evidence_store = enforcer.evidence_store if enforcer is not None else EvidenceStore()
        self.evidence_store = evidence_store
        self.enforcer = enforcer if enforcer is not None else BlockingEnforcer(evidence_store)
        self.bd, self.timeout_s = _program(bd), timeout_s

    def create_task(self, title: str, *, requires_evidence: bool = True, required_type: Optional[str] = None) -> str:
        """Opens an issue and returns its id."""
        check_text("title", title, CONTENT_CHARACTERS_MAX)
        if self.bd is not None:
            words = [*([] if requires_evidence else ["--no-evidence-required"]),
                     *(["--required-type", required_type] if required_type is not None else [])]
            issue_id: str = self._called("create", *words, "--", title)["issue"]
            return issue_id
        if not self.evidence_store.run_id:
            self._start_run()
        todo = Todo(title, requires_evidence=requires_evidence, required_type=required_type, task_id=f"bd-{uuid.uuid4().hex[:12]}")
        task_id = self.enforcer.open_task(todo).task_id
        assert task_id is not None
        return task_id

    def attach_evidence(self, issue_id: str, evidence_id: str) -> None:
        """Raises EvidenceNotFound if the ledger lacks the evidence or, without bd, the run lacks the issue."""
        _check_id(issue_id)
        if self.bd is not None:
            self.evidence_store.retrieve_evidence(evidence_id)
            self._called("attach", "--", issue_id, evidence_id)
            return
        self._task(issue_id)
        self.evidence_store.retrieve_evidence(evidence_id)
        self.evidence_store.client.append(self._run(), ATTACHED_EVENT, {"task_id": issue_id, "evidence_id": evidence_id})

    def attached(self, issue_id: str) -> list[str]:
        """Returns the ids of the attached evidence in order, without duplicates."""
        _check_id(issue_id)
        if self.bd is not None:
            return list(self._called("status", "--", issue_id)["evidence"])
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

    def close_issue(self, issue_id: str, *, requires_evidence: bool = True) -> CompletionResult:
        """Completes the issue with its evidence, then closes it in bd. `requires_evidence`: False accepts an issue that was created
        without this need and has none. Raises CompletionBlocked. If only bd fails, MunimentError is raised and the call can be
        repeated."""
        _check_id(issue_id)
        if self.bd is None:
            return self._complete(issue_id, self.attached(issue_id), requires_evidence)
        found = self._called("status", "--", issue_id)
        issue_id = found["issue"]
        if "run_id" not in found:
            raise EvidenceNotFound(f"issue {issue_id!r:.100} has no task in the log. Attach evidence to it first")
        before = self.evidence_store._run_id
        self.evidence_store.use_run(found["run_id"])   # the task is in the run in which it was opened first
        try:
            result = self._complete(issue_id, found["evidence"], requires_evidence)
            self._called("close", *([] if requires_evidence else ["--no-evidence-required"]), "--", issue_id)
        finally:
            self.evidence_store.use_run(before)
        return result

    def _complete(self, issue_id: str, attached: list[str], requires_evidence: bool) -> CompletionResult:
        task = self._task(issue_id)
        evidence_ids = task.get("evidence_ids") or attached
        if requires_evidence and not evidence_ids and not task["requires_evidence"]:
            raise CompletionBlocked(f"issue {issue_id} has no evidence, and was created without this need. Attach evidence, or call "
                                    "close_issue(issue_id, requires_evidence=False)")
        todo = Todo(task.get("content", "(erased)"), requires_evidence=task["requires_evidence"], task_id=issue_id)
        result = self.enforcer.complete(todo, evidence_ids)
        if not result:
            raise CompletionBlocked(result.reason, result)
        return result

    def _called(self, command: str, *words: str) -> Json:
        """Runs `muniment bead COMMAND`. Its run becomes the store's if that has none."""
        store = self.evidence_store
        run = ["--run", store.run_id] if store.run_id else []
        line = ["bead", command, "--no-autostart", "--bd", str(self.bd), "--timeout", str(self.timeout_s), *run, *words]
        reply = command_reply(line, data=store.data, folder=store.base_path)
        if not store.run_id and "run_id" in reply:
            store.use_run(reply["run_id"])
        return reply

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


def _check_id(issue_id: str) -> None:
    if "\0" in check_text("issue_id", issue_id, ID_CHARACTERS_MAX):
        raise InvalidEvidence("issue_id: the text has a NUL")


def _program(bd: Union[str, bool, None]) -> Optional[str]:
    """Returns the path of bd; None: issues are stored in the log only."""
    if bd is False:
        return None
    name = bd if isinstance(bd, str) else os.environ.get("MUNIMENT_BD") or "bd"
    found = shutil.which(name)
    if found is None and bd is not None:
        raise EvidenceError(f"no program {name}. Install Beads (https://github.com/steveyegge/beads), or use BeadsClient(bd=False)")
    return found
