"""A data server freezes while files are written over it: each writer goes on without it, and what it holds when it wakes is thrown away."""

import time
from collections import Counter

from harness.report import check
from rig import servers
from rig.after import COPIES, REPORTS, After
from rig.pens import Pens

ITEM = "14"
IN_SLICE = False
NEEDS_CABLES = False
DATA = 5
WRITERS = 6
BLOCK = 4 << 20
FIRST, REST = 700_001, 900_000
# The same for clients and data servers, as by default. A client waits five seconds more for each server of a pipeline, and a server for each that follows
# it, so that the one before the frozen server finds it first.
TIMEOUT_MS = 4_000


def run(scene_of):
    scene = scene_of(members=1, data=DATA, meta_keys=COPIES)
    scene.cluster.data_keys = {"transfer_timeout_ms": TIMEOUT_MS, **REPORTS}
    with scene, Pens(scene, **{"dfs.client.socket-timeout": TIMEOUT_MS}) as pens:
        cluster = scene.cluster
        writers = {f"/written/f{number}": pens.pen() for number in range(WRITERS)}
        for path, pen in writers.items():
            pen.does("create", path, 3, BLOCK)
            pen.does("write", FIRST)
            pen.does("flush")
        names = servers.by_port(cluster)
        pipelines = {path: [names[port] for port in pen.ports("pipeline")] for path, pen in writers.items()}
        counts = Counter(name for pipeline in pipelines.values() for name in pipeline)
        name, count = counts.most_common(1)[0]
        places = [pipeline.index(name) + 1 for pipeline in pipelines.values() if name in pipeline]
        scene.fault(f"{name} freezes; it is in {count} of {WRITERS} pipelines, at the places {places}", cluster.data[name].freeze)
        begun = time.monotonic()
        for pen in writers.values():
            pen.begin("write", REST)
            pen.begin("flush")
        took = {}
        for path, pen in writers.items():
            pen.end()
            check(int(pen.end()) == FIRST + REST, f"{path} is flushed")
            took[path] = time.monotonic() - begun
        slowest = max(took[path] for path in writers if name in pipelines[path])
        scene.say(f"all writers have flushed what they wrote since, after {slowest:.1f} s")
        for path, pen in writers.items():
            check(name not in {names[port] for port in pen.ports("pipeline")}, f"{path} is still written to {name}")
            pen.does("close")
        cluster.data[name].thaw()
        scene.say(f"{name} is awake, with replicas that have been given up")
        for path in writers:
            check(pens.pen().length(path) == FIRST + REST, f"{path} has all bytes")
        return scene.verdict(after=After())
