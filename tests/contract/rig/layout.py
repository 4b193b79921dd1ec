"""What a test asks of the cluster that it "starts": how many data servers, their racks and media, and keys of the servers."""

from dataclasses import dataclass, field, replace

# Hadoop's MiniDFSCluster gives each data server two directories.
STORAGES = ("DISK", "DISK")

# What a test may set: keys that both servers know by this name. Not the addresses, directories and intervals that the harness itself
# chooses, and not what only tells clients of a default that they set themselves.
KEYS = (
    "dfs.permissions.enabled",
    "dfs.permissions.superusergroup",
    "fs.protected.directories",
    "dfs.protected.subdirectories.enable",
    "dfs.namenode.acls.enabled",
    "dfs.namenode.posix.acl.inheritance.enabled",
    "dfs.namenode.xattrs.enabled",
    "dfs.namenode.fs-limits.max-xattrs-per-inode",
    "dfs.namenode.fs-limits.max-xattr-size",
    "dfs.namenode.fs-limits.min-block-size",
    "dfs.namenode.fs-limits.max-blocks-per-file",
    "dfs.namenode.fs-limits.max-component-length",
    "dfs.namenode.fs-limits.max-directory-items",
    "dfs.namenode.snapshot.max.limit",
    "dfs.namenode.snapshot.filesystem.limit",
    "dfs.namenode.snapshotdiff.listing.limit",
    "dfs.namenode.max.objects",
    "dfs.namenode.replication.min",
    "dfs.namenode.replication.max-streams",
    "dfs.namenode.replication.work.multiplier.per.iteration",
    "dfs.namenode.maintenance.replication.min",
    "dfs.hosts",
    "dfs.hosts.exclude",
    "dfs.storage.policy.satisfier.mode",
    "dfs.replication.max",
    "dfs.ls.limit",
    "dfs.namenode.accesstime.precision",
    "dfs.namenode.safemode.threshold-pct",
    "dfs.namenode.safemode.extension",
    "dfs.namenode.safemode.min.datanodes",
    "dfs.namenode.heartbeat.recheck-interval",
    "dfs.namenode.stale.datanode.interval",
    "dfs.heartbeat.interval",
    "dfs.namenode.reconstruction.pending.timeout-sec",
    "fs.trash.interval",
)

# Keys of data servers alone.
DATA_KEYS = (
    "dfs.blockreport.intervalMsec",
    "dfs.datanode.balance.bandwidthPerSec",
    "dfs.datanode.balance.max.concurrent.moves",
    "dfs.datanode.directoryscan.interval",
    "dfs.datanode.scan.period.hours",
    "dfs.block.scanner.volume.bytes.per.second",
)

# Keys that Clover has nothing for; a test that needs one passes on Hadoop, and says so here.
THEIRS = (
    "dfs.namenode.snapshot.capture.openfiles",
    "dfs.namenode.snapshot.skip.capture.accesstime-only-change",
    "dfs.namenode.snapshot.deletion.ordered",
    "dfs.namenode.snapshotdiff.allow.snap-root-descendant",
    "dfs.namenode.snapshot.trashroot.enabled",
    "dfs.permissions.allow.owner.set.quota",
    "dfs.permissions.ContentSummary.subAccess",
    "dfs.permissions.superuser.only",
    "dfs.storage.policy.enabled",
    "dfs.storage.policy.permissions.superuser-only",
    "dfs.storage.default.policy",
    "dfs.namenode.quota.init-threads",
    "dfs.namenode.list.openfiles.num.responses",
    "dfs.batched.ls.limit",
    "dfs.content-summary.limit",
    "dfs.client.block.write.replace-datanode-on-failure.enable",
    "dfs.namenode.startup.delay.block.deletion.sec",
    # A list of data servers in JSON is known by its first character there.
    "dfs.namenode.hosts.provider.classname",
    "dfs.namenode.decommission.interval.testing",
    "dfs.namenode.decommission.monitor.class",
    "dfs.namenode.redundancy.interval.seconds",
    "dfs.namenode.redundancy.considerLoad",
    "dfs.namenode.block-placement-policy.default.prefer-local-node",
    "dfs.datanode.block-pinning.enabled",
    "dfs.block.replicator.classname",
)


@dataclass
class Layout:
    data_servers: int = 3
    racks: tuple = ()
    # A tuple of media for each data server.
    storages: tuple = ()
    keys: dict = field(default_factory=dict)

    @staticmethod
    def parse(words):
        """`data=3`, `racks=/a,/b`, `storages=DISK,SSD;DISK,DISK` and, for a key, `dfs.…=value`."""
        layout = Layout()
        for word in words:
            name, _, value = word.partition("=")
            if name == "data":
                layout.data_servers = int(value)
            elif name == "racks":
                layout.racks = tuple(value.split(","))
            elif name == "storages":
                layout.storages = tuple(tuple(media.split(",")) for media in value.split(";"))
            else:
                layout.keys[name] = value
        return layout

    def can_be_emptied(self):
        """Not even the superuser empties a cluster with protected directories, and one with lists of data servers has read another test's."""
        return not {"fs.protected.directories", "dfs.hosts"} & self.keys.keys()

    def with_server(self, rack, media):
        """One data server more; an empty rack where it has none."""
        count = self.data_servers
        racks = (*self.racks, *[""] * (count - len(self.racks)), rack) if self.racks or rack else ()
        storages = (*(self.media(number) for number in range(count)), media)
        return replace(self, data_servers=count + 1, racks=racks, storages=storages)

    def media(self, number):
        return self.storages[number] if number < len(self.storages) else STORAGES
