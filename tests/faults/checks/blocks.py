"""No closed file without its blocks, no block in two files, no block on a disk that no file has, and no replica too few or too many."""

from typing import NamedTuple


class Block(NamedTuple):
    path: str
    is_open: bool
    number: int
    stamp: int
    length: int
    # How many replicas its file wants.
    wanted: int = 3

    @property
    def replica(self):
        return (self.number, self.stamp, self.length)


class Replica(NamedTuple):
    """One on a disk, in whatever state."""

    # The directory: finalized, rbw or tmp.
    place: str
    number: int
    # None: there is a block file and no meta file.
    stamp: int | None
    length: int


def read_listing(path):
    """All blocks of all files, in the order in which they are in each."""
    found = []
    for line in path.read_text().splitlines():
        name, state, number, stamp, length, _, wanted = line.split("\t")
        found.append(Block(name, state == "open", int(number), int(stamp), int(length), int(wanted)))
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


def unlike(listing, on_disk, missing=frozenset()):
    """Where the disks are not what the namespace says, after data servers have had time. `on_disk` are all replicas of each server that can be reached, as
    `Replica`. Of files that are `missing` no server has a good replica, so their replicas are not counted."""
    last = {block.path: block.number for block in listing}
    known = {block.number: block for block in listing}
    # No server knows how long the last block of a file is that its writer has left open, and it may be anywhere.
    unfinished = {block.number for block in listing if block.is_open and last[block.path] == block.number}
    exempt = unfinished | {block.number for block in listing if block.path in missing}
    sentences, good = [], {}
    for server, replicas in sorted(on_disk.items()):
        for place, number, stamp, length in sorted(replicas, key=str):
            what = f"{server} has block {number} (stamp {stamp}, {length} bytes) in {place}"
            block = known.get(number)
            if block is None:
                sentences.append(f"{what}, which no file has")
            elif number in exempt:
                continue
            elif place != "finalized":
                sentences.append(f"{what}, and {block.path} is closed")
            elif (number, stamp, length) != block.replica:
                sentences.append(f"{what}, and {block.path} has it with stamp {block.stamp} and {block.length} bytes")
            else:
                good.setdefault(number, []).append(server)
    for block in known.values():
        wanted = min(block.wanted, len(on_disk))
        servers = good.get(block.number, [])
        if block.number not in exempt and len(servers) != wanted:
            sentences.append(f"block {block.number} of {block.path} is on {sorted(servers)}, and wants {wanted} replicas")
    return sentences


def unhealthy(fsck, missing=frozenset()):
    """Where `clover fsck` says something else than that all is well but for these missing files. `fsck` are its lines as JSON has them."""
    sentences, lost = [], set()
    for line in fsck:
        for block in line.get("blocks", ()):
            if block["fault"] in ("missing", "corrupt"):
                lost.add(line["path"])
            elif block["fault"]:
                sentences.append(f"fsck: {line['path']} has {block['block']}, which is {block['fault']}")
    sentences += [f"fsck: {path} is missing" for path in sorted(lost - set(missing))]
    sentences += [f"fsck: {path} is well, and no server can have a good replica" for path in sorted(set(missing) - lost)]
    sums = fsck[-1]["summary"]
    if sums["healthy"] != (not missing):
        sentences.append(f"fsck: healthy is {sums['healthy']}, with {len(missing)} files that must be missing")
    if sums["over_replicated_blocks"]:
        sentences.append(f"fsck: {sums['over_replicated_blocks']} blocks have too many replicas")
    return sentences
