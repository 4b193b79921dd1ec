"""`/health`, `/ready` and `report` tell the truth: silent and lost data servers, lost blocks, a removed member, nobody who serves."""

import json

from harness.report import check
from stand import admin, clover, fs, health, page, until

IN_SLICE = False


def ready(member):
    code, text = page(member, "/ready")
    return code, json.loads(text)


def run(make):
    cluster = make.start(members=2, data=2, stale_after_ms=3000, heartbeat_recheck_ms=2500)
    active = cluster.members[cluster.wait_active()]
    other = next(member for member in cluster.members.values() if member is not active)
    letter = make.directory / "letter"
    letter.write_text("hello\n" * 1000)
    fs(cluster, "-put", letter, "/letter").works()
    fs(cluster, "-setrep", "-w", 2, "/letter").works()

    # All is well.
    for member in (active, other):
        check(health(member)[0] == 200 and ready(member)[0] == 200, (health(member), ready(member)))
    check("warnings" not in health(active)[1], health(active))
    admin(cluster, "report").works("VOLUMES", "metadata disk of member 1", "live").does_not_say("stale", "LOST", "REFUSED")

    # A data server is silent, and then dead.
    cluster.data["data-1"].freeze()
    said = until("a data server is told as stale", lambda: (s := admin(cluster, "report").works()) and "stale" in s.out and s)
    check("stale 3 s" in said.out or "stale 4 s" in said.out, said)
    until("it is in the warnings", lambda: "stale" in health(active)[1].get("warnings", ""))
    until("it is told as dead", lambda: "dead" in admin(cluster, "report").works().out)
    admin(cluster, "report").works("1 of 2 data servers are dead")
    check((health(active)[0], ready(active)[0]) == (200, 200), health(active))

    # All that had the block are gone.
    cluster.data["data-2"].kill()
    until("the block is told as lost", lambda: "LOST" in admin(cluster, "report").works().out)
    code, said = health(active)
    check(code == 200 and "1 blocks are lost" in said["warnings"] and "no data server" in said["warnings"], said)
    cluster.data["data-1"].thaw()
    until("it is there again", lambda: "LOST" not in admin(cluster, "report").works().out)

    # Changes are refused: reads go on, and the answer says why.
    other.process.kill()
    other.process.wait_gone()
    until("changes are refused", lambda: ready(active)[0] == 503)
    check("1 members are in sync, and a change needs 2" in ready(active)[1]["reason"], ready(active))
    check(health(active)[0] == 200 and health(active)[1]["state"] == "active, takes no changes", health(active))
    admin(cluster, "report").works("CHANGES ARE REFUSED")
    other.start()
    cluster.wait_settled(data=1)

    # Nobody serves: it is said at once, and with a failure. A member that follows is well and not ready.
    cluster.zookeeper.process.freeze()
    active.process.kill()
    active.process.wait_gone()
    until("the standby is not ready", lambda: ready(other)[0] == 503)
    check("nobody serves" in ready(other)[1]["reason"] and health(other)[0] == 200, (ready(other), health(other)))
    said = admin(cluster, "report").is_refused("nobody serves")
    check(said.seconds < 15, said)
    cluster.zookeeper.process.thaw()
    active.start()
    cluster.wait_settled(data=1)

    # A member that was removed says so and serves nobody; the others do.
    active = cluster.members[cluster.wait_active()]
    other = next(member for member in cluster.members.values() if member is not active)
    admin(cluster, "group", "remove", other.number, "--in-sync-min", 1).works()
    code, said = until("it knows", lambda: (found := health(other))[0] == 503 and found)
    check(said["state"] == "removed" and "was removed from its group" in said["reason"], said)
    check(ready(other)[0] == 503, ready(other))
    clover(cluster, "fs", "-fs", f"hdfs://{other.rpc}", "-Ddfs.client.failover.max.attempts=1", "-ls", "/").is_refused("was removed")
    clover(cluster, "fs", "-fs", f"hdfs://{active.rpc}", "-ls", "/").works()
