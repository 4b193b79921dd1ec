"""A request makes the writer of the active panic: one member ends, with code 70, and the next refuses it when the client repeats it."""

import subprocess
import time

from harness.report import Failure, check

ITEM = "25"
IN_SLICE = False
NEEDS_CABLES = False
# Members are needed that panic when they are asked to: no program that is shipped does.
NEEDS_PLANTED = True
EXIT_PANIC = 70
FATAL = "/planted-panic-in-the-writer"
REFUSAL = "request is refused: it has ended metadata server"


def run(scene_of):
    with scene_of(members=3, planted=True) as scene:
        cluster = scene.cluster
        cluster.wait_active()
        scene.start_load()
        scene.start_native()
        scene.rest(1, 2)
        first = cluster.wait_active()
        victim = cluster.members[first]
        victim.may_end = True
        asked = scene.fault(f"m{first}: a client asks for what makes it panic", begin_fatal, scene)
        second = cluster.wait_active(other_than=first, seconds=10)
        code = victim.process.wait_gone(10)
        check(code == EXIT_PANIC, f"m{first} ended with {code}, not with {EXIT_PANIC}:\n{victim.process.tail()}")
        check("In hand was a request that is refused from now on" in victim.process.tail(), f"m{first} does not say which request it was")
        said = refused(scene, asked)
        scene.say(f"the client hears: {said}")
        scene.wait_progress()
        scene.keep_takeovers()

        # Again and again, on a connection of its own each time.
        for _ in range(5):
            refused(scene, begin_fatal(scene))
        check(cluster.active() == second, f"m{second} has led, and leads no more: it is {cluster.roles()}")
        victim.may_end = False
        scene.restart(first)
        cluster.wait_settled()
        wait_known(cluster, 1)

        # Everybody is started anew: it was written down.
        for number in sorted(cluster.members):
            scene.fault(f"kill -9 of m{number}", cluster.members[number].process.kill)
            scene.restart(number)
            cluster.wait_settled()
            scene.wait_progress()
            scene.keep_takeovers()
        wait_known(cluster, 1)
        refused(scene, begin_fatal(scene))

        # What an operator does who lets it through again; nobody asks for it any more, for it would be as fatal as before.
        (cluster.members[second].directory / "fatal-requests").unlink()
        wait_known(cluster, 0)
        return scene.verdict(goal_ms=4000)


def begin_fatal(scene):
    command = [scene.options.clover, "fs", "--conf", scene.conf(), "-mkdir", FATAL]
    return subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def refused(scene, asked):
    """What the client has heard."""
    try:
        said, _ = asked.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        asked.kill()
        raise Failure(f"the client has no answer after 30 s: {scene.cluster.roles()}")
    check(asked.returncode != 0 and REFUSAL in said, f"the client ends with {asked.returncode} and hears: {said}")
    return said.strip()


def wait_known(cluster, count, seconds=10):
    """Until each member says of itself that it refuses so many requests."""
    deadline = time.monotonic() + seconds
    while True:
        known = {number: int((member.health() or {}).get("fatal_requests", 0)) for number, member in cluster.members.items()}
        if set(known.values()) == {count}:
            return
        check(time.monotonic() < deadline, f"after {seconds} s members refuse {known} requests, not {count} each")
        time.sleep(0.05)
