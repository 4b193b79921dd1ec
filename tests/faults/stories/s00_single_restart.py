"""A group of one, killed and started again three times: acknowledged operations are there."""

ITEM = "0"
IN_SLICE = False
NEEDS_CABLES = False
ALLOWED = frozenset({f"error:{name}" for name in ("ConnectException", "EOFException", "SocketException", "SafeModeException", "IOException")})


def run(scene_of):
    with scene_of(members=1) as scene:
        # Nobody else takes the calls meanwhile: clients see refusals, and shared names would say little.
        scene.start_load(size=scene.options.size._replace(cell=0))
        for _ in range(3):
            scene.rest(1, 3)
            number = scene.kill_active()
            scene.restart(number)
            scene.wait_progress()
        return scene.verdict(allowed=ALLOWED)
