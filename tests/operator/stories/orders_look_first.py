"""The coordinator is away: no order takes the lead from a group that serves, each says why, and the group goes on."""

from harness.report import check
from stand import admin, fs

IN_SLICE = True


def run(make):
    cluster = make.start(members=2, data=1, coordinator_session_ms=2000)
    active = cluster.wait_active()
    other = next(number for number in cluster.members if number != active)

    # Frozen: every connection stands, and nothing is answered.
    cluster.zookeeper.process.freeze()
    for order in (["hand-over"], ["hand-over", "--to", other], ["fail-active"]):
        said = admin(cluster, "group", *order).is_refused("the coordinator", "nothing was done")
        check(said.seconds < 10, f"whoever waits does not know why: {said}")
        check(cluster.active() == active, f"m{active} led, and now {cluster.roles()}: {said}")
    fs(cluster, "-ls", "/").works()
    cluster.zookeeper.process.thaw()

    # Gone.
    cluster.zookeeper.process.kill()
    cluster.zookeeper.process.wait_gone()
    admin(cluster, "group", "hand-over").is_refused("the coordinator", "nothing was done")
    check(cluster.active() == active, f"m{active} led, and now {cluster.roles()}")
    fs(cluster, "-mkdir", "/while-it-is-away").works()

    # Back: the same order is carried out.
    cluster.zookeeper.start()
    cluster.wait_settled()
    admin(cluster, "group", "hand-over").works(f"Member {other} is active")

    # Nobody who could go on.
    cluster.members[active].process.kill()
    cluster.members[active].process.wait_gone()
    for order in (["hand-over"], ["fail-active"]):
        admin(cluster, "group", *order).is_refused("nothing was done")
    check(cluster.active() == other, f"m{other} led, and now {cluster.roles()}")
