"""Data servers and the active are killed while Hadoop's balancer moves replicas and clients write: no block is lost, and it ends balanced."""

from harness.report import Failure, check
from rig import balancing, replicas
from rig.after import COPIES, REPORTS, After

ITEM = "52"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 1500
DISK_BYTES = 384 << 20
FILES = 120
THRESHOLD = 5
# A balancer whose metadata server has gone may end with an error: it is to be run again.
RUNS_MAX = 12

why_not = balancing.why_not


def run(scene_of):
    # So slow that the faults come while replicas are on their way.
    slow = {"move_bytes_per_second": 3 << 20, **REPORTS}
    with scene_of(members=3, meta_keys=COPIES, data_keys=slow, **balancing.two_join(DISK_BYTES)) as scene:
        cluster, stock = scene.cluster, balancing.Stock(scene)
        contents = balancing.fill(scene, "/old", FILES)
        ours = {block[0] for held in replicas.on_disk(cluster).values() for block in held}
        cluster.join()
        contents |= balancing.introduce(scene)
        # Little enough that the small disks do not fill up.
        little = scene.options.size._replace(own=1, cell=1, data=1, stream=1, pause_us=50_000)
        scene.start_load(size=little, **{"dfs.blocksize": balancing.BLOCK_BYTES})
        before = cluster.used_percent()
        scene.say(f"before: {balancing.said(before)}")
        balancer = stock.begin_to_balance(THRESHOLD)
        for fault in range(6 if scene.options.is_long else 3):
            scene.rest(1, 3)
            name = scene.chance.choice(list(cluster.data))
            scene.fault(f"kill -9 of {name}", cluster.data[name].kill)
            number = scene.kill_active() if fault % 2 else None
            scene.wait_progress()
            scene.rest(1, 2)
            scene.note_end()
            cluster.data[name].wait_gone()
            cluster.start_data(name)
            if number:
                scene.restart(number)
            cluster.wait_settled()
        check(balancer.is_running, "the faults came while replicas were on their way")
        balancer.wait_gone(balancing.BALANCER_S)
        scene.say(f"while that went on: {balancing.said(cluster.used_percent())}")
        check_none_lost(scene, ours)
        for _ in range(RUNS_MAX):
            code, text, _ = stock.balance(THRESHOLD)
            scene.say(f"hdfs balancer ended with {code} after {balancing.moved_by(text)} moves")
            if code == 0:
                break
        else:
            raise Failure(f"hdfs balancer goes on failing:\n{text[-4000:]}")
        balancing.wait_whole(scene, 3, ours)
        after = cluster.used_percent()
        scene.say(f"after: {balancing.said(after)}; the farthest from the mean by {balancing.spread(after):.1f} %")
        check(balancing.spread(after) < THRESHOLD + 4, f"the servers are not balanced: {balancing.said(after)}")
        replicas.check_files(scene, contents)
        scene.keep_takeovers()
        return scene.verdict(after=After(contents))


def check_none_lost(scene, ours):
    """No block has ever fewer than two replicas: that would be one for each kill."""
    counts = {number: 0 for number in ours}
    for held in replicas.on_disk(scene.cluster).values():
        for number, _, _ in held:
            if number in counts:
                counts[number] += 1
    few = [number for number, count in counts.items() if count < 3]
    check(not few, f"blocks with fewer than three replicas on the disks, none of which was damaged: {few[:5]}")
