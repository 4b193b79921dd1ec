"""What must be so after each story of data servers, once they have had time for it.

Every acknowledged byte is readable as long as one good replica lives; `clover fsck` says so, or names exactly what must be missing; no disk has a replica
that the namespace does not know, and none is missing.
"""

import json
import subprocess
import time
import zlib

from checks import blocks
from harness.report import Failure, check

from . import load, replicas

# Until data servers have copied and deleted what they must. A new active orders nothing for half a minute, and a copy that failed is ordered again later.
HEAL_S = 150
FSCK_S = 60
# For the data servers of a story in which a pipeline breaks. A server that lives has a part of the block, tells it with its next full report, and is then told
# to delete it. By default the next full report comes six hours later.
REPORTS = {"block_report_interval_ms": 5_000}
# For the metadata servers of a story in which a copy may fail. It is ordered again when its time is over, by default after five minutes, as in HDFS.
COPIES = {"transfer_retry_ms": 10_000}


class After:
    """`contents` is what each file must be, by its path. `missing` are the files of which no good replica lives. `without` are data servers that are gone.
    `alone` are blocks of which somebody has taken away the block file of a replica: the meta file stays, because the directory scanner deletes no file."""

    def __init__(self, contents=None, missing=(), without=(), alone=(), heal_s=HEAL_S):
        self.contents, self.missing, self.without = contents or {}, frozenset(missing), tuple(without)
        self.alone, self.heal_s = frozenset(alone), heal_s

    def faults(self, scene):
        """Sentences about what is not as it must be. Says how long it took until all else was."""
        begun = time.monotonic()
        while True:
            listing = self.listing(scene)
            held = self.replicas(scene)
            found = blocks.unlike(listing, held, self.missing) + blocks.unhealthy(fsck(scene), self.missing)
            took_s = time.monotonic() - begun
            if not found or took_s > self.heal_s:
                break
            time.sleep(0.5)
        found += self.unreadable(scene)
        count = sum(len(each) for each in held.values())
        scene.say(f"after {took_s:.1f} s: {len(listing)} blocks, {count} replicas on {len(held)} data servers; fsck, disks and readers find {len(found)} faults")
        return found

    def replicas(self, scene):
        """All that is on the disks, but for the meta files that may stand alone."""
        is_alone = lambda replica: replica.length == replicas.NO_BLOCK_FILE and replica.number in self.alone
        held = replicas.everything(scene.cluster, self.without)
        return {name: {replica for replica in of_server if not is_alone(replica)} for name, of_server in held.items()}

    def listing(self, scene, below="/"):
        """All blocks of the files below a directory, in which nothing changes meanwhile."""
        clients = scene.directory / "clients"
        load.dump(scene.options.java, scene.conf(), below, clients / "after-blocks.txt", clients / "after.log", "blocks")
        return blocks.read_listing(clients / "after-blocks.txt")

    def unreadable(self, scene):
        """A stock client reads every byte of all files."""
        clients = scene.directory / "clients"
        # A client asks three times for a block that it cannot read, and rests longer before each time.
        conf = scene.conf(**{"dfs.client.retry.window.base": 300})
        load.dump(scene.options.java, conf, "/", clients / "after-files.txt", clients / "after.log")
        found, sums = [], {}
        for line in (clients / "after-files.txt").read_text().splitlines():
            path, kind, _, length, told = line.split("\t")
            if kind == "f":
                sums[f"/{path}"] = (int(length), told)
        for path, (_, told) in sums.items():
            if told.startswith("unreadable") and path not in self.missing:
                found.append(f"{path} cannot be read: {told}")
            elif not told.startswith("unreadable") and path in self.missing:
                found.append(f"{path} has no good replica, and a reader got something")
        for path, content in self.contents.items():
            right = (len(content), f"{zlib.crc32(content):x}")
            if path not in self.missing and sums.get(path) != right:
                found.append(f"{path} is not what was written: {sums.get(path)}, and not {right}")
        return found


def wait_whole(scene):
    """Waits until fsck finds no block with too few replicas. Blocks that are being written are not looked at."""
    deadline = time.monotonic() + HEAL_S
    while (sums := fsck(scene)[-1]["summary"])["missing_replicas"] or not sums["healthy"]:
        check(time.monotonic() < deadline, f"after {HEAL_S} s blocks want replicas: {sums}")
        time.sleep(0.3)


def fsck(scene):
    """All that `clover fsck` says, each line read. It ends well where it says that all is well, and not else."""
    command = [scene.options.clover, "fsck", "/", "--json", "--conf", scene.conf()]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=FSCK_S, stdin=subprocess.DEVNULL)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if not lines or (done.returncode == 0) != lines[-1]["summary"]["healthy"]:
        raise Failure(f"clover fsck ended with {done.returncode}: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return lines
