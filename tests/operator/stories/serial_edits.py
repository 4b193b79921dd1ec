"""Edits that come one by one do not fill the disk: images are written, and the journal behind them goes."""

from harness.report import check
from stand import fs, until

IN_SLICE = False
MIB = 1 << 20
FILES, AT_ONCE = 6_000, 1_000


def run(make):
    cluster = make.start(members=1, data=1, journal_segment_bytes="1m", journal_bytes_per_image="4m")
    log = cluster.members[1].directory / "group-1" / "log"
    fs(cluster, "-mkdir", "/many").works()
    worst = 0
    for first in range(0, FILES, AT_ONCE):
        fs(cluster, "-touchz", *(f"/many/{number}" for number in range(first, first + AT_ONCE))).works()
        worst = max(worst, size_of(log))
    # Each touchz is two edits of 4 KiB: without images it would be all of that.
    alone = 2 * FILES * 4096
    print(f"    {FILES} touchz: {worst / MIB:.1f} MiB of journal at most; {alone / MIB:.1f} MiB without images", flush=True)
    check(alone > 40 * MIB and worst < alone / 2, f"{worst / MIB:.1f} MiB")
    until("the old segments are gone", lambda: size_of(log) < 20 * MIB)
    said = fs(cluster, "-count", "/many").works()
    check(str(FILES) in said.out, said)


def size_of(directory):
    return sum(file.stat().st_blocks * 512 for file in directory.iterdir())
