"""Bits flip in the journals of all members while they are stopped: of every record two good copies are left, and nothing is lost."""

import struct
import time

from harness.report import check
from rig import stores

ITEM = "25"
IN_SLICE = False
NEEDS_CABLES = False
REPAIRS = "the store is damaged; the other members are asked for what is missing"
WHOLE = "the store is whole again"


def run(scene_of):
    with scene_of(members=3) as scene:
        cluster = scene.cluster
        scene.start_load("hadoop")
        scene.start_native()
        for turn in range(1 if scene.options.is_slice else 3):
            scene.wait_progress()
            scene.rest(1, 2)
            all_at_once(scene, turn)
        scene.wait_progress()
        cluster.wait_settled()
        return scene.verdict()


def all_at_once(scene, turn):
    """All three are killed, and each loses other records than the others."""
    cluster = scene.cluster
    for number, member in cluster.members.items():
        scene.fault(f"kill -9 of m{number}", member.process.kill)
    for member in cluster.members.values():
        member.process.wait_gone()
    found = {number: records(member) for number, member in cluster.members.items()}
    common = sorted(set.intersection(*(set(of) for of in found.values())))
    check(len(common) >= 60, f"only {len(common)} records are in all three journals")
    chosen = scene.chance.sample(common[:-1], 30)
    generations = {number: stores.generation(cluster.members[number]) for number in cluster.members}
    for index, sn in enumerate(chosen):
        number = 1 + index % 3
        path, at, length = found[number][sn]
        flip(path, at + (20 if index % 2 else 64 + length // 2))
    begun = {number: member.log.stat().st_size for number, member in cluster.members.items()}
    for number in cluster.members:
        scene.restart(number)
    scene.say(f"turn {turn}: ten records of each journal have rotted; all three start again")
    cluster.wait_active(120)
    over = time.monotonic() + 60
    for number, member in cluster.members.items():
        while WHOLE not in (text := member.log.read_bytes()[begun[number]:].decode(errors="replace")):
            check(time.monotonic() < over, f"m{number} has not repaired its store")
            time.sleep(0.2)
        check(REPAIRS in text, f"m{number} says nothing of the damage")
    cluster.wait_settled()
    scene.note_end()
    for number, before in generations.items():
        check(stores.generation(cluster.members[number]) == before, f"the store of m{number} was given up")
    scene.keep_takeovers()


def records(member):
    """File, offset and length of the payload of each record, by its sn."""
    found = {}
    for path in (member.directory / "group-1/log").iterdir():
        if not path.name.split("-")[0].isdigit():
            continue
        content, at = path.read_bytes(), 0
        while (at := content.find(b"CLRE", at + 1)) >= 0:
            # A record begins at a multiple of 8 and has its mark; a payload may hold these letters as well.
            if at % 8 == 0 and content[at + 63] == 0xA5:
                length, = struct.unpack_from("<I", content, at + 12)
                sn, = struct.unpack_from("<Q", content, at + 24)
                found[sn] = (path, at, length)
    return found


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x04]))
