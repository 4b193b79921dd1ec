"""A minimum of 1 is warned of wherever it is met, and no order lowers the minimum unless it was told to."""

from harness.report import check
from stand import admin, clover, until

IN_SLICE = False


def run(make):
    cluster = make.start(members=3, data=1)
    members = cluster.members
    minimum = lambda: cluster.view()["in_sync_min"]
    admin(cluster, "group").works().does_not_say("WARNING")
    active = cluster.wait_active()
    others = [number for number in members if number != active]

    # From three to two: two are needed as before.
    admin(cluster, "group", "remove", others[0]).works()
    members[others[0]].process.end()
    check(minimum() == 2, cluster.view())

    # From two to one: only where it is said.
    admin(cluster, "group", "remove", others[1]).is_refused("--in-sync-min 1", "nothing was done")
    check((minimum(), len(cluster.view()["members"])) == (2, 2), cluster.view())
    admin(cluster, "group", "remove", others[1], "--in-sync-min", 1).works().does_not_say("WARNING")
    members[others[1]].process.end()
    check((minimum(), len(cluster.view()["members"])) == (1, 1), cluster.view())

    # A second member, and one copy is still enough.
    admin(cluster, "group", "add", others[0]).works("WARNING", "acknowledged changes are lost")
    admin(cluster, "group").works("WARNING", "in_sync_min = 1")
    admin(cluster, "group", "add", others[1], "--in-sync-min", 2).works().does_not_say("WARNING")
    admin(cluster, "group").works().does_not_say("WARNING")

    # As soon as the cluster is made, and at each start.
    other = make.cluster("other", members=2)
    other.directory.mkdir(parents=True)
    other.zookeeper.start()
    for member in other.members.values():
        member.configure(list(other.members), other.coordinator, in_sync_min=1)
    clover(other, "meta", "format", "--config", other.members[1].settings).works("WARNING", "in_sync_min = 1")
    other.members[1].start()
    until("the log warns of the minimum", lambda: "in_sync_min = 1" in other.members[1].log.read_text())
