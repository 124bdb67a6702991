"""Evidence of an agent's work: a task can only be completed with evidence (docs/evidence.md).

    from muniment.evidence import AgentAPI, EvidenceStore

    store = EvidenceStore()
    evidence = store.add_evidence(type="test_output", content="12 passed in 0.4 s: test_login.py", validator_id="pytest")
    result = AgentAPI(store).validate_todo_completion("Test the login", [evidence.id], requires_evidence=True)
    print(result["can_complete"], result["reason"])

`evidence_system.py` contains the store, `todowrite_integration.py` the validator and the enforcer, `agent_interface.py` the agent's
interface, `beads_integration.py` issues that close with evidence, `three_agent_workflow.py` the blind workflow, `meta_validation.py` the check
of Muniment itself, `__main__.py` the command line.
"""
from .agent_interface import AgentAPI
from .beads_integration import BeadsClient
from .errors import CompletionBlocked, EvidenceError, EvidenceNotFound, EvidenceRefused, FileNotWritten, InvalidEvidence
from .evidence_system import Evidence, EvidenceStore
from .meta_validation import MetaValidator
from .results import CompletionResult, Todo
from .three_agent_workflow import (BlindTesterAgent, CoderAgent, FilesystemRestrictor, SpecWriterAgent, WorkflowOrchestrator, WorkflowResult,
                                   digest_of_workflow)
from .todowrite_integration import BlockingEnforcer, CompletionValidator

__all__ = ["AgentAPI", "BeadsClient", "BlindTesterAgent", "BlockingEnforcer", "CoderAgent", "CompletionBlocked", "CompletionResult",
           "CompletionValidator", "Evidence", "EvidenceError", "EvidenceNotFound", "EvidenceRefused", "EvidenceStore", "FileNotWritten",
           "FilesystemRestrictor", "InvalidEvidence", "MetaValidator", "SpecWriterAgent", "Todo", "WorkflowOrchestrator", "WorkflowResult",
           "digest_of_workflow"]
