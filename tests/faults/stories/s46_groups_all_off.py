"""Several groups: all metadata servers and all data servers are killed at once, and started again."""


ITEM = "46"
IN_SLICE = False
NEEDS_CABLES = False
# Nobody has what a client was writing when all data servers went.
WRITERS = frozenset({"All datanodes", "could only be written to", "Failed to replace a bad datanode", "Unable to close file"})


def run(scene_of):
    with scene_of(members=3, groups=2) as scene:
        cluster = scene.cluster
        # No streams: who keeps a file open for long loses the last block, and what has been flushed of it.
        size = scene.options.size._replace(stream=0, tree=3)
        scene.start_loads_of_groups(size)
        for _ in range(5 if scene.options.is_long else 2):
            scene.rest(2, 4)
            scene.fault("kill -9 of all metadata servers and all data servers", lambda: [process.kill() for process in cluster.processes()])
            scene.rest(1)
            for number in cluster.members:
                scene.restart(number)
            for name in cluster.data:
                cluster.data[name].wait_gone()
                cluster.start_data(name)
            scene.wait_progress()
            cluster.wait_settled()
        return scene.verdict(WRITERS)
