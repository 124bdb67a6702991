"""Signs C2SP notes with the standard library alone: Ed25519 of RFC 8032 (slow, for tests), vkeys, checkpoints."""
import base64
import hashlib

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def _add(a, b):
    x1, y1, z1, t1 = a
    x2, y2, z2, t2 = b
    e, g = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    c, d = 2 * t1 * t2 * D % P, 2 * z1 * z2 % P
    return ((g - e) * (d - c) % P, (d + c) * (g + e) % P, (d - c) * (d + c) % P, (g - e) * (g + e) % P)


def _times(n, point):
    total = (0, 1, 1, 0)
    while n:
        if n & 1:
            total = _add(total, point)
        point = _add(point, point)
        n >>= 1
    return total


_BASE_Y = 4 * pow(5, P - 2, P) % P
_X2 = (_BASE_Y * _BASE_Y - 1) * pow(D * _BASE_Y * _BASE_Y + 1, P - 2, P) % P
_BASE_X = pow(_X2, (P + 3) // 8, P)
if (_BASE_X * _BASE_X - _X2) % P:
    _BASE_X = _BASE_X * pow(2, (P - 1) // 4, P) % P
if _BASE_X & 1:
    _BASE_X = P - _BASE_X
BASE = (_BASE_X, _BASE_Y, 1, _BASE_X * _BASE_Y % P)


def _packed(point):
    x, y, z, _ = point
    inverse = pow(z, P - 2, P)
    return (y * inverse % P | (x * inverse % P & 1) << 255).to_bytes(32, "little")


class Signer:
    """A private key with its name; kind 1 signs notes, kind 4 cosigns them."""

    def __init__(self, name, seed, kind=1):
        self.name, self.kind = name, kind
        digest = hashlib.sha512(seed).digest()
        self._scalar = int.from_bytes(digest[:32], "little") & ~7 & (1 << 254) - 1 | 1 << 254
        self._prefix = digest[32:]
        self.public = _packed(_times(self._scalar, BASE))
        self.key_id = hashlib.sha256(name.encode() + b"\n" + bytes([kind]) + self.public).digest()[:4]

    @property
    def vkey(self):
        return f"{self.name}+{self.key_id.hex()}+{base64.b64encode(bytes([self.kind]) + self.public).decode()}"

    def _sign(self, message):
        def number(*parts):
            return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little") % L
        r = number(self._prefix, message)
        point = _packed(_times(r, BASE))
        s = (r + number(point, self.public, message) * self._scalar) % L
        return point + s.to_bytes(32, "little")

    def line(self, text, time=0):
        if self.kind == 4:
            signature = time.to_bytes(8, "big") + self._sign(f"cosignature/v1\ntime {time}\n{text}".encode())
        else:
            signature = self._sign(text.encode())
        return f"— {self.name} {base64.b64encode(self.key_id + signature).decode()}\n"


def checkpoint(origin, size, root):
    return f"{origin}\n{size}\n{base64.b64encode(root).decode()}\n"


def note(text, *signers, time=0):
    return text + "\n" + "".join(signer.line(text, time) for signer in signers)
