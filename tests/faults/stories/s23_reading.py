"""The active is lost while only two were in sync: the one that is left answers what is certain, and takes nothing."""

import os
import subprocess
import time

from checks import errors
from harness.report import check

ITEM = "23"
IN_SLICE = False
NEEDS_CABLES = False
# How long the group stays below the minimum: reads are asked for again and again meanwhile.
BELOW_S = 4


def run(scene_of):
    with scene_of(members=3) as scene:
        cluster = scene.cluster
        fs(scene, "-mkdir", "-p", "/still/inside")
        words = scene.directory / "words"
        words.write_text("what was there before\n")
        fs(scene, "-put", words, "/still/file")
        scene.start_load()
        scene.start_native()
        for turn in range(1 if scene.options.is_slice else 3):
            below_the_minimum(scene, turn)
        # What is refused for want of copies, applications see once their client's own retries are used up.
        return scene.verdict(allowed=errors.RETRIABLE)


def below_the_minimum(scene, turn):
    cluster = scene.cluster
    scene.rest(1, 2)
    active = cluster.wait_active()
    gone, left = scene.chance.sample([number for number in cluster.members if number != active], 2)
    scene.fault(f"kill -9 of m{gone}, a standby", cluster.members[gone].process.kill)
    wait_in_sync(cluster, {active, left})
    scene.wait_progress()
    scene.rest(0, 1)
    scene.fault(f"kill -9 of m{active}, the active: m{left} is left alone, with calls under way", cluster.members[active].process.kill)
    wait_reading(cluster, left)

    # The clients' calls in flight have touched a lot; what is elsewhere is answered all the same, and the root itself.
    asked, over = 0, time.monotonic() + BELOW_S
    while time.monotonic() < over:
        check("/still/file" in fs(scene, "-ls", "/still"), "the listing of /still")
        check(fs(scene, "-cat", "/still/file") == "what was there before\n", "the file's content")
        check(fs(scene, "-test", "-d", "/still/inside") == "", "the status of /still/inside")
        check(fs(scene, "-stat", "%n", "/still").strip() == "still", "the status of /still")
        asked += 4
    refused = try_fs(scene, 3, "-mkdir", f"/still/new-{turn}")
    check(refused is None or refused.returncode != 0, "a change was acknowledged by one of three")
    check(role_of(cluster, left) == "reads only", f"m{left} is still below the minimum: {role_of(cluster, left)}")
    scene.say(f"m{left} answered {asked} calls alone, and took no change")

    scene.restart(gone)
    scene.wait_progress()
    check(cluster.wait_active() == left, f"m{left} serves once m{gone} is in sync")
    scene.note_end()
    scene.restart(active)
    cluster.wait_settled()
    # A client that was told to try again may have done it by now, or not: both are right.
    fs(scene, "-mkdir", "-p", f"/still/new-{turn}")
    scene.keep_takeovers()


def try_fs(scene, seconds, *words):
    """Our own shell; None where it was still trying when its time was over."""
    command = list(map(str, [scene.options.clover, "fs", *words]))
    environment = {**os.environ, "HADOOP_CONF_DIR": str(scene.conf())}
    try:
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return None


def fs(scene, *words):
    done = try_fs(scene, 30, *words)
    check(done is not None, f"clover fs {words} has no answer within 30 s")
    check(done.returncode == 0, f"clover fs {words}: {done.stdout}{done.stderr}")
    return done.stdout


def wait_in_sync(cluster, wanted, seconds=60):
    deadline = time.monotonic() + seconds
    while {number for number, _ in (cluster.view() or {"in_sync": []})["in_sync"]} != wanted:
        check(time.monotonic() < deadline, f"in sync after {seconds} s: {cluster.view()}")
        time.sleep(0.02)


def wait_reading(cluster, number, seconds=60):
    member = cluster.members[number]
    deadline = time.monotonic() + seconds
    said = b"it answers what is certain, and takes nothing"
    begun = member.log.stat().st_size
    while said not in member.log.read_bytes()[max(0, begun - 2000) :] or role_of(cluster, number) != "reads only":
        check(time.monotonic() < deadline, f"m{number} does not lead alone after {seconds} s: {cluster.tails()}")
        time.sleep(0.05)


def role_of(cluster, number):
    members = cluster.group()["members"]
    return next(member["role"] for member in members if member["member"] == number)
