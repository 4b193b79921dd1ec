"""The network to a data server gets slow: the others say so, new blocks go elsewhere, it is read from last, a new active knows it, and all ends when it is well."""

import json
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from harness.report import Failure, check
from rig import replicas, servers
from rig.after import COPIES, REPORTS, After
from rig.balancing import Stock
from rig.cluster import Cluster

ITEM = "66"
IN_SLICE = False
NEEDS_CABLES = True
LIMIT_S = 900
SLOW = "data-1"
# The machine that the slow server has for itself.
MACHINE = 21
RATE = "10mbit"
DATA = 5
INTERVAL_MS = 1_000
# For so long slow packets are remembered. By then a server that is avoided gets none, so it is tried again.
MEMORY_MS = 120_000
META = {"exclude_slow_data_servers": True, "read_slow_last": True, "slow_report_interval_ms": INTERVAL_MS, **COPIES}
SLOWNESS = {
    "peer_stats": True,
    "slow_peer_packets_min": 40,
    "slow_peer_count_min": 3,
    "slow_report_interval_ms": INTERVAL_MS,
    "slowness_memory_ms": MEMORY_MS,
}
FILE_BYTES = 4 << 20
# Files at a time, and the files after which a slow server must have been noticed.
AT_ONCE, ROUNDS = 4, 60
AFTERWARDS = 12
PATIENCE_S = 300
EXCLUDED_S = 30
STEADY_S = 10


class OneApart(Cluster):
    """One data server is on a machine of its own."""

    def machine_of(self, name):
        return MACHINE if name == SLOW else None


def why_not():
    return None if shutil.which("tc") else "tc is not installed, which makes a line slow"


