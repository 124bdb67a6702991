"""Makes a sample log with keys, signed checkpoints and tiles without the daemon."""
import pathlib

import notes
import tiles
from hashing import ZERO_HASH, encode_entry, leaf_hash
from make_log import LogMaker, bulk, sample


class SignedLogMaker(LogMaker):
    """A log maker that keeps all entries and signed notes."""

    def __init__(self, artifacts, **named):
        super().__init__(artifacts, **named)
        self.entries = []
        self.origin = f"example.com/test/{self.log_id}"
        self.signers = []
        self.notes = {}               # size → note

    def append(self, run_id, *rest, **named):
        before = self.runs[run_id]["hash"] if run_id in self.runs else ZERO_HASH
        event = super().append(run_id, *rest, **named)
        self.entries.append(encode_entry(self.log_id, run_id, event, before))
        return event

    def signer(self, number, kind=1, name=None):
        return notes.Signer(name or self.origin, bytes([number]) * 32, kind)

    def rotate(self, signer):
        body = {"new_key": signer.vkey, "reason": "test"}
        if self.signers:
            body["old_key"] = self.signers[-1].vkey
        self.append("_log", "key.rotated", body, origin=1)
        self.sign(*self.signers[-1:], signer)
        self.signers.append(signer)

    def root_at(self, size):
        return tiles.root_of([leaf_hash(entry) for entry in self.entries[:size]])

    def text_at(self, size):
        return notes.checkpoint(self.origin, size, self.root_at(size))

    def sign(self, *signers, size=None):
        size = self.size if size is None else size
        self.notes[size] = notes.note(self.text_at(size), *(signers or self.signers[-1:]))
        return self.notes[size]

    def note_rows(self):
        """Returns SQL that inserts the notes into the daemon's table."""
        rows = ", ".join(f"({self.log_no}, {size}, '{note}', now())" for size, note in sorted(self.notes.items()))
        return ("CREATE TABLE IF NOT EXISTS checkpoint_note (log_no smallint, size bigint, note text, recorded_at timestamptz);"
                f" INSERT INTO checkpoint_note VALUES {rows}" if rows else "SELECT 1")

    def write_files(self, data):
        """Writes <data>/keys and <data>/tiles like the daemon."""
        data = pathlib.Path(data)
        (data / "keys").mkdir(parents=True)
        newest = self.notes[max(self.notes)]
        (data / "keys" / "log.pub").write_text("# keys of the log\n" + "".join(s.vkey + "\n" for s in self.signers))
        (data / "keys" / "last_signed").write_text(newest)
        for size in (max(self.notes), self.size):      # the signed size, and the current one
            tiles.write_tiles(data / "tiles", self.entries[:size])
        (data / "tiles" / "checkpoint").write_text(newest)


def signed_sample(artifacts, events=700):
    """Makes the sample log, the first key, plain events, the second key, and a few unsigned events."""
    log = sample(SignedLogMaker(artifacts))
    log.rotate(log.signer(1))
    bulk(log, events // 2)
    log.sign()
    log.rotate(log.signer(2))
    for n in range(events // 2):
        log.append("bulk-0", "message.added", {"message_id": f"later {n}", "role": "user", "content": "…"})
    log.sign()
    log.follow()
    for n in range(3):
        log.append("bulk-1", "message.added", {"message_id": f"last {n}", "role": "user", "content": "…"})
    return log
