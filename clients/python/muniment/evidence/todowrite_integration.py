"""CompletionValidator checks whether a todo can be completed; BlockingEnforcer prevents any other completion.

Requests for an opened task include the digest of the working tree at the store's `base_path`.
The daemon judges (task.validate, task.complete) and records each refusal. A subclass can only refuse more than the daemon:

    class CustomValidator(CompletionValidator):
        def _validate_evidence(self, evidence_id, todo):
            evidence = self.evidence_store.retrieve_evidence(evidence_id)
            if evidence.type == "code_review" and not evidence.content.get("approved"):
                return "the review did not approve"
            super()._validate_evidence(evidence_id, todo)
"""
from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from ..client import Json
from ..errors import ConnectionLost, MunimentError
from .errors import CompletionBlocked, EvidenceRefused, InvalidEvidence
from .evidence_system import EvidenceStore
from .results import COMPLETED, CompletionResult, Todo, TodoLike, ids_of, todo_of
from .tree import working_tree

REFUSED_EVENT = "x.muniment.validator_refused"
NO_RUN = "a task belongs to a run. Set MUNIMENT_RUN, open one with muniment.run(…), or pass run_id to EvidenceStore"
EDITED = "the file or the stored bytes of the evidence were edited. Record the evidence again"
NOT_BEGUN = frozenset({"pending", "todo", "cancelled", "deleted"})
TEXT_CHARACTERS_MAX = 1_000   # limit for the text of a hook


class CompletionValidator:
    """Judges evidence for a todo. `strict`: apply the strict policy; a request can tighten the policy but not loosen it."""

    def __init__(self, evidence_store: Optional[EvidenceStore] = None, *, strict: bool = False):
        self.evidence_store = evidence_store if evidence_store is not None else EvidenceStore()
        self.strict = strict
        self._judging = threading.local()   # the result that hooks of this thread read

    def validate(self, todo: TodoLike, evidence_ids: Optional[Sequence[str]] = None,
                 requires_evidence: Optional[bool] = None) -> CompletionResult:
        """Returns the daemon's decision after the hook for each piece. `evidence_ids` and `requires_evidence` default to the
        todo's. Raises InvalidEvidence for invalid arguments, MunimentError if the daemon does not answer."""
        known = _with(todo_of(todo), evidence_ids, requires_evidence)
        result = CompletionResult.of_reply(self.evidence_store.client.call("task.validate", **self.params_of(known)))
        return self._asked(result, known, todo)

    def validate_completion(self, todo: TodoLike, evidence_ids: Optional[Sequence[str]] = None,
                            requires_evidence: Optional[bool] = None) -> CompletionResult:
        """The same as validate."""
        return self.validate(todo, evidence_ids, requires_evidence)

    def _validate_evidence(self, evidence_id: str, todo: Any) -> Any:
        """The hook. A subclass refuses a piece by raising an exception or by returning False or a reason; None and True accept
        it. This implementation raises EvidenceRefused with the daemon's reason."""
        result: Optional[CompletionResult] = getattr(self._judging, "result", None)
        if result is None or evidence_id not in result.evidence_status:
            known = _with(todo_of(todo), [evidence_id], None)
            result = CompletionResult.of_reply(self.evidence_store.client.call("task.validate", **self.params_of(known)))
        status = result.evidence_status.get(evidence_id, {"valid": False})
        if not status["valid"]:
            raise EvidenceRefused(status.get("reason", "the daemon did not judge it"), status.get("code", ""), evidence_id)
        return None

    def params_of(self, todo: Todo) -> Json:
        """Returns the parameters of task.validate: the id of an opened task, or the text of any other todo."""
        params: Json = {"evidence_ids": todo.evidence_ids, **self.evidence_store.in_run()}
        if self.strict:
            params["strict"] = True
        if todo.task_id is not None:
            if "run_id" not in params:
                raise InvalidEvidence(NO_RUN)
            params.update(working_tree(self.evidence_store.base_path))
            return {**params, "task_id": todo.task_id, "requires_evidence": todo.requires_evidence}
        optional = {"type": todo.type, "required_type": todo.required_type}
        return {**params, "content": todo.content, "requires_evidence": todo.requires_evidence,
                **{name: value for name, value in optional.items() if value is not None}}

    def _asked(self, result: CompletionResult, todo: Todo, given: TodoLike) -> CompletionResult:
        """Returns the result after the hooks; without an overridden hook, the daemon's."""
        if type(self)._validate_evidence is CompletionValidator._validate_evidence:
            return result
        shown = todo if isinstance(given, (str, Mapping)) else given
        before = result
        self._judging.result = before
        try:
            for evidence_id in dict.fromkeys(todo.evidence_ids):
                if not before.evidence_status.get(evidence_id, {"valid": False})["valid"]:
                    continue   # already refused
                if (refusal := self._refusal(evidence_id, shown)) is not None:
                    result = result.refused("validator", *refusal, evidence_id)
        finally:
            self._judging.result = None
        if before.can_complete and not result.can_complete:
            self.record_refusal(type(self).__name__, result, todo)
        return result

    def _refusal(self, evidence_id: str, todo: Any) -> Optional[tuple[str, str]]:
        """Returns code and text of a refusal, or None. An unknown return value refuses, so that a hook cannot accept by mistake."""
        name = type(self).__name__
        try:
            answer = self._validate_evidence(evidence_id, todo)
        except ConnectionLost:
            raise
        except EvidenceRefused as error:
            return error.code or "refused_by_validator", str(error)[:TEXT_CHARACTERS_MAX]
        except Exception as error:   # any exception of a hook refuses the piece
            return "refused_by_validator", f"{name} refused it: {type(error).__name__}: {error}"[:TEXT_CHARACTERS_MAX]
        if answer is None or answer is True:
            return None
        if answer is False or answer == "":
            return "refused_by_validator", f"{name} refused it"
        if isinstance(answer, str):
            return "refused_by_validator", answer[:TEXT_CHARACTERS_MAX]
        return "refused_by_validator", f"{name} returned a {type(answer).__name__}. Expected None, True, False or a text"

    def record_refusal(self, by: str, result: CompletionResult, todo: Todo) -> None:
        """Records refusals by hooks in the run; the daemon records its own refusals."""
        if not self.evidence_store.run_id:
            return
        body = {"validator": by, "code": result.findings[-1]["code"], "reason": result.reason, "evidence_ids": todo.evidence_ids,
                **({"task_id": todo.task_id} if todo.task_id else {"content": todo.content})}
        with contextlib.suppress(MunimentError):   # an ended run cannot record it; the refusal remains in effect
            self.evidence_store.client.append(self.evidence_store.run_id, REFUSED_EVENT, body)


