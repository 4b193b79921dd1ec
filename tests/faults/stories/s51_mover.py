"""A directory is to be kept on archive disks: Hadoop's own mover brings its replicas there, and leaves all others where they are."""

from harness.report import check
from rig import balancing, replicas
from rig.after import After

ITEM = "51"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 600
DISK_BYTES = 96 << 20
FILES = 12

why_not = balancing.why_not


def run(scene_of):
    racks = ["/r1", "/r1", "/r2", "/r2"]
    kinds = ("DISK", "ARCHIVE")
    with scene_of(members=1, cluster_of=balancing.RackedCluster, racks=racks, disk_bytes=DISK_BYTES, types=kinds) as scene:
        cluster, stock = scene.cluster, balancing.Stock(scene)
        contents = {**balancing.fill(scene, "/cold", FILES), **balancing.fill(scene, "/warm", FILES)}
        before = held_by_kind(cluster)
        check(not before["ARCHIVE"] and len(before["DISK"]) >= 2 * FILES, f"all blocks are on disks of the first type: {before}")
        stock.set_policy("/cold", "COLD")
        moves, seconds = stock.move("/cold")
        balancing.wait_whole(scene, 3)
        after = held_by_kind(cluster)
        moved = after["ARCHIVE"]
        scene.say(f"hdfs mover: {moves} moves in {seconds:.0f} s; {len(moved)} blocks are on archive disks, {len(after['DISK'])} on others")
        check(not moved & after["DISK"], "no block has replicas on both types")
        check(len(moved) + len(after["DISK"]) == len(before["DISK"]), "no block has gone")
        check(len(moved) >= FILES and len(after["DISK"]) >= FILES, "the files of one directory were moved, and those of the other were not")
        replicas.check_files(scene, contents)
        return scene.verdict(after=After(contents))


def held_by_kind(cluster):
    """The numbers of the blocks that have replicas on disks of each type."""
    found = {}
    for kind in cluster.types:
        found[kind] = {block[0] for name in cluster.disks for block in balancing.on_disks(cluster, name, kind)}
    return found
