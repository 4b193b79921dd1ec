"""The disk of a data server stalls, turns read-only, fails at writes, loses what it was given: writers go on with others."""

from rig import disks
from rig.after import COPIES, REPORTS, After

ITEM = "11"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900
NAME = "data-1"
why_not = disks.why_not


def run(scene_of):
    scene = scene_of(members=3, data=4, meta_keys=COPIES)
    cluster = scene.cluster
    disk = disks.Disk(cluster.directory / "disk")
    cluster.data_directories[NAME] = disk.directory / "data"
    cluster.data_keys = REPORTS
    cluster.before_format = disk.make
    try:
        with scene:
            scene.start_load(size=scene.options.size._replace(own=1, cell=1, data=3, stream=4))
            scene.rest(2, 3)
            scene.fault(f"the disk of {NAME} stands still", disk.freeze)
            try:
                scene.rest(2)
            finally:
                disk.thaw()
            scene.wait_progress()
            scene.rest(1, 2)
            for what, fault in (
                ("turns read-only", disk.turn_read_only),
                ("fails at every write", disk.break_off),
                ("loses what is written to it", disk.lose_writes),
            ):
                scene.fault(f"the disk of {NAME} {what}", fault)
                scene.wait_progress()
                scene.rest(4, 6)
                scene.wait_progress()
                server = cluster.data[NAME]
                scene.say(f"{NAME} {'goes on' if server.is_running else 'has ended'}: {last_word(server)}")
                scene.note_end()
                # As an operator would: the server off, the disk looked after, the server on again.
                server.end()
                disk.repair()
                cluster.start_data(NAME)
                scene.rest(3, 4)
                cluster.wait_settled()
            return scene.verdict(goal_ms=2000, after=After())
    finally:
        disk.remove()


def last_word(server):
    lines = [line for line in server.tail().splitlines() if "ERROR" in line or "WARN" in line or "clover:" in line]
    return lines[-1][:300] if lines else "nothing in its log"
