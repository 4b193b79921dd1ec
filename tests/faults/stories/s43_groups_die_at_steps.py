"""Several groups: an active dies at each step of an ordered operation, of a move between homes, and of what groups tell each other afterwards."""

from rig import points
from rig.groups import ROOT

ITEM = "43"
IN_SLICE = False
NEEDS_CABLES = False
NEEDS_PLANTED = True
LIMIT_S = 1800

# The steps, and up to which passing the seed draws the one that is fatal.
AT_THE_ROOT = {
    "root-planned": 20,
    "root-sent": 20,
    "root-committed": 20,
    "root-visible": 20,
    "move-ordered": 10,
}
AT_A_HOME = {
    "home-received": 20,
    "home-applied": 20,
    "home-relayed": 20,
    "home-held": 20,
    "home-told": 20,
    "move-relayed": 10,
}
# Every group that has files sends and receives messages.
AT_BOTH = {
    "outbox-committed": 4,
    "outbox-carried": 4,
    "outbox-answered": 4,
    "join-committed": 1,
    "join-carried": 1,
    "join-answered": 1,
}
# So long entries have to get to other groups, before the root group dies.
ON_THE_WAY_MS = 50
SLICE = 5


def run(scene_of):
    with scene_of(members=3, groups=2, planted=True) as scene:
        cluster = scene.cluster
        scene.start_loads_of_groups()
        steps = all_steps(max(cluster.groups))
        if scene.options.is_slice:
            steps = scene.chance.sample(steps, SLICE)
        for group, step, passings, *others in steps:
            number = die_at(scene, group, step, scene.chance.randint(1, passings), others)
            scene.restart(number)
            cluster.wait_settled()
        return scene.verdict(goal_ms=3000)


def all_steps(home):
    """The group, the step, the last passing that may be drawn, and what else is asked for."""
    at_the_root = [(ROOT, step, passings) for step, passings in {**AT_THE_ROOT, **AT_BOTH}.items()]
    at_a_home = [(home, step, passings) for step, passings in {**AT_A_HOME, **AT_BOTH}.items()]
    # The home gets an entry that no log will have.
    unlogged = (ROOT, "root-sent", 1, "log-sent 1 lose")
    return [*at_the_root, unlogged, *at_a_home]


def die_at(scene, group, step, passing, others):
    """Until the active has died there and the service is back. Who it was."""
    what = "".join(f", {word}" for word in (step, f"passing {passing}", *others))

    def die():
        trap = points.Trap(scene.cluster.members_of(group).values(), f"{step} {passing} kill", *others, after_ms=ON_THE_WAY_MS if others else 0)
        member = trap.wait_dead()
        trap.spring()
        return member.number

    number = scene.fault(f"the active of group {group} dies at{what[1:]}", die)
    scene.cluster.wait_active_of(group, other_than=number)
    scene.wait_progress()
    scene.note_end()
    return number
