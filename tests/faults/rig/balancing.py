"""Data servers with small disks of their own, on racks, and the balancers that move replicas between them."""

import os
import re
import subprocess
import time

from harness.clients import environment
from harness.process import Process
from harness.report import Failure, check

from . import replicas
from .cluster import Cluster

# The first machine of a data server: members have the numbers below.
FIRST_MACHINE = 21
BALANCER_S = 420
BLOCK_BYTES = 1 << 20
BLOCKS = ("-D", f"dfs.blocksize={BLOCK_BYTES}")


def why_not():
    return None if os.geteuid() == 0 else "it mounts small disks of its own, which needs root"


class RackedCluster(Cluster):
    """Each data server is on a machine of its own, with one small disk for each of its storage types."""

    def __init__(self, *words, racks, disk_bytes, types=("DISK",), joining=0, data_keys=None, **others):
        """`racks`: that of each data server, in order. The last `joining` servers are not started with the others. `data_keys` are more keys of the data servers' files."""
        super().__init__(*words, data=len(racks), **others)
        self.disk_bytes = disk_bytes
        self.types = types
        self.data_keys = data_keys or {}
        self.machines = {name: FIRST_MACHINE + at for at, name in enumerate(self.data)}
        self.racks = dict(zip(self.data, racks))
        self.joiners = list(self.data)[len(racks) - joining :] if joining else []
        self.mounted = []
        table = {self.network.member(self.machines[name]): rack for name, rack in self.racks.items()}
        self.meta_keys = {**self.meta_keys, "racks": table}
        # The directories of all types; those of the first type are where the rig looks for replicas.
        self.disks = {name: {kind: self.directory / f"{name}-{kind.lower()}" / "data" for kind in types} for name in self.data}
        self.data_directories = {name: disks[types[0]] for name, disks in self.disks.items()}

    def start(self):
        later = {name: self.data.pop(name) for name in self.joiners}
        super().start()
        self.data |= later

    def machine_of(self, name):
        return self.machines[name]

    def directories_of(self, name):
        return [f"[{kind}]{disk}" for kind, disk in self.disks[name].items()]

    def volumes_of(self, name):
        return [*self.disks[name].values()]

    def configure_data(self, name):
        for disk in self.disks[name].values():
            disk.parent.mkdir(parents=True)
            command = ["mount", "-t", "tmpfs", "-o", f"size={self.disk_bytes}", "tmpfs", disk.parent]
            subprocess.run(list(map(str, command)), check=True)
            self.mounted.append(disk.parent)
            disk.mkdir()
        super().configure_data(name)

    def join(self, data=None):
        """The servers that were held back come, with empty disks. `data`: so many servers are there then, if not all."""
        for name in self.joiners:
            self.configure_data(name)
            self.start_data(name)
        self.wait_settled(data=data)

    def stop(self):
        super().stop()
        for disk in self.mounted:
            subprocess.run(["umount", "--lazy", disk], capture_output=True)

    def used_percent(self):
        """The share of each server's disk that replicas take, of the first type."""
        used = {}
        for name, held in replicas.on_disk(self).items():
            used[name] = 100 * sum(length for _, _, length in held) / self.disk_bytes
        return used


def spread(used):
    """The greatest distance of a server from the mean, in percent of its disk."""
    mean = sum(used.values()) / len(used)
    return max(abs(share - mean) for share in used.values())


def two_join(disk_bytes):
    """For a scene: three data servers on three racks, and two more that are held back."""
    racks = ["/r1", "/r1", "/r2", "/r2", "/r3"]
    return {"cluster_of": RackedCluster, "racks": racks, "disk_bytes": disk_bytes, "joining": 2}


def tell(scene, when, used):
    scene.say(f"{when}: {said(used)}; the farthest from the mean by {spread(used):.1f} %")


def said(used):
    return ", ".join(f"{name} {share:.0f} %" for name, share in sorted(used.items()))


