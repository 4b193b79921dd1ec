"""Test B: cables of two of four members out and in again, in the order of Table II."""

ITEM = "2"
IN_SLICE = False
NEEDS_CABLES = True


def run(scene_of):
    with scene_of(members=4) as scene:
        network, cluster = scene.options.network, scene.cluster
        scene.start_load()
        active = cluster.wait_active()
        standby, *others = [number for number in cluster.members if number != active]
        scene.rest(2, 3)
        scene.fault(f"cables of two standbys out, {others}", lambda: [network.unplug(n) for n in others])
        scene.rest(3, 5)
        scene.fault("and in again", lambda: [network.plug(n) for n in others])
        cluster.wait_settled()
        scene.rest(1, 2)
        pair = (active, standby)
        scene.fault(f"cables of the active and a standby out, {pair}", lambda: [network.unplug(n) for n in pair])
        successor = wait_among(cluster, others)
        scene.wait_progress()
        scene.fault(f"m{active} is plugged in again", network.plug, active)
        cluster.wait_roles({active: "standby", successor: "active"})
        scene.rest(1, 2)
        scene.fault(f"m{standby} is plugged in again", network.plug, standby)
        cluster.wait_settled()
        scene.keep_takeovers()
        # Two of the four that a client asks in turn are silent: its time-out twice.
        return scene.verdict(goal_ms=4000)


def wait_among(cluster, numbers):
    """Both sides cannot be asked: the one that was cut off still believes what it believes."""
    while True:
        number = cluster.wait_active()
        if number in numbers:
            return number
