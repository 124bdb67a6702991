"""Makes an uncompressed Zstandard frame (RFC 8878), so that tests of bundles need no process for each file."""
BLOCK_BYTES = 1 << 17


def zstd_frame(data: bytes) -> bytes:
    blocks = [data[at:at + BLOCK_BYTES] for at in range(0, len(data), BLOCK_BYTES)] or [b""]
    out = [b"\x28\xb5\x2f\xfd", b"\0", b"\x38"]   # no checksum, a window of 128 KiB
    for number, block in enumerate(blocks):
        out += [(len(block) << 3 | (number == len(blocks) - 1)).to_bytes(3, "little"), block]
    return b"".join(out)