class Stock:
    """Hadoop's own balancer and mover."""

    # The defaults are meant for blocks of 128 MiB and for data servers that are told of their deletions every three seconds.
    SETTINGS = {
        "dfs.balancer.getBlocks.min-block-size": 1,
        "dfs.balancer.getBlocks.hot-time-interval": 0,
        "dfs.heartbeat.interval": 1,
        "dfs.namenode.redundancy.interval.seconds": 1,
        # For its own file, /system/balancer.id. As long as that is open, room for a whole block is kept free, and counts as taken.
        "dfs.blocksize": 1 << 20,
        # How long a server is waited for of which nothing more can be moved.
        "dfs.balancer.max-no-move-interval": 3_000,
    }

    def __init__(self, scene):
        self.scene = scene
        clients = scene.options.java.jars.parent
        self.jars = clients / f"contract-{scene.options.java.jars.name.removeprefix('hadoop-')}"
        check(self.jars.is_dir(), f"{self.jars} is missing: run scripts/setup-test")

    def command(self, main, *words, **settings):
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
        options += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=info"]
        given = [word for key, value in {**self.SETTINGS, **settings}.items() for word in ("-D", f"{key}={value}")]
        return ["java", *options, "-cp", f"{self.scene.conf()}:{self.jars}/*", f"org.apache.hadoop.hdfs.{main}", *given, *map(str, words)]

    def run(self, main, *words, **settings):
        """Runs it to its end. Its exit code, all that it said, and the seconds it took."""
        begun = time.monotonic()
        command = self.command(main, *words, **settings)
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=BALANCER_S, stdin=subprocess.DEVNULL, env=environment())
        (self.scene.directory / f"{main.rsplit('.', 1)[1].lower()}.out").write_text(done.stdout + done.stderr)
        return done.returncode, done.stdout + done.stderr, time.monotonic() - begun

    def move(self, path):
        """Brings the replicas of all files below to the storages that their policies want. Hadoop's mover of 3.5.0 ends at its second round
        by an exception of its own metrics, whatever the cluster: it is run until it finds nothing to do. The moves it made, and the seconds."""
        moves, seconds = 0, 0.0
        for _ in range(6):
            code, text, took = self.run("server.mover.Mover", "-p", path)
            moves, seconds = moves + moved_by(text), seconds + took
            if code == 0 and "Mover Successful" in text:
                return moves, seconds
            check("MetricsException: Metrics source Mover-" in text, f"hdfs mover ended with {code}:\n{text[-4000:]}")
        raise Failure(f"hdfs mover goes on finding something to do:\n{text[-4000:]}")

    def set_policy(self, path, policy):
        code, text, _ = self.run("tools.StoragePolicyAdmin", "-setStoragePolicy", "-path", path, "-policy", policy)
        check(code == 0, f"hdfs storagepolicies: {text}")

    def balance(self, threshold=5):
        return self.run("server.balancer.Balancer", "-threshold", threshold)

    def begin_to_balance(self, threshold=5):
        """The balancer as a process, whose end the story waits for."""
        command = self.command("server.balancer.Balancer", "-threshold", threshold)
        return Process("balancer", list(map(str, command)), self.scene.directory / "balancer.log")


def moved_by(text):
    """The moves that Hadoop's balancer or mover says to have made."""
    return len(re.findall(r"Successfully moved", text))


def wait_until(is_so, seconds, what):
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise Failure(f"not within {seconds} s: {what}")
        time.sleep(0.5)


def wait_whole(scene, replication, only=None):
    """Until every block, or each of these, has so many finished replicas on all disks together, none too many, and the racks that it must have."""
    deadline = time.monotonic() + 90
    while True:
        found = faults_of_blocks(scene.cluster, replication, only)
        if not found:
            return
        if time.monotonic() > deadline:
            raise Failure(f"{len(found)} blocks are not as they must be: {found[:5]}")
        time.sleep(0.5)


def faults_of_blocks(cluster, replication, only=None):
    holders = {number: [] for number in only or ()}
    for name, disks in cluster.disks.items():
        for kind in disks:
            for block in on_disks(cluster, name, kind):
                if only is None or block[0] in only:
                    holders.setdefault(block[0], []).append((name, block))
    return [*badly_held(cluster, replication, holders)]


def badly_held(cluster, replication, holders):
    racks_wanted = min(2, len(set(cluster.racks.values())), replication)
    for number, held in holders.items():
        names = [name for name, _ in held]
        if len(names) != replication or len(set(names)) != replication or len({block for _, block in held}) != 1:
            yield f"block {number} is on {sorted(names)}: {sorted({block for _, block in held})}"
        elif len({cluster.racks[name] for name in names}) < racks_wanted:
            yield f"block {number} is on one rack: {sorted(names)}"


def on_disks(cluster, name, kind):
    """The finished replicas on one disk of a server, as (id, stamp, length)."""
    return replicas.below(cluster.disks[name][kind])


def fill(scene, directory, files):
    """So many files of a block or two on the servers that are there. What is in each, by its path."""
    source = scene.directory / "files" / directory.strip("/")
    source.mkdir(parents=True)
    contents = {}
    for number in range(files):
        data = scene.chance.randbytes(BLOCK_BYTES + (number % 5) * 1000 - 2000)
        contents[f"{directory}/f{number}"] = data
        (source / f"f{number}").write_bytes(data)
    replicas.shell(scene, "-mkdir", "-p", directory)
    replicas.shell(scene, *BLOCKS, "-put", *sorted(source.iterdir()), directory)
    return contents


def introduce(scene):
    """Clients write a little, as they do all day: so the servers that have joined show that they store what they are sent."""
    contents = {f"/new/f{number}": scene.chance.randbytes(5_000) for number in range(16)}
    replicas.shell(scene, "-mkdir", "-p", "/new")
    for path, data in contents.items():
        replicas.shell(scene, *BLOCKS, "-put", "-", path, sent=data)
    return contents
