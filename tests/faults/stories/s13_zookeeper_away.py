"""ZooKeeper is frozen for longer than every session, then killed and started again: a steady group keeps serving."""

from harness.report import check

ITEM = "13"
IN_SLICE = False
NEEDS_CABLES = False


def run(scene_of):
    with scene_of(members=3, meta_keys={"coordinator_session_ms": 2000}) as scene:
        zookeeper = scene.cluster.zookeeper
        scene.start_load()
        scene.rest(1, 2)
        active = scene.cluster.wait_active()
        away = 60 if scene.options.is_long else 12
        scene.fault(f"ZooKeeper is frozen for {away} s", zookeeper.process.freeze)
        scene.rest(away)
        scene.fault("ZooKeeper wakes", zookeeper.process.thaw)
        scene.rest(4)
        scene.fault("ZooKeeper is killed", zookeeper.process.kill)
        zookeeper.process.wait_gone()
        scene.rest(away)
        scene.fault("ZooKeeper is started again", zookeeper.start)
        scene.rest(6)
        check(scene.cluster.active() == active, f"m{active} was active, and now {scene.cluster.roles()}")
        number = scene.kill_active("and then, with ZooKeeper back, kill -9 of the active")
        scene.cluster.wait_active(other_than=number)
        scene.wait_progress()
        scene.keep_takeovers()
        return scene.verdict(goal_ms=1000)
