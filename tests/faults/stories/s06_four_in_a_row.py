"""Each new active is killed as it starts to serve, four times in a row."""

ITEM = "6"
IN_SLICE = False
NEEDS_CABLES = False


def run(scene_of):
    with scene_of(members=4) as scene:
        cluster = scene.cluster
        scene.start_load()
        scene.rest(2, 3)
        last = scene.kill_active("kill -9 of the active under load")
        for _ in range(4):
            number = cluster.wait_active(other_than=last)
            scene.fault(f"kill -9 of m{number}, which has just begun to serve", cluster.members[number].process.kill)
            # The one before comes back meanwhile, as a supervisor would bring it.
            scene.restart(last)
            last = number
        cluster.wait_active(other_than=last)
        scene.wait_progress()
        scene.note_end()
        scene.restart(last)
        cluster.wait_settled()
        scene.keep_takeovers()
        return scene.verdict(goal_ms=1000)
