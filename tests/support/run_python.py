#!/usr/bin/env python3
"""Runs one file of Python tests and writes the result of each test.

    run_python.py FILE --json RESULTS [-k FILTER]

RESULTS is a list of {name, status (passed, failed, skipped, running), seconds, text}, which is written after each test. The last
one is running if the program was killed during a test.
"""
from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import sys
import time
import unittest


class Recorder(unittest.TestResult):
    def __init__(self, file: str, path: pathlib.Path):
        super().__init__()
        self.file, self.path, self.results, self.started = file, path, [], time.monotonic()

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self.started = time.monotonic()
        self.write({"name": self.name_of(test), "status": "running", "seconds": 0, "text": ""})

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self.write()

    def write(self, *running: dict) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps([*self.results, *running]))
        new.replace(self.path)

    def name_of(self, test: object) -> str:
        return f"{self.file}:{test.id().split('.', 1)[-1] if isinstance(test, unittest.TestCase) else test}"

    def record(self, test: object, status: str, text: str = "") -> None:
        text = text.split("During handling of the above exception")[-1]   # omits the expected exception
        name, seconds = self.name_of(test), round(time.monotonic() - self.started, 3)
        self.results.append({"name": name, "status": status, "seconds": seconds, "text": text})
        print(f"{status:8}{seconds:7.2f} s  {name}", *([text] if text else []), sep="\n" if text else "", flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.record(test, "passed")

    def addFailure(self, test, err) -> None:  # type: ignore[no-untyped-def]
        super().addFailure(test, err)
        self.record(test, "failed", self._exc_info_to_string(err, test))

    def addError(self, test, err) -> None:  # type: ignore[no-untyped-def]
        super().addError(test, err)
        self.record(test, "failed", self._exc_info_to_string(err, test))

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.record(test, "skipped", reason)

    def addSubTest(self, test, subtest, err) -> None:  # type: ignore[no-untyped-def]
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.record(subtest, "failed", self._exc_info_to_string(err, test))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path, required=True)
    parser.add_argument("-k", dest="filter", default="")
    arguments = parser.parse_args()

    os.umask(0o022)   # files of keys and policies that others may write are refused
    sys.path.insert(0, str(arguments.file.parent))
    spec = importlib.util.spec_from_file_location(arguments.file.stem, arguments.file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[arguments.file.stem] = module
    spec.loader.exec_module(module)

    loader = unittest.TestLoader()
    if arguments.filter and arguments.filter not in arguments.file.stem:
        loader.testNamePatterns = [f"*{arguments.filter}*"]
    recorder = Recorder(arguments.file.stem, arguments.json)
    loader.loadTestsFromModule(module).run(recorder)
    recorder.write()
    return 0 if recorder.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
