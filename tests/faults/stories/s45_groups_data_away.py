"""Several groups: a data server is away while actives die and files move; then all servers of all kinds are killed at once."""

from rig.groups import ROOT
from stories.s40_groups_kill_actives import ALLOWED

ITEM = "45"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900


def run(scene_of):
    with scene_of(members=3, groups=2) as scene:
        cluster = scene.cluster
        scene.start_load("by-the-last", first=max(cluster.members))
        scene.start_load("by-the-first", first=1)
        away = scene.chance.sample(sorted(cluster.data), 2)
        home = max(cluster.groups)
        for name, which in zip(away, ([home], [ROOT], cluster.groups)):
            scene.rest(1, 2)
            scene.fault(f"kill -9 of {name}", cluster.data[name].kill)
            scene.rest(1, 2)
            numbers = scene.kill_active_of(which)
            scene.wait_progress()
            for number in numbers:
                scene.restart(number)
            cluster.wait_settled(data=len(cluster.data) - 1)
            # What was deleted and moved meanwhile it has still.
            scene.fault(f"and {name} is back", cluster.start_data, name)
            cluster.wait_settled()
            scene.wait_progress()
        scene.rest(1, 2)
        name = away[0]
        scene.fault(f"{name} is frozen", cluster.data[name].freeze)
        scene.rest(1, 2)
        numbers = scene.kill_active_of(cluster.groups)
        scene.wait_progress()
        scene.fault(f"and thaws, {name}", cluster.data[name].thaw)
        for number in numbers:
            scene.restart(number)
        cluster.wait_settled()
        scene.rest(1, 2)
        scene.fault("kill -9 of all metadata servers and all data servers", lambda: [process.kill() for process in cluster.processes()])
        scene.rest(1)
        for number in cluster.members:
            scene.restart(number)
        for name in cluster.data:
            cluster.start_data(name)
        scene.wait_progress()
        cluster.wait_settled()
        return scene.verdict(ALLOWED | LOST_PIPELINES)


# A writer whose data servers are all killed has nobody left who has its bytes.
LOST_PIPELINES = frozenset({"All datanodes", "could only be written to", "Unable to close file"})
