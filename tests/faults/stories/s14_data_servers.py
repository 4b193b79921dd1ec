"""Data servers are killed under open streams, one after the other: each writer goes on."""

from rig.after import COPIES, REPORTS, After

ITEM = "14"
IN_SLICE = False
NEEDS_CABLES = False


def run(scene_of):
    # A stock stream uses no server again that has failed it, also when that is back. So there is another one for the next that dies.
    scene = scene_of(members=3, data=5, meta_keys=COPIES)
    cluster = scene.cluster
    cluster.data_keys = REPORTS
    with scene:
        scene.start_load(size=scene.options.size._replace(own=1, cell=1, data=3, stream=4))
        for _ in range(10 if scene.options.is_long else 3):
            scene.rest(1, 3)
            name = scene.chance.choice(list(cluster.data))
            scene.fault(f"kill -9 of {name}", cluster.data[name].kill)
            scene.wait_progress()
            scene.rest(1, 2)
            scene.note_end()
            cluster.data[name].wait_gone()
            cluster.start_data(name)
            scene.rest(3, 4)
        return scene.verdict(goal_ms=1000, after=After())
