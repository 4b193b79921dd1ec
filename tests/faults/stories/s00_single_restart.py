"""A group of one, killed and started again three times: acknowledged operations are there."""

from checks.errors import RETRIABLE

ITEM = "0"
IN_SLICE = False
NEEDS_CABLES = False
# A client of a lone server tries a call once; one that is starting says that it is not ready yet, as Hadoop's does.
ALLOWED = frozenset({f"error:{name}" for name in ("ConnectException", "EOFException", "SocketException", "IOException")}) | RETRIABLE


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
