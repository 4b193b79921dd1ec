import java.io.IOException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction;

/** Waits until a cluster serves: out of safe mode, with as many data servers as a block has replicas. */
final class Ready {
  private Ready() {}

  static void await(FileSystem fs, int seconds) throws Exception {
    DistributedFileSystem dfs = (DistributedFileSystem) fs;
    long deadline = System.nanoTime() + seconds * 1_000_000_000L;
    while (true) {
      String missing;
      try {
        missing = missing(dfs);
      } catch (IOException notYet) {
        missing = notYet.toString();
      }
      if (missing == null) {
        return;
      }
      if (System.nanoTime() > deadline) {
        throw new IllegalStateException("the cluster does not serve after " + seconds + " s: " + missing);
      }
      Thread.sleep(100);
    }
  }

  /** What is still missing, or null. */
  private static String missing(DistributedFileSystem dfs) throws IOException {
    if (dfs.setSafeMode(SafeModeAction.SAFEMODE_GET)) {
      return "it is in safe mode";
    }
    int live = dfs.getDataNodeStats(DatanodeReportType.LIVE).length;
    int wanted = dfs.getDefaultReplication(new Path("/"));
    return live < wanted ? live + " of " + wanted + " data servers are live" : null;
  }
}
