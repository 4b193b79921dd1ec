"""Several groups: kill -9 of the active of a home, of the root group, and of all at once; files move between homes meanwhile."""

from rig.groups import ROOT

ITEM = "40"
IN_SLICE = False
NEEDS_CABLES = False


def run(scene_of):
    groups = 2
    with scene_of(members=3, groups=groups) as scene:
        cluster = scene.cluster
        scene.start_loads_of_groups()
        others = [group for group in cluster.groups if group != ROOT]
        rounds = 1 if scene.options.is_slice else 10 if scene.options.is_long else 2
        for _ in range(rounds):
            for which in (others[:1], [ROOT], cluster.groups):
                scene.rest(1, 3)
                numbers = scene.kill_active_of(which)
                scene.wait_progress()
                scene.note_end()
                for number in numbers:
                    scene.restart(number)
                cluster.wait_settled()
        return scene.verdict(goal_ms=3000)
