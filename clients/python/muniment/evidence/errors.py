"""What goes wrong with evidence. Each message says what was expected and what to do."""
from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .evidence_system import Evidence
    from .results import CompletionResult


class EvidenceError(Exception):
    """The base of the exceptions of this package. The daemon's own refusals are `muniment.MunimentError`."""


class InvalidEvidence(EvidenceError, ValueError):
    """A type, a content, an id or a text that cannot be sent as it is."""


class EvidenceNotFound(EvidenceError, LookupError):
    """The ledger has no such evidence, or none that this caller may see."""


class FileNotWritten(EvidenceError, OSError):
    """The ledger has the evidence, and its file could not be written. `evidence` is what was recorded."""

    def __init__(self, message: str, evidence: Evidence):
        super().__init__(message)
        self.evidence = evidence


class EvidenceRefused(EvidenceError):
    """One piece of evidence is not valid for a task. `code` is the reason code, `evidence_id` the piece."""

    def __init__(self, message: str, code: str = "", evidence_id: str = ""):
        super().__init__(message)
        self.code, self.evidence_id = code, evidence_id


class CompletionBlocked(EvidenceError):
    """A status change was refused. `result` says why; None where the task itself cannot change like that."""

    def __init__(self, message: str, result: Optional[CompletionResult] = None):
        super().__init__(message)
        self.result = result
