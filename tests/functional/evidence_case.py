"""Base class of evidence tests: each test has a run, a folder and a store of muniment.evidence."""
from __future__ import annotations

import contextlib
import json
import pathlib
import tempfile
from typing import Any, Iterator, Optional

from support import DaemonCase

from muniment.evidence import CompletionBlocked, CompletionResult, Evidence, EvidenceStore

LOGIN = "Implement the login form with password validation"
TESTED = ("pytest tests/test_login.py: test_login_form_accepts_password, test_login_form_refuses_wrong_password and "
          "test_password_validation_needs_12_characters pass after validate_password() checks the length; 3 passed in 0.41s")
OTHER = ("pytest tests/test_export.py: test_csv_export_quotes_commas and test_csv_export_of_no_rows pass after the export "
         "writes its header first; 2 passed in 0.17s")
REVIEW = {"reviewer": "human", "approved": True}


class EvidenceCase(DaemonCase):
    shared = True

    def setUp(self) -> None:
        super().setUp()
        self.base = pathlib.Path(tempfile.mkdtemp(dir=self.daemon.folder))
        self.texts = 0
        self.store = self.store_of(self.run_id)

    def store_of(self, run_id: Optional[str] = None, **more: Any) -> EvidenceStore:
        store = EvidenceStore(self.base, data=self.daemon.socket, run_id=run_id, **more)
        self.addCleanup(store.close)
        return store

    def text(self, tested: str = TESTED) -> str:
        """Returns a text that differs in every test and call: the same text completes only one task."""
        self.texts += 1
        return f"{tested} ({'again ' * self.texts}in {self._testMethodName.replace('_', ' ')})"

    def added(self, content: Any = None, type: str = "test_output", **more: Any) -> Evidence:
        return self.store.add_evidence(type, self.text() if content is None else content, "pytest", **more)

    def file_of(self, evidence: Evidence) -> pathlib.Path:
        return self.base / ".beads" / "evidence" / f"{evidence.id}.json"

    def edit(self, evidence: Evidence, **changed: Any) -> None:
        file = self.file_of(evidence)
        file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))

    def violations(self, run_id: Optional[str] = None) -> list[str]:
        self.note(run_id)   # events keep their order: everything recorded earlier is in the log now
        return [event["body"]["kind"] for event in self.events(run_id, types=["violation.detected"])]

    def types(self) -> list[str]:
        return [event["type"] for event in self.events()]

    @contextlib.contextmanager
    def blocked(self, *codes: str) -> Iterator[None]:
        with self.assertRaises(CompletionBlocked) as caught:
            yield
        if codes:
            assert caught.exception.result is not None
            self.assertLessEqual(set(codes), self.codes(caught.exception.result))

    @staticmethod
    def codes(result: CompletionResult) -> set[str]:
        return {finding["code"] for finding in result.findings if finding["blocks"]}
