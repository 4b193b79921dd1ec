"""Three groups: actives of several groups die in the same moments, each at a step that the seed draws, and their successors with them."""

import dataclasses
import time

from rig import points
from rig.groups import ROOT
from stories.s43_groups_die_at_steps import AT_A_HOME, AT_BOTH, AT_THE_ROOT

ITEM = "47"
IN_SLICE = False
NEEDS_CABLES = False
NEEDS_PLANTED = True
LIMIT_S = 1200
# Some steps are rare, and rarer while others are away.
STORM_S = 20


def run(scene_of):
    with scene_of(members=3, groups=3, planted=True) as scene:
        cluster = scene.cluster
        for group in cluster.groups:
            scene.start_load(f"by-group-{group}", first=max(cluster.members_of(group)))
        for _ in range(60 if scene.options.is_long else 12):
            scene.rest(0, 1)
            storm(scene)
            cluster.wait_settled()
            scene.note_end()
        return scene.verdict()


@dataclasses.dataclass
class Doom:
    """What one group is to suffer: so many of its members die when they come to the step."""

    group: int
    line: str
    count: int
    trap: points.Trap = None

    def is_over(self):
        return len(self.trap.dead()) >= self.count

    def end(self, scene):
        """Those who are dead come back at once: what other groups have to do may need them."""
        self.trap.spring()
        scene.rest(0, 0.5)
        for member in self.trap.dead():
            scene.restart(member.number)


def storm(scene):
    """One to three groups have a step each at which their active dies, and with it perhaps who takes over."""
    cluster, chance = scene.cluster, scene.chance
    dooms = []
    for group in chance.sample(cluster.groups, chance.randint(1, len(cluster.groups))):
        steps = {**(AT_THE_ROOT if group == ROOT else AT_A_HOME), **AT_BOTH}
        step = chance.choice(sorted(steps))
        dooms.append(Doom(group, f"{step} {chance.randint(1, steps[step])} kill", 2 if chance.random() < 0.4 else 1))

    def die():
        for doom in dooms:
            doom.trap = points.Trap(cluster.members_of(doom.group).values(), doom.line)
        deadline = time.monotonic() + STORM_S
        left = list(dooms)
        while left and time.monotonic() < deadline:
            for doom in [doom for doom in left if doom.is_over()]:
                left.remove(doom)
                doom.end(scene)
            time.sleep(0.002)
        for doom in left:
            doom.end(scene)
            scene.say(f"not all came to their step: {doom.count} of group {doom.group} at {doom.line}")

    what = " and ".join(f"{doom.count} of group {doom.group} at {doom.line.rsplit(' ', 1)[0]}" for doom in dooms)
    scene.fault(f"deaths: {what}", die)
    scene.wait_progress()
