"""A data server and the active are lost while blocks are cut and copied: files end at their new length, snapshots show the old bytes."""

import os
import subprocess
import time

from harness.report import Failure

ITEM = "22"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900
WHOLE = 3_000_000
CUT = 1_234_567
# A recovery that led to nothing is begun again after 15 s, by a server that has run for 30 s.
PATIENCE_S = 120
# What is written on need not have three servers again already.
SETTINGS = {"dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER"}


def run(scene_of):
    with scene_of(members=3, data=3) as scene:
        scene.start_load(size=scene.options.size._replace(own=1, cell=1, data=0, stream=0))
        for number in range(6 if scene.options.is_long else 2):
            cut(scene, f"/cut-{number}")
            scene.cluster.wait_settled()
        return scene.verdict(goal_ms=1000)


def cut(scene, directory):
    """One file that is cut where it is, and one that a snapshot shows, while a data server stands still in the middle."""
    cluster, data = scene.cluster, scene.chance.randbytes(WHOLE)
    plain, shown = f"{directory}/plain/f", f"{directory}/shown/f"
    shell(scene, "-mkdir", "-p", f"{directory}/plain", f"{directory}/shown")
    for path in (plain, shown):
        shell(scene, "-put", "-", path, sent=data)
    cluster.admin("allow-snapshot", f"{directory}/shown")
    shell(scene, "-createSnapshot", f"{directory}/shown", "s")

    # Neither file can be done with while a server of its block stands still; then that one is gone for good.
    name = scene.chance.choice(list(cluster.data))
    cluster.data[name].freeze()
    for path in (plain, shown):
        shell(scene, "-truncate", str(CUT), path)
    scene.rest(0, 1.5)
    for path in (plain, shown):
        if length(scene, path) != WHOLE:
            scene.say(f"{path} was cut before the fault")
    scene.fault(f"kill -9 of {name}, which stood still, and of the active", lambda: cluster.data[name].kill())
    number = cluster.wait_active()
    cluster.members[number].process.kill()
    cluster.wait_active(other_than=number)
    scene.wait_progress()
    scene.note_end()
    cluster.data[name].wait_gone()
    cluster.start_data(name)
    scene.restart(number)

    for path in (plain, shown):
        wait_for_length(scene, path, CUT)
        check(scene, path, data[:CUT])
    check(scene, f"{directory}/shown/.snapshot/s/f", data)
    # They are files like any other: they grow again.
    for path in (plain, shown):
        shell(scene, "-appendToFile", "-", path, sent=b"and more")
        check(scene, path, data[:CUT] + b"and more")
    check(scene, f"{directory}/shown/.snapshot/s/f", data)


def check(scene, path, expected):
    found = shell(scene, "-cat", path)
    if found != expected:
        raise Failure(f"{path} has {len(found)} bytes, not the {len(expected)} that it should have")


def length(scene, path):
    return int(shell(scene, "-stat", "%b", path))


def wait_for_length(scene, path, wanted):
    deadline = time.monotonic() + PATIENCE_S
    while (found := length(scene, path)) != wanted:
        if time.monotonic() > deadline:
            raise Failure(f"{path} has {found} bytes after {PATIENCE_S} s, not {wanted}\n{scene.cluster.tails()}")
        time.sleep(0.2)


def shell(scene, *words, sent=b""):
    """`clover fs`, with all members known to it. What it printed."""
    done = subprocess.run(
        [str(scene.options.clover), "fs", *words],
        input=sent,
        capture_output=True,
        timeout=PATIENCE_S,
        env={**os.environ, "HADOOP_CONF_DIR": str(scene.conf(**SETTINGS))},
    )
    if done.returncode != 0:
        raise Failure(f"clover fs {' '.join(words)}: {done.stderr.decode(errors='replace')}")
    return done.stdout
