"""A directory is to be kept on archive disks: `hdfs storagepolicies -satisfyStoragePolicy` has the metadata server bring its replicas there. Two of the data servers have no
archive disk, so that some replicas go to another disk of their server, and some to another server. Then Hadoop's mover brings another directory there."""

from harness.report import check
from rig import balancing, replicas
from rig.after import After

ITEM = "55"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 600
DISK_BYTES = 96 << 20
FILES = 8
WITHOUT_ARCHIVE = 2

why_not = balancing.why_not


class PartlyCold(balancing.RackedCluster):
    """The first data servers have no archive disk."""

    def __init__(self, *words, **others):
        super().__init__(*words, **others)
        for name in [*self.data][:WITHOUT_ARCHIVE]:
            del self.disks[name]["ARCHIVE"]


def run(scene_of):
    racks = ["/r1", "/r2", "/r1", "/r2", "/r2"]
    kinds = ("DISK", "ARCHIVE")
    with scene_of(members=1, cluster_of=PartlyCold, racks=racks, disk_bytes=DISK_BYTES, types=kinds) as scene:
        cluster, stock = scene.cluster, balancing.Stock(scene)
        cold = balancing.fill(scene, "/cold/below", FILES)
        contents = {**cold, **balancing.fill(scene, "/warm", FILES), **balancing.fill(scene, "/later", FILES)}
        before = held(cluster)
        check(not before["ARCHIVE"], f"all blocks are on disks of the first type: {before}")

        stock.set_policy("/cold", "COLD")
        said = satisfy(stock, "/cold")
        check("Scheduled blocks to move based on the current storage policy on /cold" in said, said)
        balancing.wait_until(lambda: not is_noted(scene, "/cold"), 180, "the note of /cold goes")
        balancing.wait_whole(scene, 3)
        after = held(cluster)
        moved = after["ARCHIVE"]
        scene.say(f"satisfyStoragePolicy: {len(moved)} blocks are on archive disks, {len(after['DISK'])} on others")
        check(not moved & after["DISK"], "no block has replicas on both types")
        check(len(moved) + len(after["DISK"]) == len(before["DISK"]), "no block has gone")
        check(len(moved) >= FILES and len(after["DISK"]) >= 2 * FILES, "the files of one directory were moved, and no others")

        # There is nothing left to do, and the mover does what it did before.
        satisfy(stock, "/cold/below/f1")
        balancing.wait_until(lambda: not is_noted(scene, "/cold/below/f1"), 60, "the note of a file goes")
        stock.set_policy("/later", "COLD")
        stock.move("/later")
        balancing.wait_whole(scene, 3)
        check(len(held(cluster)["ARCHIVE"]) >= 2 * FILES, "the mover has moved the other directory")
        replicas.check_files(scene, contents)
        return scene.verdict(after=After(contents))


def satisfy(stock, path):
    code, text, _ = stock.run("tools.StoragePolicyAdmin", "-satisfyStoragePolicy", "-path", path)
    check(code == 0, f"hdfs storagepolicies ended with {code}: {text}")
    return text


def is_noted(scene, path):
    return b"user.hdfs.sps" in replicas.shell(scene, "-getfattr", "-d", path)


def held(cluster):
    """The numbers of the blocks that have replicas on disks of each type."""
    found = {kind: set() for kind in cluster.types}
    for name, disks in cluster.disks.items():
        for kind in disks:
            found[kind] |= {block[0] for block in balancing.on_disks(cluster, name, kind)}
    return found
