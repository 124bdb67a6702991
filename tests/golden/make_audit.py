#!/usr/bin/env python3
"""Makes tests/golden/audit: a key, notes, proofs, tiles and a bundle of one small log, the same bytes each time.

    tests/golden/make_audit.py [FOLDER]
"""
import json
import pathlib
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))

from make_log import LogMaker  # noqa: E402
from published_log import Key, PublishedLog, audited_run, b64, consistency  # noqa: E402

OLDER = 11   # the size of the older checkpoint
SEQ = 5      # the event that is proven


def make(folder: pathlib.Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as artifacts:
        log = PublishedLog(audited_run(LogMaker(artifacts)))
        witness = Key("witness.test", "witness", 4)
        (folder / "log.key").write_text(log.keys[0].secret + "\n")
        (folder / "log.pub").write_text("# the key of tests/golden/audit\n" + log.trusted())
        (folder / "witness.pub").write_text(witness.vkey + "\n")
        (folder / "other.pub").write_text(Key(log.origin, "other").vkey + "\n")
        (folder / "checkpoint").write_text(log.note())
        (folder / "older").write_text(log.note(OLDER))
        (folder / "cosigned").write_text(log.note(keys=[*log.keys, witness]))
        (folder / "forged").write_text(log.note(keys=[Key(log.origin, "other")]))
        (folder / "unsigned").write_text(log.note(keys=[]))
        (folder / "event.tlog-proof").write_text(log.proof(SEQ))
        (folder / "receipt.json").write_text(json.dumps(log.receipt(SEQ), indent=1) + "\n")
        (folder / "consistency.json").write_text(json.dumps(
            {"first": OLDER, "second": len(log.leaves), "hashes": [b64(value) for value in consistency(log.leaves, OLDER)]}, indent=1) + "\n")
        (folder / "tiles").mkdir()
        log.write_tiles(folder / "tiles")
        log.write_bundle(folder / "run.muniment.tar.zst", "audited")


if __name__ == "__main__":
    make(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "audit")
