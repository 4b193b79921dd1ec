"""A lone server becomes a group: one order, then members are added, and nothing that was stored is lost."""

from harness.report import check
from stand import admin, clover, fs, until

IN_SLICE = True


def run(make):
    alone = make.start(members=1, data=1)
    fs(alone, "-mkdir", "/before").works()
    first = alone.members[1]

    # A group wants a coordinator that several can reach.
    admin(alone, "group", "add", 2).is_refused("make-group")

    group = make.cluster("group", members=2, data=0)
    group.directory.mkdir(parents=True)
    group.zookeeper.start()
    second = group.members[2]
    # The same server with the same directory, and the addresses that the data server knows.
    first.configure([], group.coordinator)
    group.members[1] = first

    # Not while it runs; not without a ZooKeeper; not elsewhere.
    clover(alone, "meta", "make-group", "--config", first.settings).is_refused("the server runs")
    first.process.end()
    clover(alone, "meta", "--config", first.settings).is_refused("make-group")
    clover(alone, "meta", "make-group", "--config", first.settings).works("can have several servers now")
    clover(alone, "meta", "make-group", "--config", first.settings).is_refused("group add")

    # It cannot be started as before by mistake.
    clover(alone, "meta", "--config", first.settings, "--set", "coordinator=embedded").is_refused("make-group")

    first.start()
    until("it serves", lambda: first.said_role() is not None)
    fs(group, "-test", "-d", "/before").works()

    admin(group, "group", "add", 2).works("WARNING")
    second.configure([1, 2], group.coordinator)
    second.format("--join")
    second.start()
    admin(group, "group", "minimum", 3).is_refused("nothing was done")
    until("both are in sync", lambda: len(group.view()["in_sync"]) == 2)
    admin(group, "group", "minimum", 2).works().does_not_say("WARNING")
    check(group.view()["in_sync_min"] == 2, group.view())

    # And it is a group: the second goes on, and the first follows.
    admin(group, "group", "hand-over", "--to", 2).works("Member 2 is active")
    until("the first is in sync again", lambda: len(group.view()["in_sync"]) == 2)
    fs(group, "-test", "-d", "/before").works()
    fs(group, "-mkdir", "/after").works()
