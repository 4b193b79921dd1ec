"""Three groups: actives of several groups die in the same moments, each at a step that the seed draws, and their successors with them."""

from rig import points
from rig.groups import ROOT
from stories.s40_groups_kill_actives import ALLOWED
from stories.s43_groups_points import AT_A_HOME, AT_BOTH, AT_THE_ROOT

ITEM = "47"
IN_SLICE = False
NEEDS_CABLES = False
NEEDS_PLANTED = True
LIMIT_S = 1200


def run(scene_of):
    scene = scene_of(members=3, groups=3)
    scene.cluster.clover = scene.options.planted
    with scene:
        cluster = scene.cluster
        for group in cluster.groups:
            scene.start_load(f"by-group-{group}", first=max(cluster.members_of(group)))
        for _ in range(60 if scene.options.is_long else 12):
            scene.rest(0, 1)
            storm(scene)
            cluster.wait_settled()
            scene.note_end()
        return scene.verdict(ALLOWED)


def storm(scene):
    """One to three groups have a step each at which their active dies, and with it perhaps who takes over."""
    cluster, chance = scene.cluster, scene.chance
    doomed = {}
    for group in chance.sample(cluster.groups, chance.randint(1, len(cluster.groups))):
        steps = {**(AT_THE_ROOT if group == ROOT else AT_A_HOME), **AT_BOTH}
        step = chance.choice(sorted(steps))
        line = f"{step} {chance.randint(1, steps[step])} kill"
        members = list(cluster.members_of(group).values()) if chance.random() < 0.4 else [cluster.members[cluster.wait_active_of(group)]]
        doomed[group] = (line, members, min(len(members), 2))
    what = " and ".join(f"{count} of group {group} at {line.rsplit(' ', 1)[0]}" for group, (line, _, count) in doomed.items())

    def die():
        for line, members, _ in doomed.values():
            for member in members:
                points.arm(member, line)
        for line, members, count in doomed.values():
            points.wait_dead(members, count)
            for member in members:
                points.disarm(member)

    scene.fault(f"deaths: {what}", die)
    scene.rest(0, 1)
    for _, members, _ in doomed.values():
        for member in members:
            if not member.process.is_running:
                scene.restart(member.number)
    scene.wait_progress()
