"""The disk under a backup fills up: the order says so, and goes on where it stopped once there is room."""

from harness.report import check
from rig.disks import fill
from stand import clover, fs, needs_root, uri

IN_SLICE = False
why_not = needs_root


def run(make):
    cluster = make.start(members=1, data=1)
    member = cluster.members[1]
    disk = make.small_disk("disk", "8m")
    backup = disk / "backup"

    def archive():
        return clover(cluster, "admin", "--fs", uri(cluster), "backup", backup, "--config", member.settings)

    fs(cluster, "-mkdir", "/before").works()
    archive().works()
    many = [f"/many/{number}" for number in range(300)]
    fs(cluster, "-mkdir", "-p", *many).works()
    filler = disk / "filler"
    fill(filler, leave=8 << 10)
    archive().is_refused("no room is left for")
    # What was there before still is.
    clover(cluster, "meta", "backup", "verify", backup).works("verdict: sound")
    fs(cluster, "-mkdir", "/after").works()
    filler.unlink()
    archive().works()
    clover(cluster, "meta", "backup", "verify", "--deep", backup).works("verdict: sound")
    found = clover(cluster, "meta", "backup", "look", backup).works("/before", "/many", "/after")
    check(clover(cluster, "meta", "backup", "look", backup, "/many").out.count("/many/") == 300, found)
