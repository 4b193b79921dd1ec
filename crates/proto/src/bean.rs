//! The Java classes that `/jmx` names as the type of a bean (`modelerType`).

pub const NAME_NODE: &str = "org.apache.hadoop.hdfs.server.namenode.NameNode";
pub const FS_NAMESYSTEM: &str = "org.apache.hadoop.hdfs.server.namenode.FSNamesystem";
pub const BLOCK_MANAGER: &str = "org.apache.hadoop.hdfs.server.blockmanagement.BlockManager";
pub const SNAPSHOT_MANAGER: &str = "org.apache.hadoop.hdfs.server.namenode.snapshot.SnapshotManager";

pub const DATA_NODE: &str = "org.apache.hadoop.hdfs.server.datanode.DataNode";
pub const FS_DATASET: &str = "org.apache.hadoop.hdfs.server.datanode.fsdataset.impl.FsDatasetImpl";

/// Beans that every Java process has.
pub const RUNTIME: &str = "sun.management.RuntimeImpl";
pub const MEMORY: &str = "sun.management.MemoryImpl";
pub const OPERATING_SYSTEM: &str = "com.sun.management.internal.OperatingSystemImpl";
