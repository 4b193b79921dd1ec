"""Several groups: an active is frozen and thaws, each group hands over, all metadata servers are killed at once, a group is away for a while."""

from rig.groups import ROOT

ITEM = "41"
IN_SLICE = False
NEEDS_CABLES = False
AWAY_S = 60


def run(scene_of):
    with scene_of(members=3, groups=2) as scene:
        cluster = scene.cluster
        scene.start_loads_of_groups()
        for group in cluster.groups:
            scene.rest(1, 2)
            number = cluster.wait_active_of(group)
            process = cluster.members[number].process
            scene.fault(f"the active of group {group}, m{number}, is frozen", process.freeze)
            cluster.wait_active_of(group, other_than=number)
            scene.wait_progress()
            scene.fault(f"and thaws, m{number}", process.thaw)
            cluster.wait_settled()
        for group in cluster.groups:
            scene.rest(1, 2)
            number = cluster.wait_active_of(group)
            scene.fault(f"m{number} hands group {group} over", cluster.admin, "group", "hand-over", "--group", group)
            cluster.wait_active_of(group, other_than=number)
            scene.wait_progress()
            cluster.wait_settled()
        scene.rest(1, 2)
        kill(scene, list(cluster.members), "all metadata servers")
        scene.wait_progress()
        cluster.wait_settled()
        # Changes of directories wait for the group once, and go on without it.
        away = list(cluster.members_of(max(cluster.groups)))
        assert max(cluster.groups) != ROOT
        kill(scene, away, "a whole group for a while", AWAY_S)
        scene.wait_progress()
        cluster.wait_settled()
        return scene.verdict()


def kill(scene, numbers, what, away_s=1):
    members = [scene.cluster.members[number] for number in numbers]
    scene.fault(f"kill -9 of {what}", lambda: [member.process.kill() for member in members])
    scene.rest(away_s)
    for number in numbers:
        scene.restart(number)
