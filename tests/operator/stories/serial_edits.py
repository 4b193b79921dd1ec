"""Edits that come one by one do not fill the disk: full files of the journal are packed, and images are written, so that files behind them go."""

from harness.report import check
from stand import fs, until

IN_SLICE = False
MIB = 1 << 20
FILES, AT_ONCE = 6_000, 1_000
# Each touchz is two edits, which take a block each at first.
ALONE = 2 * FILES * 4096


def run(make):
    check(ALONE > 40 * MIB, f"{ALONE / MIB:.1f} MiB")
    cluster = make.start("packed", members=1, data=1, journal_segment_bytes="1m", journal_bytes_per_image="1g")
    touch(cluster)
    # 200 bytes each, the open file and the next one.
    until("the full files are packed", lambda: size_of(log_of(cluster)) < 7 * MIB)
    size = size_of(log_of(cluster)) / MIB
    print(f"    {FILES} touchz: {size:.1f} MiB of journal with no image; they were written as {ALONE / MIB:.1f} MiB", flush=True)
    cluster.members[1].process.kill()
    cluster.members[1].start()
    said = fs(cluster, "-count", "/many").works()
    check(str(FILES) in said.out, said)

    cluster = make.start("images", members=1, data=1, journal_segment_bytes="1m", journal_bytes_per_image="4m")
    first = oldest(log_of(cluster))
    touch(cluster)
    until("the old files are gone", lambda: oldest(log_of(cluster)) > first)
    said = fs(cluster, "-count", "/many").works()
    check(str(FILES) in said.out, said)


def touch(cluster):
    fs(cluster, "-mkdir", "/many").works()
    for first in range(0, FILES, AT_ONCE):
        fs(cluster, "-touchz", *(f"/many/{number}" for number in range(first, first + AT_ONCE))).works()


def log_of(cluster):
    return cluster.members[1].directory / "group-1" / "log"


def size_of(directory):
    return sum(file.stat().st_blocks * 512 for file in directory.iterdir())


def oldest(directory):
    return min(file.name for file in directory.iterdir() if "-" in file.name)
