import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.client.HdfsDataInputStream;

/**
 * Hadoop's client, which does what each line of its input says and answers with a line. Files have bytes that follow from their
 * lengths, so that every read is checked.
 *
 * <pre>
 * write PATH LENGTH    ok
 * append PATH LENGTH   ok, the file has so many bytes now
 * read PATH LENGTH     BYTES-FROM-FILES BYTES-READ
 * delete PATH          ok
 * </pre>
 */
public class LocalReads {
  private static final int BLOCK_BYTES = 1 << 20;

  public static void main(String[] arguments) throws Exception {
    FileSystem fs = FileSystem.get(new Configuration());
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
    for (String order; (order = orders.readLine()) != null; ) {
      String answer;
      try {
        answer = obey(fs, order.split(" "));
      } catch (IOException error) {
        error.printStackTrace();
        answer = "failed " + error;
      }
      System.out.println(answer);
      System.out.flush();
    }
  }

  private static String obey(FileSystem fs, String[] words) throws IOException {
    Path path = new Path(words[1]);
    switch (words[0]) {
      case "write":
        try (FSDataOutputStream out = fs.create(path, true, 4096, (short) 1, BLOCK_BYTES)) {
          out.write(contents(Integer.parseInt(words[2])));
        }
        return "ok";
      case "append":
        byte[] whole = contents(Integer.parseInt(words[2]));
        int before = (int) fs.getFileStatus(path).getLen();
        try (FSDataOutputStream out = fs.append(path)) {
          out.write(whole, before, whole.length - before);
        }
        return "ok";
      case "read":
        return read(fs, path, contents(Integer.parseInt(words[2])));
      case "delete":
        return fs.delete(path, false) ? "ok" : "failed: not there";
      default:
        throw new IOException("no order: " + words[0]);
    }
  }

  private static String read(FileSystem fs, Path path, byte[] wanted) throws IOException {
    try (FSDataInputStream in = fs.open(path)) {
      byte[] found = new byte[wanted.length];
      in.readFully(found);
      if (in.read() != -1 || !java.util.Arrays.equals(found, wanted)) {
        throw new IOException(path + " has other bytes than were written");
      }
      var statistics = ((HdfsDataInputStream) in).getReadStatistics();
      return statistics.getTotalShortCircuitBytesRead() + " " + statistics.getTotalBytesRead();
    }
  }

  /** The first bytes of an endless row. */
  private static byte[] contents(int length) {
    byte[] all = new byte[(length + 3) / 4 * 4];
    new Random(7).nextBytes(all);
    return java.util.Arrays.copyOf(all, length);
  }
}
