import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.URI;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.server.namenode.DirectoryWithQuotaFeature;
import org.apache.hadoop.hdfs.server.namenode.FSDirectory;
import org.apache.hadoop.hdfs.server.namenode.FSNamesystem;
import org.apache.hadoop.hdfs.server.namenode.INode;
import org.apache.hadoop.hdfs.server.namenode.INodeDirectory;
import org.apache.hadoop.hdfs.server.namenode.QuotaCounts;
import org.apache.hadoop.hdfs.server.namenode.snapshot.Snapshot;
import org.apache.hadoop.hdfs.util.RwLockMode;

/** A real Hadoop in this JVM. */
final class Mini {
  private final MiniDFSCluster cluster;

  private Mini(MiniDFSCluster cluster) {
    this.cluster = cluster;
  }

  static Mini start(File directory, String groups) throws Exception {
    Configuration conf = new HdfsConfiguration();
    conf.set("hadoop.user.group.static.mapping.overrides", groups);
    conf.setLong("dfs.namenode.fs-limits.min-block-size", 1024);
    // As Clover lists its policies.
    conf.set("dfs.namenode.ec.system.default.policy", "");
    // A snapshot shows one moment.
    conf.setBoolean("dfs.namenode.snapshot.capture.openfiles", true);
    // Keep to what happens at once: no checks in the background while a sequence runs.
    conf.setInt("dfs.datanode.scan.period.hours", -1);
    conf.setInt("dfs.heartbeat.interval", 1);
    conf.setInt("dfs.namenode.redundancy.interval.seconds", 1);
    conf.setInt("dfs.namenode.handler.count", 4);
    org.apache.hadoop.security.Groups.getUserToGroupsMappingServiceWithLoadedConfiguration(conf);
    MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf, directory).numDataNodes(3).build();
    cluster.waitActive();
    // Hadoop's tests switch symbolic links on; nothing else does.
    Field symlinks = FileSystem.class.getDeclaredField("symlinksEnabled");
    symlinks.setAccessible(true);
    symlinks.set(null, false);
    return new Mini(cluster);
  }

  URI uri() {
    return cluster.getURI();
  }

  /**
   * Lets Hadoop count what its quotas use anew, as it does at each start: what is used of a medium is wrong until
   * then after some calls. Returns the directories of which anything else was wrong, with what it was and is; there
   * should be none.
   */
  Map<String, String> recount() throws Exception {
    FSNamesystem namesystem = cluster.getNamesystem();
    Method update = FSDirectory.class.getDeclaredMethod("updateCountForQuota", int.class);
    update.setAccessible(true);
    Map<String, String> before = new TreeMap<>();
    Map<String, String> after = new TreeMap<>();
    namesystem.writeLock(RwLockMode.GLOBAL);
    try {
      FSDirectory directory = namesystem.getFSDirectory();
      usages(directory.getRoot(), before);
      update.invoke(directory, 1);
      usages(directory.getRoot(), after);
    } finally {
      namesystem.writeUnlock(RwLockMode.GLOBAL, "recount");
    }
    before.entrySet().removeAll(Map.copyOf(after).entrySet());
    before.replaceAll((path, usage) -> usage + ", counted anew " + after.get(path));
    return before;
  }

  /** Names and bytes, without the media. */
  private static void usages(INodeDirectory directory, Map<String, String> found) {
    DirectoryWithQuotaFeature quota = directory.getDirectoryWithQuotaFeature();
    if (quota != null) {
      QuotaCounts used = quota.getSpaceConsumed();
      found.put(directory.getFullPathName(), used.getNameSpace() + " inodes and " + used.getStorageSpace() + " bytes");
    }
    for (INode child : directory.getChildrenList(Snapshot.CURRENT_STATE_ID)) {
      if (child.isDirectory()) {
        usages(child.asDirectory(), found);
      }
    }
  }
}
