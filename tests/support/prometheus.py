"""Checks a text against Prometheus' text format and the rules of `promtool check metrics`.

Debian packages promtool only together with Prometheus; if promtool is on the PATH, promtool_problems runs it as well.
"""
from __future__ import annotations

import math
import re
import shutil
import subprocess
from typing import NamedTuple, Optional

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)\Z')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"')
NOT_BASE_UNITS = re.compile(r"_(milliseconds|microseconds|nanoseconds|ms|us|ns|minutes|hours|days|kilobytes|megabytes|gigabytes|kib|mib|gib|percent)(_|\Z)")


class Sample(NamedTuple):
    name: str
    labels: tuple[tuple[str, str], ...]
    value: float

    def label(self, name: str) -> Optional[str]:
        return dict(self.labels).get(name)


def samples(text: str) -> list[Sample]:
    """Returns the samples; ValueError for an invalid line."""
    found: list[Sample] = []
    if not text.endswith("\n"):
        raise ValueError("the text does not end with a line feed")
    for number, line in enumerate(text[:-1].split("\n"), 1):
        if line.startswith("#") or not line:
            continue
        match = SAMPLE.match(line)
        if not match:
            raise ValueError(f"line {number} is not a sample: {line!r}")
        found.append(Sample(match[1], tuple(LABEL.findall(match[2] or "")), float(match[3].replace("Inf", "inf"))))
    return found


def problems(text: str) -> list[str]:
    """Returns the problems of the text."""
    found: list[str] = []
    kinds: dict[str, str] = {}
    helped: set[str] = set()
    current = ""
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, _, words = line[7:].partition(" ")
            if name in helped:
                found.append(f"{name}: a second HELP")
            if not words.strip():
                found.append(f"{name}: no help")
            helped.add(name)
            current = name
        elif line.startswith("# TYPE "):
            name, _, kind = line[7:].partition(" ")
            if name in kinds:
                found.append(f"{name}: a second TYPE")
            if name != current:
                found.append(f"{name}: TYPE does not follow its HELP")
            kinds[name] = kind
            found += name_problems(name, kind)
        elif line:
            for sample in samples(line + "\n"):
                base = family(sample.name, current, kinds)
                if base != current:
                    found.append(f"{sample.name}: the sample is below {current or 'no TYPE'}")
                if (sample.name, tuple(sorted(sample.labels))) in seen:
                    found.append(f"{sample.name}{sample.labels}: twice")
                seen.add((sample.name, tuple(sorted(sample.labels))))
                if kinds.get(base) == "counter" and sample.value < 0:
                    found.append(f"{sample.name}: the counter is negative")
    return found + [f"{name}: no TYPE" for name in helped - set(kinds)] + histogram_problems(text, kinds)


def name_problems(name: str, kind: str) -> list[str]:
    found = []
    if not NAME.match(name):
        found.append(f"{name}: not a name")
    if kind not in ("counter", "gauge", "histogram"):
        found.append(f"{name}: type {kind}")
    if (kind == "counter") != name.endswith("_total"):
        found.append(f"{name}: counters, and only counters, end in _total")
    if NOT_BASE_UNITS.search(name):
        found.append(f"{name}: the unit is not a base unit (seconds, bytes)")
    if name.endswith(("_bucket", "_sum", "_count")):
        found.append(f"{name}: the suffix is reserved for histograms")
    if re.search(r"_(counter|gauge|histogram)(_|\Z)", name) or re.search("[A-Z]", name) or ":" in name:
        found.append(f"{name}: contains a type, a capital letter or a colon")
    return found


def family(name: str, current: str, kinds: dict[str, str]) -> str:
    for suffix in ("_bucket", "_sum", "_count"):
        if name == current + suffix and kinds.get(current) == "histogram":
            return current
    return name


def histogram_problems(text: str, kinds: dict[str, str]) -> list[str]:
    found: list[str] = []
    buckets: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[float, float]]] = {}
    plain: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for sample in samples(text):
        rest = tuple(sorted(item for item in sample.labels if item[0] != "le"))
        if sample.name.endswith("_bucket") and kinds.get(sample.name[:-7]) == "histogram":
            bound = float((sample.label("le") or "nan").replace("Inf", "inf"))
            buckets.setdefault((sample.name[:-7], rest), []).append((bound, sample.value))
        else:
            plain[(sample.name, rest)] = sample.value
    for (name, rest), rows in buckets.items():
        bounds, counts = [row[0] for row in rows], [row[1] for row in rows]
        if bounds != sorted(set(bounds)) or counts != sorted(counts):
            found.append(f"{name}{rest}: buckets are unordered or not cumulative")
        if not math.isinf(bounds[-1]):
            found.append(f"{name}{rest}: the bucket +Inf is missing")
        if plain.get((name + "_count", rest)) != counts[-1]:
            found.append(f"{name}{rest}: _count differs from the last bucket")
        if (name + "_sum", rest) not in plain:
            found.append(f"{name}{rest}: no _sum")
    return found


def promtool_problems(text: str) -> Optional[str]:
    """Returns the output of promtool; None if it is not installed."""
    if not (promtool := shutil.which("promtool")):
        return None
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False)
    said = done.stdout + done.stderr
    return said if done.returncode != 0 or said.strip() else ""
