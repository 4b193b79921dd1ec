"""Several groups: a data server is killed, another one frozen, and actives die while it is away and files move."""

from rig.after import COPIES, REPORTS, After
from rig.groups import ROOT

ITEM = "45"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900


def run(scene_of):
    # A stock stream uses no server again that has failed it, also when that is back. So there is another one for the next that dies.
    scene = scene_of(members=3, groups=2, data=5, meta_keys=COPIES)
    cluster = scene.cluster
    cluster.data_keys = REPORTS
    with scene:
        scene.start_loads_of_groups()
        home = max(cluster.groups)
        *killed, frozen = scene.chance.sample(sorted(cluster.data), 3)
        for name, which in zip(killed, ([home], [ROOT])):
            scene.rest(1, 2)
            scene.fault(f"kill -9 of {name}", cluster.data[name].kill)
            scene.rest(1, 2)
            actives_die(scene, which)
            # The data server still has the blocks that were deleted, and copied elsewhere, while it was away.
            scene.fault(f"and {name} is back", cluster.start_data, name)
            cluster.wait_settled()
            scene.wait_progress()
        scene.rest(1, 2)
        scene.fault(f"{frozen} is frozen", cluster.data[frozen].freeze)
        scene.rest(1, 2)
        actives_die(scene, cluster.groups)
        scene.fault(f"and thaws, {frozen}", cluster.data[frozen].thaw)
        cluster.wait_settled()
        scene.wait_progress()
        return scene.verdict(after=After())


def actives_die(scene, groups):
    """While one data server is away."""
    numbers = scene.kill_active_of(groups)
    scene.wait_progress()
    for number in numbers:
        scene.restart(number)
    scene.cluster.wait_settled(data=len(scene.cluster.data) - 1)
