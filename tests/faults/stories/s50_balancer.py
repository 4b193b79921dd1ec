"""Two empty data servers join three that have everything; Hadoop's own balancer evens them out, and no byte is lost."""

from harness.report import check
from rig import balancing, replicas
from rig.after import After

ITEM = "50"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900
DISK_BYTES = 192 << 20
FILES = 64
THRESHOLD = 5

why_not = balancing.why_not


def run(scene_of):
    with scene_of(members=1, **balancing.two_join(DISK_BYTES)) as scene:
        cluster = scene.cluster
        contents = balancing.fill(scene, "/old", FILES)
        cluster.join()
        contents |= balancing.introduce(scene)
        before = cluster.used_percent()
        balancing.tell(scene, "before", before)
        code, text, seconds = balancing.Stock(scene).balance(THRESHOLD)
        check(code == 0, f"hdfs balancer ended with {code}:\n{text[-4000:]}")
        check("The cluster is balanced. Exiting..." in text, f"hdfs balancer did not say that the cluster is balanced:\n{text[-4000:]}")
        moves = balancing.moved_by(text)
        balancing.wait_whole(scene, 3)
        after = cluster.used_percent()
        balancing.tell(scene, "after", after)
        scene.say(f"hdfs balancer: {moves} moves, about {moves * balancing.BLOCK_BYTES / seconds / 2**20:.1f} MiB a second, in {seconds:.0f} s")
        # The figures that it went by are a heartbeat old, and count what was about to be deleted.
        check(balancing.spread(after) < THRESHOLD + 2, f"the servers are not balanced: {balancing.said(after)}")
        check(balancing.spread(before) > 3 * THRESHOLD, "there was something to do")
        replicas.check_files(scene, contents)
        return scene.verdict(after=After(contents))
