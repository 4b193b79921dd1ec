"""Bits flip in finished files of running members: they are found and mended from the others, and told of where nobody can."""

import time
import urllib.request

from harness.clients import call
from harness.report import check

ITEM = "24"
IN_SLICE = False
NEEDS_CABLES = False
# Images often, short segments, and a look at all of them every second.
KEYS = {
    "edits_per_image": 3000,
    "journal_segment_bytes": 256 << 10,
    "scrub_period_ms": 1000,
    "scrub_bytes_per_second": 256 << 20,
}
FOUND = "a file of the store has rotted"
MENDED = "it was mended with another member's copy"
NOT_MENDED = "it could not be mended"


def run(scene_of):
    with scene_of(members=3, meta_keys=KEYS) as scene:
        cluster = scene.cluster
        # Nothing is purged, replaced or sealed while bits are flipped: the load has ended.
        first = scene.start_load("hadoop")
        wait_finished_files(cluster)
        first.end()
        # It has ended; its history counts.
        first.end = lambda: None
        scene.patient.add(first.name)
        scene.rest(2)
        active = cluster.wait_active()
        standby = next(number for number in cluster.members if number != active)
        for number in (standby, active):
            for path in (image_of(cluster, number), segment_of(cluster, number)):
                found_and_mended(scene, cluster.members[number], path)
        nobody_can_mend(scene, cluster)
        # The next images make the rotten files superfluous.
        scene.start_load("later")
        wait_until(lambda: all(number_of(member, "clover_scrub_left") == 0 for member in cluster.members.values()), 240,
                   "rotten files are still there although there are newer images")
        scene.say("newer images have made them superfluous")
        for number in cluster.members:
            scene.fault(f"m{number} is ended", cluster.members[number].process.popen.terminate)
            scene.restart(number)
            cluster.wait_settled()
        return scene.verdict()


def found_and_mended(scene, member, path):
    was, begun = path.read_bytes(), member.log.stat().st_size
    rotten, mended = number_of(member, "clover_scrub_rotten_total"), number_of(member, "clover_scrub_mended_total")
    scene.fault(f"a bit flips in {path.name} of m{member.number}", flip, path)
    wait_until(lambda: MENDED in said(member, begun), 60, f"m{member.number} has mended nothing")
    check(FOUND in said(member, begun) and path.name in said(member, begun), f"it is not said of {path}")
    if path.suffix == ".image":
        check(path.read_bytes() == was, f"{path} is not what it was")
    # A segment is written anew from the entries, perhaps in other batches.
    call([scene.options.clover, "inspect", path])
    wait_until(lambda: number_of(member, "clover_scrub_mended_total") == mended + 1, 10, "it is not counted as mended")
    check(number_of(member, "clover_scrub_rotten_total") == rotten + 1, "it is not counted as rotten")
    check(member.process.is_running, f"m{member.number} has ended")


def nobody_can_mend(scene, cluster):
    begun = {number: member.log.stat().st_size for number, member in cluster.members.items()}
    for number in cluster.members:
        scene.fault(f"a bit flips in the newest image of m{number}", flip, image_of(cluster, number))
    for number, member in cluster.members.items():
        wait_until(lambda: NOT_MENDED in said(member, begun[number]), 60, f"m{number} does not say that nobody has the image")
        check("Bring the other members back" in said(member, begun[number]), "what to do is not said")
        wait_until(lambda: number_of(member, "clover_scrub_left") == 1, 10, f"m{number} does not show what is left")
    roles = cluster.roles()
    check(sorted(roles.values()) == ["active", "standby", "standby"], f"the group does not go on: {roles}")
    scene.say("all three say that nobody has it, and go on")


def flip(path):
    with open(path, "r+b") as file:
        middle = path.stat().st_size // 3
        # A segment is longer than what is in it.
        file.seek(middle)
        while (byte := file.read(1)) == b"\0":
            middle //= 2
            file.seek(middle)
        file.seek(middle)
        file.write(bytes([byte[0] ^ 0x10]))


def image_of(cluster, number):
    return max((cluster.members[number].directory / "group-1/images").glob("*.image"))


def segment_of(cluster, number):
    segments = (cluster.members[number].directory / "group-1/log").iterdir()
    return max(path for path in segments if path.name.split("-")[0].isdigit() and not path.name.endswith(".open"))


def wait_finished_files(cluster):
    def are_there():
        try:
            return all(image_of(cluster, number) and segment_of(cluster, number) for number in cluster.members)
        except ValueError:
            return False

    wait_until(are_there, 180, "a member has no image or no finished segment")


def number_of(member, name):
    with urllib.request.urlopen(f"http://{member.address}:{member.http_port}/metrics", timeout=5) as page:
        lines = page.read().decode().splitlines()
    return next(int(float(line.split()[1])) for line in lines if line.split()[0] == name)


def said(member, begun):
    return member.log.read_bytes()[begun:].decode(errors="replace")


def wait_until(holds, seconds, sentence):
    deadline = time.monotonic() + seconds
    while not holds():
        check(time.monotonic() < deadline, f"{sentence}, after {seconds} s")
        time.sleep(0.05)
