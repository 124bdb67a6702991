"""EvidenceStore: evidence in the daemon's ledger, with a file for each piece, `.beads/evidence/{id}.json`.

The ledger decides. The file is a copy: it is written after the ledger has the evidence, and an edited one is found by
`verify_integrity` and recorded as a violation.
"""
from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import json
import os
import pathlib
import stat
import threading
import uuid
from collections.abc import Iterator
from typing import Any, Optional, Union

from ..client import Client, Json, connect
from ..errors import MunimentError
from ..place import Path
from ..recording import current_run
from .errors import EvidenceNotFound, FileNotWritten, InvalidEvidence
from .results import check_text

FOLDER = pathlib.Path(".beads", "evidence")
RECORD_MEMBERS = ("id", "type", "content", "timestamp", "validator_id", "checksum")
TYPE_CHARACTERS_MAX = 100
VALIDATOR_CHARACTERS_MAX = 256
ID_CHARACTERS_MAX = 256
FILE_BYTES_MAX = 1 << 19     # a request holds 1 MiB, and what is read here may grow by half
SHOWN_BYTES_MAX = 2_000      # of a file that is no record, in the violation's record
FILE_MODE = 0o644
REQUESTS_AT_ONCE = 32
ERASED_HASH = "0" * 64


@dataclasses.dataclass(frozen=True)
class Evidence:
    """A piece of evidence as it was recorded. `checksum` covers the other members; `validator_id` is the client's word."""

    id: str
    type: str
    content: Json
    timestamp: str     # RFC 3339, by the daemon's clock
    validator_id: str
    checksum: str      # "sha256:…"

    @property
    def text(self) -> str:
        """The content's text; otherwise the content as JSON."""
        text = self.content.get("text")
        return text if isinstance(text, str) else json.dumps(self.content, ensure_ascii=False, sort_keys=True)

    @property
    def recorded_at(self) -> datetime.datetime:
        return datetime.datetime.fromisoformat(self.timestamp)

    def as_dict(self) -> Json:
        """The record, as the file has it."""
        return dataclasses.asdict(self)

    @classmethod
    def of_record(cls, record: Json) -> Evidence:
        return cls(**{name: record[name] for name in RECORD_MEMBERS})


