"""Strangers press on all data servers, with 10,000 idle connections, half-open writes, senders of a byte a second and readers that take nothing: clients go on, and memory stays bounded."""

import contextlib
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from harness.process import die_with_parent
from harness.report import check
from rig import servers
from rig.after import COPIES, REPORTS, After
from rig.pens import Pens

ITEM = "15"
IN_SLICE = False
NEEDS_CABLES = False
DATA = 3
# The transfers that a data server takes at a time, as by default; the strangers are more than that.
TRANSFERS = 4096
COUNTS = {"silent": 10_000, "half_open": 1_000, "slow": 1_000, "reader": 1_000}
BYTES = 1_000_000
FILES = 40
BLOCK = 32 << 20
# The block that strangers read.
LONG = 30 << 20
# Readers share 256 MiB for packets beside one packet each, sent and being filled.
BYTES_MAX = 600 << 20
PRESSED_S = 60
# Clients and data servers have equal time-outs, as by default.
TIMEOUT_MS = 5_000


def run(scene_of):
    # Strangers need many descriptors, and the stories' own limit is enough for that where the system allows it.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    scene = scene_of(members=1, data=DATA, meta_keys=COPIES)
    scene.cluster.data_keys = {"transfer_timeout_ms": TIMEOUT_MS, "max_transfers": TRANSFERS, **REPORTS}
    with scene, Pens(scene, **{"dfs.client.socket-timeout": TIMEOUT_MS}) as pens:
        quiet = write_and_read(pens, "/quiet")
        scene.say(f"quiet: {told(quiet)}")
        before = memory(scene.cluster)
        pen = pens.pen()
        pen.does("create", "/long", DATA, BLOCK)
        pen.does("write", LONG)
        pen.does("close")
        target = a_block(scene, LONG)
        for kind, count in COUNTS.items():
            with pressed(scene.cluster, kind, count, target) as pressers:
                during = write_and_read(pens, f"/{kind}")
                most = {name: bytes_ - before[name] for name, bytes_ in memory(scene.cluster).items()}
                opened = [presser.told() for presser in pressers]
            a_connection = max(most.values()) / max(opened for opened, _ in opened)
            states = ", ".join(f"{now} open and {gone} closed" for now, gone in opened)
            scene.say(f"{count} x {kind} on each server ({states}): {told(during)}; {max(most.values()) >> 20} MiB more, {a_connection / 1024:.0f} KiB each")
            check(max(most.values()) < BYTES_MAX, f"{kind}: a server takes {max(most.values()) >> 20} MiB more")
        after = write_and_read(pens, "/after")
        scene.say(f"after: {told(after)}")
        forget_half_open(scene.cluster)
        return scene.verdict(after=After())


def forget_half_open(cluster):
    """The writes that strangers have begun left replicas of blocks that no file has, on each server more than a share of what it holds: an operator decides."""
    deadline = time.monotonic() + PRESSED_S
    while left := sum(len(list(directory.glob("current/BP-*/current/rbw/blk_*"))) for directory in cluster.data_directories.values()):
        check(time.monotonic() < deadline, f"{left} files of half-open writes are still there")
        # Each full report may bring more that is held back.
        cluster.admin("blocks", "allow-deletions", "--yes")
        time.sleep(2)


def write_and_read(pens, directory):
    """Writes files one after the other and reads them back. The milliseconds of each."""
    wrote, read = [], []
    pen = pens.pen()
    for number in range(FILES):
        path, begun = f"{directory}/f{number}", time.monotonic()
        pen.does("create", path, DATA, BLOCK)
        pen.does("write", BYTES)
        pen.does("close")
        wrote.append(1000 * (time.monotonic() - begun))
        begun = time.monotonic()
        check(pen.length(path) == BYTES, f"{path} has all bytes")
        read.append(1000 * (time.monotonic() - begun))
    return wrote, read


def told(figures):
    return ", ".join(f"{name} {statistics.median(these):.0f} ms, at most {max(these):.0f}" for name, these in zip(("write", "read"), figures))


def memory(cluster):
    """Resident bytes of each data server."""
    page = os.sysconf("SC_PAGE_SIZE")
    return {name: int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * page for name, process in cluster.data.items()}


def a_block(scene, length):
    """The block of this length, which all data servers have: POOL/ID/STAMP/LENGTH."""
    directory = next(iter(scene.cluster.data_directories.values()))
    file = next(file for file in directory.glob("current/BP-*/current/finalized/**/blk_*") if file.stat().st_size == length)
    meta = next(file.parent.glob(f"{file.name}_*.meta"))
    _, number, stamp = meta.stem.split("_")
    pool = next(directory.glob("current/BP-*")).name
    return f"{pool}/{number}/{stamp}/{length}"


class Presser:
    def __init__(self, host, port, kind, count, target):
        words = [kind, host, port, count, target if kind == "reader" else target.split("/")[0]]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rig.presser", *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parent.parent,
            preexec_fn=die_with_parent,
        )
        os.set_blocking(self.process.stdout.fileno(), False)
        self.said, self.last = b"", (0, 0)

    def told(self):
        """How many connections are open, and how many the server has closed so far."""
        with contextlib.suppress(BlockingIOError):
            self.said += os.read(self.process.stdout.fileno(), 1 << 16)
        *lines, self.said = self.said.split(b"\n")
        for line in lines:
            self.last = tuple(map(int, line.split()))
        return self.last

    def end(self):
        self.process.stdin.close()
        self.process.wait()


@contextlib.contextmanager
def pressed(cluster, kind, count, target):
    pressers = []
    for server in servers.report(cluster).values():
        host, port = server["address"].rsplit(":", 1)
        pressers.append(Presser(host, port, kind, count, target))
    try:
        deadline = time.monotonic() + PRESSED_S
        # All have come, as far as the server lets them.
        while any(sum(presser.told()) < count for presser in pressers):
            check(time.monotonic() < deadline, f"{kind}: not all connections were made: {[presser.told() for presser in pressers]}")
            time.sleep(0.5)
        yield pressers
    finally:
        for presser in pressers:
            presser.end()
