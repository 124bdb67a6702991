#!/usr/bin/env python3
"""Writes golden/retrieval/wordpiece.json and encoder.json: the results of the original tokenizer and of ONNX Runtime's Python package.

    python3 -m venv V && V/bin/pip install tokenizers==0.23.3 onnxruntime==1.32.0 numpy
    V/bin/python tests/golden/make_encoder.py MODELS          # the folder that scripts/fetch_models fills
"""
from __future__ import annotations

import json
import pathlib
import sys

import numpy
import onnxruntime
import tokenizers

GOLDEN = pathlib.Path(__file__).parent / "retrieval"
MODEL = "bge-small-en-v1.5"
QUERY_PREFIX = "Represent this sentence for searching relevant passages: "

TEXTS = [
    "", " ", "How old are you?", "The proxy listens on port 8080 (see src/base/files/file.hpp:12).", "HttpServer::do_something(x != 2)",
    "unaffable unaffableness antidisestablishmentarianism", "don't won't it's 'quoted' \"double\" `code`", "3.14159 1,000,000 $5.00 50% 2026-11-27T12:30:00Z",
    "b\u0001c\u200bd\ufeffe\u00adf\u200dg\u202eh\ufffdi", "tab\tline\nfeed\r\nreturn\u00a0nbsp\u2003em\u3000ideographic\u0085next\u2028ls\u2029ps",
    "Café naïve résumé coöperate Ångström Ærøskøbing straße ẞ ﬁne Ⅳ ½ ²", "I\u0307stanbul İstanbul ıŞIK ğüşöç", "Ελληνικά ΟΔΟΣ ὈΔΥΣΣΕΎΣ ΐ",
    "Русский язык, ёлка и Йод; Україна ї є ґ", "日本語のテスト、カタカナとｶﾀｶﾅ。", "中文分词 is 困难", "한국어 문장 입니다", "العربية لُغَةٌ جميلة", "עִבְרִית שפה",
    "हिन्दी भाषा में क्षत्रिय", "ภาษาไทย ไม่มีช่องว่าง", "Tiếng Việt có dấu", "தமிழ் বাংলা ગુજરાતી", "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 flag \U0001f1e9\U0001f1ea heart \u2764\ufe0f ok",
    "\U00020000\U0002a6d6 rare \uf900\U0002f800", "word" * 25, "word" * 26, "x" * 100, "x" * 101, "é" * 100, "é" * 101, "e\u0301" * 100 + " " + "e\u0301" * 101,
    "[CLS] [SEP] [MASK] [UNK] [PAD] ##ing", "a-b_c+d=e~f^g|h<i>j{k}l[m]n\\o/p?q!r@s#t$u%v&w*x(y)z", "“curly” ‘quotes’ — dash – en … ellipsis ¿qué? ¡sí! « guillemets »",
    "￼ \ue000 private \U000e0041 tag", "Z\u0351\u036b\u0343a\u0329l\u032bg\u031fo\u035f", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛 ｆｕｌｌｗｉｄｔｈ", "supercalifragilisticexpialidocious \u4e00word\u4e8c",
    "१२३ ٤٥٦ ４５６", "€£¥₹₿ ©®™ §¶ °C µm Ω", "naïve\u0300\u0301\u0302 combining", "ǅ ǆ Ǆ ŉ ǰ", "\u1e9e\u0130\u0149\u01f0\u0390\u03b0\u0587\u1e96", "\ua64b \u1c80 \u10d0 \u13a0 \uab70",
]
QUERIES = ["How old are you?", "supersonic flow over a wing"]
PASSAGES = ["I am twenty years old.", "The boundary layer of a swept wing at supersonic speed separates near the leading edge.", "日本語のテスト"]


def main() -> None:
    models = pathlib.Path(sys.argv[1])
    tokenizer = tokenizers.Tokenizer.from_file(str(models / MODEL / "tokenizer.json"))
    tokenizer.encode_special_tokens = True   # a text's "[SEP]" is text
    (GOLDEN / "wordpiece.json").write_text(json.dumps([{"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids} for text in TEXTS], indent=1) + "\n")

    session = onnxruntime.InferenceSession(str(models / MODEL / "model.onnx"))

    def vector(text: str) -> list[float]:
        ids = numpy.array([tokenizer.encode(text).ids], dtype=numpy.int64)
        hidden = session.run(None, {"input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": numpy.zeros_like(ids)})[0]
        first = hidden[0, 0]
        return [round(float(x), 5) for x in first / numpy.linalg.norm(first)]

    golden = [{"text": text, "kind": "query", "vector": vector(QUERY_PREFIX + text)} for text in QUERIES]
    golden += [{"text": text, "kind": "document", "vector": vector(text)} for text in PASSAGES]
    (GOLDEN / "encoder.json").write_text("[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in golden) + "\n]\n")


if __name__ == "__main__":
    main()
