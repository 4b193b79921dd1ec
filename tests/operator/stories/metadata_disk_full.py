"""The metadata disk fills up: the server stays, refuses changes clearly, answers reads, and goes on by itself with room."""

import json

from harness.report import check
from rig.disks import fill
from stand import admin, fs, health, needs_root, page, until

IN_SLICE = False
SIZE = "420m"
why_not = needs_root


def run(make):
    cluster = make.cluster(members=1, data=1)
    member = cluster.members[1]
    disk = make.small_disk("disk", SIZE)
    member.directory = disk / "meta"
    cluster.start()
    fs(cluster, "-mkdir", "/before").works()
    free = until("the free space is told", lambda: int(health(member)[1].get("disk_free_bytes", 0)))
    check(free < 420 << 20, free)
    check("clover_disk_free_bytes" in page(member, "/metrics")[1], "no such metric")
    admin(cluster, "report").works("metadata disk of member 1")

    # Somebody else's file takes nearly all.
    filler = disk / "filler"
    fill(filler, leave=12 << 20)
    code, text = until("it is not ready", lambda: (found := page(member, "/ready"))[0] == 503 and found)
    check("disk" in json.loads(text)["reason"], text)
    fs(cluster, "-mkdir", "/refused").is_refused("MiB free")
    fs(cluster, "-test", "-d", "/before").works()
    check(health(member)[0] == 200 and "MiB free" in health(member)[1]["warnings"], health(member))
    admin(cluster, "report").works("TOO LITTLE")
    check(member.process.is_running, member.process.tail())

    # To the last byte, and for a while: epochs, beats and images go on or wait.
    fill(disk / "rest")
    until("the log says it", lambda: "changes are refused" in member.log.read_text())
    for _ in range(20):
        fs(cluster, "-mkdir", "/refused").is_refused("MiB free")
    check(member.process.is_running, member.process.tail())

    # With room it goes on, without a restart; and what was acknowledged is there after one.
    filler.unlink()
    (disk / "rest").unlink()
    until("it takes changes again", lambda: fs(cluster, "-mkdir", "-p", "/after").code == 0)
    member.process.kill()
    member.process.wait_gone()
    member.start()
    until("it serves again", lambda: member.said_role() is not None)
    for path in ("/before", "/after"):
        fs(cluster, "-test", "-d", path).works()

    # A start on a full disk says so, and works once there is room.
    member.process.end()
    fill(filler)
    member.start()
    until("it has ended, or answers reads", lambda: not member.process.is_running or page(member, "/health")[0] == 200)
    if not member.process.is_running:
        check("make room" in member.process.tail() or "space" in member.process.tail().lower(), member.process.tail())
        filler.unlink()
        member.start()
    until("reads are answered", lambda: member.process.is_running and fs(cluster, "-test", "-d", "/after").code == 0)
