"""Small graphs of LangGraph. Each records in a list, or in a file that outlives the process, which nodes had their effect."""
from __future__ import annotations

import operator
import os
import pathlib
from typing import Annotated, Any, Callable, TypedDict

from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send, interrupt

Effects = Callable[[str], None]


class State(TypedDict, total=False):
    value: Any
    log: Annotated[list[Any], operator.add]


def noted_in(path: pathlib.Path) -> Effects:
    def note(effect: str) -> None:
        with path.open("a") as file:
            file.write(effect + "\n")
            file.flush()
            os.fsync(file.fileno())

    return note


def _node(name: str, effects: Effects, before: Callable[[], None] = lambda: None) -> Callable[[State], State]:
    def run(state: State) -> State:
        before()
        effects(name)
        return {"log": [name]}

    return run


def _builder(nodes: dict[str, Any], *edges: tuple[str, str]) -> Any:
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node)
    for edge in edges:
        builder.add_edge(*edge)
    return builder


def questions_beside_effects(effects: Effects) -> Any:
    """Runs `charge`, `mail` and a node with two questions, in one superstep."""
    def ask(state: State) -> State:
        return {"log": [interrupt("first?"), interrupt("second?")]}

    nodes = {"charge": _node("charge", effects), "mail": _node("mail", effects), "ask": ask}
    return _builder(nodes, *((START, name) for name in nodes), *((name, END) for name in nodes))


def approval(effects: Effects, before_mail: Callable[[], None] = lambda: None) -> Any:
    """Runs `approve`, which asks a question; then `charge`, then `mail`."""
    def approve(state: State) -> State:
        return {"value": interrupt("charge the card?")}

    nodes = {"approve": approve, "charge": _node("charge", effects), "mail": _node("mail", effects, before_mail)}
    return _builder(nodes, (START, "approve"), ("approve", "charge"), ("charge", "mail"), ("mail", END))


def workers(effects: Effects, fails: Callable[[int], bool] = lambda _: False, count: int = 4) -> Any:
    """Runs one task for each number, by Send."""
    def work(state: State) -> State:
        number = state["value"]
        effects(f"work {number}")
        if fails(number):
            raise ValueError(f"worker {number} failed")
        return {"log": [number]}

    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_conditional_edges(START, lambda state: [Send("work", {"value": number}) for number in range(count)], ["work"])
    builder.add_edge("work", END)
    return builder


def outer_and_inner(effects: Effects) -> Any:
    """A graph within a graph; the inner one has an effect before it asks."""
    def ask(state: State) -> State:
        return {"value": interrupt("inner?")}

    inner = _builder({"charge": _node("charge", effects), "ask": ask}, (START, "charge"), ("charge", "ask"), ("ask", END))
    return _builder({"sub": inner.compile(), "mail": _node("mail", effects)}, (START, "sub"), ("sub", "mail"), ("mail", END))


def line(effects: Effects) -> Any:
    """Runs `a`, `b`, `c` in sequence."""
    return _builder({name: _node(name, effects) for name in "abc"}, (START, "a"), ("a", "b"), ("b", "c"), ("c", END))


def _appended(before: list[Any], writes: Any) -> list[Any]:
    return [*before, *(item for write in writes for item in write)]


class DeltaState(TypedDict, total=False):
    log: Annotated[list[Any], DeltaChannel(_appended, snapshot_frequency=5)]


def delta() -> Any:
    """A channel that is stored as its writes, and completely only at intervals."""
    builder = StateGraph(DeltaState)
    builder.add_node("add", lambda state: {"log": [len(state["log"])]})
    builder.add_edge(START, "add")
    builder.add_edge("add", END)
    return builder
