#!/usr/bin/env python3
"""Reads capsules of Muniment (.mv2) with the standard library alone, as docs/format.md, "Capsule", specifies them.

    muniment_capsule.py FILE             prints the current documents, one JSON object a line
    muniment_capsule.py FILE --frames    prints every data frame
    muniment_capsule.py FILE --verify    checks every frame, hash and index; exits with 1 if one is damaged

The indexes are not searched: this reader shows what a capsule holds and proves that it is whole.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import struct
import sys
from typing import Any, Iterator, NamedTuple, Optional

FILE_MAGIC, FRAME_MAGIC = b"\x89MUNCAP\n", b"MUFR"
FILE_HEADER, FRAME_HEADER, COMMIT_FIXED, SEGMENT = 128, 112, 104, 72
TYPES = {1: "document", 2: "retraction", 3: "query", 4: "feedback", 5: "log", 6: "config", 7: "signature", 16: "segment", 17: "commit"}
SEGMENT_TYPE, COMMIT_TYPE = 16, 17
KINDS = {1: "frames", 2: "documents", 3: "catalogue", 4: "words", 5: "closed_words", 6: "vectors", 7: "model"}


class Damaged(Exception):
    """The file is no capsule, or some of it is damaged."""


def crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = crc_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def padded(size: int) -> int:
    return (size + 7) // 8 * 8


class Frame(NamedTuple):
    offset: int
    type: str
    number: int
    time_us: int
    about: bytes
    body: bytes
    chained: bytes   # the part of the header that the chain covers
    chain: bytes
    end: int


class Segment(NamedTuple):
    kind: str
    crc: int
    offset: int
    size: int
    name_size: int
    hash: bytes


class Commit(NamedTuple):
    number: int
    frames: int
    indexed: int
    chain: bytes
    segments: list[Segment]
    offset: int
    end: int


class Document(NamedTuple):
    uri: str
    frame: int
    time_us: int
    about: dict[str, Any]
    content: bytes   # as ingested
    text: bytes      # that the passages are spans of

    def passages(self) -> Iterator[bytes]:
        """Returns the passages; each must have the hash that was recorded."""
        for start, end, digest, *_ in self.about["chunks"]:
            passage = self.text[start:end]
            if hashlib.sha256(passage).hexdigest() != digest:
                raise Damaged(f"a passage of {self.uri} differs from its hash")
            yield passage


class Capsule:
    """The newest complete state of a capsule."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self.data = file.read()
        self.read_header()
        self.commit, self.torn_bytes = self.newest_commit()

    def read_header(self) -> None:
        header = self.data[:FILE_HEADER]
        if len(header) < FILE_HEADER or not header.startswith(FILE_MAGIC):
            raise Damaged("this is no capsule")
        version, = struct.unpack_from("<I", header, 8)
        if version != 1:
            raise Damaged(f"the capsule has format {version}")
        if crc32c(header[:60]) != struct.unpack_from("<I", header, 60)[0]:
            raise Damaged("the header is damaged")
        self.id, self.created_us = header[16:32].hex(), struct.unpack_from("<q", header, 32)[0]

    def frame_at(self, offset: int, end: Optional[int] = None, whole: bool = True) -> Frame:
        end = len(self.data) if end is None else end
        header = self.data[offset:offset + FRAME_HEADER]
        if offset % 8 or len(header) < FRAME_HEADER or not header.startswith(FRAME_MAGIC):
            raise Damaged(f"no frame begins at byte {offset}")
        crc, zero = struct.unpack_from("<II", header, 104)
        kind, number, time_us, about_size, body_size = struct.unpack_from("<IQqQQ", header, 4)
        if crc32c(header[:104]) != crc or zero or kind not in TYPES:
            raise Damaged(f"the header of the frame at byte {offset} is damaged")
        body_at = offset + FRAME_HEADER + padded(about_size)
        after = body_at + padded(body_size)
        if after > end:
            raise Damaged(f"the frame at byte {offset} exceeds the file")
        about = self.data[offset + FRAME_HEADER:offset + FRAME_HEADER + about_size]
        body = self.data[body_at:body_at + body_size]
        if whole and hashlib.sha256(about + body).digest() != header[40:72]:
            raise Damaged(f"the frame at byte {offset} is damaged")
        return Frame(offset, TYPES[kind], number, time_us, about, body, header[:72], header[72:104], after)

    def commit_at(self, offset: int, end: int) -> Commit:
        frame = self.frame_at(offset, end)
        body = frame.body
        if frame.type != "commit" or frame.end != end or len(body) < COMMIT_FIXED:
            raise Damaged(f"no commit begins at byte {offset}")
        number, frames, indexed, _previous, _next = struct.unpack_from("<5Q", body)
        count, = struct.unpack_from("<Q", body, 72)
        if len(body) != COMMIT_FIXED + count * SEGMENT or frames != frame.number or body[40:72] != frame.chain:
            raise Damaged(f"the commit at byte {offset} is damaged")
        segments = []
        for at in range(88, 88 + count * SEGMENT, SEGMENT):
            kind, crc, place, size, name_size, _ = struct.unpack_from("<IIQQQQ", body, at)
            if kind not in KINDS or place + size > offset:
                raise Damaged(f"the commit at byte {offset} is damaged")
            segments.append(Segment(KINDS[kind], crc, place, size, name_size, body[at + 40:at + 72]))
        return Commit(number, frames, indexed, body[40:72], segments, offset, end)

    def newest_mark(self) -> Optional[tuple[int, int, int]]:
        marks = []
        for at in (64, 96):
            number, frame, end, crc = struct.unpack_from("<QQQI", self.data, at)
            if end and FILE_HEADER <= frame < end and crc32c(self.data[at:at + 24]) == crc:
                marks.append((number, frame, end))
        return max(marks, default=None)

    def newest_commit(self) -> tuple[Commit, int]:
        mark = self.newest_mark()
        if mark and mark[2] <= len(self.data):
            commit = self.commit_at(mark[1], mark[2])   # it was complete: damage is no torn end
        else:
            commit = self.last_commit()
        at = commit.end   # later commits were not marked: all frames before one must be whole
        while at < len(self.data):
            try:
                frame = self.frame_at(at)
                if frame.type == "commit":
                    commit = self.commit_at(at, frame.end)
            except Damaged:
                break
            at = frame.end
        return commit, len(self.data) - commit.end

    def last_commit(self) -> Commit:
        commits, at = [], FILE_HEADER   # a document may hold the bytes of a commit: the frames must lead to it
        while at < len(self.data):
            try:
                frame = self.frame_at(at, whole=False)
            except Damaged:
                break
            if frame.type == "commit":
                commits.append(frame)
            at = frame.end
        for frame in reversed(commits):
            try:
                return self.commit_at(frame.offset, frame.end)
            except Damaged:
                continue
        raise Damaged("no complete commit is left")

    def all_frames(self) -> Iterator[Frame]:
        at = FILE_HEADER
        while at < self.commit.end:
            frame = self.frame_at(at, self.commit.end)
            yield frame
            at = frame.end

    def frames(self) -> Iterator[Frame]:
        """The data frames, in order."""
        return (frame for frame in self.all_frames() if frame.type not in ("segment", "commit"))

    def segment(self, segment: Segment) -> bytes:
        """The bytes of an index, without its name."""
        data = self.data[segment.offset:segment.offset + segment.size]
        if hashlib.sha256(data).digest() != segment.hash:
            raise Damaged(f"the index at byte {segment.offset} is damaged")
        return data[padded(segment.name_size):]

    def document(self, frame: Frame) -> Document:
        about = json.loads(frame.about)
        size = about["size_bytes"]
        content = frame.body[:size]
        text = frame.body[size:] if len(frame.body) > size else content
        return Document(about["uri"], frame.number, frame.time_us, about, content, text)

    def documents(self, asof: Optional[int] = None) -> dict[str, Document]:
        """The current documents by URI; `asof`: those that were current after this frame."""
        current: dict[str, Document] = {}
        for frame in self.frames():
            if asof is not None and frame.number > asof:
                break
            if frame.type == "document":
                document = self.document(frame)
                current[document.uri] = document
            elif frame.type == "retraction":
                current.pop(json.loads(frame.about)["uri"], None)
        return current

    def verify(self) -> int:
        """Checks everything; returns the number of data frames."""
        header = self.data[:64] + bytes(64)   # the marks are not part of it
        chain, number = hashlib.sha256(header).digest(), 0
        for frame in self.all_frames():
            if frame.type not in ("segment", "commit"):
                chain = hashlib.sha256(chain + frame.chained).digest()
                if frame.number != number:
                    raise Damaged(f"the frame at byte {frame.offset} has another number")
                number += 1
            if frame.chain != chain:
                raise Damaged(f"the chain of the frame at byte {frame.offset} differs")
            if frame.type == "document":
                list(self.document(frame).passages())
        if number != self.commit.frames or chain != self.commit.chain:
            raise Damaged("the newest commit does not match the frames")
        for segment in self.commit.segments:
            if crc32c(self.data[segment.offset:segment.offset + segment.size]) != segment.crc:
                raise Damaged(f"the index at byte {segment.offset} is damaged")
            self.segment(segment)
        return number


