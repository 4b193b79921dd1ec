"""Bits flip in the data or the sums of one, two and three of three replicas: readers get right bytes or an error, and what one good replica can heal is healed."""

from harness.report import check
from rig import replicas, servers
from rig.after import COPIES, After

ITEM = "16"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900
DATA = 5
FILE_BYTES = 300_000
OF_EACH = 2
SUMS_AT = 7
SCANS = {"block_scan_period_ms": 3000, "block_scan_bytes_per_second": 64 << 20}
META = {"heartbeat_recheck_ms": 1000, **COPIES}


def run(scene_of):
    scene = scene_of(members=1, data=DATA, meta_keys=META)
    cluster = scene.cluster
    # Readers come first; the scanners find what they do not meet.
    cluster.data_keys = SCANS
    with scene:
        contents = {
            f"/rotten/{kind}-{count}-of-3-{number}": scene.chance.randbytes(FILE_BYTES)
            for kind in ("data", "sums")
            for count in (1, 2, 3)
            for number in range(OF_EACH)
        }
        replicas.shell(scene, "-mkdir", "-p", "/rotten")
        for path, content in contents.items():
            replicas.shell(scene, "-put", "-", path, sent=content)
        check(not After(contents).faults(scene), "all is well before anything happens")
        rotten = {path: rot(scene, path, content) for path, content in contents.items()}
        lost = [path for path in contents if "3-of-3" in path]
        scene.say(f"bits of {sum(map(len, rotten.values()))} replicas of {len(contents)} blocks have flipped; {len(lost)} blocks have no good one")
        found = After(contents, missing=lost).faults(scene)
        check(not found, f"the blocks with a good replica are healed, and no others are lost: {found}")
        for path in lost:
            check(len(held_by(cluster, contents[path], path, rotten)) == 3, f"no replica of {path} was deleted, since none is better")
        back = come_back(scene, rotten, lost)
        scene.say(f"{back} is back with its replicas as they were before they rotted")
        return scene.verdict(after=After(contents))


def rot(scene, path, content):
    """Flips one bit in so many replicas. Which files were changed, and where, by their servers."""
    kind, count = path.rpartition("/")[2].split("-")[:2]
    holders = {}
    for name, directory in scene.cluster.data_directories.items():
        for file in directory.glob("current/BP-*/current/finalized/**/blk_*"):
            if not file.name.endswith(".meta") and file.read_bytes() == content:
                holders[name] = file
    check(len(holders) == 3, f"{path} has {len(holders)} replicas")
    # At one place, so that no reader can put the bytes together from several replicas.
    at = scene.chance.randrange(FILE_BYTES) if kind == "data" else scene.chance.randrange(SUMS_AT, SUMS_AT + FILE_BYTES // 512 * 4)
    changed = {}
    for name in scene.chance.sample(sorted(holders), int(count)):
        file = holders[name]
        if kind == "sums":
            file = next(file.parent.glob(f"{file.name}_*.meta"))
        replicas.flip(file, at)
        changed[name] = (file, at)
    return changed


def held_by(cluster, content, path, rotten):
    """The servers that still have the files whose bits have flipped."""
    return [name for name, (file, _) in rotten[path].items() if file.exists()]


def come_back(scene, rotten, lost):
    """One server that has a replica of every lost block is repaired while it is off."""
    cluster = scene.cluster
    names = {name for path in lost for name in rotten[path]}
    missing, repaired = set(lost), []
    for name in sorted(names, key=lambda name: -sum(name in rotten[path] for path in lost)):
        mine = {path for path in missing if name in rotten[path]}
        if not mine:
            continue
        cluster.data[name].kill()
        servers.wait_dead(cluster, [name])
        for path in mine:
            replicas.flip(*rotten[path][name])
        servers.start(cluster, [name])
        missing -= mine
        repaired.append(name)
    return " and ".join(repaired)
