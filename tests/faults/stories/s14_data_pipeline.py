"""One, two, three data servers die while a writer sets up a pipeline, streams, closes a block, or recovers: it goes on, or gets a clear error."""

import time

from harness.report import check
from rig import servers
from rig.after import COPIES, REPORTS, After
from rig.pens import Pens, Refused

ITEM = "14"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900
DATA = 6
BLOCK = 4 << 20
# The bytes that the writer flushes before the fault, and the bytes that it writes after it.
FIRST, REST = (1 << 20) + 5, 300_007
# The servers that the writer waits for are frozen, and it stands at its stage for this time before they are killed.
STANDS_S = 0.7
CLIENT = {"dfs.client.socket-timeout": 20_000}


def run(scene_of):
    # One metadata server, which does not mind how long a data server is away.
    scene = scene_of(members=1, data=DATA, meta_keys=COPIES)
    scene.cluster.data_keys = REPORTS
    with scene, Pens(scene, **CLIENT) as pens:
        told = [Case(scene, pens, stage, count) for stage in (in_set_up, in_streaming, in_close, in_recovery) for count in (1, 2, 3)]
        for case in told:
            case.tell()
        return scene.verdict(after=After())


class Case:
    def __init__(self, scene, pens, stage, count):
        self.scene, self.cluster, self.pens, self.stage, self.count = scene, scene.cluster, pens, stage, count
        self.path = f"/{stage.__name__}-{count}"
        self.pen = pens.pen()
        self.acknowledged = 0
        self.victims = []

    def tell(self):
        begun = time.monotonic()
        # Of three servers of a pipeline, all that it has: the bytes of the block are nowhere else.
        must_end = self.stage is not in_set_up and self.count + (self.stage is in_recovery) >= 3
        try:
            self.stage(self)
            error = None
        except Refused as refused:
            error = str(refused)
        took_s = time.monotonic() - begun
        self.thaw()
        servers.start(self.cluster, self.victims)
        check(must_end or not error, f"{self.path}: the writer has ended, and a server of its pipeline lives: {error}")
        check(not must_end or error, f"{self.path}: the writer went on, and no server of its pipeline was left")
        if error:
            self.pen.does("recover", self.path)
        length = self.pens.pen().length(self.path)
        whole = length == FIRST + REST if not error else length >= self.acknowledged
        check(whole, f"{self.path} has {length} bytes, {self.acknowledged} are acknowledged")
        outcome = f"the writer gets {error.partition(':')[0]}" if error else "the writer goes on"
        self.scene.say(f"{self.stage.__doc__.format(count=self.count)}: {outcome}, {took_s:.1f} s; {length} bytes are there, {self.acknowledged} were acknowledged")

    # What happens.

    def freeze(self, names):
        for name in names:
            self.cluster.data[name].freeze()

    def thaw(self):
        for process in self.cluster.data.values():
            process.thaw()

    def kill(self, names):
        self.victims += names
        for name in names:
            self.cluster.data[name].kill()

    def create(self):
        self.pen.does("create", self.path, 3, BLOCK)

    def flushed(self, bytes_):
        self.pen.does("write", bytes_)
        self.acknowledged = int(self.pen.does("flush"))

    def pipeline(self):
        names = servers.by_port(self.cluster)
        return [names[port] for port in self.pen.ports("pipeline")]

    def drawn(self, names):
        return self.scene.chance.sample(names, self.count)

    def finish(self):
        self.flushed(REST)
        self.pen.does("close")


def in_set_up(case):
    """{count} die while the pipeline is set up"""
    names = servers.by_port(case.cluster)
    case.freeze(case.cluster.data)
    case.create()
    case.pen.begin("write", FIRST)
    # The first piece of data asks for a block. Nobody answers the writer there.
    targets = case.pens.pen().ports("places", case.path)
    time.sleep(STANDS_S)
    case.kill(case.drawn([names[port] for port in targets]))
    case.thaw()
    case.pen.end()
    case.flushed(0)
    case.finish()


def in_streaming(case):
    """{count} die while data is streaming"""
    case.create()
    case.flushed(FIRST)
    case.kill(case.drawn(case.pipeline()))
    case.finish()


def in_close(case):
    """{count} die between the last packet and its acknowledgement"""
    case.create()
    case.flushed(FIRST)
    case.pen.does("write", REST)
    doomed = case.drawn(case.pipeline())
    case.freeze(doomed)
    case.pen.begin("close")
    time.sleep(STANDS_S)
    case.kill(doomed)
    case.pen.end()


def in_recovery(case):
    """one dies, and {count} more while the pipeline recovers from that"""
    case.create()
    case.flushed(FIRST)
    first, *others = case.pipeline()
    # Two servers of the pipeline, and then a server that might replace one of them.
    spare = [name for name in case.cluster.data if name not in (first, *others)]
    doomed = [*others, case.scene.chance.choice(spare)][: case.count]
    case.freeze([*others, *spare])
    case.kill([first])
    case.pen.does("write", REST)
    case.pen.begin("flush")
    time.sleep(STANDS_S)
    case.kill(doomed)
    case.thaw()
    case.acknowledged = int(case.pen.end())
    case.pen.does("close")
