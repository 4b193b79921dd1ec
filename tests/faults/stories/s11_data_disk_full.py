"""The disk of a data server is full under writers, who go on with others; then all are, and each writer is told; with room all is as before."""

from harness.report import Failure, check
from rig import balancing, disks, replicas, servers
from rig.after import COPIES, REPORTS, After
from rig.pens import Pens, Refused

ITEM = "11"
IN_SLICE = False
NEEDS_CABLES = False
DISK_BYTES = 96 << 20
BLOCK = 1 << 20
PIECE = 400_000
FILES = 12
# The free bytes of a full disk. A block needs more: no new one is placed there, and one that was begun cannot be finished.
LEFT = 64 << 10
why_not = balancing.why_not


def run(scene_of):
    racks = ["/r1", "/r1", "/r2", "/r2"]
    with scene_of(members=1, meta_keys=COPIES, cluster_of=balancing.RackedCluster, racks=racks, disk_bytes=DISK_BYTES, data_keys=REPORTS) as scene, Pens(scene) as pens:
        cluster = scene.cluster
        contents = balancing.fill(scene, "/old", FILES)
        # Little enough that the small disks do not fill up by it.
        little = scene.options.size._replace(own=1, cell=1, data=1, stream=0, pause_us=50_000)
        scene.start_load(size=little, **{"dfs.blocksize": BLOCK})
        writers = [Writer(pens, f"/written/f{number}") for number in range(4)]
        name = scene.chance.choice(sorted(cluster.data))
        fillers = {name: cluster.disks[name]["DISK"].parent / "filler" for name in cluster.data}
        scene.fault(f"the disk of {name} is full", disks.fill, fillers[name], LEFT)
        for writer in writers:
            writer.goes_on()
        scene.wait_progress()
        scene.say(f"all {len(writers)} writers went on without it")
        scene.note_end()
        late = [Writer(pens, f"/late/f{number}") for number in range(4)]
        # The load would fail now, as it must: it pauses, and only writers that expect it are at work.
        for client in scene.loads:
            client.process.freeze()
        for other in cluster.data:
            if other != name:
                disks.fill(fillers[other], LEFT)
        scene.say("all disks are full")
        errors = [writer.is_refused() for writer in late]
        scene.say(f"writers with an open block are told: {'; '.join(sorted({error.partition(':')[0] for error in errors}))}")
        scene.say(f"and who begins a file: {begins(pens)[:150]}")
        replicas.check_files(scene, contents)
        volumes = servers.working_volumes(cluster)
        check(all(volumes[name] == 1 for name in cluster.data), f"a full disk is taken for a broken one: {volumes}")
        for filler in fillers.values():
            filler.unlink()
        wait_for_room(cluster)
        for client in scene.loads:
            client.process.thaw()
        for writer in late:
            pens.pen().does("recover", writer.path)
            length = pens.pen().length(writer.path)
            check(length >= writer.flushed, f"{writer.path}: {length} bytes are there, and {writer.flushed} were acknowledged")
        for writer in [*writers, Writer(pens, "/new/file")]:
            writer.goes_on()
            writer.closes()
        scene.say("there is room, and all write on")
        scene.wait_progress()
        return scene.verdict(after=After(contents))


def begins(pens):
    writer = pens.pen()
    writer.does("create", "/refused", 3, BLOCK)
    writer.does("write", PIECE)
    try:
        writer.does("close")
    except Refused as refused:
        pens.pen().does("recover", "/refused")
        return str(refused)
    raise Failure("a file was written, and no disk has room")


def wait_for_room(cluster):
    """Until the metadata server has heard of it."""
    servers.wait(cluster, lambda said: all(server["remaining"] > DISK_BYTES // 4 for server in said.values()), "no room is known")


class Writer:
    """Has flushed a piece of its first block when it is made."""

    def __init__(self, pens, path):
        self.pens, self.path, self.pen, self.flushed = pens, path, pens.pen(), 0
        self.pen.does("create", path, 3, BLOCK)
        self.goes_on(PIECE)

    def goes_on(self, count=BLOCK):
        """Over the end of a block, as a rule."""
        self.pen.does("write", count)
        self.flushed = int(self.pen.does("flush"))

    def is_refused(self):
        """The error, which comes in the block or at the beginning of the next."""
        try:
            for _ in range(4):
                self.goes_on()
        except Refused as refused:
            return str(refused)
        raise Failure(f"{self.path} has {self.flushed} bytes, and no disk has room")

    def closes(self):
        self.pen.does("close")
        length = self.pens.pen().length(self.path)
        check(length == self.flushed, f"{self.path} has {length} bytes, and {self.flushed} were written")
