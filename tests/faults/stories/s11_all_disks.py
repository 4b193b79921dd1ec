"""No member has room for a segment, no journal can be synced, no file at all: nothing is given up, and a person is asked where one is needed."""

import re
import time

from harness.report import Failure, check
from rig import failing_files, replicas, stores
from rig.service import Service

ITEM = "11"
IN_SLICE = False
NEEDS_CABLES = False
# Segments are begun all the time.
KEYS = {"journal_segment_bytes": 256 << 10}
CHOICE = re.compile(r"look at the disk of member (\d+), whose log goes furthest \(([^)]*)\)")
FILES = 10
why_not = failing_files.why_not


def run(scene_of):
    scene = scene_of(members=3, meta_keys=KEYS)
    cluster = scene.cluster
    failing = failing_files.FailingFiles(scene.directory / "failing")
    for member in cluster.members.values():
        member.within = failing.within(member.directory)
    cluster.before_format = failing.make
    try:
        with scene, Service(cluster.members.values()) as service:
            files = replicas.write_files(scene, "/kept", FILES)
            held = replicas.on_disk(cluster)
            generations = {number: stores.generation(member) for number, member in cluster.members.items()}
            scene.start_load()
            for fault in (no_room_for_a_segment, no_sync_of_a_journal, no_sync_at_all):
                scene.rest(1, 2)
                fault(scene, failing, service)
                cluster.wait_settled()
                scene.wait_progress()
                scene.note_end()
                scene.keep_takeovers()
            stores.check_nothing_put_aside(cluster)
            after = {number: stores.generation(member) for number, member in cluster.members.items()}
            check(after == generations, f"a store was given up: its generation was {generations}, and is {after}")
            lost = replicas.gone(cluster, held)
            check(lost == 0, f"{lost} replicas were deleted")
            replicas.check_files(scene, files)
            return scene.verdict()
    finally:
        failing.heal()


def no_room_for_a_segment(scene, failing, service):
    """Each ends, is started again, and goes on by itself when there is room."""
    # The third has nothing to write any more when two have ended.
    all_fail(scene, failing, service, "no member has room for its next segment", "prepare", members=2)
    for member in scene.cluster.members.values():
        said = member.log.read_text(errors="replace")
        check("accept-disk" not in said, f"{member.name} takes want of room for a failed disk:\n{member.process.tail()}")


def no_sync_at_all(scene, failing, service):
    """Not even the failure can be noted. The next start that succeeds writes the end of the log anew, and nobody is needed."""
    all_fail(scene, failing, service, "every sync of all members fails", "sync")


def no_sync_of_a_journal(scene, failing, service):
    """All wait for a person, who does what `clover admin group` says, on one member."""
    cluster = scene.cluster
    all_fail(scene, failing, service, "every sync of all journals fails", "log")
    wait_until(lambda: all(waits(member) for member in cluster.members.values()), 30, "not all members wait", cluster)
    scene.rest(2)
    check(cluster.active() is None, f"m{cluster.active()} leads, and nobody has looked at its disk")
    stores.check_nothing_put_aside(cluster)
    said = cluster.admin("group")
    found = CHOICE.search(said)
    check(found and "clover meta accept-disk" in said, f"`clover admin group` does not say what to do:\n{said}")
    number = int(found[1])
    scene.say(f"all wait; `clover admin group` names member {number}, whose log ends at {found[2]}")
    said = cluster.members[number].accept_disk()
    scene.say(f"`clover meta accept-disk` on m{number}: {' '.join(said.split())}")
    cluster.wait_active()


def all_fail(scene, failing, service, label, what, members=3):
    """Until so many members have ended and were started again, in vain."""
    before = dict(service.starts)
    scene.fault(label, failing.fail, what)
    was_started = lambda: sum(service.starts[number] > before[number] for number in before) >= members
    wait_until(was_started, 30, f"not {members} members have ended", scene.cluster)
    scene.rest(1, 3)
    failing.heal()
    counts = {f"m{number}": count - before[number] for number, count in service.starts.items()}
    scene.say(f"it is over; meanwhile they were started again: {counts}")


def waits(member):
    return (member.health() or {}).get("state") == "waiting"


def wait_until(holds, seconds, sentence, cluster):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise Failure(f"{sentence} after {seconds} s\n{cluster.tails()}")
        time.sleep(0.1)
