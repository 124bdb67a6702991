"""Folds the state of a run according to docs/format.md (State). Written from that text alone."""
import datetime
import re

from hashing import Number, canonical, parse
from json_patch import BYTES_MAX, Refused, apply_patch, parse_patch

INT_MAX = 2**63 - 1
STATE_MIME = "application/vnd.muniment.state+json"
ORIGINS = {1: "observed", 2: "reported", 3: "imported"}
MESSAGES = {"message.added", "thought.recorded", "model.answered", "tool.called", "tool.returned"}
AMOUNT = re.compile(r"(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?", re.ASCII)


def format_time(micros):
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond:06d}Z"


def is_text(value):
    return isinstance(value, str) and not isinstance(value, Number)


def text(body, name):
    value = body.get(name)
    return value if is_text(value) else None


def natural(body, name):
    value = body.get(name)
    if not isinstance(value, Number) or any(c in value for c in ".eE"):
        return 0
    return int(value) if 0 <= int(value) <= INT_MAX else 0


def scalar(value):
    return value if isinstance(value, (str, bool)) else None  # Number is a subclass of str


def child(body, name):
    value = body.get(name)
    return value if isinstance(value, dict) else None


def plus(a, b):
    return min(a + b, INT_MAX)


def open_item(items, keys, item):
    """Adds an item. Returns the number of dropped items."""
    if any(item[key] is None for key in keys):
        return 0
    close_item(items, {key: item[key] for key in keys})
    items.append(item)
    if len(items) > 100:
        del items[0]
        return 1
    return 0


def close_item(items, wanted):
    for position, item in enumerate(items):
        if all(item[key] == value for key, value in wanted.items()):
            del items[position]
            return


def needs_artifact(event):
    """Returns the artifact that contains the patch of this event, or None."""
    if event["type"] != "state.patched" or event["body"] is None:
        return None
    body = parse(event["body"])
    ref = child(body, "ref")
    return text(ref, "artifact_id") if ref is not None and "patch" not in body else None


