import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * A whole HDFS in this JVM, to hold beside Clover: {@code Hadoop DIRECTORY DATA-SERVERS [KEY=VALUE …]} prints
 * {@code ready hdfs://…} and serves until its standard input ends. The line {@code restart} there restarts the NameNode.
 */
public class Hadoop {
  public static void main(String[] arguments) throws Exception {
    Configuration conf = new HdfsConfiguration();
    for (int index = 2; index < arguments.length; index++) {
      String[] pair = arguments[index].split("=", 2);
      conf.set(pair[0], pair[1]);
    }
    MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(conf, new File(arguments[0])).numDataNodes(Integer.parseInt(arguments[1])).build();
    cluster.waitActive();
    System.out.println("ready " + cluster.getURI());
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String order = orders.readLine(); order != null; order = orders.readLine()) {
      if (order.equals("restart")) {
        cluster.restartNameNode(true);
        System.out.println("restarted");
      }
    }
    cluster.shutdown(true);
    System.exit(0);
  }
}
