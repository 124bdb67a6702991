"""Applies merge patches (RFC 7386) and JSON patches (RFC 6902) within the limits of docs/format.md (Working).

Values are those of hashing.parse: dictionaries, lists, strings, Number tokens, booleans and None.
"""
import copy

from hashing import Number, canonical, parse

BYTES_MAX = 4_194_304
LEVELS_MAX = 60


class Refused(Exception):
    """The patch does not apply; the state is unchanged."""


def levels(value):
    if isinstance(value, dict):
        return 1 + max(map(levels, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(levels, value), default=0)
    return 0


def size_of(value):
    return len(canonical(value).encode("utf-8"))


def check_accepted(value, depth=0):
    """Checks the rules of docs/format.md (JSON that is accepted) that `parse` does not check."""
    if isinstance(value, Number):
        check_number(value)
    elif isinstance(value, str):
        if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
            raise Refused("a string with NUL or a lone surrogate")
    elif isinstance(value, (dict, list)):
        if depth >= 64:
            raise Refused("too deep")
        for item in value if isinstance(value, list) else [*value.keys(), *value.values()]:
            check_accepted(item, depth + 1)


def check_number(token):
    if not any(c in token for c in ".eE"):
        if not -2**63 <= int(token) < 2**64:
            raise Refused("an integer of more than 64 bits")
        return
    mantissa, _, exponent = token.lower().partition("e")
    digits = mantissa.lstrip("-").replace(".", "").lstrip("0")
    if len(digits) > 40 or abs(int(exponent or "0")) > 308:
        raise Refused("a number outside the limits")


def parse_patch(data):
    """Returns the value of a spilled patch."""
    if len(data) > BYTES_MAX:
        raise Refused("over the limit")
    try:
        value = parse(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Refused(str(error)) from None
    check_accepted(value)
    return value


def merge(target, patch):
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)
    return result


def tokens_of(pointer):
    if isinstance(pointer, Number) or not isinstance(pointer, str):
        raise Refused("a path that is not a string")
    if pointer == "":
        return []
    if pointer[0] != "/":
        raise Refused("a path that does not start with /")
    tokens = pointer[1:].split("/")
    for token in tokens:
        rest = token.replace("~0", "").replace("~1", "")
        if "~" in rest:
            raise Refused("a path with a wrong escape")
    return [token.replace("~1", "/").replace("~0", "~") for token in tokens]


def index_of(token, end):
    """Returns the position of the token, from 0 to `end`."""
    if not (token.isascii() and token.isdigit()) or (token[0] == "0" and token != "0"):
        raise Refused("not an array index")
    if len(token) > 18 or int(token) > end:
        raise Refused("past the end of the array")
    return int(token)


def find(document, tokens):
    for token in tokens:
        if isinstance(document, dict) and token in document:
            document = document[token]
        elif isinstance(document, list) and document:
            document = document[index_of(token, len(document) - 1)]
        else:
            raise Refused("no such place")
    return document


def put(document, tokens, value):
    """Performs `add`. Returns the new document."""
    if len(tokens) + levels(value) > LEVELS_MAX:
        raise Refused("too deep")
    if not tokens:
        return value
    parent = find(document, tokens[:-1])
    last = tokens[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else index_of(last, len(parent)), value)
    else:
        raise Refused("no container there")
    return document


def take(document, tokens):
    """Removes and returns the value at a path below the root."""
    if not tokens:
        raise Refused("the whole document cannot be removed")
    value = find(document, tokens)
    parent = find(document, tokens[:-1])
    if isinstance(parent, dict):
        del parent[tokens[-1]]
    else:
        del parent[index_of(tokens[-1], len(parent) - 1)]
    return value


def apply_operation(document, operation, copied):
    """Applies one operation. Returns the new document and the number of bytes copied so far."""
    if not isinstance(operation, dict):
        raise Refused("an operation that is not an object")
    op = operation.get("op")
    if op not in ("add", "remove", "replace", "move", "copy", "test") or isinstance(op, Number):
        raise Refused("an unknown operation")
    path = tokens_of(operation.get("path"))
    if op in ("add", "replace", "test") and "value" not in operation:
        raise Refused("no value")
    if op == "add":
        return put(document, path, copy.deepcopy(operation["value"])), copied
    if op == "remove":
        take(document, path)
    elif op == "replace":
        find(document, path)
        if path:
            parent_kind = find(document, path[:-1])
            if isinstance(parent_kind, dict):
                return put(document, path, copy.deepcopy(operation["value"])), copied
            take(document, path)
        return put(document, path, copy.deepcopy(operation["value"])), copied
    elif op == "test":
        if canonical(find(document, path)) != canonical(operation["value"]):
            raise Refused("the test failed")
    else:
        source = tokens_of(operation.get("from"))
        value = find(document, source)
        if op == "copy":
            copied += size_of(value)
            if copied > BYTES_MAX:
                raise Refused("copies too much")
            return put(document, path, copy.deepcopy(value)), copied
        if path[:len(source)] == source:
            if path == source:
                return document, copied
            raise Refused("a move into its own child")
        return put(document, path, take(document, source)), copied
    return document, copied


def apply_patch(working, format_name, patch):
    """Returns the new working state, and leaves `working` unchanged. Raises Refused."""
    if format_name == "merge" and isinstance(patch, dict):
        result = merge(working, patch)
    elif format_name == "json_patch" and isinstance(patch, list):
        result, copied = copy.deepcopy(working), 0
        for operation in patch:
            result, copied = apply_operation(result, operation, copied)
    else:
        raise Refused("an unknown format, or a patch of another kind")
    if not isinstance(result, dict) or levels(result) > LEVELS_MAX or size_of(result) > BYTES_MAX:
        raise Refused("the result is not an object, is too deep or too large")
    return result
