"""Two data servers are filled to nine tenths and two to one: `clover balancer` brings them within five percent of the mean, and no byte is lost."""

from harness.report import check
from rig import balancing, replicas, servers
from rig.after import After
from stories import s53_clover_balancer as clover_balancer

ITEM = "54"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900
DISK_BYTES = 128 << 20
# Of a MiB each, with two replicas: nine tenths of two disks, and one of the others.
FULL, EMPTY = 114, 12
THRESHOLD = 5
META = {"heartbeat_recheck_ms": 1000}
TWO = ("-D", "dfs.replication=2")

why_not = balancing.why_not


def run(scene_of):
    racks = ["/r1", "/r2", "/r1", "/r2"]
    words = {"cluster_of": balancing.RackedCluster, "racks": racks, "disk_bytes": DISK_BYTES, "joining": 2}
    with scene_of(members=1, meta_keys=META, **words) as scene:
        cluster = scene.cluster
        first = [name for name in cluster.data if name not in cluster.joiners]
        contents = fill(scene, "/full", FULL)
        # The others are filled while these are off, so that each pair has files of its own.
        for name in first:
            cluster.data[name].kill()
        servers.wait_dead(cluster, first)
        cluster.join(data=len(cluster.joiners))
        contents |= fill(scene, "/empty", EMPTY)
        servers.start(cluster, first)
        cluster.wait_settled()
        before = cluster.used_percent()
        balancing.tell(scene, "before", before)
        check(balancing.spread(before) > 35, f"the servers are as far apart as they must be: {balancing.said(before)}")
        code, events = clover_balancer.balance(scene)
        check(code == 0, f"clover balancer ended with {code}: {events[-1]}")
        rounds = [event for event in events if event["event"] == "round_done"]
        moved, seconds = sum(event["moved_bytes"] for event in rounds), sum(event["took_ms"] for event in rounds) / 1000
        found = After(contents).faults(scene)
        after = cluster.used_percent()
        balancing.tell(scene, "after", after)
        scene.say(f"clover balancer: {moved / 2**20:.0f} MiB in {len(rounds)} rounds, {moved / seconds / 2**20:.1f} MiB a second while it moved")
        # The balancer has decided by figures that are a heartbeat old, and that count replicas which were about to be deleted.
        check(balancing.spread(after) < THRESHOLD + 2, f"the servers are not balanced: {balancing.said(after)}")
        verdict = scene.verdict(after=After(contents))
        verdict.astray += found
        return verdict


def fill(scene, directory, files):
    source = scene.directory / "files" / directory.strip("/")
    source.mkdir(parents=True)
    contents = {f"{directory}/f{number}": scene.chance.randbytes(balancing.BLOCK_BYTES) for number in range(files)}
    for path, content in contents.items():
        (source / path.rpartition("/")[2]).write_bytes(content)
    replicas.shell(scene, "-mkdir", "-p", directory)
    replicas.shell(scene, *balancing.BLOCKS, *TWO, "-put", *sorted(source.iterdir()), directory)
    return contents
