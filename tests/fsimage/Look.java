import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.util.ToolRunner;

/** Look WORDS ; WORDS …: commands of Hadoop's shell in one JVM. The command `sums PATH…` prints lengths and sums of all files there. */
public class Look {
  public static void main(String[] words) throws Exception {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(out);
    Configuration conf = new Configuration();
    List<String> command = new ArrayList<>();
    for (int at = 0; at <= words.length; at++) {
      if (at < words.length && !words[at].equals(";")) {
        command.add(words[at]);
        continue;
      }
      out.println("> " + String.join(" ", command));
      if (command.get(0).equals("sums")) {
        for (String path : command.subList(1, command.size())) {
          sums(FileSystem.get(conf), new Path(path), out);
        }
      } else {
        int code = ToolRunner.run(conf, new FsShell(), command.toArray(new String[0]));
        if (code != 0) {
          throw new IllegalStateException(command + " ended with " + code);
        }
      }
      command.clear();
    }
    out.flush();
  }

  static void sums(FileSystem fs, Path directory, PrintStream out) throws Exception {
    for (FileStatus status : fs.listStatus(directory)) {
      String path = status.getPath().toUri().getRawPath();
      if (status.isDirectory()) {
        sums(fs, status.getPath(), out);
        continue;
      }
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      long size = 0;
      byte[] buffer = new byte[1 << 16];
      try (InputStream in = fs.open(status.getPath())) {
        for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
          digest.update(buffer, 0, read);
          size += read;
        }
      }
      if (size != status.getLen()) {
        throw new IllegalStateException(path + " has " + size + " bytes of " + status.getLen());
      }
      out.println(path + " " + size + " " + HexFormat.of().formatHex(digest.digest()));
    }
  }
}
