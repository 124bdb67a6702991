"""Reads Postgres through `psql` alone: binary COPY on one repeatable-read snapshot.

It shares no code with the daemon or with muniment-verify, so that an error in their readers cannot be masked.
"""
import struct
import subprocess
import tempfile

EPOCH_MICROS = 946_684_800_000_000  # Postgres counts from 2000-01-01, Muniment from 1970-01-01
COPY_SIGNATURE = b"PGCOPY\n\xff\r\n\0"


def int_of(value):
    return None if value is None else int.from_bytes(value, "big", signed=True)


def text_of(value):
    return None if value is None else value.decode("utf-8")


def micros_of(value):
    return None if value is None else int.from_bytes(value, "big", signed=True) + EPOCH_MICROS


def uuid_of(value):
    if value is None:
        return None
    digits = value.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def bytes_of(value):
    return value


def jsonb_of(value):
    """Returns the text of a jsonb, whose binary form is a version byte and the text."""
    if value is None:
        return None
    assert value[0] == 1, "an unknown version of binary jsonb"
    return value[1:].decode("utf-8")


class ReadError(Exception):
    """Reading from Postgres failed; the text is that of psql."""


class Snapshot:
    """One psql in one read-only, repeatable-read transaction. `rows` can be called repeatedly."""

    def __init__(self, uri):
        self._errors = tempfile.TemporaryFile()
        self._psql = subprocess.Popen(
            ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", uri, "-f", "-"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)
        self._send("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._psql.stdin.close()
        self._psql.stdout.close()
        self._psql.wait()
        self._errors.close()

    def _send(self, sql):
        try:
            self._psql.stdin.write(sql.encode() + b"\n")
            self._psql.stdin.flush()
        except BrokenPipeError:
            self._fail()

    def _fail(self):
        self._psql.wait()
        self._errors.seek(0)
        raise ReadError(self._errors.read().decode(errors="replace").strip() or "psql ended early")

    def _read(self, size):
        data = self._psql.stdout.read(size)
        if len(data) != size:
            self._fail()
        return data

    def rows(self, query, decoders):
        """Yields a tuple for each row, with decoded columns. The caller must read all rows."""
        self._send(f"COPY ({query}) TO STDOUT (FORMAT binary);")
        head = self._read(len(COPY_SIGNATURE) + 8)
        assert head.startswith(COPY_SIGNATURE), "not a binary COPY"
        self._read(struct.unpack(">I", head[-4:])[0])
        while True:
            count = struct.unpack(">h", self._read(2))[0]
            if count == -1:
                return
            assert count == len(decoders), f"{count} columns, {len(decoders)} decoders"
            row = []
            for decode in decoders:
                size = struct.unpack(">i", self._read(4))[0]
                row.append(decode(None if size == -1 else self._read(size)))
            yield tuple(row)

    def dicts(self, relation, columns, where="true", order="1"):
        """Yields the rows of a table as dictionaries; `columns` maps a name to its decoder."""
        query = f"SELECT {', '.join(columns)} FROM {relation} WHERE {where} ORDER BY {order}"
        for row in self.rows(query, list(columns.values())):
            yield dict(zip(columns, row))


def oversized(uri, limit=65_536):
    """Returns [(table, column, bytes)] for each column with a value over `limit` bytes."""
    found = []
    with Snapshot(uri) as snapshot:
        columns = list(snapshot.rows(
            "SELECT c.oid::regclass::text, quote_ident(a.attname), (a.atttypid = 'bytea'::regtype)::int"
            " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped"
            " AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2",
            [text_of, text_of, int_of]))
        for table, column, is_bytea in columns:
            value = column if is_bytea else f"{column}::text"
            for (size,) in snapshot.rows(f"SELECT coalesce(max(octet_length({value})), 0) FROM {table}", [int_of]):
                if size > limit:
                    found.append((table, column, size))
    return found
