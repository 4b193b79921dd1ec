"""kill -9 of the new active right after, or in the middle of its takeover; of an active while the in-sync set changes."""

ITEM = "5"
IN_SLICE = False
NEEDS_CABLES = False


def run(scene_of):
    with scene_of(members=4) as scene:
        cluster = scene.cluster
        scene.start_load()
        for _ in range(10 if scene.options.is_long else 2):
            scene.rest(1, 2)
            first = scene.kill_active()
            # Somewhere between the last lease of the old one and the first answers of the new one.
            scene.rest(0.2, 0.9)
            second = cluster.active()
            if second is None:
                second = scene.chance.choice([n for n in cluster.members if n != first])
            scene.fault(f"kill -9 of m{second}, the new active or one of three that might be", cluster.members[second].process.kill)
            cluster.wait_active()
            scene.wait_progress()
            scene.note_end()
            scene.keep_takeovers()
            for number in (first, second):
                scene.restart(number)
            cluster.wait_settled()
        for _ in range(10 if scene.options.is_long else 2):
            active = cluster.wait_active()
            standby = scene.chance.choice([n for n in cluster.members if n != active])
            scene.fault(f"kill -9 of a standby, m{standby}", cluster.members[standby].process.kill)
            # The active takes it out of the in-sync set about now.
            scene.rest(0, 0.6)
            scene.fault(f"kill -9 of the active, m{active}", cluster.members[active].process.kill)
            cluster.wait_active()
            scene.wait_progress()
            scene.note_end()
            for number in (standby, active):
                scene.restart(number)
            cluster.wait_settled()
        scene.keep_takeovers()
        return scene.verdict(goal_ms=1000)
