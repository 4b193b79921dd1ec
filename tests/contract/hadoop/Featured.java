import java.io.File;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.util.Arrays;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;

/**
 * An HDFS as hdfs-native's tests want it: {@code Featured DIRECTORY PORT [ha] [trash] [crc32]} writes the clients' configuration into
 * {@code target/test}, says {@code Ready!}, and ends with its standard input. With {@code ha} there are three NameNodes: the second observes,
 * the third is active.
 */
public class Featured {
  private static final String NAMESERVICE = "minidfs-ns";
  private static final int DATA_SERVERS = 4;
  private static final int ACTIVE = 2;

  private Featured() {}

  public static void main(String[] arguments) throws Exception {
    Set<String> features = Arrays.stream(arguments).skip(2).collect(Collectors.toSet());
    int port = Integer.parseInt(arguments[1]);
    boolean isGroup = features.contains("ha");
    Configuration conf = new HdfsConfiguration();
    conf.setLong("dfs.blocksize", 16 << 20);
    conf.setInt("fs.trash.interval", features.contains("trash") ? 60 : 0);
    if (features.contains("crc32")) {
      conf.set("dfs.checksum.type", "CRC32");
    }
    MiniDFSCluster.Builder builder = new MiniDFSCluster.Builder(conf, new File(arguments[0])).numDataNodes(DATA_SERVERS);
    if (isGroup) {
      // An observer shows a change only as fast as it reads the journal, and only if reads change nothing.
      conf.setBoolean("dfs.namenode.state.context.enabled", true);
      conf.setBoolean("dfs.ha.tail-edits.in-progress", true);
      conf.set("dfs.ha.tail-edits.period", "0ms");
      conf.set("dfs.namenode.accesstime.precision", "0");
      conf.set("dfs.client.failover.proxy.provider." + NAMESERVICE, "org.apache.hadoop.hdfs.server.namenode.ha.ObserverReadProxyProvider");
      builder.nnTopology(MiniDFSNNTopology.simpleHATopology(3));
    } else {
      builder.nameNodePort(port);
    }
    try (MiniDFSCluster cluster = builder.build()) {
      cluster.waitActive();
      if (isGroup) {
        cluster.transitionToObserver(1);
        cluster.transitionToActive(ACTIVE);
      }
      conf.set("fs.defaultFS", isGroup ? "hdfs://" + NAMESERVICE : "hdfs://127.0.0.1:" + port);
      if (features.contains("crc32")) {
        try (FSDataOutputStream out = cluster.getFileSystem(isGroup ? ACTIVE : 0).create(new Path("/testfile-crc32"))) {
          for (int number = 0; number < 1024; number++) {
            out.writeInt(number);
          }
        }
      }
      File clients = new File("target/test");
      clients.mkdirs();
      try (OutputStream out = new FileOutputStream(new File(clients, "core-site.xml"))) {
        conf.writeXml(out);
      }
      System.out.println("Ready!");
      System.in.read();
    }
    System.exit(0);
  }
}
