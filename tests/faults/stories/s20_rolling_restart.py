"""Every process is restarted one after the other, with clients writing and reading all along."""

ITEM = "20"
IN_SLICE = False
NEEDS_CABLES = False


def run(scene_of):
    with scene_of(members=3, data=4) as scene:
        cluster = scene.cluster
        scene.start_load()
        active = cluster.wait_active()
        # The active last, as an operator would.
        for number in sorted(cluster.members, key=lambda number: number == active):
            member = cluster.members[number]
            scene.rest(1, 2)
            scene.fault(f"m{number} is ended", member.process.popen.terminate)
            member.process.wait_gone()
            member.start()
            scene.wait_progress()
            cluster.wait_settled()
        for name in cluster.data:
            scene.rest(1, 2)
            scene.fault(f"{name} is ended", cluster.data[name].popen.terminate)
            cluster.data[name].wait_gone()
            cluster.start_data(name)
            scene.wait_progress()
            scene.rest(2, 3)
        scene.fault("ZooKeeper is ended", cluster.zookeeper.stop)
        cluster.zookeeper.start()
        scene.wait_progress()
        cluster.wait_settled()
        scene.keep_takeovers()
        return scene.verdict(goal_ms=1000)
