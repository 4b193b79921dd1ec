"""Failovers while streams are open, between addBlock, updatePipeline and complete: each stream goes on."""

ITEM = "15"
IN_SLICE = False
NEEDS_CABLES = False


def run(scene_of):
    with scene_of(members=3, data=4) as scene:
        cluster = scene.cluster
        scene.start_load(size=scene.options.size._replace(own=1, cell=0, data=3, stream=5))
        for round in range(10 if scene.options.is_long else 4):
            scene.rest(1, 2)
            if round % 2:
                # The pipelines change at the same time: updatePipeline meets the takeover.
                name = scene.chance.choice(list(cluster.data))
                scene.fault(f"kill -9 of {name}", cluster.data[name].kill)
                scene.rest(0, 0.5)
            else:
                name = None
            number = scene.kill_active()
            cluster.wait_active(other_than=number)
            scene.wait_progress()
            scene.rest(1, 2)
            scene.note_end()
            scene.restart(number)
            if name:
                cluster.data[name].wait_gone()
                cluster.start_data(name)
            cluster.wait_settled()
        scene.keep_takeovers()
        return scene.verdict(goal_ms=1000)
