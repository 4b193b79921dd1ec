"""A data server with two thousand blocks dies for good while clients write: all of them are copied from the others."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

from harness.report import check
from rig import replicas, servers
from rig.after import COPIES, HEAL_S, REPORTS, After, fsck

ITEM = "62"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900
# Each block is on three of them, so that one has three quarters of all.
DATA = 4
BLOCKS = 2_700
MINE = 2_000
FILE_BYTES = 20_000
META = {"heartbeat_recheck_ms": 1000, **COPIES}
# Directories that are written at once.
PARTS = 4


def run(scene_of):
    scene = scene_of(members=1, data=DATA, meta_keys=META)
    cluster = scene.cluster
    cluster.data_keys = REPORTS
    with scene:
        contents = store(scene)
        held = replicas.on_disk(cluster)
        # The one that has most.
        name = max(held, key=lambda name: len(held[name]))
        scene.start_load(size=scene.options.size._replace(own=1, cell=1, data=1, stream=1))
        mine = len(held[name])
        size = sum(length for _, _, length in held[name])
        check(mine >= MINE, f"{name} has {mine} blocks")
        scene.fault(f"{name} dies for good, with replicas of {mine} of {len(set().union(*held.values()))} blocks", cluster.data[name].kill)
        servers.wait_dead(cluster, [name])
        begun = time.monotonic()
        few = wait_whole(scene, mine)
        took_s = time.monotonic() - begun
        check(few >= mine * 9 // 10, f"the copies were counted from their beginning: {few} replicas were wanting")
        scene.say(f"all blocks have three replicas again {took_s:.1f} s after it was known to be dead: {mine / took_s:.0f} blocks and {size / took_s / 2**20:.1f} MiB a second")
        scene.wait_progress()
        # What it had is nobody's loss.
        del cluster.data[name]
        return scene.verdict(after=After(contents))


def wait_whole(scene, mine):
    deadline, most = time.monotonic() + 2 * HEAL_S, 0
    while (sums := fsck(scene)[-1]["summary"])["missing_replicas"] or not sums["healthy"]:
        most = max(most, sums["missing_replicas"])
        check(time.monotonic() < deadline, f"after {2 * HEAL_S} s blocks want replicas: {sums}")
        time.sleep(0.2)
    return most


def store(scene):
    with ThreadPoolExecutor(PARTS) as parts:
        stored = [*parts.map(lambda part: store_part(scene, part, random.Random(scene.options.seed * PARTS + part)), range(PARTS))]
    return {path: content for contents in stored for path, content in contents.items()}


def store_part(scene, part, chance):
    directory, contents = f"/many/{part}", {}
    source = scene.directory / "files" / str(part)
    source.mkdir(parents=True)
    for number in range(BLOCKS // PARTS):
        content = chance.randbytes(FILE_BYTES + number)
        (source / f"f{number}").write_bytes(content)
        contents[f"{directory}/f{number}"] = content
    replicas.shell(scene, "-mkdir", "-p", directory)
    replicas.shell(scene, "-put", *sorted(source.iterdir()), directory)
    return contents
