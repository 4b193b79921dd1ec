"""Made-up data servers claim every block, and speak in the names of the real ones: no real replica is deleted."""

import time

from harness.report import Failure
from rig import replicas
from rig.after import After
from rig.stranger import Refused, Stranger

ITEM = "29"
IN_SLICE = False
NEEDS_CABLES = False
FILES = 40
DATA = 3
MADE_UP = 3
HEARTBEAT_S = 0.5
# Who has just begun to lead decides nothing for half a minute.
LYING_S = 60
# Another member may come to lead meanwhile. It decides nothing about blocks of a server that has not reported since.
REPORT_S = 5


def run(scene_of):
    # The made-up servers are known to be dead soon after they fall silent.
    with scene_of(members=3, data=DATA, meta_keys={"heartbeat_recheck_ms": 1000}) as scene:
        cluster = scene.cluster
        files = replicas.write_files(scene, "/forged", FILES)
        before = replicas.on_disk(cluster)
        blocks = sorted(set().union(*before.values()))
        if len(blocks) != FILES or any(len(held) != FILES for held in before.values()):
            raise Failure(f"{FILES} blocks should be on all data servers: {[len(held) for held in before.values()]}")
        scene.start_load(size=scene.options.size._replace(own=1, cell=1, data=1, stream=0))
        ordered = scene.fault(f"{MADE_UP} made-up data servers claim {FILES} blocks", claim, scene, blocks)
        keep_all(scene, before)
        scene.say(f"they were told to delete {ordered} replicas that they do not have")
        if ordered < MADE_UP * FILES:
            raise Failure(f"in {LYING_S} s it was not decided who has too many")
        refused = scene.fault("somebody elsewhere speaks in the names of the real ones", impersonate, scene, blocks)
        scene.say(f"{refused} of its words were refused")
        scene.wait_progress()
        keep_all(scene, before)
        replicas.check_files(scene, files)
        return scene.verdict(after=After(files))


def keep_all(scene, before):
    """Whether all replicas are where they were; what was ordered would have come with the next heartbeats."""
    time.sleep(10 * HEARTBEAT_S)
    gone = replicas.gone(scene.cluster, before)
    scene.say(f"{gone} of {FILES * DATA} real replicas were deleted")
    if gone:
        raise Failure(f"{gone} of {FILES * DATA} real replicas were deleted")


def strangers(scene, uuid, port):
    """One for each member. They speak from an address at which no data server is."""
    members = scene.cluster.members.values()
    return [Stranger(scene.options.network.zookeeper, (it.address, it.rpc_port), uuid, port) for it in members]


def claim(scene, blocks):
    """Registers, claims all blocks again and again, and sends heartbeats until it is decided who has too many; how many deletions that brought."""
    made_up = [them for number in range(MADE_UP) for them in strangers(scene, f"made-up-{number}", 9001 + number)]
    for them in made_up:
        them.register()
        them.heartbeat()
        them.report(blocks)
    reported = time.monotonic()
    ordered, end = 0, reported + LYING_S
    while ordered < MADE_UP * len(blocks) and time.monotonic() < end:
        if time.monotonic() - reported > REPORT_S:
            for them in made_up:
                them.report(blocks)
            reported = time.monotonic()
        ordered += sum(them.heartbeat() for them in made_up)
        time.sleep(HEARTBEAT_S)
    return ordered


def impersonate(scene, blocks):
    """Under each real uuid: a registration, and the word that all replicas are gone. How often that was refused."""
    refused = 0
    for directory in scene.cluster.data_directories.values():
        known = dict(line.split("=", 1) for line in (directory / "current/VERSION").read_text().splitlines() if "=" in line)
        for them in strangers(scene, known["datanodeUuid"], 9866):
            for say in (them.register, lambda: them.say_deleted(known["storageID"], blocks)):
                try:
                    say()
                except Refused:
                    refused += 1
                else:
                    raise Failure(f"a stranger was believed to be {known['datanodeUuid']}")
    return refused
