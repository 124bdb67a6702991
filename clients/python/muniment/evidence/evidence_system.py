"""EvidenceStore: evidence in the daemon's ledger with a file per piece, `.beads/evidence/{id}.json`.

The ledger is authoritative. The file is a copy, written after the ledger has recorded the evidence; `verify_integrity` detects an
edited file and records a violation.
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
from collections.abc import Iterator, Sequence
from typing import Any, Optional, Union

from ..client import Client, Json, connect
from ..errors import MunimentError
from ..place import Path
from ..recording import current_run
from .errors import EvidenceNotFound, FileNotWritten, InvalidEvidence
from .results import check_text, ids_of

FOLDER = pathlib.Path(".beads", "evidence")
RECORD_MEMBERS = ("id", "type", "content", "timestamp", "validator_id", "checksum")
TYPE_CHARACTERS_MAX = 100
VALIDATOR_CHARACTERS_MAX = 256
ID_CHARACTERS_MAX = 256
EXPIRES_SECONDS_MAX = 366 * 86_400
FILE_BYTES_MAX = 1 << 19     # a request has at most 1 MiB, and the content may grow by half
SHOWN_BYTES_MAX = 2_000      # bytes of an invalid file quoted in the violation
FILE_MODE = 0o644
REQUESTS_AT_ONCE = 32
ERASED_HASH = "0" * 64


@dataclasses.dataclass(frozen=True)
class Evidence:
    """A recorded piece of evidence. `checksum` covers the other members; `validator_id` is claimed by the client."""

    id: str
    type: str
    content: Json
    timestamp: str     # RFC 3339, by the daemon's clock
    validator_id: str
    checksum: str      # "sha256:…"

    @property
    def text(self) -> str:
        """Returns the text of the content, or the content as JSON if it has none."""
        text = self.content.get("text")
        return text if isinstance(text, str) else json.dumps(self.content, ensure_ascii=False, sort_keys=True)

    @property
    def recorded_at(self) -> datetime.datetime:
        return datetime.datetime.fromisoformat(self.timestamp)

    def as_dict(self) -> Json:
        """Returns the record in the form of the file."""
        return dataclasses.asdict(self)

    @classmethod
    def of_record(cls, record: Json) -> Evidence:
        return cls(**{name: record[name] for name in RECORD_MEMBERS})


def checksum_of(record: Json) -> str:
    """Returns the SHA-256 of the canonical JSON of all members except the checksum (docs/evidence.md)."""
    covered = {name: record[name] for name in RECORD_MEMBERS if name != "checksum"}
    text = json.dumps(covered, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


class EvidenceStore:
    """Thread-safe. If no daemon runs, each method raises `muniment.ConnectionLost` with the command that starts one."""

    def __init__(self, base_path: Optional[Path] = None, *, data: Optional[Path] = None, client: Optional[Client] = None,
                 run_id: Optional[str] = None, files: bool = True):
        """`base_path`: the folder with `.beads` (default: the current one). `data`: the socket or the data folder (default:
        as for the command line). `run_id`: the run of the evidence (default: the innermost `muniment.run`, otherwise MUNIMENT_RUN,
        otherwise none). `files`: whether to write files."""
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
    def data(self) -> Optional[Path]:
        """The socket or the data folder; None: as for the command line."""
        return self._data

    @property
    def client(self) -> Client:
        with self._connecting:
            if self._client is None:
                self._client = connect(self._data, start=False)
            return self._client

    @property
    def run_id(self) -> Optional[str]:
        """Returns the run of new evidence; None: no run."""
        if self._run_id:
            return self._run_id
        opened = current_run()
        return opened.run_id if opened is not None else os.environ.get("MUNIMENT_RUN") or None

    def use_run(self, run_id: Optional[str]) -> None:
        """Sets the run of new evidence; None restores the default."""
        self._run_id = run_id

    def in_run(self) -> Json:
        return {"run_id": self.run_id} if self.run_id else {}

    def add_evidence(self, type: str, content: Union[str, Json], validator_id: Optional[str] = None, *,
                     task_id: Optional[str] = None, depends_on: Sequence[str] = (),
                     artifacts: Sequence[str] = (), expires_in: Union[int, datetime.timedelta, None] = None) -> Evidence:
        """Records evidence and writes its file. `content`: a text or a dict of JSON values. `task_id`: the task that it
        supports. `depends_on`: ids of evidence that must be intact and fresh for this evidence to count. `artifacts`: ids of
        artifacts of the run on which it rests. `expires_in`: seconds, or a timedelta, after which it is stale.
        Raises InvalidEvidence, FileNotWritten, MunimentError."""
        check_text("type", type, TYPE_CHARACTERS_MAX)
        params: Json = {"type": type, "content": _content_of(content), **self.in_run()}
        if validator_id is not None:
            params["validator_id"] = check_text("validator_id", validator_id, VALIDATOR_CHARACTERS_MAX)
        if task_id is not None:
            params["task_id"] = task_id
        if depends_on:
            params["depends_on"] = ids_of(depends_on)
        if artifacts:
            params["artifacts"] = ids_of(artifacts)
        if expires_in is not None:
            params["expires_in_seconds"] = _seconds_of(expires_in)
        params["_meta"] = {"idempotency_key": str(uuid.uuid4())}   # a retry is recorded once
        with _clear_errors():
            recorded = self.client.again(lambda: self.client.call("evidence.record", **params))
        evidence = self.retrieve_evidence(recorded["evidence_id"])
        if self.files:
            self._write(evidence)
        return evidence

    def get_evidence(self, evidence_id: str) -> Optional[Evidence]:
        """Returns the evidence from the ledger; None if it does not exist or was erased."""
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
        """Like get_evidence, but raises EvidenceNotFound if there is none."""
        evidence = self.get_evidence(evidence_id)
        if evidence is None:
            raise EvidenceNotFound(f"no evidence {evidence_id!r:.100}. List it: store.list_evidence()")
        return evidence

    def list_evidence(self, type: Optional[str] = None, *, run_id: Optional[str] = None, task_id: Optional[str] = None,
                      validator: Optional[str] = None) -> list[Evidence]:
        """Returns the evidence that this caller may read, oldest first, without duplicates and erased evidence."""
        filters = {"type": type, "run_id": run_id, "task_id": task_id, "validator": validator}
        ids: dict[str, None] = {}
        for page in self._pages({name: value for name, value in filters.items() if value is not None}):
            ids.update({row["evidence_id"]: None for row in page if row["hash"] != ERASED_HASH})
        return self._exported(list(ids))

    def check_evidence(self, evidence_id: str) -> Json:
        """Returns {evidence_id, exists, intact, fresh, reason?, type?, actor?, validator_id?, created_at?, run_id?, hash?, expires_at?,
        depends_on?, broken_dependency?: {evidence_id?, code, reason}}."""
        check_text("evidence_id", evidence_id, ID_CHARACTERS_MAX)
        found = self.client.call("evidence.check", evidence_id=evidence_id)
        return {name: value for name, value in found.items() if name not in ("halted", "log_no")}

    def path_of(self, evidence_id: str) -> pathlib.Path:
        """Returns the path of the evidence's file. Raises InvalidEvidence if the id is not a UUID."""
        if not _is_uuid(evidence_id):
            raise InvalidEvidence(f"evidence_id: {evidence_id!r:.100} is not a UUID")
        return self.base_path / FOLDER / f"{evidence_id.lower()}.json"

    def export_evidence(self, evidence_id: str) -> pathlib.Path:
        """Rewrites the file from the ledger. Raises EvidenceNotFound, FileNotWritten."""
        return self._write(self.retrieve_evidence(evidence_id))

    def import_evidence(self, file: Path) -> Evidence:
        """Records the contents of a file as evidence with the same id. Raises InvalidEvidence if it is not a record, and
        MunimentError `conflict` for an edited record, which the daemon records as a violation."""
        raw = _bytes_of(pathlib.Path(file))
        if not raw:
            raise InvalidEvidence(f"{file}: the file is empty, unreadable or not a regular file. Name the file of one piece of evidence")
        record = _parsed(raw)
        if record is None:
            raise InvalidEvidence(f"{file}: expected a JSON object with {', '.join(RECORD_MEMBERS)}")
        with _clear_errors():
            imported = self._import(record)
        return self.retrieve_evidence(imported["evidence_id"])

    def verify_integrity(self, evidence_id: str) -> bool:
        """Returns whether the ledger has the evidence, its stored bytes match their hash, and its file, if any, agrees. An
        edited file is recorded as a violation."""
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
            if error.code in ("invalid_argument", "too_large"):   # not a record: sent again in a form that can be recorded
                return self._said_as_damage(evidence_id, raw, record)
            raise

    def _said_as_damage(self, evidence_id: str, raw: bytes, record: Json) -> bool:
        with contextlib.suppress(MunimentError):
            self._import(self._record_of_damage(evidence_id, raw, record))
        return False

    def _record_of_damage(self, evidence_id: str, raw: bytes, record: Optional[Json]) -> Json:
        """Returns a record with a wrong checksum, which makes the daemon record a violation for a file that is not a record."""
        what = f"the file contains the record of {record.get('id')!r:.100}" if record is not None else "the file is not a record"
        content = {"text": what, "file": raw[:SHOWN_BYTES_MAX].decode(errors="replace").replace("\0", "\ufffd")}
        return {"id": evidence_id, "type": "damaged_file", "content": content, "timestamp": "", "validator_id": "",
                "checksum": "sha256:" + hashlib.sha256(raw).hexdigest()}

    def _import(self, record: Json) -> Json:
        return self.client.again(lambda: self.client.call("evidence.import", record=record, **self.in_run()))

    def _write(self, evidence: Evidence) -> pathlib.Path:
        """Writes through a temporary file in the same folder, so that readers see either the old or the complete new file."""
        record, path = evidence.as_dict(), self.path_of(evidence.id)
        if checksum_of(record) != evidence.checksum:   # a number that Python formats differently would look edited
            raise FileNotWritten(f"evidence {evidence.id} is recorded, but Python would format its numbers differently than they were "
                                 f"recorded. Write its file with: muniment evidence export {evidence.id} --into DIR", evidence)
        try:
            folder = _open_folder(self.base_path)
            try:
                _replace_file(folder, path.name, _file_text(record).encode())
            finally:
                os.close(folder)
        except OSError as error:
            raise FileNotWritten(f"evidence {evidence.id} is recorded, but its file could not be written: {error}. Write it again: "
                                 f"store.export_evidence({evidence.id!r})", evidence) from error
        return path

    def _exported(self, ids: list[str]) -> list[Evidence]:
        """Returns the evidence with these ids except erased ones; the requests overlap."""
        found: list[Evidence] = []
        for at in range(0, len(ids), REQUESTS_AT_ONCE):
            sent = [self.client.start("evidence.export", {"evidence_id": one}) for one in ids[at:at + REQUESTS_AT_ONCE]]
            for request in sent:
                try:
                    found.append(Evidence.of_record(self.client.finish(request)[0]["record"]))
                except MunimentError as error:
                    if error.code != "not_found":   # erased in the meantime
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
    """Returns the content in the form of the ledger. Raises InvalidEvidence if it is not JSON."""
    if isinstance(content, str):
        content = {"text": content}
    if not isinstance(content, dict):
        raise InvalidEvidence(f"content: expected a text or a dict, not {type(content).__name__}")
    if "text" in content and not isinstance(content["text"], str):
        raise InvalidEvidence("content: the member text must be a text")
    try:
        json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:   # also a lone surrogate
        raise InvalidEvidence(f"content: not JSON: {error}. Use texts, numbers, lists and dicts") from None
    return content


