import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSOutputStream;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;

/**
 * Writers that do one thing after the other when they are told to, each in a thread of its own: a story knows where each of them is when it kills a server.
 *
 * <p>A line of standard input is `PEN ORDER WORDS…`, and each is answered by a line `PEN ok VALUE` or `PEN failed CLASS: sentence`. What is written is known
 * from where it stands in the file, so that a reader can tell whether it is right.
 */
final class Pens {
  private static final int BUFFER = 1 << 15;
  private static final long RECOVERED_MS = 60_000;
  private static final Map<String, Pen> PENS = new HashMap<>();

  private Pens() {}

  static void serve(DistributedFileSystem fs) throws Exception {
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = orders.readLine()) != null; ) {
      String[] words = line.trim().split(" ");
      PENS.computeIfAbsent(words[0], name -> new Pen(name, fs)).give(words);
    }
  }

  /** Those of a file from one place to another; no two pieces are alike. */
  static byte[] bytes(long from, int count) {
    byte[] bytes = new byte[count];
    for (int i = 0; i < count; i++) {
      int at = (int) (from + i) * 0x9E3779B1;
      bytes[i] = (byte) (at ^ at >>> 15);
    }
    return bytes;
  }

  private static final class Pen {
    private final String name;
    private final DistributedFileSystem fs;
    private final ExecutorService thread;
    private FSDataOutputStream out;
    private long at;

    Pen(String name, DistributedFileSystem fs) {
      this.name = name;
      this.fs = fs;
      this.thread =
          Executors.newSingleThreadExecutor(
              work -> {
                Thread made = new Thread(work, "pen-" + name);
                made.setDaemon(true);
                return made;
              });
    }

    void give(String[] words) {
      thread.execute(
          () -> {
            String answer;
            try {
              answer = "ok " + does(words);
            } catch (Exception failed) {
              failed.printStackTrace();
              answer = "failed " + failed.getClass().getSimpleName() + ": " + Outcome.sentence(failed);
            }
            synchronized (System.out) {
              System.out.println(name + " " + answer);
              System.out.flush();
            }
          });
    }

    private String does(String[] words) throws Exception {
      switch (words[1]) {
        case "create":
          out = fs.create(new Path(words[2]), false, BUFFER, Short.parseShort(words[3]), Long.parseLong(words[4]));
          at = 0;
          return "";
        case "append":
          at = fs.getFileStatus(new Path(words[2])).getLen();
          out = fs.append(new Path(words[2]));
          return String.valueOf(at);
        case "write":
          out.write(bytes(at, Integer.parseInt(words[2])));
          at += Integer.parseInt(words[2]);
          return String.valueOf(at);
        case "flush":
          out.hflush();
          return String.valueOf(at);
        case "close":
          out.close();
          return String.valueOf(at);
        case "pipeline":
          return ports(((DFSOutputStream) out.getWrappedStream()).getPipeline());
        case "places":
          LocatedBlock last = fs.getClient().getLocatedBlocks(words[2], 0).getLastLocatedBlock();
          return ports(last == null ? null : last.getLocations());
        case "read":
          return read(new Path(words[2]));
        case "recover":
          return recover(new Path(words[2]));
        case "replication":
          fs.setReplication(new Path(words[2]), Short.parseShort(words[3]));
          return "";
        case "delete":
          fs.delete(new Path(words[2]), true);
          return "";
        case "truncate":
          return String.valueOf(fs.truncate(new Path(words[2]), Long.parseLong(words[3])));
        default:
          throw new IllegalArgumentException("unknown order " + words[1]);
      }
    }

    /** The ports of these data servers with commas between; nothing while there is no block yet. */
    private static String ports(DatanodeInfo[] servers) {
      return servers == null ? "" : Arrays.stream(servers).map(server -> "" + server.getXferPort()).collect(Collectors.joining(","));
    }

    /** The length of a file and the CRC-32 of its bytes. Fails where a byte is not the one that a pen writes at that place. */
    private String read(Path path) throws IOException {
      byte[] found = new byte[1 << 16];
      long length = 0;
      CRC32 sum = new CRC32();
      try (FSDataInputStream in = fs.open(path)) {
        for (int count; (count = in.read(found)) > 0; ) {
          if (!Arrays.equals(Arrays.copyOf(found, count), bytes(length, count))) {
            throw new IllegalStateException("wrong bytes between " + length + " and " + (length + count) + " of " + path);
          }
          sum.update(found, 0, count);
          length += count;
        }
      }
      return length + " " + Long.toHexString(sum.getValue());
    }

    /** As another client that finds a file whose writer is gone. */
    private static String recover(Path path) throws Exception {
      long begun = System.currentTimeMillis();
      try (DistributedFileSystem other = (DistributedFileSystem) FileSystem.newInstance(new Configuration())) {
        while (!other.recoverLease(path)) {
          if (System.currentTimeMillis() - begun > RECOVERED_MS) {
            throw new IOException("the lease of " + path + " is not recovered");
          }
          Thread.sleep(200);
        }
        return String.valueOf(other.getFileStatus(path).getLen());
      }
    }
  }
}
