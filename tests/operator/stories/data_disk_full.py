"""The disk of a data server is full: it is told as full, a write that fails leaves nothing behind, and room is used again."""

from harness.report import check
from rig.disks import fill
from stand import admin, fs, needs_root, until

IN_SLICE = False
MIB = 1 << 20
why_not = needs_root


def run(make):
    cluster = make.cluster(members=1, data=1)
    disk = make.small_disk("disk", "64m")
    cluster.data_directories["data-1"] = disk / "data"
    cluster.start()
    fits, large = make.directory / "fits", make.directory / "large"
    fits.write_bytes(bytes(8 * MIB))
    large.write_bytes(bytes(80 * MIB))
    small = ["-Ddfs.blocksize=1m", "-Ddfs.client.block.write.retries=0"]
    fs(cluster, *small, "-put", fits, "/fits").works()

    # It fills up while a file is written.
    fs(cluster, "-Ddfs.blocksize=16m", *small[1:], "-put", large, "/large").is_refused()
    admin(cluster, "report").works()
    # What was being written when there was no room is no finished block of anybody's.
    until("nothing half-written is left", lambda: not any((disk / "data").rglob("rbw/blk_*")), seconds=30)

    # Full to the last byte, by somebody else.
    filler = disk / "filler"
    fill(filler)
    until("it is told as full", lambda: " full " in admin(cluster, "report").works().out)
    fs(cluster, "-cat", "/fits").works()
    check(cluster.data["data-1"].is_running, cluster.data["data-1"].tail())
    filler.unlink()
    until("it is live again", lambda: " live " in admin(cluster, "report").works().out)
    fs(cluster, *small, "-put", fits, "/again").works()
