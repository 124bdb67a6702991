"""AgentAPI: an agent's queries about its evidence, with plain values as arguments and dicts as results."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from ..client import Json
from ..place import Path
from .evidence_system import EvidenceStore
from .three_agent_workflow import DEFAULT_SPEC, WorkflowResult, run_specification
from .todowrite_integration import CompletionValidator

STALE_DEPENDENCY = "dependency_stale"   # like evidence that is outdated itself, it is not damaged


class AgentAPI:
    """Raises InvalidEvidence for invalid arguments and MunimentError if the daemon does not answer; a refused completion is a
    result."""

    def __init__(self, evidence_store: Optional[EvidenceStore] = None, validator: Optional[CompletionValidator] = None, *,
                 base_path: Optional[Path] = None):
        if evidence_store is None:
            evidence_store = validator.evidence_store if validator is not None else EvidenceStore(base_path)
        self.evidence_store = evidence_store
        self.validator = validator if validator is not None else CompletionValidator(evidence_store)

    def validate_todo_completion(self, content: str, evidence_ids: Optional[Sequence[str]] = None, requires_evidence: bool = True) -> Json:
        """{can_complete, reason, evidence_status, verdict, findings, completed, run_id?}. `evidence_status` by id: {exists, valid,
        strong, type?, actor?, code?, reason?}. Completes nothing."""
        return self.validator.validate(content, evidence_ids or [], requires_evidence).as_dict()

    def validate_code(self, task: str, *, spec: Optional[Path] = None, task_id: Optional[str] = None) -> WorkflowResult:
        """Runs the project's blind workflow, `.muniment/workflow.toml`, with this text of the task. `task_id`: the task of the run that the
        evidence supports. Raises EvidenceError without the command `muniment`."""
        store = self.evidence_store
        return run_specification(spec if spec is not None else store.base_path / DEFAULT_SPEC, task=task, data=store.data, run_id=store.run_id,
                                 task_id=task_id)

    def check_evidence(self, evidence_id: str) -> Json:
        """The result of `EvidenceStore.check_evidence` with `valid`: the evidence exists, it and its file are intact, and no piece
        that it depends on is missing or damaged."""
        found = self.evidence_store.check_evidence(evidence_id)
        valid = found["exists"] and found["intact"] and self.evidence_store.verify_integrity(evidence_id)
        if found["intact"] and not valid:
            found["reason"] = f"its file was edited: {self.evidence_store.path_of(evidence_id)}. The violation is recorded"
        broken = found.get("broken_dependency", {})
        return {**found, "valid": valid and broken.get("code", STALE_DEPENDENCY) == STALE_DEPENDENCY}
