"""Several groups: an active freezes, hands over or is cut from the other one at each step of an ordered operation and of a move."""

import contextlib
import threading

from harness.report import Failure
from rig import points
from rig.groups import ROOT
from stories.s43_groups_die_at_steps import AT_A_HOME, AT_THE_ROOT

ITEM = "44"
IN_SLICE = False
NEEDS_CABLES = False
NEEDS_PLANTED = True
LIMIT_S = 1800

AT_BOTH = {"outbox-committed": 4, "outbox-carried": 4, "join-carried": 1}


def run(scene_of):
    with scene_of(members=3, groups=2, planted=True) as scene:
        cluster = scene.cluster
        scene.start_loads_of_groups()
        home = max(cluster.groups)
        steps = [(ROOT, step) for step in (*AT_THE_ROOT, *AT_BOTH)] + [(home, step) for step in (*AT_A_HOME, *AT_BOTH)]
        most = {**AT_THE_ROOT, **AT_A_HOME, **AT_BOTH}
        whats = [freeze, hand_over] + ([cut] if scene.options.network.has_cables else [])
        for what in whats:
            for group, step in steps:
                what(scene, group, f"{step} {scene.chance.randint(1, most[step])}")
                cluster.wait_settled()
                scene.note_end()
        return scene.verdict()


def at(line):
    step, passing = line.split()
    return f"at {step}, passing {passing}"


def freeze(scene, group, line):
    def stop():
        trap = points.Trap(scene.cluster.members_of(group).values(), f"{line} stop")
        member = trap.wait_reached()
        member.process.freeze()
        trap.spring()
        return member

    member = scene.fault(f"the active of group {group} freezes {at(line)}", stop)
    scene.cluster.wait_active_of(group, other_than=member.number)
    scene.wait_progress()
    scene.fault(f"and thaws, m{member.number}", member.process.thaw)


def hold(scene, group, line):
    """The trap in which the active's thread stands still, and that member."""
    trap = points.Trap(scene.cluster.members_of(group).values(), f"{line} hold")
    return trap, trap.wait_reached()


def hand_over(scene, group, line):
    def order():
        # On a busy machine the active may be another one before the order comes.
        with contextlib.suppress(Failure):
            scene.cluster.admin("group", "hand-over", "--group", group)

    ordering = threading.Thread(target=order)

    def ask():
        trap, member = hold(scene, group, line)
        ordering.start()
        # The order gets there while the thread stands still.
        scene.rest(0.2)
        trap.spring()
        return member

    member = scene.fault(f"the active of group {group} hands over {at(line)}", ask)
    ordering.join()
    scene.cluster.wait_active_of(group, other_than=member.number)
    scene.wait_progress()


def cut(scene, group, line):
    cluster, network = scene.cluster, scene.options.network
    others = [cluster.wait_active_of(other) for other in cluster.groups if other != group]

    def drop():
        trap, member = hold(scene, group, line)
        for other in others:
            network.drop(member.number, network.member(other))
        trap.spring()

    scene.fault(f"the active of group {group} is cut from the other one {at(line)}", drop)
    scene.rest(1, 3)
    network.heal()
    scene.wait_progress()