def checksum_of(record: Json) -> str:
    """SHA-256 of the canonical JSON of the members but the checksum (docs/evidence.md)."""
    covered = {name: record[name] for name in RECORD_MEMBERS if name != "checksum"}
    text = json.dumps(covered, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class EvidenceStore:
    """Threads may share it. Where no daemon runs, each method raises `muniment.ConnectionLost`, which says how to start one."""

    def __init__(self, base_path: Optional[Path] = None, *, data: Optional[Path] = None, client: Optional[Client] = None,
                 run_id: Optional[str] = None, files: bool = True):
        """`base_path`: the folder with `.beads` (default: the current one). `data`: the socket or the data folder (default:
        where the command line finds the daemon). `run_id`: the run that evidence belongs to (default: that of the innermost `muniment.run`, otherwise
        MUNIMENT_RUN, otherwise none). `files`: whether files are written."""
        self.base_path = pathlib.Path(base_path) if base_path is not None else pathlib.Path.cwd()
        self.files = files
        self._run_id, self._data, self._client = run_id, data, client
        self._owns_client, self._connecting = client is None, threading.Lock()

    def __enter__(self) -> EvidenceStore: return self
    def __exit__(self, *_: object) -> None: self.close()

    def close(self) -> None:
        if self._client is not None and self._owns_client:
            self._client.close()
            self._client = None

    @property
    def client(self) -> Client:
        with self._connecting:
            if self._client is None:
                self._client = connect(self._data, start=False)
            return self._client

    @property
    def run_id(self) -> Optional[str]:
        """The run that evidence belongs to; None: it belongs to none."""
        if self._run_id:
            return self._run_id
        opened = current_run()
        return opened.run_id if opened is not None else os.environ.get("MUNIMENT_RUN") or None

    def use_run(self, run_id: Optional[str]) -> None:
        """From now on evidence belongs to this run; None: as if none had been named."""
        self._run_id = run_id

    def in_run(self) -> Json:
        return {"run_id": self.run_id} if self.run_id else {}

    # ---- recording and reading --------------------------------------------------------------------

    def add_evidence(self, type: str, content: Union[str, Json], validator_id: Optional[str] = None, *,
                     task_id: Optional[str] = None) -> Evidence:
        """Records evidence and writes its file. `content`: a text, or a dict of what JSON has. `task_id`: the task that it is
        for. Raises InvalidEvidence, FileNotWritten, MunimentError."""
        check_text("type", type, TYPE_CHARACTERS_MAX)
        params: Json = {"type": type, "content": _content_of(content), **self.in_run()}
        if validator_id is not None:
            params["validator_id"] = check_text("validator_id", validator_id, VALIDATOR_CHARACTERS_MAX)
        if task_id is not None:
            params["task_id"] = task_id
        params["_meta"] = {"idempotency_key": str(uuid.uuid4())}   # a retry records it once
        with _clear_errors():
            recorded = self.client.again(lambda: self.client.call("evidence.record", **params))
        evidence = self.retrieve_evidence(recorded["evidence_id"])
        if self.files:
            self._write(evidence)
        return evidence

    def get_evidence(self, evidence_id: str) -> Optional[Evidence]:
        """The evidence as the ledger has it; None where there is none, or it was erased."""
        if not _is_uuid(evidence_id):
            return None
        try:
            record = self.client.call("evidence.export", evidence_id=evidence_id)["record"]
        except MunimentError as error:
            if error.code == "not_found":
                return None
            raise
        return Evidence.of_record(record)

    def retrieve_evidence(self, evidence_id: str) -> Evidence:
        """As get_evidence. Raises EvidenceNotFound where there is none."""
        evidence = self.get_evidence(evidence_id)
        if evidence is None:
            raise EvidenceNotFound(f"no evidence {evidence_id!r:.100}. List it: store.list_evidence()")
        return evidence

    def list_evidence(self, type: Optional[str] = None, *, run_id: Optional[str] = None, task_id: Optional[str] = None,
                      validator: Optional[str] = None) -> list[Evidence]:
        """The evidence that this caller may see, oldest first, each piece once; erased evidence is left out."""
        filters = {"type": type, "run_id": run_id, "task_id": task_id, "validator": validator}
        ids: dict[str, None] = {}
        for page in self._pages({name: value for name, value in filters.items() if value is not None}):
            ids.update({row["evidence_id"]: None for row in page if row["hash"] != ERASED_HASH})
        return self._exported(list(ids))

    def check_evidence(self, evidence_id: str) -> Json:
        """{evidence_id, exists, intact, fresh, reason?, type?, actor?, validator_id?, created_at?, run_id?, hash?}."""
        check_text("evidence_id", evidence_id, ID_CHARACTERS_MAX)
        found = self.client.call("evidence.check", evidence_id=evidence_id)
        return {name: value for name, value in found.items() if name not in ("halted", "log_no")}

    # ---- files ------------------------------------------------------------------------------------

    def path_of(self, evidence_id: str) -> pathlib.Path:
        """Where the evidence's file is, or would be. Raises InvalidEvidence for what is no UUID."""
        if not _is_uuid(evidence_id):
            raise InvalidEvidence(f"evidence_id: {evidence_id!r:.100} is not a UUID, and names no file")
        return self.base_path / FOLDER / f"{evidence_id.lower()}.json"

    def export_evidence(self, evidence_id: str) -> pathlib.Path:
        """Writes the file anew from the ledger. Raises EvidenceNotFound, FileNotWritten."""
        return self._write(self.retrieve_evidence(evidence_id))

    def import_evidence(self, file: Path) -> Evidence:
        """Records what a file says, as evidence of the same id. Raises InvalidEvidence for what is no record, and MunimentError
        `conflict` for an edited one, which the daemon records as a violation."""
        raw = _bytes_of(pathlib.Path(file))
        if not raw:
            raise InvalidEvidence(f"{file}: it is empty, or not a regular file that can be read. Name the file of one piece of evidence")
        record = _parsed(raw)
        if record is None:
            raise InvalidEvidence(f"{file}: expected a JSON object with {', '.join(RECORD_MEMBERS)}")
        with _clear_errors():
            imported = self._import(record)
        return self.retrieve_evidence(imported["evidence_id"])

    def verify_integrity(self, evidence_id: str) -> bool:
        """Whether the ledger has the evidence, its stored bytes are those that were recorded, and its file, where there is
        one, says the same. An edited file is recorded as a violation."""
        if not _is_uuid(evidence_id):
            return False
        if not self.client.call("evidence.check", evidence_id=evidence_id)["intact"]:
            return False
        file = self.path_of(evidence_id)
        if not os.path.lexists(file):
            return True
        return self._file_is_intact(evidence_id.lower(), file)

    def _file_is_intact(self, evidence_id: str, file: pathlib.Path) -> bool:
        """Sends the file to the ledger, which compares it and records a difference."""
        raw = _bytes_of(file)
        record = _parsed(raw)
        if record is None or record.get("id") != evidence_id:
            record = self._record_of_damage(evidence_id, raw, record)
        try:
            return bool(self._import(record)["duplicate"])
        except MunimentError as error:
            if error.code == "conflict":
                return False
            if error.code in ("invalid_argument", "too_large"):   # it is no record: said once more as one that is recorded
                return self._said_as_damage(evidence_id, raw, record)
            raise

    def _said_as_damage(self, evidence_id: str, raw: bytes, record: Json) -> bool:
        with contextlib.suppress(MunimentError):
            self._import(self._record_of_damage(evidence_id, raw, record))
        return False

    def _record_of_damage(self, evidence_id: str, raw: bytes, record: Optional[Json]) -> Json:
        """A record that cannot fit its checksum: what the daemon records of a file that is no record of this evidence."""
        what = f"the file has the record of {record.get('id')!r:.100}" if record is not None else "the file is no record"
        content = {"text": what, "file": raw[:SHOWN_BYTES_MAX].decode(errors="replace").replace("\0", "\ufffd")}
        return {"id": evidence_id, "type": "damaged_file", "content": content, "timestamp": "", "validator_id": "",
                "checksum": "sha256:" + hashlib.sha256(raw).hexdigest()}

    def _import(self, record: Json) -> Json:
        return self.client.again(lambda: self.client.call("evidence.import", record=record, **self.in_run()))

    def _write(self, evidence: Evidence) -> pathlib.Path:
        """Through a temporary file in the same folder, so that a reader sees the old file or the whole new one."""
        record, path = evidence.as_dict(), self.path_of(evidence.id)
        if checksum_of(record) != evidence.checksum:   # a number that Python writes in another way would look edited
            raise FileNotWritten(f"evidence {evidence.id} is recorded; Python would write its numbers in another way than they were "
                                 f"recorded. Write its file with: muniment evidence export {evidence.id} --into DIR", evidence)
        try:
            folder = _open_folder(self.base_path)
            try:
                _replace_file(folder, path.name, _file_text(record).encode())
            finally:
                os.close(folder)
        except OSError as error:
            raise FileNotWritten(f"evidence {evidence.id} is recorded; its file could not be written: {error}. Write it again: "
                                 f"store.export_evidence({evidence.id!r})", evidence) from error
        return path

    def _exported(self, ids: list[str]) -> list[Evidence]:
        """Those of the ids that are not erased; the requests overlap."""
        found: list[Evidence] = []
        for at in range(0, len(ids), REQUESTS_AT_ONCE):
            sent = [self.client.start("evidence.export", {"evidence_id": one}) for one in ids[at:at + REQUESTS_AT_ONCE]]
            for request in sent:
                try:
                    found.append(Evidence.of_record(self.client.finish(request)[0]["record"]))
                except MunimentError as error:
                    if error.code != "not_found":   # erased meanwhile
                        raise
        return found

    def _pages(self, filters: Json) -> Iterator[list[Json]]:
        cursor: Json = {}
        while True:
            page = self.client.call("evidence.list", **filters, **cursor)
            yield page["evidence"]
            if "cursor" not in page:
                return
            cursor = {"cursor": page["cursor"]}


def _content_of(content: Any) -> Json:
    """The content as the ledger takes it. Raises InvalidEvidence for what JSON has not."""
    if isinstance(content, str):
        content = {"text": content}
    if not isinstance(content, dict):
        raise InvalidEvidence(f"content: expected a text or a dict, not {type(content).__name__}")
    if "text" in content and not isinstance(content["text"], str):
        raise InvalidEvidence("content: its member text must be a text")
    try:
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:   # a surrogate, too
        raise InvalidEvidence(f"content: it is no JSON: {error}. Use texts, numbers, lists and dicts") from None
    return content


def _is_uuid(text: Any) -> bool:
    """In the form in which the ledger writes it: it names a file."""
    try:
        return isinstance(text, str) and str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _bytes_of(file: pathlib.Path) -> bytes:
    """At most FILE_BYTES_MAX of a regular file. A link, a folder, a pipe and what cannot be read have none."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):   # fdopen raises for a folder
                return b""
            with os.fdopen(handle, "rb", closefd=False) as opened:
                return opened.read(FILE_BYTES_MAX)
        finally:
            os.close(handle)
    except OSError:
        return b""


def _open_folder(base: pathlib.Path) -> int:
    """A descriptor of the folder of files below `base`, which is made where it is missing. A symbolic link in place of one of
    its parts is refused: it may lead out of `base`."""
    base.mkdir(parents=True, exist_ok=True)
    folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in FOLDER.parts:
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except NotADirectoryError:
            raise NotADirectoryError(f"{name} in {base} is a file or a symbolic link, and must be a folder") from None
        finally:
            os.close(folder)
        folder = below
    return folder


def _replace_file(folder: int, name: str, content: bytes) -> None:
    """Writes the file in the open folder, as a whole or not at all."""
    temporary = f".{uuid.uuid4().hex}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            os.fchmod(out.fileno(), FILE_MODE)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _parsed(raw: bytes) -> Optional[Json]:
    """The object in a file; None where there is none, where a member is there twice, or where it cannot be sent."""
    try:
        record = json.loads(raw, object_pairs_hook=_each_once)
        json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):   # a surrogate, too
        return None
    return record if isinstance(record, dict) else None


def _file_text(record: Json) -> str:
    """One member a line."""
    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in record.items()) + "\n}\n"


def _each_once(pairs: list[tuple[str, Any]]) -> Json:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is there twice")
    return members


@contextlib.contextmanager
def _clear_errors() -> Iterator[None]:
    """What was sent cannot be recorded as it is: an error of this package, with the daemon's words."""
    try:
        yield
    except MunimentError as error:
        if error.code in ("invalid_argument", "too_large"):
            raise InvalidEvidence(str(error)) from error
        raise