class BlockingEnforcer:
    """Allows the status "completed" only through the daemon's task.complete. Requires a run.

        enforcer = BlockingEnforcer(store)
        todo = Todo("Implement the login form")
        enforcer.enforce(todo, "pending", "in_progress")                     # opens the task
        evidence = store.add_evidence("test_output", output, "pytest")
        enforcer.enforce(todo, "in_progress", "completed", [evidence.id])    # completes it, or raises CompletionBlocked
    """

    def __init__(self, evidence_store: Optional[EvidenceStore] = None, validator: Optional[CompletionValidator] = None):
        if evidence_store is None:
            evidence_store = validator.evidence_store if validator is not None else EvidenceStore()
        self.evidence_store = evidence_store
        self.validator = validator if validator is not None else CompletionValidator(evidence_store)

    def open_task(self, todo: TodoLike) -> Todo:
        """Opens the todo's task; the same todo again is the same task. Its text and requirements are then fixed: a different
        requirement raises MunimentError `conflict` and is recorded as a violation."""
        known = todo_of(todo)
        run_id = self._run()
        known.task_id = known.task_id or _task_id_of(known.content)
        optional = {"type": known.type, "required_type": known.required_type, "workflow": known.workflow, **working_tree(self.evidence_store.base_path)}
        self.evidence_store.client.call("task.open", run_id=run_id, task_id=known.task_id, content=known.content,
                                        requires_evidence=known.requires_evidence,
                                        **{name: value for name, value in optional.items() if value is not None})
        if known is not todo and not isinstance(todo, (str, Mapping)):
            with contextlib.suppress(AttributeError):
                setattr(todo, "task_id", known.task_id)
        return known

    def can_change_status(self, todo: TodoLike, old: str, new: str, evidence_ids: Optional[Sequence[str]] = None) -> CompletionResult:
        """Returns whether the change would be allowed. Changes nothing, but a refusal is recorded."""
        known = _with(self._named(todo), evidence_ids, None)
        if (refused := self._refused_change(known, old, new)) is not None:
            return refused
        if new.lower() not in COMPLETED:
            return CompletionResult(True, f"{new} needs no evidence", {}, "pass", [], task_id=known.task_id, run_id=self._run())
        return self._without_edited(self.validator.validate(_shown(todo, known), known.evidence_ids), known.evidence_ids)

    def enforce(self, todo: TodoLike, old: str, new: str, evidence_ids: Optional[Sequence[str]] = None) -> CompletionResult:
        """Records the change: opens the task when work begins and completes it if `new` is "completed". Raises
        CompletionBlocked if it is refused. A Todo gets the new status."""
        if new.lower() not in COMPLETED:
            result = self.can_change_status(todo, old, new, evidence_ids)
            if result and new.lower() not in NOT_BEGUN:
                self._open_or_block(todo)
        else:
            result = self.complete(todo, evidence_ids)
        if not result:
            raise CompletionBlocked(result.reason, result)
        if isinstance(todo, Todo):
            todo.status = new
        return result

    def complete(self, todo: TodoLike, evidence_ids: Optional[Sequence[str]] = None) -> CompletionResult:
        """Completes an opened task or returns the reasons of a refusal. Hooks run first, since a completion cannot be undone."""
        known = _with(self._named(todo), evidence_ids, None)
        if self._ledger_task(known) is None:
            return self._not_opened(known)
        edited = self.detect_tampering(known.evidence_ids)
        hooked = type(self.validator)._validate_evidence is not CompletionValidator._validate_evidence
        if edited or hooked:
            judged = self._without_edited(self.validator.validate(_shown(todo, known), known.evidence_ids), known.evidence_ids, edited)
            if not judged:
                return judged
        params = self.validator.params_of(known)
        try:
            reply = self.evidence_store.client.again(lambda: self.evidence_store.client.call("task.complete", **params))
        except MunimentError as error:
            if error.code == "conflict":   # already completed with other evidence
                return self._refusal(known, "completed_before", str(error))
            raise
        result = CompletionResult.of_reply(reply)
        if result.can_complete and not result.completed:
            raise CompletionBlocked("the daemon judged the task and did not complete it", result)
        return result

    def detect_tampering(self, evidence_ids: Sequence[str]) -> list[str]:
        """Returns existing pieces whose stored bytes or file differ from the record. The daemon records each as a violation."""
        store = self.evidence_store
        known = [one for one in dict.fromkeys(ids_of(evidence_ids)) if store.get_evidence(one) is not None]
        return [one for one in known if not store.verify_integrity(one)]

    def detect_direct_change(self, todo: TodoLike) -> bool:
        """Returns whether the todo claims to be completed but the log has no completion. The violation is recorded."""
        known = self._named(todo)
        if known.status.lower() not in COMPLETED or self._is_completed(known):
            return False
        item = {"id": known.task_id, "text": known.content, "status": "completed"}
        self.evidence_store.client.append(self._run(), "plan.updated", {"items": [item]})
        return True

    def _open_or_block(self, todo: TodoLike) -> None:
        try:
            self.open_task(todo)
        except MunimentError as error:
            if error.code == "conflict":   # the task was opened with another requirement; the daemon has recorded the violation
                raise CompletionBlocked(str(error)) from error
            raise

    def _run(self) -> str:
        if not self.evidence_store.run_id:
            raise InvalidEvidence(NO_RUN)
        return self.evidence_store.run_id

    def _named(self, todo: TodoLike) -> Todo:
        known = todo_of(todo)
        return known if known.task_id else dataclasses.replace(known, task_id=_task_id_of(known.content))

    def _ledger_task(self, todo: Todo) -> Optional[Json]:
        found = self.evidence_store.client.call("task.list", run_id=self._run(), task_id=todo.task_id)["tasks"]
        return found[0] if found else None

    def _is_completed(self, todo: Todo) -> bool:
        task = self._ledger_task(todo)
        return task is not None and task["status"] == "completed"

    def _refused_change(self, todo: Todo, old: str, new: str) -> Optional[CompletionResult]:
        task = self._ledger_task(todo)
        completes = new.lower() in COMPLETED
        if task is None and completes:
            return self._not_opened(todo)
        completed = task is not None and task["status"] == "completed"
        if completed and not completes:
            return self._refusal(todo, "completed_before", f"task {todo.task_id} is completed and cannot change. Open another task")
        if old.lower() in COMPLETED and not completed:
            return self._refusal(todo, "direct_change", f"the todo claims to be {old}, but the log has no completion of task "
                                 f"{todo.task_id}. Complete it with evidence first")
        return None

    def _not_opened(self, todo: Todo) -> CompletionResult:
        return self._refusal(todo, "not_opened", f"no task {todo.task_id} in run {self._run()}, so the start of its work is unknown. Open it "
                             "first: enforcer.enforce(todo, \"pending\", \"in_progress\")")

    def _refusal(self, todo: Todo, code: str, text: str) -> CompletionResult:
        """Returns a refusal without asking the daemon, because there is no task to judge."""
        finding: Json = {"check": "timing", "code": code, "blocks": True, "text": text}
        result = CompletionResult(False, text, {}, "fail", [finding], task_id=todo.task_id, run_id=self.evidence_store.run_id)
        self.validator.record_refusal(type(self).__name__, result, todo)
        return result

    def _without_edited(self, result: CompletionResult, evidence_ids: Sequence[str],
                        edited: Optional[list[str]] = None) -> CompletionResult:
        for one in self.detect_tampering(evidence_ids) if edited is None else edited:
            result = result.refused("integrity", "evidence_edited", EDITED, one)
        return result


def _with(todo: Todo, evidence_ids: Optional[Sequence[str]], requires_evidence: Optional[bool]) -> Todo:
    """Returns a copy of the todo with the given values; the caller's object is unchanged."""
    changed = dataclasses.replace(todo, evidence_ids=ids_of(todo.evidence_ids if evidence_ids is None else evidence_ids))
    if requires_evidence is not None:
        changed.requires_evidence = requires_evidence
    return todo_of(changed)


def _shown(given: TodoLike, known: Todo) -> Any:
    """Returns the argument of a hook: the caller's object, or a Todo if that is a text or has no task yet."""
    return known if isinstance(given, (str, Mapping)) or getattr(given, "task_id", None) is None else given


def _task_id_of(content: str) -> str:
    """Derives the task id from the text, so that the same text is the same task of a run."""
    return "todo-" + hashlib.sha256(content.encode()).hexdigest()[:16]
