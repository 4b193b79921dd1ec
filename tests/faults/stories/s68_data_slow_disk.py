"""One of three disks of a data server gets slow: its server says so, a new active knows it, and it is taken out under load with what it held copied elsewhere."""

import json
import subprocess
import time
import urllib.request

from harness.report import Failure, check
from rig import failing_files, replicas, servers
from rig.after import COPIES, HEAL_S, REPORTS, After, wait_whole

ITEM = "68"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900
DATA = 4
NAME = "data-1"
INTERVAL_MS = 1_000
# What a disk did earlier is forgotten after so long.
MEMORY_MS = 30_000
META = {"slow_report_interval_ms": INTERVAL_MS, **COPIES}
SLOWNESS = {"disk_stats_percent": 100, "slow_disk_count_min": 3, "slow_report_interval_ms": INTERVAL_MS, "slowness_memory_ms": MEMORY_MS}
FILES = 60
FILE_BYTES = 400_000
PATIENCE_S = 120
# So long nobody may be called slow while all disks are well.
QUIET_S = 5
why_not = failing_files.why_not


def run(scene_of):
    scene = scene_of(members=3, data=DATA, meta_keys=META)
    cluster = scene.cluster
    further, slow = cluster.directory / f"{NAME}-second", cluster.directory / f"{NAME}-slow"
    cluster.data_keys = {**REPORTS, **SLOWNESS}
    failing = failing_files.FailingFiles(scene.directory / "failing")
    cluster.further_directories[NAME] = [further, slow]
    cluster.data_within[NAME] = failing.within(slow)
    cluster.before_format = failing.make
    try:
        with scene:
            contents = replicas.store_random(scene, "/stored", FILES, FILE_BYTES)
            scene.start_load(size=scene.options.size._replace(own=1, cell=1, data=2, stream=2))
            nobody_is_slow(scene)
            gets_slow(scene, failing, slow)
            a_new_active_knows(scene, slow)
            is_taken_out(scene, slow)
            replicas.check_files(scene, contents)
            return scene.verdict(after=After(contents))
    finally:
        failing.heal()


def nobody_is_slow(scene):
    until = time.monotonic() + QUIET_S
    while time.monotonic() < until:
        check(not slow_disks(scene), f"all disks are well, and these are called slow: {slow_disks(scene)}")
        time.sleep(0.5)


def gets_slow(scene, failing, slow):
    scene.fault(f"each read and write of blocks on one disk of {NAME} takes 60 ms longer", failing.fail, "blocks-slow")
    begun = time.monotonic()
    told = wait_slow(scene, slow)
    took = {key.removesuffix("_ms"): round(ms, 1) for key, ms in told.items() if key != "path" and ms is not None}
    scene.say(f"after {time.monotonic() - begun:.1f} s the disk is called slow: {took} ms an operation")
    codes = conditions(scene)
    check("DISK_SLOW" in codes, f"clover status tells {codes}")


def a_new_active_knows(scene, slow):
    number = scene.kill_active()
    scene.cluster.wait_active(other_than=number)
    scene.wait_progress()
    wait_slow(scene, slow)
    check(str(slow) in told_to_java(scene.cluster), f"/jmx of the new active does not name {slow}")
    scene.restart(number)


def is_taken_out(scene, slow):
    """As the manual says: out of the configuration, while the server runs."""
    cluster = scene.cluster
    held = replicas.below(slow)
    check(len(held) > FILES // 8, f"the slow disk has {len(held)} replicas")
    servers.write_directories(cluster, NAME, [directory for directory in cluster.directories_of(NAME) if directory != slow])
    begun = time.monotonic()
    scene.cluster.admin("reconfigure", servers.report(cluster)[NAME]["rpc_address"])
    wait_whole(scene)
    took_s = time.monotonic() - begun
    scene.say(f"all blocks are whole {took_s:.1f} s after the order; the disk held {len(held)} replicas")
    begun = time.monotonic()
    while slow_disks(scene):
        check(time.monotonic() - begun < HEAL_S, f"a disk that is no longer there is called slow: {slow_disks(scene)}")
        time.sleep(0.5)
    scene.say(f"it is not called slow any more {time.monotonic() - begun:.1f} s later")
    scene.wait_progress()
    scene.note_end()
    # What is on it counts no more.
    cluster.further_directories[NAME].remove(slow)


def wait_slow(scene, slow):
    deadline = time.monotonic() + PATIENCE_S
    while True:
        told = slow_disks(scene)
        check(set(told) <= {(NAME, str(slow))}, f"others are called slow: {told}")
        if told:
            return told[(NAME, str(slow))]
        if time.monotonic() > deadline:
            raise Failure(f"after {PATIENCE_S} s nobody calls the disk slow")
        time.sleep(0.2)


def slow_disks(scene):
    """What is said of each slow disk, by the names of its server and its directory."""
    told = {}
    for name, server in servers.report(scene.cluster).items():
        told |= {(name, disk["path"]): disk for disk in server["slow_disks"]}
    return told


def conditions(scene):
    """The codes that `clover status` tells."""
    command = [scene.options.clover, "status", "--json", "--conf", scene.conf()]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    check(done.stdout, f"clover status ended with {done.returncode}: {done.stderr}")
    return [condition["code"] for condition in json.loads(done.stdout)["conditions"]]


def told_to_java(cluster):
    """The slow disks as programs that know Hadoop ask for them."""
    member = cluster.members[cluster.active()]
    address = f"http://{member.address}:{member.http_port}/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus"
    with urllib.request.urlopen(address, timeout=30) as answer:
        return json.load(answer)["beans"][0]["SlowDisksReport"]
