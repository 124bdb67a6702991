"""Todos and the results of judging them."""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Optional, Union

from ..client import Json
from .errors import InvalidEvidence

CONTENT_CHARACTERS_MAX = 16_384   # limit for the text of a task
COMPLETED = frozenset({"completed", "complete", "done", "finished", "closed"})


@dataclasses.dataclass
class Todo:
    """A task in an agent's list. `task_id`: id of the daemon's task after it is opened."""

    content: str
    status: str = "pending"
    requires_evidence: bool = True
    evidence_ids: list[str] = dataclasses.field(default_factory=list)
    task_id: Optional[str] = None
    type: Optional[str] = None            # a section of the completion policy
    required_type: Optional[str] = None   # required type of evidence
    workflow: Optional[str] = None        # digest of the only blind workflow that completes it (digest_of_workflow)


TodoLike = Union[str, Mapping[str, Any], Todo, Any]


def todo_of(value: TodoLike) -> Todo:
    """Converts a text, a mapping with `content`, or any object with the attribute `content`. Raises InvalidEvidence."""
    if isinstance(value, Todo):
        todo = value
    elif isinstance(value, str):
        todo = Todo(value)
    else:
        names = [field.name for field in dataclasses.fields(Todo)]
        if isinstance(value, Mapping):
            found = {name: value[name] for name in names if name in value}
        else:
            found = {name: getattr(value, name) for name in names if hasattr(value, name)}
        if "content" not in found:
            raise InvalidEvidence(f"todo: a {type(value).__name__} without content. Expected a text, or an object with content")
        todo = Todo(**found)
    check_text("content", todo.content, CONTENT_CHARACTERS_MAX)
    if not isinstance(todo.requires_evidence, bool):
        raise InvalidEvidence(f"requires_evidence: expected True or False, not {todo.requires_evidence!r}")
    return todo


def ids_of(evidence_ids: Any) -> list[str]:
    """Returns a list of ids. A plain text is refused, since it would be treated as a list of characters."""
    if evidence_ids is None:
        return []
    if isinstance(evidence_ids, (str, bytes)) or not all(isinstance(one, str) for one in evidence_ids):
        raise InvalidEvidence("evidence_ids: expected a list of ids, such as [evidence.id]")
    return list(evidence_ids)


def check_text(name: str, value: Any, characters_max: int) -> str:
    if not isinstance(value, str) or not value or len(value) > characters_max:
        raise InvalidEvidence(f"{name}: expected a text of 1 to {characters_max:,} characters")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidEvidence(f"{name}: the text has a lone surrogate at {error.start}") from None
    return value


@dataclasses.dataclass(frozen=True)
class CompletionResult:
    """The daemon's decision after the hooks. True if the task can be completed."""

    can_complete: bool
    reason: str
    evidence_status: dict[str, Json]      # id → {exists, valid, strong, type?, actor?, code?, reason?}
    verdict: str                          # pass, weak, fail, tampered or inconclusive
    findings: list[Json]                  # {check, code, blocks, evidence_id?, text}
    completed: bool = False
    run_id: Optional[str] = None
    task_id: Optional[str] = None

    def __bool__(self) -> bool:
        return self.can_complete

    @classmethod
    def of_reply(cls, reply: Json) -> CompletionResult:
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in reply.items() if name in known})

    def as_dict(self) -> Json:
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}

    def refused(self, check: str, code: str, text: str, evidence_id: str = "") -> CompletionResult:
        """Returns the result with an additional blocking finding; a result can only become stricter."""
        finding: Json = {"check": check, "code": code, "blocks": True, "text": text}
        status = dict(self.evidence_status)
        if evidence_id:
            finding["evidence_id"] = evidence_id
            before = status.get(evidence_id, {"exists": False, "valid": True, "strong": False})
            if before["valid"]:   # otherwise the daemon's reason is kept
                status[evidence_id] = {**before, "valid": False, "code": code, "reason": text}
        verdict = self.verdict if not self.can_complete else "tampered" if code == "evidence_edited" else "fail"
        return dataclasses.replace(self, can_complete=False, verdict=verdict, evidence_status=status,
                                   reason=text if self.can_complete else self.reason, findings=[*self.findings, finding])
