"""The active is frozen for longer than its session with calls in its sockets, and wakes: no stale read, no late answer."""

ITEM = "9"
IN_SLICE = True
NEEDS_CABLES = False


def run(scene_of):
    with scene_of(members=3, meta_keys={"coordinator_session_ms": 2000}) as scene:
        cluster = scene.cluster
        scene.start_load(first=cluster.wait_active())
        scene.start_native()
        for turn in range(1 if scene.options.is_slice else 3):
            number = cluster.wait_active()
            # This one calls the active itself and waits for it as long as a stock client does by default, and so reads
            # what it says when it wakes.
            size = scene.options.size._replace(own=2, data=0, stream=0)
            name = f"patient-{turn + 1}"
            scene.start_load(name, size=size, first=number, **{"ipc.client.rpc-timeout.ms": 120_000})
            scene.patient.add(name)
            scene.rest(1, 2)
            process = cluster.members[number].process
            scene.fault(f"m{number}, the active, is frozen", process.freeze)
            cluster.wait_active(other_than=number)
            scene.loads[0].wait_for(scene.loads[0].done() + 50)
            scene.rest(3, 5)
            scene.fault(f"m{number} wakes", process.thaw)
            scene.wait_progress()
            cluster.wait_settled()
        scene.keep_takeovers()
        return scene.verdict(goal_ms=2000)