class Fold:
    """The fold of a run: `apply` takes its events in order; `document` is the canonical text of the state."""

    def __init__(self):
        self.state = {
            "schema": 1,
            "at": {"seq": -1, "run_seq": -1, "run_hash": "0" * 64},
            "run": dict.fromkeys(("run_id", "status", "outcome", "origin", "agent", "goal", "labels", "parent",
                                  "started_at", "last_event_at")),
            "steps": {"open": [], "done": 0, "dropped": 0},
            "pending": {"calls": [], "approvals": [], "children": [], "dropped": 0},
            "context": {"manifest_id": None, "compacted_at": None,
                        "messages": {"count": 0, "first_run_seq": None, "last_run_seq": None}},
            "plan": [],
            "claims": {"open": [], "count": 0, "dropped": 0},
            "tasks": {"open": [], "opened": 0, "completed": 0, "dropped": 0},
            "budgets": {"exceeded": 0, "last": None},
            "usage": {"input_tokens": 0, "output_tokens": 0, "cost": {}, "uncounted": 0},
            "counts": {}, "artifacts": {"count": 0, "bytes": 0}, "halt": None, "working": {},
            "refused": {"labels": 0, "working": 0}}
        self.state["run"]["labels"] = {}

    def document(self):
        return canonical(self.state)

    def apply(self, event, run_id, spilled=None):
        """Applies an event with the columns' names as keys; `body` is text or None. `spilled`: bytes of needs_artifact."""
        body = parse(event["body"]) if event["body"] is not None else {}
        kind = event["type"]
        if event["seq"] <= self.state["at"]["seq"] or kind == "snapshot.taken":
            return
        if kind == "artifact.stored" and text(body, "mime_type") == STATE_MIME:
            return
        self.event, self.body, self.spilled = event, body, spilled
        self.at = event["run_seq"]
        self.time = format_time(event["recorded_at"])
        self.state["at"] = {"seq": event["seq"], "run_seq": self.at, "run_hash": event["run_hash"].hex()}
        self.state["run"]["run_id"] = run_id
        self.state["run"]["last_event_at"] = self.time
        counted = "x" if kind.startswith("x.") else kind
        counts = self.state["counts"]
        counts[counted] = plus(counts.get(counted, 0), 1)
        if kind in MESSAGES:
            messages = self.state["context"]["messages"]
            messages["count"] = plus(messages["count"], 1)
            messages["last_run_seq"] = self.at
            if messages["first_run_seq"] is None:
                messages["first_run_seq"] = self.at
        rule = getattr(self, "on_" + kind.replace(".", "_"), None)
        if rule is not None and not kind.startswith("x."):
            rule()

    def on_run_started(self):
        run, body = self.state["run"], self.body
        run["status"] = "open"
        run["origin"] = ORIGINS[self.event["origin"]]
        run["started_at"] = self.time
        agent, parent = child(body, "agent"), child(body, "parent")
        run["agent"] = {n: text(agent, n) for n in ("name", "id", "version")} if agent is not None else None
        run["goal"] = text(body, "goal")
        run["parent"] = None
        if parent is not None:
            run["parent"] = {"run_id": text(parent, "run_id"), "run_seq": natural(parent, "run_seq")}
        labels = child(body, "labels") or {}
        run["labels"] = {n: v for n, v in labels.items() if scalar(v) is not None}

    def on_run_ended(self):
        self.state["run"].update(status="ended", outcome=text(self.body, "outcome"))

    def on_run_halted(self):
        self.state["run"]["status"] = "halted"
        if self.state["halt"] is None:
            halt = {n: text(self.body, n) for n in ("code", "reason", "pointer", "expected", "actual")}
            halt.update(attempts=natural(self.body, "attempts"), seq=self.event["seq"], recorded_at=self.time)
            self.state["halt"] = halt

    def on_run_resumed(self):
        self.state["run"].update(status="open", outcome=None)
        self.state["halt"] = None

    def on_run_annotated(self):
        labels = child(self.body, "labels")
        if labels is None:
            return
        merged = dict(self.state["run"]["labels"])
        for name, value in labels.items():
            if value is None:
                merged.pop(name, None)
            elif scalar(value) is not None:
                merged[name] = value
        if len(canonical(merged).encode("utf-8")) <= 61_440:
            self.state["run"]["labels"] = merged
        else:
            self.state["refused"]["labels"] = plus(self.state["refused"]["labels"], 1)

    def _step(self):
        return self.event["step_id"] if self.event["step_id"] is not None else "main"

    def on_step_started(self):
        steps, body = self.state["steps"], self.body
        item = {"step_id": self._step(), "name": text(body, "name"), "kind": text(body, "kind"),
                "parent_step_id": text(body, "parent_step_id"), "run_seq": self.at}
        steps["dropped"] = plus(steps["dropped"], open_item(steps["open"], ["step_id"], item))

    def on_step_ended(self):
        close_item(self.state["steps"]["open"], {"step_id": self._step()})
        self.state["steps"]["done"] = plus(self.state["steps"]["done"], 1)

    def _pending(self, items, keys, item):
        pending = self.state["pending"]
        pending["dropped"] = plus(pending["dropped"], open_item(pending[items], keys, item))

    def _open_call(self, kind, name):
        call = {"call_id": text(self.body, "call_id"), "kind": kind, "name": name, "run_seq": self.at}
        self._pending("calls", ["kind", "call_id"], call)

    def _close_call(self, kind):
        call_id = text(self.body, "call_id")
        if call_id is not None:
            close_item(self.state["pending"]["calls"], {"kind": kind, "call_id": call_id})

    def _close(self, items, key):
        wanted = text(self.body, key)
        if wanted is not None:
            close_item(items, {key: wanted})

    def on_model_called(self):
        self._open_call("model", text(self.body, "model"))
        self.on_context_built()

    def on_model_answered(self):
        self._close_call("model")
        used = child(self.body, "usage")
        if used is None:
            return
        usage = self.state["usage"]
        for name in ("input_tokens", "output_tokens"):
            usage[name] = plus(usage[name], natural(used, name))
        if used.get("cost") is not None and not self._add_cost(used["cost"]):
            usage["uncounted"] = plus(usage["uncounted"], 1)

    def _add_cost(self, cost):
        if not isinstance(cost, dict) or text(cost, "currency") is None or not isinstance(cost.get("amount"), str):
            return False
        match = AMOUNT.fullmatch(cost["amount"]) if len(cost["amount"].encode()) <= 100 else None
        if match is None:
            return False
        whole, fraction, exponent = match[1], match[2] or "", int(match[3] or "0")
        if abs(exponent) > 308:
            return False
        shift = exponent - len(fraction) + 12
        trillionths = int(whole + fraction) * 10**max(shift, 0) // 10**max(-shift, 0)
        sums, currency = self.state["usage"]["cost"], cost["currency"]
        if trillionths >= 10**27 or (currency not in sums and len(sums) >= 100):
            return False
        before, _, decimals = sums.get(currency, "0").partition(".")
        total = int(before) * 10**12 + int(decimals.ljust(12, "0")) + trillionths
        sums[currency] = f"{total // 10**12}.{total % 10**12:012d}".rstrip("0").rstrip(".")
        return True

    def on_tool_called(self):
        self._open_call("tool", text(self.body, "name"))

    def on_tool_returned(self):
        self._close_call("tool")

    def on_command_started(self):
        argv = self.body.get("argv")
        self._open_call("command", argv[0] if isinstance(argv, list) and argv and is_text(argv[0]) else None)

    def on_command_ended(self):
        self._close_call("command")

    def on_approval_requested(self):
        item = {"approval_id": text(self.body, "approval_id"), "call_id": text(self.body, "call_id"), "run_seq": self.at}
        self._pending("approvals", ["approval_id"], item)

    def on_approval_decided(self):
        self._close(self.state["pending"]["approvals"], "approval_id")

    def on_child_started(self):
        item = {"run_id": text(self.body, "run_id"), "kind": text(self.body, "kind"), "halted": False, "run_seq": self.at}
        self._pending("children", ["run_id"], item)

    def on_child_ended(self):
        self._close(self.state["pending"]["children"], "run_id")

    def on_child_halted(self):
        for item in self.state["pending"]["children"]:
            if item["run_id"] == text(self.body, "run_id"):
                item["halted"] = True

    def on_context_built(self):
        manifest_id = text(self.body, "manifest_id")
        if manifest_id is not None:
            self.state["context"]["manifest_id"] = manifest_id

    def on_context_compacted(self):
        self.on_context_built()
        self.state["context"]["messages"] = {"count": 0, "first_run_seq": None, "last_run_seq": None}
        self.state["context"]["compacted_at"] = self.at

    def on_plan_updated(self):
        items = self.body.get("items")
        items = [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
        self.state["plan"] = [{n: text(item, n) for n in ("id", "text", "status")} for item in items]

    def _open_of(self, group, key, counter):
        group = self.state[group]
        item = {key: text(self.body, key), "run_seq": self.at}
        group["dropped"] = plus(group["dropped"], open_item(group["open"], [key], item))
        group[counter] = plus(group[counter], 1)

    def on_claim_recorded(self):
        self._open_of("claims", "claim_id", "count")

    def on_claim_decided(self):
        self._close(self.state["claims"]["open"], "claim_id")

    def on_task_opened(self):
        self._open_of("tasks", "task_id", "opened")

    def on_task_completed(self):
        self._close(self.state["tasks"]["open"], "task_id")
        self.state["tasks"]["completed"] = plus(self.state["tasks"]["completed"], 1)

    def on_budget_exceeded(self):
        budgets, body = self.state["budgets"], self.body
        budgets["exceeded"] = plus(budgets["exceeded"], 1)
        budgets["last"] = {"budget": text(body, "budget"), "limit": scalar(body.get("limit")),
                           "used": scalar(body.get("used")), "run_seq": self.at}

    def on_artifact_stored(self):
        artifacts = self.state["artifacts"]
        artifacts["count"] = plus(artifacts["count"], 1)
        artifacts["bytes"] = plus(artifacts["bytes"], natural(self.body, "size_bytes"))

    def on_state_patched(self):
        try:
            if "patch" in self.body:
                patch = self.body["patch"]
                if len(canonical(patch).encode("utf-8")) > BYTES_MAX:
                    raise Refused("over the limit")
            elif self.spilled is not None:
                patch = parse_patch(self.spilled)
            else:
                raise Refused("absent")
            self.state["working"] = apply_patch(self.state["working"], text(self.body, "format"), patch)
        except Refused:
            self.state["refused"]["working"] = plus(self.state["refused"]["working"], 1)
