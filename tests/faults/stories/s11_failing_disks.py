"""The disk of a standby, then that of the active stalls for 2 s, turns read-only, fails at writes, fails at syncs."""

from rig import disks

ITEM = "11"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900
why_not = disks.why_not


def run(scene_of):
    scene = scene_of(members=3)
    disk_of = {}
    for number, member in scene.cluster.members.items():
        disk_of[number] = disks.Disk(member.directory.parent / f"disk-{number}")
        member.directory = disk_of[number].directory / "meta"
    scene.cluster.before_format = lambda: [disk.make() for disk in disk_of.values()]
    try:
        with scene:
            scene.start_load()
            scene.start_native()
            for who in ("standby", "active"):
                for fault in (stall, read_only, write_errors, sync_errors):
                    scene.rest(1, 2)
                    active = scene.cluster.wait_active()
                    number = active if who == "active" else scene.chance.choice([n for n in scene.cluster.members if n != active])
                    fault(scene, f"m{number}, {'the' if who == 'active' else 'a'} {who}", scene.cluster.members[number], disk_of[number])
                    scene.cluster.wait_settled()
                    scene.keep_takeovers()
            return scene.verdict(goal_ms=2000)
    finally:
        for disk in disk_of.values():
            disk.remove()


def stall(scene, who, member, disk):
    scene.fault(f"the disk of {who} stands still", disk.freeze)
    try:
        scene.rest(2)
    finally:
        disk.thaw()
    scene.wait_progress()
    scene.note_end()


def read_only(scene, who, member, disk):
    ends(scene, f"the disk of {who} turns read-only", member, disk.turn_read_only)
    disk.repair()
    member.start()


def write_errors(scene, who, member, disk):
    ends(scene, f"every write to the disk of {who} fails", member, disk.break_off)
    disk.replace()
    member.format("--join", "--replace")
    member.start()


def sync_errors(scene, who, member, disk):
    ends(scene, f"what {who} writes gets lost on its way to the medium, and syncs fail", member, disk.lose_writes)
    disk.repair()
    member.start()


def ends(scene, label, member, fault):
    """A server whose disk has failed ends by itself, and clients go on without it."""
    member.may_end = True
    scene.fault(label, fault)
    scene.wait_progress()
    member.process.wait_gone(30)
    scene.wait_progress()
    scene.note_end()
    said = next((line for line in reversed(member.process.tail().splitlines()) if "journal" in line or "disk" in line), "")
    scene.say(f"m{member.number} has ended: {said[:300]}")
