"""Two empty data servers join three that have everything; Hadoop's own balancer evens them out, and no byte is lost."""

from harness.report import check
from rig import balancing, replicas

ITEM = "50"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900
DISK_BYTES = 192 << 20
FILES = 64
BLOCK_BYTES = 1 << 20
THRESHOLD = 5
BLOCKS = ("-D", f"dfs.blocksize={BLOCK_BYTES}")

why_not = balancing.why_not


def run(scene_of):
    racks = ["/r1", "/r1", "/r2", "/r2", "/r3"]
    with scene_of(members=1, cluster_of=balancing.RackedCluster, racks=racks, disk_bytes=DISK_BYTES, joining=2) as scene:
        cluster = scene.cluster
        contents = fill(scene)
        cluster.join()
        introduce(scene, contents)
        before = cluster.used_percent()
        scene.say(f"before: {balancing.said(before)}; the farthest from the mean by {balancing.spread(before):.1f} %")
        code, text, seconds = balancing.Stock(scene).balance(THRESHOLD)
        print(balancing.said(cluster.used_percent())); print(cluster.admin("report"))
        check(code == 0, f"hdfs balancer ended with {code}:\n{text[-4000:]}")
        check("The cluster is balanced. Exiting..." in text, f"hdfs balancer did not say that the cluster is balanced:\n{text[-4000:]}")
        moves = balancing.moved_by(text)
        balancing.wait_whole(scene, 3)
        after = cluster.used_percent()
        scene.say(f"after: {balancing.said(after)}; the farthest from the mean by {balancing.spread(after):.1f} %")
        scene.say(f"hdfs balancer: {moves} moves, about {moves * BLOCK_BYTES / seconds / 2**20:.1f} MiB a second, in {seconds:.0f} s")
        # The figures that it went by are a heartbeat old, and count what was about to be deleted.
        check(balancing.spread(after) < THRESHOLD + 2, f"the servers are not balanced: {balancing.said(after)}")
        check(balancing.spread(before) > 3 * THRESHOLD, "there was something to do")
        replicas.check_files(scene, contents)
        return scene.verdict()


def fill(scene):
    """Files of a block or two on the servers that are there. What is in each, by its path."""
    source = scene.directory / "files"
    source.mkdir(parents=True)
    contents = {}
    for number in range(FILES):
        length = BLOCK_BYTES + (number % 5) * 1000 - 2000
        contents[f"/old/f{number}"] = scene.chance.randbytes(length)
        (source / f"f{number}").write_bytes(contents[f"/old/f{number}"])
    replicas.shell(scene, "-mkdir", "-p", "/old", "/new")
    replicas.shell(scene, *BLOCKS, "-put", *(source / name.name for name in sorted(source.iterdir())), "/old")
    return contents


def introduce(scene, contents):
    """Clients write a little, as they do all day: so the servers that have joined show that they store what they are sent."""
    for number in range(16):
        path = f"/new/f{number}"
        contents[path] = scene.chance.randbytes(5_000)
        replicas.shell(scene, *BLOCKS, "-put", "-", path, sent=contents[path])