def main(arguments: Optional[list[str]] = None) -> int:
    parser = argparse.ArgumentParser(description="Reads a capsule of Muniment.")
    parser.add_argument("file")
    parser.add_argument("--frames", action="store_true", help="print every data frame")
    parser.add_argument("--verify", action="store_true", help="check every frame, hash and index")
    options = parser.parse_args(arguments)
    try:
        capsule = Capsule(options.file)
        if options.verify:
            print(f"intact: {capsule.verify()} frames, chain {capsule.commit.chain.hex()}")
        elif options.frames:
            for frame in capsule.frames():
                about = json.loads(frame.about) if frame.about else {}
                print(json.dumps({"frame": frame.number, "type": frame.type, "time_us": frame.time_us, "about": about,
                                  "body_bytes": len(frame.body)}, ensure_ascii=False))
        else:
            for uri, document in sorted(capsule.documents().items()):
                print(json.dumps({"uri": uri, "frame": document.frame, "title": document.about["title"],
                                  "bytes": len(document.content), "passages": len(document.about["chunks"])}, ensure_ascii=False))
        if capsule.torn_bytes:
            print(f"{capsule.torn_bytes} bytes after the newest complete commit are ignored", file=sys.stderr)
    except (Damaged, OSError, ValueError, KeyError, TypeError) as error:   # also a description that is no such object
        print(f"muniment_capsule: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
