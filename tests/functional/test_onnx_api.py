"""Tests that the functions of ONNX Runtime have the indices and parameters of the runtime's own header. The header
is in a Go module, pinned by its hash; its API version is older than the runtime's, but new versions only append
functions."""
from __future__ import annotations

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

from support import main

MODULE = "github.com/yalue/onnxruntime_go@v1.27.0"
SUM = "h1:c1YSgDNtpf0WGtxj3YeRIb8VC5LmM1J+Ve3uHdteC1U="
OURS = pathlib.Path(__file__).resolve().parents[2] / "src/retrieval/embed/encoder/onnx_api.hpp"
MEMBER = re.compile(r"ORT_API2_STATUS\((\w+)(?:,|\))|ORT_CLASS_RELEASE\((\w+)\)|\(ORT_API_CALL\s*\*\s*(\w+)\)|ORT_API_T\([^,]+,\s*(\w+)")


def header() -> str:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["go", "mod", "download", "-json", MODULE], capture_output=True, text=True, cwd=folder, timeout=300)
    module = json.loads(done.stdout)
    assert module.get("Sum") == SUM, module
    return (pathlib.Path(module["Dir"]) / "onnxruntime_c_api.h").read_text()


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))


class OnnxApi(unittest.TestCase):
    def test_the_indices_are_those_of_the_header(self) -> None:
        text = without_comments(header())
        table = text[text.index("struct OrtApi {"):]
        table = table[:table.index("\n};")]
        names = [member[1] or (member[2] and f"Release{member[2]}") or member[3] or member[4] for member in MEMBER.finditer(table)]
        ours = without_comments(OURS.read_text())
        functions = re.findall(r"using (\w+)\s*=\s*Function<(\d+),", ours)
        self.assertEqual(len(functions), ours.count("= Function<") + ours.count("=\n    Function<"))
        self.assertGreater(len(functions), 25)
        for name, index in functions:
            self.assertEqual(names[int(index)], name)
        version = re.search(r"#define ORT_API_VERSION (\d+)", text)
        needed = re.search(r"api_version = (\d+);", ours)
        assert version and needed
        self.assertLessEqual(int(needed[1]), int(version[1]))

    def test_the_constants_are_those_of_the_header(self) -> None:
        text = without_comments(header())
        levels = re.search(r"enum OrtLoggingLevel \{(.*?)\}", text, re.DOTALL)
        types = re.search(r"enum ONNXTensorElementDataType \{(.*?)\}", text, re.DOTALL)
        assert levels and types
        self.assertEqual([name.strip() for name in levels[1].split(",")][3], "ORT_LOGGING_LEVEL_ERROR")
        names = [name.strip().removeprefix("ONNX_TENSOR_ELEMENT_DATA_TYPE_") for name in types[1].split(",")]
        self.assertEqual((names[1], names[7]), ("FLOAT", "INT64"))
        self.assertRegex(text, r"OrtDeviceAllocator = 0\b")
        self.assertRegex(text, r"OrtMemTypeDefault = 0\b")


if __name__ == "__main__":
    main()
