"""ZooKeeper's data are put back from a copy, with the members running and with all of them down: nothing is lost, and a person repairs the view."""

import time

from harness.report import Failure, check
from rig import stores

ITEM = "13"
IN_SLICE = False
NEEDS_CABLES = False
# In the words of the members, by way of `clover admin group`.
RUNNING = "the coordinator has gone back to version"
DOWN = "it has lost history"
KEYS = {"coordinator_session_ms": 2000}


def run(scene_of):
    with scene_of(members=3, meta_keys=KEYS) as scene:
        cluster = scene.cluster
        scene.start_load()
        scene.start_native()
        while_running(scene)
        scene.wait_progress()
        while_down(scene)
        scene.wait_progress()
        of_the_same_epoch(scene)
        scene.wait_progress()
        stores.check_nothing_put_aside(cluster)
        scene.keep_takeovers()
        return scene.verdict()


def while_running(scene):
    """The group goes on, and says what has happened; the active writes what it knows."""
    cluster = scene.cluster
    copied = grow_older(scene, "running")
    scene.fault("ZooKeeper's data are put back from the copy while all members run", put_back, cluster.zookeeper, copied)
    active = cluster.wait_active()
    wait_said(cluster, RUNNING)
    scene.wait_progress()
    scene.say(f"m{active} goes on, and `clover admin group` says so")
    scene.say(repair(cluster))
    wait_until(lambda: RUNNING not in cluster.admin("group"), 30, "the view is not written anew", cluster)
    cluster.wait_settled()
    number = scene.kill_active("and then kill -9 of the active")
    cluster.wait_active(other_than=number)
    scene.wait_progress()
    scene.note_end()
    scene.restart(number)
    cluster.wait_settled()
    scene.keep_takeovers()


def while_down(scene):
    """Nobody leads by the older view, until a person has the members write it anew."""
    cluster = scene.cluster
    copied = grow_older(scene, "down")
    scene.fault("kill -9 of all members; ZooKeeper's data are put back from the copy", all_down, cluster)
    put_back(cluster.zookeeper, copied)
    # The member that was away when the last entries committed comes back first.
    order = sorted(cluster.members, key=lambda number: number != scene.away)
    for number in order:
        scene.restart(number)
        scene.rest(0.5, 1.5)
    wait_said(cluster, DOWN)
    scene.rest(2)
    check(cluster.active() is None, f"m{cluster.active()} leads by a view of before the last epochs")
    stores.check_nothing_put_aside(cluster)
    scene.say("nobody leads, and `clover admin group` says why")
    scene.say(repair(cluster))
    cluster.wait_active()
    cluster.wait_settled()
    scene.note_end()


def of_the_same_epoch(scene):
    """No epoch tells that the view is older. It calls a member complete that lacks what was done since, and that one begins alone."""
    cluster = scene.cluster
    copied = grow_older(scene, "same-epoch", takes_over=False)
    scene.fault("kill -9 of all members; ZooKeeper's data are put back from a copy of the same epoch", all_down, cluster)
    put_back(cluster.zookeeper, copied)
    scene.restart(scene.away)
    scene.rest(3, 4)
    lagging = cluster.members[scene.away]
    check(lagging.said_role() is None, f"{lagging.name} serves, and lacks what was acknowledged while it was away")
    for number in cluster.members:
        if number != scene.away:
            scene.restart(number)
            scene.rest(0.5, 1.5)
    cluster.wait_active()
    cluster.wait_settled()
    scene.note_end()
    scene.say(f"m{scene.away} began alone, and nothing was lost by it; m{cluster.active()} leads")


def grow_older(scene, name, takes_over=True):
    """A copy of ZooKeeper's data, and after that a takeover, and a standby that lacks what was done while it was away."""
    cluster = scene.cluster
    cluster.wait_settled()
    zookeeper = cluster.zookeeper
    copied = scene.directory / f"zookeeper-{name}"
    stores.snapshot(zookeeper.process, zookeeper.directory / "data", copied)
    scene.rest(1, 2)
    active = cluster.wait_active()
    if takes_over:
        number = scene.kill_active("ZooKeeper's data were copied; kill -9 of the active")
        active = cluster.wait_active(other_than=number)
        scene.restart(number)
        cluster.wait_settled()
    scene.away = scene.chance.choice([one for one in cluster.members if one != active])
    scene.fault(f"kill -9 of m{scene.away}, a standby", cluster.members[scene.away].process.kill)
    scene.wait_progress()
    scene.rest(1, 2)
    if name == "running":
        scene.restart(scene.away)
        cluster.wait_settled()
    return copied


def all_down(cluster):
    for member in cluster.members.values():
        member.process.kill()
    for member in cluster.members.values():
        member.process.wait_gone()


def put_back(zookeeper, copied):
    zookeeper.process.kill()
    zookeeper.process.wait_gone()
    stores.put_back(copied, zookeeper.directory / "data")
    zookeeper.start()


def repair(cluster):
    """As docs/operating/recovery.md says: first to look, then to do it. What it has written, in its own words."""
    said = cluster.admin("group", "repair")
    check("Nothing has been done" in said and "the view would be" in said, f"`clover admin group repair` says: {said}")
    said = cluster.admin("group", "repair", "--yes")
    check("has written the view" in said, f"`clover admin group repair --yes` says: {said}")
    return f"`clover admin group repair --yes`: {said.splitlines()[0]}"


def wait_said(cluster, sentence):
    wait_until(lambda: sentence in cluster.admin("group"), 30, f"`clover admin group` does not say that {sentence}", cluster)


def wait_until(holds, seconds, sentence, cluster):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise Failure(f"{sentence} after {seconds} s; it says:\n{cluster.admin('group')}\n{cluster.tails()}")
        time.sleep(0.2)
