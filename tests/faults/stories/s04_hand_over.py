"""A graceful hand-over, again and again: no client notices more than a slow call."""

ITEM = "4"
IN_SLICE = True
NEEDS_CABLES = False


def run(scene_of):
    with scene_of(members=3) as scene:
        scene.start_load()
        scene.start_native()
        for _ in range(1 if scene.options.is_slice else 3):
            scene.rest(1, 2)
            number = scene.cluster.wait_active()
            scene.fault(f"m{number} hands over", scene.cluster.admin, "group", "hand-over")
            scene.cluster.wait_active(other_than=number)
            scene.wait_progress()
            scene.cluster.wait_settled()
        scene.keep_takeovers()
        return scene.verdict(goal_ms=200)