def _seconds_of(expires_in: Union[int, datetime.timedelta]) -> int:
    seconds = expires_in // datetime.timedelta(seconds=1) if isinstance(expires_in, datetime.timedelta) else expires_in
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 1 <= seconds <= EXPIRES_SECONDS_MAX:
        raise InvalidEvidence(f"expires_in: expected 1 to {EXPIRES_SECONDS_MAX:,} seconds, or a timedelta of that length")
    return seconds


def _is_uuid(text: Any) -> bool:
    """Returns the id in the ledger's form, which is a valid file name."""
    try:
        return isinstance(text, str) and str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _bytes_of(file: pathlib.Path) -> bytes:
    """Returns at most FILE_BYTES_MAX of a regular file; empty for a link, a folder, a pipe or an unreadable file."""
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
    """Opens the folder of files below `base`, creating it if it is missing, and returns its descriptor. Symbolic links in its path
    are refused, since they may lead out of `base`."""
    base.mkdir(parents=True, exist_ok=True)
    folder = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in FOLDER.parts:
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except NotADirectoryError:
            raise NotADirectoryError(f"{name} in {base} is a file or a symbolic link; expected a folder") from None
        finally:
            os.close(folder)
        folder = below
    return folder


def _replace_file(folder: int, name: str, content: bytes) -> None:
    """Replaces the file in the open folder atomically."""
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
    """Returns the JSON object in a file; None if there is none, if it has duplicate members, or if it cannot be sent."""
    try:
        record = json.loads(raw, object_pairs_hook=_each_once)
        json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):   # also a lone surrogate
        return None
    return record if isinstance(record, dict) else None


def _file_text(record: Json) -> str:
    """Returns the record with one member per line."""
    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in record.items()) + "\n}\n"


def _each_once(pairs: list[tuple[str, Any]]) -> Json:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate member")
    return members


@contextlib.contextmanager
def _clear_errors() -> Iterator[None]:
    """Converts the daemon's refusal of invalid data to an error of this package with the same message."""
    try:
        yield
    except MunimentError as error:
        if error.code in ("invalid_argument", "too_large"):
            raise InvalidEvidence(str(error)) from error
        raise
