"""Directories of metadata servers are put back from a backup: one while the others have more, then all of them while ZooKeeper is not."""

import json
import re
import time

from harness.report import Failure, check
from rig import replicas, stores

ITEM = "26"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 300
FILES, LATER = 8, 6
LACKS = "which has committed: this member waits for another one"
ONLY_UNCLEAN = "only an unclean election goes on without it"
HELD = re.compile(r"Held back: (\d+) replicas that no file has")
KEPT = re.compile(r"Never deleted: (\d+) replicas")


def run(scene_of):
    with scene_of(members=3) as scene:
        files = replicas.write_files(scene, "/kept", FILES)
        for what in ("a standby", "the active"):
            one_directory(scene, what)
        all_directories(scene, files)
        return scene.verdict()


def one_directory(scene, what):
    """A snapshot of the disk below a running member: the copy cannot be told by the number of its start."""
    cluster = scene.cluster
    load = scene.start_load(f"beside-{what.split()[1]}")
    scene.rest(1, 2)
    active = cluster.wait_active()
    number = active if what == "the active" else scene.chance.choice([one for one in cluster.members if one != active])
    member = cluster.members[number]
    copied = scene.directory / f"meta-{number}-{what.split()[1]}"
    stores.snapshot(member.process, member.directory, copied)
    scene.wait_progress()
    # The coordinator learns every second what has committed.
    scene.rest(2.5, 4)
    scene.fault(f"kill -9 of all members; the directory of m{number}, {what}, is put back as it was seconds ago", all_down, cluster)
    stores.put_back(copied, member.directory)
    member.start()
    wait_until(lambda: LACKS in (reason_of(cluster, number) or ""), 30, f"m{number} does not say what it lacks", cluster)
    scene.rest(1)
    check(member.said_role() is None, f"m{number} leads without what was acknowledged after the copy was made")
    scene.say(f"m{number}, alone, says: {reason_of(cluster, number)}")
    for other in cluster.members:
        if other != number:
            scene.restart(other)
    cluster.wait_settled()
    scene.wait_progress()
    scene.note_end()
    stores.check_nothing_put_aside(cluster)
    scene.keep_takeovers()
    finish(scene, load)


def all_directories(scene, files):
    """What came after the backup is lost, and a person says so. Nothing else is, and no replica before a person has said that too."""
    cluster = scene.cluster
    away, *there = scene.chance.sample(sorted(cluster.data), len(cluster.data))
    backup = back_up(scene, away, there)
    later = replicas.write_files(scene, "/later", LATER, there)
    # The coordinator learns every second what has committed.
    scene.rest(2)
    held = replicas.on_disk(cluster)
    scene.fault("kill -9 of all members; their directories are put back from the backup, and ZooKeeper's are not", all_down, cluster)
    for number, member in cluster.members.items():
        stores.put_back(backup[number], member.directory)
        member.start()
    cluster.start_data(away)
    wait_until(lambda: all(end_of(cluster, number) for number in cluster.members), 30, "a member does not say where its log ends", cluster)
    scene.rest(3)
    check(cluster.active() is None, f"m{cluster.active()} leads without what was acknowledged after the backup")
    stores.check_nothing_put_aside(cluster)
    said = cluster.admin("group", "repair", succeeds=False)
    check(ONLY_UNCLEAN in said or "not heard of yet" in said, f"`clover admin group repair` says: {said}")
    scene.say(f"nobody leads; `clover admin group repair` says: {said.strip()}")
    elect(scene)
    cluster.wait_settled()
    scene.note_end()
    replicas.check_files(scene, files)
    names = replicas.shell(scene, "-ls", "/").decode()
    check("/later" not in names and "/deleted" not in names, f"these are the names after all that:\n{names}")
    stores.check_nothing_put_aside(cluster)
    allow_deletions(scene, held, away, len(later) * len(there))
    replicas.check_files(scene, files)
    load = scene.start_load("afterwards")
    scene.wait_progress()
    finish(scene, load)


