"""No closed file without its blocks, no block in two files, and no block on a disk that no file has."""

from typing import NamedTuple


class Block(NamedTuple):
    path: str
    is_open: bool
    number: int
    stamp: int
    length: int


def read_listing(path):
    """All blocks of all files, in the order in which they are in each."""
    found = []
    for line in path.read_text().splitlines():
        name, state, number, stamp, length, _ = line.split("\t")
        found.append(Block(name, state == "open", int(number), int(stamp), int(length)))
    return found


def violations(listing, on_disk):
    """`on_disk` are the finished replicas of each data server, as (id, stamp, length)."""
    sentences = []
    files, last = {}, {}
    for block in listing:
        last[block.path] = block.number
        if block.number in files:
            sentences.append(f"block {block.number} is in {files[block.number]} and in {block.path}")
        files[block.number] = block.path
    held = set().union(*on_disk.values())
    for block in listing:
        # No server knows how long the last block of a file is that its writer has left open.
        is_unfinished = block.is_open and last[block.path] == block.number
        if not is_unfinished and (block.number, block.stamp, block.length) not in held:
            sentences.append(f"{block.path} has block {block.number} of {block.length} bytes, which no data server has")
    for server, replicas in sorted(on_disk.items()):
        for number, _, length in sorted(replicas):
            if number not in files:
                sentences.append(f"{server} has block {number} of {length} bytes, which no file has")
    return sentences
