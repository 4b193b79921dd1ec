import java.io.File;
import java.lang.reflect.Field;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** A real Hadoop in this JVM. */
final class Mini {
  private Mini() {}

  static URI start(File directory, String groups) throws Exception {
    Configuration conf = new HdfsConfiguration();
    conf.set("hadoop.user.group.static.mapping.overrides", groups);
    conf.setLong("dfs.namenode.fs-limits.min-block-size", 1024);
    // As Clover lists its policies.
    conf.set("dfs.namenode.ec.system.default.policy", "");
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
    return cluster.getURI();
  }
}
