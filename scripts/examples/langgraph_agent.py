#!/usr/bin/env python3
"""A graph of LangGraph that asks before it charges, and continues in another process when the answer is given.

    MUNIMENT_DATA=DIR python3 scripts/examples/langgraph_agent.py [ANSWER]

Requires langgraph 1.x (pip install langgraph). The daemon is started if none runs.
"""
from __future__ import annotations

import pathlib
import sys
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))
from muniment.checkpointer import MunimentSaver  # noqa: E402  (found through the path above)


class State(TypedDict, total=False):
    amount: int
    answer: str
    receipt: str


def approve(state: State) -> State:
    return {"answer": interrupt(f"Charge {state['amount']} EUR?")}


def charge(state: State) -> State:
    return {"receipt": "r-1" if state["answer"] == "yes" else "none"}


def graph() -> StateGraph:
    builder = StateGraph(State)
    builder.add_node("approve", approve)
    builder.add_node("charge", charge)
    builder.add_edge(START, "approve")
    builder.add_edge("approve", "charge")
    builder.add_edge("charge", END)
    return builder


def main() -> None:
    order = {"configurable": {"thread_id": "order-8"}}
    with MunimentSaver() as saver:
        app = graph().compile(checkpointer=saver)
        app.invoke(Command(resume=sys.argv[1]) if sys.argv[1:] else {"amount": 12}, order)
        state = app.get_state(order)
    for question in state.interrupts:
        print(question.value)
    if not state.next:
        print("receipt", state.values["receipt"])


if __name__ == "__main__":
    main()
