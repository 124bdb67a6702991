"""A client of the oracle: runs random programs on two wires, and records each attempt."""
from __future__ import annotations

import os
import pathlib
import subprocess
import threading
import time
from typing import Callable, Optional

from model import Attempt, Operation, Record, World
from programs import Burst, Pen, Program
from support import BUILD
from wire import Lost, Wire

DEADLINE_MS = 15_000
GRACE_S = 5.0
COMMAND_S_MAX = 60.0
AGAIN_S_MAX = 60.0           # limit for the answers of a healthy daemon to repetitions
SUBSCRIPTION_S_MAX = 15.0
CUT_CHANCE = 0.15            # probability that a wire is cut at some byte


class Client(threading.Thread):
    def __init__(self, number: int, seed: str, socket: str, record: Record, world: World, programs: list[tuple[Callable[[Pen], Program], float]],
                 cuts: float = CUT_CHANCE):
        super().__init__(daemon=True)
        self.number, self.socket, self.record, self.cuts = number, socket, record, cuts
        self.pen = Pen(seed, number, world)
        self._programs, self._weights = [program for program, _ in programs], [weight for _, weight in programs]
        self._wires: dict[int, Wire] = {}
        self._places: dict[int, int] = {}
        self.stopped = threading.Event()
        self.unknown: list[Operation] = []    # repeatable operations with unknown outcome
        self.done = 0

    def run(self) -> None:
        try:
            while not self.stopped.is_set():
                program = self.pen.random.choices(self._programs, self._weights)[0]
                self.play(program)
                self.repeat_some()
        except Exception as error:   # a failed client is a finding
            self.record.found("oracle", f"client {self.number}: {type(error).__name__}: {error}")
            raise
        finally:
            self.close()

    def close(self) -> None:
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()

    def play(self, program: Callable[[Pen], Program]) -> None:
        for burst in program(self.pen):
            self.send(burst)
            if self.stopped.is_set():
                return

    def repeat_some(self) -> None:
        if self.unknown and self.pen.random.random() < 0.3:
            operation = self.unknown.pop(self.pen.random.randrange(len(self.unknown)))
            self.send([(self.pen.random.randrange(2), operation)])

    def send(self, burst: Burst) -> None:
        """Sends the burst, then reads all answers; a lost answer leaves an attempt without one."""
        waiting: dict[int, dict[int, tuple[Operation, Attempt]]] = {0: {}, 1: {}}
        patience = 0.0
        for number, operation in burst:
            if not operation.attempts:
                self.record.add(operation)
            if operation.method.startswith("muniment "):
                self.command(operation)
                continue
            meta = {"deadline_ms": DEADLINE_MS, **operation.params.get("_meta", {})}
            patience = max(patience, meta["deadline_ms"] / 1000 + GRACE_S)
            try:
                wire = self.wire(number)
            except Lost:   # nothing was sent, so that there is no statement
                self.stopped.wait(0.05)
                continue
            place = self._places[wire.number] = self._places.get(wire.number, -1) + 1
            attempt = Attempt(self.number, wire.number, place, time.monotonic())
            operation.attempts.append(attempt)
            try:
                waiting[number][wire.send(operation.method, {**operation.params, "_meta": meta}, operation.body)] = (operation, attempt)
            except Lost:
                self._wires.pop(number, None)
                waiting[number].clear()   # the rest of the burst uses a new connection, which does not answer these requests
        for number, sent in waiting.items():
            if sent and number in self._wires:
                self.collect(number, sent, patience)
        for operation in {id(operation): operation for _, operation in burst}.values():
            self.done += len(operation.attempts)
            if operation.repeatable and operation.may_be() and not operation.must() and operation.attempts:
                self.unknown.append(operation)

    def collect(self, number: int, sent: dict[int, tuple[Operation, Attempt]], patience: float) -> None:
        wire, end = self._wires[number], time.monotonic() + patience
        try:
            while sent:
                message, raw = wire.next(end - time.monotonic())
                if message.get("id") not in sent:
                    continue    # a notification of an ended subscription
                operation, attempt = sent.pop(message["id"])
                attempt.got, attempt.raw = time.monotonic(), raw
                attempt.result, attempt.error = message.get("result"), message.get("error")
                if operation.method == "event.subscribe" and attempt.result is not None:
                    self.listen(wire, attempt)
        except Lost:
            self._wires.pop(number, None)
            if time.monotonic() > end - 0.5 and not self.stopped.is_set():
                late = ", ".join(str(operation) for operation, _ in list(sent.values())[:2])
                self.record.late.append((time.monotonic() - patience, time.monotonic(), late))

    def listen(self, wire: Wire, attempt: Attempt) -> None:
        end = time.monotonic() + SUBSCRIPTION_S_MAX
        while True:
            message, _ = wire.next(end - time.monotonic())
            if "method" not in message:
                continue
            attempt.notes.append(message)
            if message["method"] == "caught_up":
                return

    def command(self, operation: Operation) -> None:
        """Runs a command of `muniment`; only its effects are a statement, not its output."""
        data = pathlib.Path(self.socket).parent
        mark, backups = data.parent / f"mark-{self.pen.id()}", data.parent / "backups"
        words = [word.replace("$BACKUPS", str(backups)) for word in operation.params["words"]]
        attempt = Attempt(self.number, self.record.new_connection(), 0, time.monotonic())
        operation.attempts.append(attempt)
        env = {name: value for name, value in os.environ.items() if not name.startswith("MUNIMENT_")}
        try:
            done = subprocess.run([str(BUILD / "muniment"), "--data", str(data), "--no-autostart", *words], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=COMMAND_S_MAX, env={**env, "MARK": str(mark)}, cwd=data.parent)
        except subprocess.TimeoutExpired:
            return
        attempt.got = time.monotonic()
        attempt.result = {"code": done.returncode, "ran": mark.exists(), "stderr": done.stderr[:1000], "stdout": done.stdout[:1000]}

    def wire(self, number: int) -> Wire:
        if number not in self._wires:
            chance, cuts = self.pen.random, {}
            if chance.random() < self.cuts:
                cuts = {chance.choice(("cut_sent", "cut_received")): int(10 ** chance.uniform(0, 6))}
            self._wires[number] = Wire(self.socket, self.record.new_connection(), **cuts)
        return self._wires[number]

    def settle(self) -> None:
        """Repeats the operations with unknown outcome on a healthy daemon, which must answer."""
        self.stopped.clear()
        self.cuts = 0.0
        self.close()
        pending, self.unknown = self.unknown, []
        for operation in {id(operation): operation for operation in pending}.values():
            end = time.monotonic() + AGAIN_S_MAX
            while not operation.must() and not self.record.findings:
                self.send([(0, operation)])
                last = operation.attempts[-1]
                if last.outcome == "ok" or last.code and last.code not in ("unavailable", "deadline_exceeded", "over_budget"):
                    break    # a permanent refusal, which judge.py checks
                if time.monotonic() > end:
                    self.record.found("no_answer", f"{operation} has no answer for {AGAIN_S_MAX:g} s while nothing is done to the daemon: "
                                      f"{last.code} {last.message}")
                    break
                time.sleep(0.1)
        self.unknown.clear()
        self.close()
