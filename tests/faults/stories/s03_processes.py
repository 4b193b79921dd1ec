"""Test C: processes killed and started again, in the order of Table II."""

ITEM = "3"
IN_SLICE = False
NEEDS_CABLES = False


def run(scene_of):
    with scene_of(members=4) as scene:
        cluster = scene.cluster
        scene.start_load()
        scene.start_native()
        scene.rest(2, 3)
        first = scene.kill_active()
        second = cluster.wait_active(other_than=first)
        scene.wait_progress()
        scene.rest(1, 2)
        scene.restart(first)
        cluster.wait_settled()
        scene.keep_takeovers()
        scene.rest(1, 2)
        other = next(number for number in cluster.members if number not in (first, second))

        def both():
            cluster.members[second].process.kill()
            cluster.members[other].process.kill()

        scene.fault(f"kill -9 of the active and a standby at once, m{second} and m{other}", both)
        cluster.wait_active(other_than=second)
        scene.wait_progress()
        scene.note_end()
        for number in (second, other):
            scene.restart(number)
            cluster.wait_settled()
            scene.rest(1, 2)
        scene.keep_takeovers()
        return scene.verdict(goal_ms=1000)
