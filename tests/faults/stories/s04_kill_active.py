"""kill -9 of the active, again and again: the next one goes on within a second."""

ITEM = "4"
IN_SLICE = True
NEEDS_CABLES = False


def run(scene_of):
    with scene_of(members=4) as scene:
        scene.start_load("hadoop", first=scene.cluster.wait_active())
        scene.start_native()
        scene.start_load("hedging", provider="RequestHedging", size=scene.options.size._replace(data=0, stream=0))
        rounds = 1 if scene.options.is_slice else 10 if scene.options.is_long else 3
        for _ in range(rounds):
            scene.rest(2, 4)
            number = scene.kill_active()
            scene.wait_progress()
            scene.note_end()
            scene.keep_takeovers()
            scene.restart(number)
            scene.cluster.wait_settled()
        return scene.verdict(goal_ms=1000)
