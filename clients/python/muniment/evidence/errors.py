"""Exceptions of the evidence package. Each message names the expected value and the next step."""
from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .evidence_system import Evidence
    from .results import CompletionResult


class EvidenceError(Exception):
    """Base of the exceptions of this package. Refusals by the daemon are `muniment.MunimentError`."""


class InvalidEvidence(EvidenceError, ValueError):
    """An invalid type, content, id or text."""


class EvidenceNotFound(EvidenceError, LookupError):
    """The ledger has no such evidence, or this caller may not read it."""


class FileNotWritten(EvidenceError, OSError):
    """The evidence was recorded, but its file could not be written. `evidence`: the recorded evidence."""

    def __init__(self, message: str, evidence: Evidence):
        super().__init__(message)
        self.evidence = evidence


class EvidenceRefused(EvidenceError):
    """A piece of evidence is not valid for a task. `code`: the reason code; `evidence_id`: the piece."""

    def __init__(self, message: str, code: str = "", evidence_id: str = ""):
        super().__init__(message)
        self.code, self.evidence_id = code, evidence_id


class CompletionBlocked(EvidenceError):
    """A status change was refused. `result` has the reasons; None if the transition itself is not allowed."""

    def __init__(self, message: str, result: Optional[CompletionResult] = None):
        super().__init__(message)
        self.result = result
