#!/usr/bin/env python3
"""Converts public test collections to the folders that `scripts/bench retrieval-quality --set` reads.

    tests/bench/quality_sets.py cisi SOURCE TARGET   SOURCE has CISI.ALL, CISI.QRY, CISI.REL
    tests/bench/quality_sets.py npl SOURCE TARGET    SOURCE has doc-text, query-text, rlv-ass

Both are collections of the University of Glasgow (ir.dcs.gla.ac.uk/resources/test_collections); the project has no copy.
"""
from __future__ import annotations

import json
import pathlib
import re
import sys
from typing import Iterator

Record = dict[str, str]
Judged = list[tuple[str, str]]


def tagged(path: pathlib.Path) -> Iterator[Record]:
    """Yields the records of a file in SMART's format, each with its parts by letter: .I 1, .T, .W …"""
    for record in re.split(r"(?m)^\.I ", path.read_text(errors="replace"))[1:]:
        number, *parts = re.split(r"(?m)^\.([A-Z])\s*$", record)
        yield {"I": number.strip(), **{letter: " ".join(text.split()) for letter, text in zip(parts[::2], parts[1::2])}}


def cisi(source: pathlib.Path) -> tuple[list[Record], list[Record], Judged]:
    documents = {one["I"]: {"_id": one["I"], "title": one.get("T", ""), "text": one.get("W", "")} for one in tagged(source / "CISI.ALL")}
    queries = [{"_id": one["I"], "text": one["W"]} for one in tagged(source / "CISI.QRY")]
    judged = [(words[0], words[1]) for words in map(str.split, (source / "CISI.REL").read_text().splitlines()) if words]
    return list(documents.values()), queries, judged


def numbered(path: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Yields the number and the text of each record of an NPL file."""
    for record in re.split(r"(?m)^\s*/\s*$", path.read_text()):
        if words := record.split():
            yield words[0], " ".join(words[1:])


def npl(source: pathlib.Path) -> tuple[list[Record], list[Record], Judged]:
    documents = [{"_id": number, "title": "", "text": text} for number, text in numbered(source / "doc-text")]
    queries = [{"_id": number, "text": text} for number, text in numbered(source / "query-text")]
    return documents, queries, [(number, document) for number, text in numbered(source / "rlv-ass") for document in text.split()]


def main() -> None:
    if len(sys.argv) != 4 or sys.argv[1] not in ("cisi", "npl"):
        sys.exit(str(__doc__))
    target = pathlib.Path(sys.argv[3])
    documents, queries, judged = {"cisi": cisi, "npl": npl}[sys.argv[1]](pathlib.Path(sys.argv[2]))
    target.mkdir(parents=True, exist_ok=True)
    for name, records in (("corpus.jsonl", documents), ("queries.jsonl", queries)):
        (target / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    (target / "qrels.tsv").write_text("query\tdocument\tscore\n" + "".join(f"{query}\t{document}\t1\n" for query, document in judged))
    print(f"{target}: {len(documents)} documents, {len(queries)} queries, {len(judged)} judgements")


if __name__ == "__main__":
    main()
