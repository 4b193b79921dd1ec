"""A member comes back with an empty disk and is renewed under load; who renews it is killed meanwhile."""

import shutil

ITEM = "19"
IN_SLICE = False
NEEDS_CABLES = False


def run(scene_of):
    # Images often, so that the log alone does not reach back to the beginning.
    with scene_of(members=4, meta_keys={"edits_per_image": 2000}) as scene:
        cluster = scene.cluster
        client = scene.start_load()
        client.wait_for(8000, 180)
        active = cluster.wait_active()
        empty = scene.chance.choice([number for number in cluster.members if number != active])
        member = cluster.members[empty]
        scene.fault(f"kill -9 of m{empty}, a standby, and its disk is lost", member.process.kill)
        member.process.wait_gone()
        shutil.rmtree(member.directory)
        scene.rest(1, 2)
        member.format("--join", "--replace")
        member.start()
        # Somewhere in the image or the log.
        scene.rest(0.3, 1.5)
        first = scene.kill_active("kill -9 of the active, which renews it")
        cluster.wait_active(other_than=first)
        scene.wait_progress()
        scene.note_end()
        scene.restart(first)
        cluster.wait_settled(180)
        scene.keep_takeovers()
        return scene.verdict()
