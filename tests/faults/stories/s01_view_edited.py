"""Test A: the lock is taken from the active by editing the global view, three times under create and mkdir."""

import json

from rig.zookeeper import BadVersion

ITEM = "1"
IN_SLICE = False
NEEDS_CABLES = False


def run(scene_of):
    with scene_of(members=4) as scene:
        scene.start_load()
        for _ in range(3):
            # The paper waits for a minute each time.
            scene.rest(*((60, 60) if scene.options.is_long else (4, 6)))
            number = scene.cluster.wait_active()
            scene.fault(f"the view says that nobody is active, instead of m{number}", depose, scene)
            scene.cluster.wait_active()
            scene.wait_progress()
            scene.cluster.wait_settled()
            scene.keep_takeovers()
        return scene.verdict(goal_ms=1000)


def depose(scene):
    zookeeper, path = scene.cluster.zookeeper, scene.cluster.view_path
    while True:
        value, version = zookeeper.get(path)
        view = json.loads(value)
        view |= {"epoch": view["epoch"] + 1, "active": None, "change_id": scene.chance.randrange(1, 1 << 60)}
        try:
            zookeeper.set(path, json.dumps(view, separators=(",", ":")).encode(), version)
            return
        except BadVersion:
            # The group changed it at the same moment.
            continue
