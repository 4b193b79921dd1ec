import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSCluster.DataNodeProperties;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.security.Groups;

/**
 * A whole HDFS in this JVM, to hold beside Clover: {@code Hadoop DIRECTORY RPC-PORT HTTP-PORT GROUPS-PORT} obeys orders, a line with
 * tabs each, until its standard input ends, and answers each with {@code done} or {@code failed}.
 *
 * <ul>
 *   <li>{@code lay-out DATA-SERVERS RACKS STORAGES [KEY=VALUE …]}: a new cluster in the place of the last one
 *   <li>{@code restart [KEY=VALUE …]}: the NameNode alone, with these keys
 *   <li>{@code stop-metadata}, {@code stop-data N}, {@code start-data N}, {@code add-data RACK STORAGES}
 *   <li>{@code refresh-nodes}: the lists of DataNodes are read again
 *   <li>{@code data}: of each DataNode the port and the directories
 * </ul>
 */
public class Hadoop {
  private final File directory;
  private final int port;
  private final int httpPort;
  private MiniDFSCluster cluster;
  /** Keys that orders have set. */
  private final Set<String> keys = new HashSet<>();
  /** By number: the DataNode's identity, and what starts it again while it is stopped. */
  private final List<String> uuids = new ArrayList<>();
  private DataNodeProperties[] stopped;

  private Hadoop(File directory, int port, int httpPort) {
    this.directory = directory;
    this.port = port;
    this.httpPort = httpPort;
  }

  public static void main(String[] arguments) throws Exception {
    System.setProperty("clover.contract.groups", arguments[3]);
    Configuration conf = new HdfsConfiguration();
    conf.set("hadoop.security.group.mapping", AskJudge.class.getName());
    conf.setInt("hadoop.security.groups.cache.secs", 1);
    conf.setInt("hadoop.security.groups.negative-cache.secs", 0);
    // There is one in a JVM, and this call makes it.
    Groups.getUserToGroupsMappingService(conf);
    Hadoop hadoop = new Hadoop(new File(arguments[0]), Integer.parseInt(arguments[1]), Integer.parseInt(arguments[2]));
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String order = orders.readLine(); order != null; order = orders.readLine()) {
      String answer;
      try {
        answer = "done" + hadoop.obey(order.split("\t", -1));
      } catch (Exception | Error error) {
        error.printStackTrace();
        answer = "failed " + error.toString().replace('\n', ' ');
      }
      System.out.println(answer);
    }
    if (hadoop.cluster != null) {
      hadoop.cluster.shutdown(true);
    }
    System.exit(0);
  }

  private String obey(String[] words) throws Exception {
    switch (words[0]) {
      case "lay-out" -> layOut(Integer.parseInt(words[1]), words[2], words[3], words);
      case "restart" -> {
        set(cluster.getConfiguration(0), words, 1);
        cluster.restartNameNode(0, false);
      }
      case "stop-metadata" -> cluster.shutdownNameNode(0);
      case "refresh-nodes" ->
          cluster.getNamesystem().getBlockManager().getDatanodeManager().refreshNodes(cluster.getConfiguration(0));
      case "stop-data" -> {
        int number = Integer.parseInt(words[1]);
        stopped[number] = cluster.stopDataNode(indexOf(number));
      }
      case "start-data" -> {
        int number = Integer.parseInt(words[1]);
        cluster.restartDataNode(stopped[number], true);
        stopped[number] = null;
      }
      case "add-data" -> {
        StorageType[][] types = {media(words[2])};
        String[] racks = words[1].isEmpty() ? null : new String[] {words[1]};
        cluster.startDataNodes(
            cluster.getConfiguration(0), 1, types, true, null, racks, null, null, null, false, false, false, null, null, null);
        DataNode added = cluster.getDataNodes().get(cluster.getDataNodes().size() - 1);
        uuids.add(added.getDatanodeUuid());
        stopped = Arrays.copyOf(stopped, uuids.size());
      }
      case "data" -> {
        return data();
      }
      default -> throw new IllegalArgumentException(words[0]);
    }
    return "";
  }

  private void layOut(int count, String racks, String storages, String[] words) throws Exception {
    if (cluster != null) {
      cluster.shutdown(true);
    }
    Configuration conf = new HdfsConfiguration();
    keys.clear();
    set(conf, words, 4);
    MiniDFSCluster.Builder builder =
        new MiniDFSCluster.Builder(conf, directory).numDataNodes(count).nameNodePort(port).nameNodeHttpPort(httpPort);
    if (!racks.isEmpty()) {
      builder.racks(racks.split(","));
    }
    if (count > 0) {
      StorageType[][] types =
          Arrays.stream(storages.split(";"))
              .map(Hadoop::media)
              .toArray(StorageType[][]::new);
      builder.storagesPerDatanode(types[0].length).storageTypes(types);
    }
    cluster = builder.build();
    cluster.waitActive();
    // MiniDFSCluster turns symbolic links on, which no NameNode does by itself.
    Field symlinks = FileSystem.class.getDeclaredField("symlinksEnabled");
    symlinks.setAccessible(true);
    symlinks.setBoolean(null, false);
    uuids.clear();
    for (DataNode node : cluster.getDataNodes()) {
      uuids.add(node.getDatanodeUuid());
    }
    stopped = new DataNodeProperties[count];
  }

  private static StorageType[] media(String names) {
    return Arrays.stream(names.split(",")).map(StorageType::valueOf).toArray(StorageType[]::new);
  }

  /** What an earlier order has set and this one does not is as ever again. */
  private void set(Configuration conf, String[] words, int from) {
    Configuration usual = new HdfsConfiguration();
    for (String key : keys) {
      String value = usual.get(key);
      if (value == null) {
        conf.unset(key);
      } else {
        conf.set(key, value);
      }
    }
    keys.clear();
    for (int index = from; index < words.length; index++) {
      String[] pair = words[index].split("=", 2);
      conf.set(pair[0], pair[1]);
      keys.add(pair[0]);
    }
  }

  private int indexOf(int number) {
    List<DataNode> nodes = cluster.getDataNodes();
    for (int index = 0; index < nodes.size(); index++) {
      if (nodes.get(index).getDatanodeUuid().equals(uuids.get(number))) {
        return index;
      }
    }
    throw new IllegalArgumentException("data server " + number + " does not run");
  }

  private String data() {
    StringBuilder found = new StringBuilder();
    for (int number = 0; number < uuids.size(); number++) {
      DataNode node = stopped[number] == null ? cluster.getDataNodes().get(indexOf(number)) : stopped[number].getDatanode();
      found.append('\t').append(node.getXferPort());
      for (String place : node.getConf().get("dfs.datanode.data.dir").split(",")) {
        String uri = place.replaceFirst("^\\[\\w+\\]", "");
        found.append(':').append(uri.startsWith("file:") ? URI.create(uri).getPath() : uri);
      }
    }
    return found.toString();
  }
}
