"""Writes the tile files of a log (C2SP tlog-tiles) from its entries."""
import pathlib
import struct

from hashing import leaf_hash, node_hash, sha256

WIDTH = 256


def root_of(hashes):
    """Returns the Merkle root by the definition of RFC 6962."""
    if not hashes:
        return sha256()
    if len(hashes) == 1:
        return hashes[0]
    split = 1
    while split * 2 < len(hashes):
        split *= 2
    return node_hash(root_of(hashes[:split]), root_of(hashes[split:]))


def path_of(level, index, width=WIDTH):
    groups = [f"{index % 1000:03}"]
    while index := index // 1000:
        groups.insert(0, f"x{index % 1000:03}")
    return f"tile/{level}/" + "/".join(groups) + ("" if width == WIDTH else f".p/{width}")


def write_tiles(folder, entries):
    """Writes all full tiles of a log of these entries, and the partial tiles of its size."""
    def write(path, data):
        place = pathlib.Path(folder) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    for index in range(0, len(entries), WIDTH):
        part = entries[index:index + WIDTH]
        write(path_of("entries", index // WIDTH, len(part)), b"".join(struct.pack(">H", len(entry)) + entry for entry in part))
    hashes, level = [leaf_hash(entry) for entry in entries], 0
    while hashes:
        for index in range(0, len(hashes), WIDTH):
            part = hashes[index:index + WIDTH]
            write(path_of(level, index // WIDTH, len(part)), b"".join(part))
        hashes = [root_of(hashes[i:i + WIDTH]) for i in range(0, len(hashes) - WIDTH + 1, WIDTH)]
        level += 1
