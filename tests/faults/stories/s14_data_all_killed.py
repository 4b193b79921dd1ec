"""All data servers die under writers that are at different points: each gets a clear error, and no acknowledged byte is gone when they are back."""

import time

from harness.report import Failure, check
from rig import servers
from rig.after import COPIES, After
from rig.pens import Pens, Refused

ITEM = "14"
IN_SLICE = False
NEEDS_CABLES = False
DATA = 3
BLOCK = 1 << 20
PIECE = 300_000
ROUNDS = 2
# How much each writer has flushed when the servers die: nothing, part of a block, all of one, blocks and a part.
FLUSHED = (0, PIECE, BLOCK, 3 * BLOCK + PIECE)


def run(scene_of):
    keys = {"heartbeat_recheck_ms": 1000, **COPIES}
    with scene_of(members=1, data=DATA, meta_keys=keys) as scene, Pens(scene, **{"dfs.client.socket-timeout": 5_000}) as pens:
        for number in range(ROUNDS):
            tell(scene, pens, f"/round-{number}")
        return scene.verdict(after=After())


def tell(scene, pens, directory):
    cluster = scene.cluster
    writers = {}
    for place, flushed in enumerate(FLUSHED):
        for is_closing in (False, True):
            path, pen = f"{directory}/{flushed}-{'closing' if is_closing else 'writing'}", pens.pen()
            pen.does("create", path, 3, BLOCK)
            if flushed:
                pen.does("write", flushed)
                pen.does("flush")
            writers[path] = Writer(path, pen, flushed, is_closing)
    for writer in writers.values():
        writer.goes_on()
    scene.fault("kill -9 of all data servers", lambda: [process.kill() for process in cluster.data.values()])
    begun = time.monotonic()
    errors = {path: writer.error() for path, writer in writers.items()}
    took_s = time.monotonic() - begun
    names = sorted({error.partition(":")[0] for error in errors.values() if error})
    scene.say(f"after {took_s:.1f} s {sum(map(bool, errors.values()))} of {len(writers)} writers have got an error: {', '.join(names)}")
    new = pens.pen()
    servers.wait_dead(cluster, list(cluster.data))
    new.does("create", f"{directory}/new", 3, BLOCK)
    new.does("write", PIECE)
    try:
        new.does("close")
        raise Failure("a file was written, and no data server lives")
    except Refused as refused:
        scene.say(f"a new writer is told: {str(refused)[:140]}")
    servers.start(cluster, list(cluster.data))
    begun = time.monotonic()
    for path, writer in writers.items():
        if errors[path]:
            pens.pen().does("recover", path)
        length = pens.pen().length(path)
        check(length >= writer.flushed, f"{path}: {length} bytes are there, and {writer.flushed} were acknowledged")
        check(errors[path] or length == writer.flushed + PIECE, f"{path}: {length} bytes are there, and it was closed with {writer.flushed + PIECE}")
    pens.pen().does("recover", f"{directory}/new")
    total = sum(writer.flushed for writer in writers.values())
    scene.say(f"all {total} acknowledged bytes are there; the files were recovered and read within {time.monotonic() - begun:.1f} s")


class Writer:
    def __init__(self, path, pen, flushed, is_closing):
        self.path, self.pen, self.flushed, self.is_closing = path, pen, flushed, is_closing

    def goes_on(self):
        self.pen.begin("write", PIECE)
        if self.is_closing:
            self.pen.begin("close")

    def error(self):
        """What it is told; None where the file was closed before the servers were dead."""
        try:
            self.pen.end()
            if not self.is_closing:
                self.pen.begin("close")
            self.pen.end()
            return None
        except Refused as refused:
            return str(refused)
