"""The machines of a story: addresses and cables, processes, a ZooKeeper, the clients that load the group."""
