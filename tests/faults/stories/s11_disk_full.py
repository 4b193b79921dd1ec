"""The disk of a standby fills up, then that of the active: the group goes on without it, and has it back with space."""

import os
import subprocess

from rig.disks import fill

ITEM = "11"
IN_SLICE = False
NEEDS_CABLES = False
SIZE = "400m"


def why_not():
    return None if os.geteuid() == 0 else "it mounts a small tmpfs, which needs root"


def run(scene_of):
    scene = scene_of(members=3)
    disks = [member.directory.parent / f"disk-{member.number}" for member in scene.cluster.members.values()]
    try:
        return told(scene, disks)
    finally:
        for disk in disks:
            subprocess.run(["umount", disk], capture_output=True)


def told(scene, disks):
    for member, disk in zip(scene.cluster.members.values(), disks):
        member.directory = disk / "meta"

    def mount():
        for disk in disks:
            disk.mkdir(parents=True)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", disk], check=True)

    scene.cluster.before_format = mount
    with scene:
        cluster = scene.cluster
        scene.start_load()
        for who in ("standby", "active"):
            scene.rest(1, 2)
            active = cluster.wait_active()
            number = active if who == "active" else scene.chance.choice([n for n in cluster.members if n != active])
            member = cluster.members[number]
            member.may_end = True
            filler = member.directory.parent / "filler"
            scene.fault(f"the disk of m{number}, {'the' if who == 'active' else 'a'} {who}, is full", fill, filler)
            scene.rest(4, 6)
            scene.wait_progress()
            filler.unlink()
            scene.say(f"there is space again; m{number} is {cluster.roles()[number]}")
            if not member.process.is_running:
                member.start()
            cluster.wait_settled()
            member.may_end = False
        scene.keep_takeovers()
        return scene.verdict(goal_ms=1000)
