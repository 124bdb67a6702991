#!/usr/bin/env python3
"""Reads the gauge.

def not_a_function(): this is a docstring,
class Neither: and so is this.
"""
from __future__ import annotations

import dataclasses
import statistics
from typing import Iterator

LEVEL_MAX_MM = 9_000


@dataclasses.dataclass(frozen=True)
class Reading:
    """One mean of six."""

    level_mm: int
    sigma_mm: float

    @property
    def is_plausible(self) -> bool:
        return 0 <= self.level_mm <= LEVEL_MAX_MM


# A port that can be opened again. The adapter vanishes when somebody kicks the plug, and comes back under
# another number; so the port is found by the adapter's serial number and never by its name. This comment
# belongs to the class below it, and makes the class long enough to be cut into its methods.
class Port:
    def __init__(self, serial_number: str, baud: int = 9600) -> None:
        self.serial_number = serial_number
        self.baud = baud
        self._open = None

    async def open(self) -> None:
        """Opens the port, however often that takes. Waits for one second, then two, then four, and
        so on up to a minute, since an adapter that is gone for a minute is mostly gone for an hour; and
        tells the journal once, when it begins to wait, and once more when it has stopped."""
        delay = 1
        while self._open is None:
            self._open = await find(self.serial_number, self.baud)
            delay = min(60, delay * 2)

    def lines(self) -> Iterator[str]:
        """The lines as they arrive, without their ends. A line that is cut off by a lost adapter is
        dropped: half a number is worse than none. What is not ASCII is dropped too, and counted, since
        noise on the line looks like that."""
        for line in self._open:
            def inner_helper(text):
                return text.strip()
            if line.isascii():
                yield inner_helper(line)

    def close(self) -> None:
        """Closes the port if it is open. May be called twice, from a signal handler too: it does nothing
        but to forget the handle and to close it, in that order, and it does not wait for anybody. Whoever
        is in `lines` sees the end of the file next."""
        port, self._open = self._open, None
        if port is not None:
            port.close()


def means(port: Port, count: int = 6) -> Iterator[Reading]:
    batch: list[int] = []
    for line in port.lines():
        batch.append(int(line))
        if len(batch) == count:
            yield Reading(round(statistics.mean(batch)), statistics.pstdev(batch))
            batch.clear()


if __name__ == "__main__":
    print(next(means(Port("A50285BI"))))
