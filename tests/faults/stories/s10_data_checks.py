"""Faults are planted one after the other. The checks that stand at the end of each story of data servers must find each fault, and nothing else."""

import shutil

from harness.report import check
from rig import replicas, servers
from rig.after import After

ITEM = "10"
IN_SLICE = False
NEEDS_CABLES = False
DATA = 4
FILES = 8
# A block that no file has.
NOBODYS = 4_000_000_000


def run(scene_of):
    scene = scene_of(members=1, data=DATA, meta_keys={"heartbeat_recheck_ms": 1000})
    # Data servers do not look at their disks meanwhile: the story looks.
    scene.cluster.data_keys = {"block_scan_period_ms": 0, "directory_scan_interval_ms": 0}
    with scene:
        contents = {f"/checked/f{number}": scene.chance.randbytes(10_000 + number) for number in range(FILES)}
        replicas.shell(scene, "-mkdir", "-p", "/checked")
        for path, content in contents.items():
            replicas.shell(scene, "-put", "-", path, sent=content)
        nothing(scene, contents)
        for plant, said in ((leaked, "which no file has"), (half_written, "which no file has"), (stale, "has it with stamp"), (hole, "and wants 3 replicas")):
            undo = plant(scene)
            finds(scene, plant, contents, said)
            undo()
        nothing(scene, contents)
        finds(scene, other_bytes, {**contents, "/checked/f0": b"other bytes"}, "is not what was written")
        away = switched_off(scene)
        finds(scene, switched_off, contents, "is missing", without=away)
        servers.start(scene.cluster, away)
        nothing(scene, contents)
        rot(scene, contents)
        # A stock client that finds no good replica tells nobody: it might be to blame itself.
        finds(scene, rot, contents, "cannot be read")
        rot(scene, contents)
        finds(scene, "a file that is said to be missing and is not", contents, "is well", missing=["/checked/f1"])
        return scene.verdict(after=After(contents))


def finds(scene, plant, contents, said, **words):
    what = plant if isinstance(plant, str) else plant.__doc__
    found = After(contents, heal_s=3, **words).faults(scene)
    check(any(said in sentence for sentence in found), f"{what}: it is not found: {found}")
    scene.say(f"{what}: {found[0]}")


def nothing(scene, contents):
    found = After(contents).faults(scene)
    check(not found, f"there is nothing to find: {found}")


# Each of these plants a fault, and returns a function that takes it away again.


def a_replica(scene, number=0):
    """The block file and the meta file of some replica, its server, and a server that has none of this block."""
    held = replicas.on_disk(scene.cluster)
    block = sorted(set().union(*held.values()))[number]
    has = [name for name in held if block in held[name]]
    name = scene.chance.choice(has)
    file = next(scene.cluster.data_directories[name].glob(f"current/BP-*/current/finalized/**/blk_{block[0]}"))
    return file, next(file.parent.glob(f"{file.name}_*.meta")), name, next(other for other in held if other not in has)


def put(pairs):
    for source, target in pairs:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    return lambda: [target.unlink() for _, target in pairs]


def leaked(scene):
    """a replica of a block that no file has"""
    file, meta, _, _ = a_replica(scene)
    return put([(file, file.with_name(f"blk_{NOBODYS}")), (meta, file.with_name(f"blk_{NOBODYS}_1001.meta"))])


def half_written(scene):
    """a replica that was left half written"""
    file, meta, _, _ = a_replica(scene)
    rbw = next(parent for parent in file.parents if parent.name == "finalized").with_name("rbw")
    return put([(file, rbw / f"blk_{NOBODYS}"), (meta, rbw / f"blk_{NOBODYS}_1001.meta")])


def stale(scene):
    """a replica of an earlier generation on a fourth server"""
    file, meta, name, other = a_replica(scene)
    place = scene.cluster.data_directories[other] / file.parent.relative_to(scene.cluster.data_directories[name])
    return put([(file, place / file.name), (meta, place / f"{file.name}_999.meta")])


def hole(scene):
    """a replica that has gone from a disk"""
    file, meta, name, _ = a_replica(scene)
    aside = scene.directory / "aside"
    aside.mkdir()
    pairs = [(path, aside / path.name) for path in (file, meta)]
    put(pairs)
    for path, _ in pairs:
        path.unlink()

    def undo():
        # A reader may have met the hole, so that a copy was made elsewhere. The server reports what it holds when it starts, and one replica
        # goes again.
        scene.cluster.data[name].kill()
        put([(copied, path) for path, copied in pairs])
        servers.start(scene.cluster, [name])

    return undo


def other_bytes(scene):
    """a file with other bytes than were written"""


def switched_off(scene):
    """three of four servers are off, which have all replicas of a block"""
    *_, other = a_replica(scene)
    names = [name for name in scene.cluster.data if name != other]
    for name in names:
        scene.cluster.data[name].kill()
    servers.wait_dead(scene.cluster, names)
    return names


def rot(scene, contents):
    """a bit of each replica of a block is another"""
    content = contents["/checked/f3"]
    for directory in scene.cluster.data_directories.values():
        for file in directory.glob("current/BP-*/current/finalized/**/blk_*"):
            found = bytearray(file.read_bytes())
            if len(found) == len(content) and found[:5000] == content[:5000]:
                found[5000] ^= 1
                file.write_bytes(found)