def back_up(scene, away, there):
    """Of all members. On the server that is away lie replicas of files that were deleted before: nobody lacks them. Of one member
    the backup is from an earlier start than its last, of the others from the same."""
    cluster = scene.cluster
    before = replicas.on_disk(cluster)
    deleted = replicas.write_files(scene, "/deleted", FILES)
    cluster.data[away].kill()
    cluster.data[away].wait_gone()
    # Some that the load has deleted may go as well meanwhile; these are not counted.
    held = {name: on - before[name] for name, on in replicas.on_disk(cluster).items() if name != away}
    replicas.shell(scene, "-rm", "-r", "-skipTrash", "/deleted")
    all_gone = len(deleted) * len(there)
    now = lambda: sum(len(on - replicas.on_disk(cluster)[name]) for name, on in held.items())
    wait_until(lambda: now() == all_gone, 60, "the blocks of deleted files are still there", cluster)
    # Each member notes now and then what has committed. If that note did not cover the deletion, the deletion would commit once more
    # under the elected member, and the replicas would go because of it, and not because they are unknown.
    load = scene.start_load("before-the-backup", size=scene.options.size._replace(data=0, stream=0))
    scene.wait_progress(1000)
    finish(scene, load)
    backup = {}
    for number, member in cluster.members.items():
        backup[number] = scene.directory / f"backup-{number}"
        stores.snapshot(member.process, member.directory, backup[number])
    active = cluster.wait_active()
    again = scene.chance.choice([number for number in cluster.members if number != active])
    cluster.members[again].process.kill()
    scene.restart(again)
    cluster.wait_settled(data=len(there))
    scene.say(f"the directories of all members are copied, and m{again} was started again since")
    return backup


def elect(scene):
    """As docs/operating/recovery.md says: the one whose last entry is the latest, while the others are off."""
    cluster = scene.cluster
    number = max(cluster.members, key=lambda number: (end_of(cluster, number)["epoch"], end_of(cluster, number)["sn"]))
    others = [other for other in cluster.members if other != number]
    for other in others:
        cluster.members[other].process.end()
    order = ["group", "unclean-elect", "--member", number]
    said = cluster.admin(*order, succeeds=False)
    check("Nothing has been done" in said and "would be lost for ever" in said, f"`unclean-elect` says beforehand: {said}")
    scene.say(f"`unclean-elect` says beforehand: {said.splitlines()[0]}")
    said = cluster.admin(*order, "--off", ",".join(map(str, others)), "--yes-lose-data")
    check(f"Member {number} goes on" in said, f"`unclean-elect` says: {said}")
    for other in others:
        cluster.members[other].start()
    scene.say(f"m{number} goes on by order, and the others with the directories that they have")


def allow_deletions(scene, held, away, skipped):
    cluster = scene.cluster
    order = ["blocks", "allow-deletions"]
    said = lambda: cluster.admin(*order, succeeds=False)
    # The data servers have to report first.
    wait_until(lambda: found(HELD, said()) >= FILES and found(KEPT, said()) >= skipped, 60, "the replicas are not all counted", cluster)
    check(replicas.gone(cluster, held) == 0, f"{replicas.gone(cluster, held)} replicas were deleted before anybody allowed it")
    scene.say(f"no replica was deleted; `clover admin blocks allow-deletions` says: {' '.join(said().split())}")
    # Some more lie on the server that was away: the load had deleted their files when that server had not heard of it yet.
    may_go = found(HELD, said())
    cluster.admin(*order, "--yes")
    wait_until(lambda: replicas.gone(cluster, held) == may_go, 60, "what may be deleted now is still there", cluster)
    scene.rest(2)
    check(replicas.gone(cluster, held) == may_go, f"{replicas.gone(cluster, held)} replicas were deleted, and {may_go} belonged to no file")
    scene.say(f"{may_go} replicas that no file has are deleted then, on {away}; those that lost changes made stay")


def found(pattern, text):
    match = pattern.search(text)
    return int(match[1]) if match else 0


def own_word(cluster, number):
    """What `clover admin group` shows of a member."""
    try:
        shown = json.loads(cluster.admin("group", "--json"))
    except Failure:
        return {}
    return next((one for one in shown["members"] if one["member"] == number), {})


def reason_of(cluster, number):
    return own_word(cluster, number).get("reason")


def end_of(cluster, number):
    return own_word(cluster, number).get("end")


def all_down(cluster):
    for member in cluster.members.values():
        member.process.kill()
    for member in cluster.members.values():
        member.process.wait_gone()


def finish(scene, load):
    """Its history counts; it does not wait for what comes next."""
    load.end()
    load.end = lambda: None


def wait_until(holds, seconds, sentence, cluster):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            said = cluster.admin("group")
            raise Failure(f"{sentence} after {seconds} s; `clover admin group` says:\n{said}\n{cluster.tails()}")
        time.sleep(0.2)
