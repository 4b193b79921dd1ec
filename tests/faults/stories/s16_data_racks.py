"""Half of the racks go, and come back with stale blocks after files were changed, deleted and made anew: nobody reads a stale byte, and no stale replica stays."""

import time

from harness.report import check
from rig import balancing, servers
from rig.after import COPIES, HEAL_S, REPORTS, After, fsck
from rig.pens import Pens

ITEM = "16"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900
# Two servers go, so that one of three replicas is left of every block.
RACKS = ["/r1", "/r2", "/r3", "/r3", "/r4", "/r4"]
GONE = ("/r1", "/r2")
DISK_BYTES = 128 << 20
BLOCK = 1 << 20
LENGTH = 1_500_000
OF_EACH = 6
META = {"heartbeat_recheck_ms": 1000, **COPIES}

why_not = balancing.why_not


def run(scene_of):
    words = {"cluster_of": balancing.RackedCluster, "racks": RACKS, "disk_bytes": DISK_BYTES, "data_keys": REPORTS}
    with scene_of(members=1, meta_keys=META, **words) as scene, Pens(scene, **{"dfs.client.socket-timeout": 10_000}) as pens:
        cluster = scene.cluster
        files = [File(pens, kind, number) for kind in (kept, appended, truncated, deleted, made_anew, written_on) for number in range(OF_EACH)]
        for file in files:
            file.begin()
        check(not After().faults(scene), "all is well before anything happens")
        lost = [name for name, rack in cluster.racks.items() if rack in GONE]
        scene.fault(f"the racks {' and '.join(GONE)} are gone: {', '.join(lost)}", lambda: [cluster.data[name].kill() for name in lost])
        mine = sum(len(balancing.on_disks(cluster, name, "DISK")) for name in lost)
        servers.wait_dead(cluster, lost)
        begun = time.monotonic()
        for file in files:
            file.change()
        scene.say(f"{len(files)} files were appended to, cut, deleted, made anew, written on, or left alone meanwhile")
        wait_whole(scene)
        took_s = time.monotonic() - begun
        scene.say(f"all blocks have three replicas on the other racks {took_s:.1f} s after the servers were dead, which had {mine} of them")
        check_all(files)
        scene.fault("and they are back", servers.start, cluster, lost)
        # At once, while the servers are telling what they have.
        check_all(files)
        found = After().faults(scene)
        check_all(files)
        wrong = balancing.faults_of_blocks(cluster, 3)
        check(not wrong, f"each block is on two racks at least: {wrong[:5]}")
        verdict = scene.verdict(after=After())
        verdict.astray += found
        return verdict


def wait_whole(scene):
    deadline = time.monotonic() + HEAL_S
    while (sums := fsck(scene)[-1]["summary"])["missing_replicas"] or not sums["healthy"]:
        check(time.monotonic() < deadline, f"after {HEAL_S} s blocks want replicas: {sums}")
        time.sleep(0.2)


def check_all(files):
    for file in files:
        file.check()


class File:
    """One file, what happens to it while the racks are gone, and the length that it has then."""

    def __init__(self, pens, kind, number):
        self.pens, self.change_of, self.path, self.pen, self.length = pens, kind, f"/{kind.__name__}/{number}", pens.pen(), LENGTH

    def begin(self):
        self.create(LENGTH)
        if self.change_of is written_on:
            self.pen.does("flush")
        else:
            self.pen.does("close")

    def create(self, length):
        self.pen.does("create", self.path, 3, BLOCK)
        self.pen.does("write", length)

    def change(self):
        self.length = self.change_of(self)

    def check(self):
        if self.length is None:
            return
        length = self.pens.pen().length(self.path)
        check(length == self.length, f"{self.path} has {length} bytes, and must have {self.length}")


def kept(file):
    return LENGTH


def appended(file):
    file.pen.does("append", file.path)
    file.pen.does("write", 700_000)
    file.pen.does("close")
    return LENGTH + 700_000


def truncated(file):
    length = LENGTH - 300_000
    if file.pen.does("truncate", file.path, length) == "false":
        file.pen.does("recover", file.path)
    return length


def deleted(file):
    file.pen.does("delete", file.path)
    return None


def made_anew(file):
    file.pen.does("delete", file.path)
    file.create(LENGTH // 2)
    file.pen.does("close")
    return LENGTH // 2


def written_on(file):
    file.pen.does("write", 700_000)
    file.pen.does("close")
    return LENGTH + 700_000
