"""A member comes back with an empty disk and is renewed under load; whom it fetches the image from is killed meanwhile, then the
active, which sends it the log."""

import re
import shutil
import time

from harness.report import check

ITEM = "19"
IN_SLICE = False
NEEDS_CABLES = False
# Images often and a short journal, so that the log does not reach back to the beginning; and an image takes long enough to be
# met on its way: at this pace it comes in ten pieces a second.
KEYS = {"edits_per_image": 2000, "journal_segment_bytes": 256 << 10, "fetch_bytes_per_second": 200_000}
# With fewer the image is here before its source can be killed.
PIECES_MIN = 5


def run(scene_of):
    with scene_of(members=4, meta_keys=KEYS) as scene:
        cluster = scene.cluster
        client = scene.start_load()
        client.wait_for(8000, 180)
        # What a member has in memory reaches back to its start.
        for number in cluster.members:
            scene.fault(f"m{number} is ended, to begin with little in memory", cluster.members[number].process.popen.terminate)
            scene.restart(number)
            cluster.wait_settled()
        wait_purged(cluster)
        member, active = empty_a_standby(scene)
        wait_said(member, "an image is to take its place")
        fetching = wait_said(member, "an image is being fetched")
        words = re.search(r"an image is being fetched .*\btotal=(\d+) .*\bfrom=(\d+)", said(member))
        total, source = int(words[1]), int(words[2])
        check(10 * total >= PIECES_MIN * KEYS["fetch_bytes_per_second"], f"an image of {total} bytes is here before its source can be killed: let the load make more")
        check(source not in (member.number, active), f"the image comes from m{source}, although there are standbys")
        scene.fault(f"kill -9 of m{source}, which the image comes from", cluster.members[source].process.kill)
        check("the image is here" not in said(member)[fetching:], "the image had been fetched before its source was killed")
        wait_said(member, "the image is sought elsewhere")
        scene.wait_progress()
        scene.note_end()
        scene.restart(source)
        cluster.wait_settled(180)

        member, active = empty_a_standby(scene)
        wait_said(member, "metadata server runs")
        scene.fault(f"kill -9 of m{active}, the active, while m{member.number} is renewed", cluster.members[active].process.kill)
        check(not in_sync(cluster, member), f"m{member.number} had been renewed before the active was killed")
        cluster.wait_active(other_than=active)
        scene.wait_progress()
        scene.note_end()
        scene.restart(active)
        cluster.wait_settled(180)
        scene.keep_takeovers()
        return scene.verdict(goal_ms=1000)


def wait_purged(cluster, seconds=120):
    """Until nobody's log begins with its first entry."""
    deadline = time.monotonic() + seconds
    while any(first_entry(member) == 1 for member in cluster.members.values()):
        check(time.monotonic() < deadline, f"a log still begins with its first entry after {seconds} s")
        time.sleep(0.2)


def first_entry(member):
    names = [path.name for path in (member.directory / "group-1/log").iterdir()]
    return min(int(name.split("-")[1].removesuffix(".open")) for name in names if "-" in name)


def empty_a_standby(scene):
    """Starts a standby anew with an empty disk. It and the number of the active."""
    cluster = scene.cluster
    active = cluster.wait_active()
    member = cluster.members[scene.chance.choice([number for number in cluster.members if number != active])]
    scene.fault(f"kill -9 of m{member.number}, a standby, and its disk is lost", member.process.kill)
    member.process.wait_gone()
    shutil.rmtree(member.directory)
    scene.rest(1, 2)
    member.format("--join", "--replace")
    member.start()
    return member, active


def said(member):
    """Its log since its start."""
    return member.log.read_bytes()[member.begun_at :].decode(errors="replace")


def wait_said(member, words, seconds=60):
    """Until its log since its start has these words; where."""
    deadline = time.monotonic() + seconds
    while words not in (text := said(member)):
        check(time.monotonic() < deadline, f"m{member.number} has not said `{words}` within {seconds} s: {text[-2000:]}")
        time.sleep(0.02)
    return text.index(words)


def in_sync(cluster, member):
    return any(number == member.number for number, _ in cluster.view()["in_sync"])