def run(scene_of):
    scene = scene_of(members=3, meta_keys=META, cluster_of=lambda *place, **words: OneApart(*place, data=DATA, **words))
    scene.cluster.data_keys = {**REPORTS, **SLOWNESS}
    with scene:
        files = Files(scene)
        before = files.put(AFTERWARDS, inside=True)
        # A server that is busy for the moment is passed over as well.
        before = [path for path in before if files.held_by(SLOW, [path])]
        check(len(before) > AFTERWARDS // 2, f"blocks of a writer on the machine of {SLOW} are there: {len(before)} of {AFTERWARDS}")
        check(all(files.first_is_slow(path) for path in before), f"a reader on the machine of {SLOW} is sent there first")
        scene.start_load()
        scene.fault(f"the line to {SLOW} takes {RATE} only", scene.options.network.narrow, MACHINE, RATE)
        begun = time.monotonic()
        told = files.write_until(lambda: slowness(scene))
        scene.say(
            f"after {time.monotonic() - begun:.1f} s and {files.count - AFTERWARDS} files {told['reporters']} of the others call {SLOW} slow: "
            f"a packet takes {told['latency_ms']:.1f} ms, the median is {told['median_ms']:.2f} ms"
        )
        check(told["excluded"] and told["read_last"], told)
        check(stock_names(scene) == [address(scene)], f"hdfs dfsadmin -report -slownodes names {stock_names(scene)}")
        avoided(scene, files, before)
        number = scene.kill_active()
        scene.cluster.wait_active(other_than=number)
        scene.wait_progress()
        begun = time.monotonic()
        wait_excluded(scene)
        scene.say(f"a new active has heard the reports as well, and keeps {SLOW} out {time.monotonic() - begun:.1f} s after it went on")
        avoided(scene, files, before)
        scene.restart(number)
        scene.fault("the line is as before", scene.options.network.widen, MACHINE)
        begun = time.monotonic()
        wait_well(scene)
        scene.say(f"{SLOW} is well again after {time.monotonic() - begun:.1f} s, of which its slow packets are remembered for {MEMORY_MS // 1000} s")
        check(not stock_names(scene), f"hdfs dfsadmin -report -slownodes still names {stock_names(scene)}")
        after = files.put(AFTERWARDS, inside=True)
        check(files.held_by(SLOW, after) > AFTERWARDS // 2, f"new blocks go to {SLOW} again: {files.held_by(SLOW, after)} of {len(after)}")
        check(all(files.first_is_slow(path) for path in before), f"{SLOW} is read from first again")
        return scene.verdict(after=After(files.contents))


def avoided(scene, files, before):
    """New blocks go elsewhere, also those of a writer on the slow machine, which is read from last."""
    new = [*files.put(AFTERWARDS), *files.put(AFTERWARDS, inside=True)]
    held = files.held_by(SLOW, new)
    check(slowness(scene), f"{SLOW} is still slow")
    check(held == 0, f"{SLOW} is slow, and got {held} of {len(new)} new blocks")
    late = sum(files.slow_is_last(path) for path in before)
    check(late == len(before), f"a reader on the machine of {SLOW} is sent there last: {late} of {len(before)}")
    scene.say(f"{len(new)} new blocks went elsewhere, and {SLOW} is read from last")


def slowness(scene):
    """What the active says of the slow server; None if it is not slow."""
    told = {name: server["slow"] for name, server in servers.report(scene.cluster).items() if server["slow"]}
    check(set(told) <= {SLOW}, f"others are called slow: {told}")
    return told.get(SLOW)


def wait_excluded(scene):
    """A new active counts the word of those alone of which it knows that they store what they claim to store. That takes a moment."""
    deadline = time.monotonic() + EXCLUDED_S
    while not ((told := slowness(scene)) and told["excluded"]):
        check(time.monotonic() < deadline, f"a new active does not keep {SLOW} out within {EXCLUDED_S} s: {told}")
        time.sleep(0.2)


def address(scene):
    return servers.report(scene.cluster)[SLOW]["address"]


def stock_names(scene):
    """The addresses that Hadoop's own tool tells for slow data servers."""
    code, text, _ = Stock(scene).run("tools.DFSAdmin", "-report", "-slownodes")
    check(code == 0, text)
    return [line.split()[1] for line in text.splitlines() if line.startswith("Name: ")]


def wait_well(scene):
    """Until nobody has called the server slow for STEADY_S. It is called slow once more if it gets enough packets to be judged while some slow ones are remembered."""
    deadline = time.monotonic() + PATIENCE_S
    well_since = None
    while well_since is None or time.monotonic() - well_since < STEADY_S:
        told = slowness(scene)
        if told and time.monotonic() > deadline:
            raise Failure(f"{SLOW} is still slow after {PATIENCE_S} s: {told}")
        well_since = None if told else well_since or time.monotonic()
        time.sleep(0.2)


class Files:
    """Files of one block with three replicas."""

    def __init__(self, scene):
        self.scene, self.count, self.contents = scene, 0, {}
        self.source = scene.directory / "files"
        self.source.mkdir()
        replicas.shell(scene, "-mkdir", "-p", "/kept")

    def write_until(self, holds):
        for _ in range(ROUNDS):
            with ThreadPoolExecutor(AT_ONCE) as writers:
                list(writers.map(lambda _: self.put(1), range(AT_ONCE)))
            if told := holds():
                return told
        raise Failure(f"{ROUNDS * AT_ONCE} files were written, and nobody is called slow")

    def put(self, count, inside=False):
        """Writes so many files, from the machine of the slow server or from that of the others. Their paths."""
        sources = []
        for _ in range(count):
            self.count += 1
            # The length tells which replicas are of which file.
            content = bytes((self.count % 251,)) * (FILE_BYTES + self.count)
            source = self.source / f"f{self.count}"
            source.write_bytes(content)
            sources.append(source)
            self.contents[f"/kept/{source.name}"] = content
        self.run("fs", "-put", *sources, "/kept", inside=inside)
        for source in sources:
            source.unlink()
        return [f"/kept/{source.name}" for source in sources]

    def run(self, group, *words, inside=False):
        machine = self.scene.options.network.inside(MACHINE) if inside else []
        command = [*machine, self.scene.options.clover, group, "--conf", self.scene.conf(), *words]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        check(done.returncode == 0, f"{group} {words[0]}: {done.stderr}")
        return done.stdout

    def held_by(self, name, paths):
        lengths = {len(self.contents[path]) for path in paths}
        return sum(length in lengths for _, _, length in replicas.on_disk(self.scene.cluster)[name])

    def first_is_slow(self, path):
        return self.places(path)[0] == address(self.scene)

    def slow_is_last(self, path):
        return self.places(path)[-1] == address(self.scene)

    def places(self, path):
        """Where a reader on the slow machine is sent, in this order."""
        said = self.run("fsck", path, "--files", "--blocks", "--locations", "--json", inside=True)
        file = next(line for line in map(json.loads, said.splitlines()) if "path" in line)
        return [server["address"] for server in file["blocks"][0]["servers"]]
