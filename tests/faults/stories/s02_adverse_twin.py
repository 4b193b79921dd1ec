"""Test B's adverse twin: active and standby are cut off while the others are juniors. Nobody is elected, and service is
back with either of the two."""

import time

from harness.report import check

ITEM = "2"
IN_SLICE = False
NEEDS_CABLES = True


def run(scene_of):
    with scene_of(members=4) as scene:
        network, cluster = scene.options.network, scene.cluster
        scene.start_load()
        active = cluster.wait_active()
        standby, *others = [number for number in cluster.members if number != active]
        scene.fault(f"cables of two standbys out, {others}", lambda: [network.unplug(n) for n in others])
        wait_in_sync(cluster, {active, standby})
        scene.rest(1, 2)

        def swap():
            for number in (active, standby):
                network.unplug(number)
            for number in others:
                network.plug(number)

        scene.fault("the active and its last standby are cut off, the two that lag are back", swap)
        end = time.monotonic() + 6
        while time.monotonic() < end:
            for number in others:
                check(cluster.members[number].said_role() is None, f"m{number} lacks acknowledged operations and was elected")
            time.sleep(0.05)
        back = scene.chance.choice((active, standby))
        scene.fault(f"m{back} is plugged in again", network.plug, back)
        cluster.wait_active()
        scene.wait_progress()
        network.heal()
        cluster.wait_settled()
        scene.keep_takeovers()
        return scene.verdict()


def wait_in_sync(cluster, wanted, seconds=30):
    deadline = time.monotonic() + seconds
    while True:
        held = {member for member, _ in cluster.view()["in_sync"]}
        if held == wanted:
            return
        check(time.monotonic() < deadline, f"in sync are {held}, not {wanted}")
        time.sleep(0.1)
