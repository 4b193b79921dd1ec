"""A thread of the active stands still, or is gone, while its process lives: it ends with code 71, and another leads within seconds."""

from harness.report import Failure
from rig import threads

ITEM = "25"
IN_SLICE = True
NEEDS_CABLES = False
EXIT_HANG = 71
# Of the threads that a member's word rests on; the longest name that the kernel keeps has 15 bytes.
IN_SLICE_THREADS = ["meta-writer"]
THREADS = ["meta-writer", "peer-read", "group-timer", "group-disk", "meta-watch"]


def why_not():
    return threads.why_not()


def run(scene_of):
    with scene_of(members=3) as scene:
        cluster = scene.cluster
        scene.start_load(first=cluster.wait_active())
        scene.start_native()
        named = IN_SLICE_THREADS if scene.options.is_slice else THREADS
        for name in named:
            struck(scene, f"thread {name} of the active is frozen", lambda pid: threads.Frozen(pid, name))
        for name in named:
            struck(scene, f"thread {name} of the active is gone", lambda pid: threads.end(pid, name))
        scene.keep_takeovers()
        return scene.verdict(goal_ms=4000)


def struck(scene, label, strike):
    """The member ends by itself; then it is started again."""
    cluster = scene.cluster
    scene.rest(1, 2)
    number = cluster.wait_active()
    member = cluster.members[number]
    member.may_end = True
    thread = scene.fault(f"m{number}: {label}", strike, member.process.pid)
    if thread:
        thread.wait_end(10)
    cluster.wait_active(other_than=number, seconds=10)
    code = member.process.wait_gone(10)
    if code != EXIT_HANG:
        raise Failure(f"m{number} ended with {code}, not with {EXIT_HANG}: {label}\n{member.process.tail()}")
    scene.say(f"m{number} ended with {code}")
    scene.wait_progress()
    scene.keep_takeovers()
    member.may_end = False
    scene.restart(number)
    cluster.wait_settled()
