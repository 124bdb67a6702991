"""Runs one process of a graph, for tests that kill it: the argument is a JSON object of settings, the last line of
output a JSON object.

`step`: start, resume or continue. `kill`: "end" kills the process after the graph has returned, "mail" in the node
`mail`, as soon as the log has the writes of `charge`, and before `mail` has its effect.
"""
from __future__ import annotations

import json
import os
import pathlib
import signal
import sys
import time
from typing import Any

import graphs
from langgraph.types import Command
from muniment.checkpointer import MunimentSaver

RECORDED_S_MAX = 60.0


def kill_this_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Process:
    def __init__(self, settings: dict[str, Any]):
        self.settings = settings
        self.config = {"configurable": {"thread_id": settings["thread"]}}

    def run(self) -> dict[str, Any]:
        steps = {"start": {"log": []}, "resume": Command(resume="yes"), "continue": None}
        with MunimentSaver(self.settings["socket"]) as saver:
            app = self.builder().compile(checkpointer=saver)
            result = app.invoke(steps[self.settings["step"]], self.config, durability=self.settings["durability"])
            if self.settings["kill"] == "end":
                kill_this_process()
            questions = [one.value for one in result.get("__interrupt__", [])]
            return {"log": sorted(result["log"]), "questions": questions, "next": list(app.get_state(self.config).next)}

    def builder(self) -> Any:
        effects = graphs.noted_in(pathlib.Path(self.settings["effects"]))
        if self.settings["graph"] == "beside":
            return graphs.questions_beside_effects(effects)
        return graphs.approval(effects, self.die_once_charged if self.settings["kill"] == "mail" else lambda: None)

    def die_once_charged(self) -> None:
        with MunimentSaver(self.settings["socket"]) as saver:
            end = time.monotonic() + RECORDED_S_MAX
            while time.monotonic() < end:
                found = saver.get_tuple(self.config)
                written = [value for _, channel, value in found.pending_writes if channel == "log"]
                if "charge" in found.checkpoint["channel_values"].get("log", []) or ["charge"] in written:
                    kill_this_process()
                time.sleep(0.01)


if __name__ == "__main__":
    print(json.dumps(Process(json.loads(sys.argv[1])).run()))
