"""One of two disks of a data server fails at reads, and later at writes: the server goes on with the other, and what it held is copied elsewhere."""

import time

from harness.report import check
from rig import failing_files, replicas, servers
from rig.after import COPIES, HEAL_S, REPORTS, After, wait_whole
from rig.servers import accusations

ITEM = "11"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900
DATA = 4
NAME = "data-1"
FILES = 60
FILE_BYTES = 400_000
# A look at everything every few seconds: a reader meets only those replicas that it happens to choose.
SCANS = {"block_scan_period_ms": 3000, "block_scan_bytes_per_second": 64 << 20, **REPORTS}
why_not = failing_files.why_not


def run(scene_of):
    scene = scene_of(members=1, data=DATA, meta_keys=COPIES)
    cluster = scene.cluster
    bad = cluster.directory / f"{NAME}-bad"
    cluster.data_keys = SCANS
    failing = failing_files.FailingFiles(scene.directory / "failing")
    cluster.further_directories[NAME] = [bad]
    cluster.data_within[NAME] = failing.within(bad)
    cluster.before_format = failing.make
    try:
        with scene:
            contents = replicas.store_random(scene, "/stored", FILES, FILE_BYTES)
            scene.start_load(size=scene.options.size._replace(own=1, cell=1, data=2, stream=2))
            for what, order, provoke in (("read", "blocks-read", read), ("written", "blocks-write", nothing)):
                fails(scene, failing, bad, what, order, lambda: provoke(scene, contents))
            return scene.verdict(after=After(contents))
    finally:
        failing.heal()


def fails(scene, failing, bad, what, order, provoke):
    cluster = scene.cluster
    held = replicas.below(bad)
    check(len(held) > FILES // 4, f"the disk that is to fail has {len(held)} replicas")
    scene.rest(1, 2)
    scene.fault(f"blocks on one disk of {NAME} cannot be {what}; it has {len(held)} replicas", failing.fail, order)
    begun = time.monotonic()
    provoke()
    wait_known(cluster, held)
    known_s = time.monotonic() - begun
    wait_whole(scene)
    took_s = time.monotonic() - begun
    total = sum(length for _, _, length in held)
    check(cluster.data[NAME].is_running, f"{NAME} goes on with its other disk")
    scene.wait_progress()
    scene.say(f"known after {known_s:.1f} s, all blocks whole again after {took_s:.1f} s: {len(held) / took_s:.0f} blocks and {total / took_s / 2**20:.1f} MiB a second")
    scene.note_end()
    cluster.data[NAME].end()
    failing.heal()
    servers.start(cluster, [NAME])
    scene.say(f"{NAME} is on again, and has both disks with all that they held")


def wait_known(cluster, held):
    """Until the disk is said to have failed, or each replica that was on it was found to be damaged."""
    deadline = time.monotonic() + HEAL_S
    numbers = {number for number, _, _ in held}
    while not numbers <= accusations(cluster, NAME):
        if servers.working_volumes(cluster)[NAME] < 2:
            return
        check(time.monotonic() < deadline, f"after {HEAL_S} s nobody knows of {len(numbers - accusations(cluster, NAME))} replicas that cannot be read")
        time.sleep(0.2)


def read(scene, contents):
    """Every byte can be read: where this server cannot read it, another one does."""
    replicas.check_files(scene, contents)


def nothing(*_):
    """The load writes, and finds it."""
