"""The parts of `scripts/bench daily`, collected from their files."""
from __future__ import annotations

from typing import Callable, Iterator

import daily_reports_bench
import daily_traces_bench
from log_bench import Row

PARTS: dict[str, Callable[[int, int], Iterator[Row]]] = {**daily_traces_bench.PARTS, **daily_reports_bench.PARTS}
