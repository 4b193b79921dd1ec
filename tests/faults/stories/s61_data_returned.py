"""Data servers return after files were deleted that they have replicas of, also past a start of the metadata server: these go, and nothing else does."""

import json
import time

from harness.report import Failure, check
from rig import replicas, servers
from rig.after import After

ITEM = "61"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 600
DATA = 4
KEPT, GOING = 60, 200
FILE_BYTES = 20_000
META = {"heartbeat_recheck_ms": 1000}
# How many replicas a server may have of which no file knows before somebody has to allow that they are deleted: more than a tenth of all, and a hundred.
ALLOWED = 100


def run(scene_of):
    with scene_of(members=1, data=DATA, meta_keys=META) as scene:
        contents = store(scene, "/kept", KEPT)
        for round_, count, restarts in (("few", ALLOWED // 3, False), ("some", ALLOWED // 3, True), ("many", GOING, True)):
            away(scene, contents, f"/{round_}", count, restarts)
        # Data servers that register anew show by what clients write that they store it; a replica too many is not deleted before.
        contents |= store(scene, "/last", KEPT // 2)
        return scene.verdict(after=After(contents))


def away(scene, kept, directory, count, restarts):
    cluster = scene.cluster
    store(scene, directory, count)
    name = scene.chance.choice(sorted(cluster.data))
    doomed = of_directory(scene, directory)
    has = len({number for number, _, _ in replicas.on_disk(cluster)[name]} & doomed)
    cluster.data[name].kill()
    servers.wait_dead(cluster, [name])
    replicas.shell(scene, "-rm", "-r", "-skipTrash", directory)
    if restarts:
        others = [other for other in cluster.data if other != name]
        wait_until(lambda: not any(left(cluster, other, doomed) for other in others), 90, "the other servers still have replicas of deleted files")
        # It forgets what it has deleted while it ran; its journal says so no more.
        member = cluster.members[1]
        member.process.end()
        member.start()
        cluster.wait_settled(data=DATA - 1)
    held = len(replicas.on_disk(cluster)[name])
    begun = time.monotonic()
    cluster.data[name].wait_gone()
    scene.fault(f"{name} is back with {held} replicas; the files of {has} were deleted{', and the metadata server has started since' if restarts else ''}", cluster.start_data, name)
    cluster.wait_settled()
    if restarts and has > ALLOWED:
        # Without a yes it does nothing, and says so with its exit code.
        held_back = lambda: json.loads(cluster.admin("blocks", "allow-deletions", "--json", succeeds=False))["replicas"]
        wait_until(lambda: held_back() == has, 90, f"not {has} replicas are held back", held_back)
        check(left(cluster, name, doomed) == has, "nothing is deleted before somebody allows it")
        said = cluster.admin("blocks", "allow-deletions", "--yes")
        scene.say(f"an operator allows it: {' '.join(said.split())[:160]}")
    wait_until(lambda: left(cluster, name, doomed) == 0, 90, f"{name} still has replicas of deleted files", lambda: left(cluster, name, doomed))
    took_s = time.monotonic() - begun
    scene.say(f"they are gone {took_s:.1f} s after its start: {has / took_s:.0f} a second")
    replicas.check_files(scene, kept)


def left(cluster, name, doomed):
    return len({number for number, _, _ in replicas.on_disk(cluster)[name]} & doomed)


def of_directory(scene, directory):
    """The numbers of the blocks of its files."""
    return {block.number for block in After().listing(scene, directory)}


def store(scene, directory, count):
    source = scene.directory / "files" / directory.strip("/")
    source.mkdir(parents=True)
    contents = {f"{directory}/f{number}": scene.chance.randbytes(FILE_BYTES) for number in range(count)}
    for path, content in contents.items():
        (source / path.rpartition("/")[2]).write_bytes(content)
    replicas.shell(scene, "-mkdir", "-p", directory)
    replicas.shell(scene, "-put", *sorted(source.iterdir()), directory)
    return contents


def wait_until(holds, seconds, sentence, what=lambda: ""):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise Failure(f"{sentence} after {seconds} s: {what()}")
        time.sleep(0.1)
