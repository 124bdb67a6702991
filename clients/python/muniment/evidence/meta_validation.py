"""MetaValidator: Muniment checks the criteria of its own completion.

    report = MetaValidator().generate_completion_report()
    assert report["summary"]["all_criteria_met"], report["criteria"]
"""
from __future__ import annotations

from typing import Optional

from ..client import Json
from ..place import Path
from .command import command_reply


class MetaValidator:
    """Runs `muniment doctor --self` against the running daemon. `data`: data folder or socket (default: where the command line finds
    the daemon)."""

    def __init__(self, data: Optional[Path] = None, *, program: str = "muniment"):
        self.data, self.program = data, program

    def generate_completion_report(self) -> Json:
        """Checks the seven criteria in a new run, and returns {run_id, criteria: [{number, name, met, detail}], summary:
        {total_criteria, met, completion_percentage, all_criteria_met}, evidence_id}. `evidence_id` is absent if the report could not be
        recorded. Raises EvidenceError if `muniment` is not installed, and MunimentError `unavailable` if no daemon answers."""
        return command_reply(["doctor", "--self"], data=self.data, program=self.program)
