"""Makes a log of random events with mostly valid and some invalid bodies, to compare two folds."""
import json
import random

IDS = [f"id{n}" for n in range(6)]
BODIES = {
    "step.started": ("name", "kind", "parent_step_id"), "step.ended": (),
    "model.called": ("call_id", "model", "manifest_id"), "model.answered": ("call_id", "usage"),
    "tool.called": ("call_id", "name"), "tool.returned": ("call_id",), "command.started": ("call_id", "argv"),
    "command.ended": ("call_id",), "approval.requested": ("approval_id", "call_id"), "approval.decided": ("approval_id",),
    "child.started": ("run_id", "kind"), "child.ended": ("run_id",), "child.halted": ("run_id",),
    "context.built": ("manifest_id",), "context.compacted": ("manifest_id",), "plan.updated": ("items",),
    "budget.exceeded": ("budget", "limit", "used"),
    "message.added": (), "thought.recorded": (), "x.vendor.thing": (), "run.annotated": ("labels",),
    "state.patched": ("format", "patch"), "error.raised": (),
}
AMOUNTS = ["0.1", "12", '"3.25"', '"1e-13"', "1e14", "1E2", '"007"', '"-1"', "-1", '"1.5e+3"', "true", "999999999999999.9999999999999"]
TEXTS = ["", "plain", "quote \" back \\ slash", "line\nfeed\ttab\r\b\f", "\u0001\u001f\u007f", "é🙂 \u202e", "</script>"]


class RandomLog:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def scalar(self):
        return self.random.choice([json.dumps(self.random.choice(TEXTS), ensure_ascii=self.random.random() < 0.5), "true",
                                   "false", "null", "0", "-1", "1.50", "1e2", "9223372036854775807", "18446744073709551615"])

    def name(self):
        return json.dumps(self.random.choice(["a", "b", "Z", "é", "a/b", "~", "", "ab", "\n", *IDS[:2]]))

    def value(self, levels=3):
        kind = self.random.random()
        if levels == 0 or kind < 0.5:
            return self.scalar()
        if kind < 0.7:
            return "[" + ",".join(self.value(levels - 1) for _ in range(self.random.randrange(4))) + "]"
        members = {self.name(): self.value(levels - 1) for _ in range(self.random.randrange(5))}
        return "{" + ", ".join(f"{name}: {value}" for name, value in members.items()) + "}"

    def pointer(self):
        parts = self.random.choices(["a", "b", "Z", "é", "a~1b", "~0", "0", "1", "-", "01", "", "~2"], k=self.random.randrange(4))
        return json.dumps("".join("/" + part for part in parts))

    def patch(self):
        if self.random.random() < 0.5:
            return '"merge"', self.value(4)
        operations = []
        for _ in range(self.random.randrange(1, 4)):
            op = self.random.choice(["add", "add", "add", "remove", "replace", "move", "copy", "test", "other"])
            operations.append(f'{{"op":"{op}","path":{self.pointer()},"from":{self.pointer()},"value":{self.value(2)}}}')
        return '"json_patch"', "[" + ",".join(operations) + "]"

    def usage(self):
        currency = self.random.choice(['"USD"', '"EUR"', "7"])
        cost = f'{{"amount":{self.random.choice(AMOUNTS)},"currency":{currency}}}'
        tokens = self.random.choice(["3", "2.0", "-1", "9223372036854775807", "null"])
        return f'{{"input_tokens":{tokens},"cost":{cost}}}'

    def member(self, name):
        if self.random.random() < 0.15:
            return self.scalar()
        if name == "usage":
            return self.usage()
        if name == "labels":
            return self.value(1)
        if name == "items":
            return "[" + ",".join(self.random.choice(['{"id":"1","text":"t","status":"open","more":1}', "3", '{"id":2}'])
                                  for _ in range(3)) + "]"
        if name == "argv":
            return self.random.choice(['["ls","-l"]', "[]", "[3]", '"ls"'])
        return f'"{self.random.choice(IDS)}"'

    def body(self, kind):
        if kind == "state.patched":
            patch_format, patch = self.patch()
            return f'{{"format":{patch_format if self.random.random() < 0.95 else "3"},"patch":{patch}}}'
        names = [name for name in BODIES[kind] if self.random.random() < 0.95]
        return "{" + ", ".join(f'"{name}" : {self.member(name)}' for name in names) + "}"

    def fill(self, log, run_id, events):
        """Adds a run with a snapshot at about every eighth event."""
        log.append(run_id, "run.started", {"run_id": run_id, "agent": {"name": "random"}, "labels": {"n": 1, "list": [1]}})
        for _ in range(events):
            kind = self.random.choice(list(BODIES) + ["state.patched"] * 6)
            step = self.random.choice([None, "s1", "s2"])
            log.append(run_id, kind, self.body(kind), step_id=step, origin=self.random.choice([1, 2, 3]))
            taken = self.random.random() < 0.12
            if taken:
                log.snapshot(run_id)
        if not taken:   # a state has one snapshot
            log.snapshot(run_id)
