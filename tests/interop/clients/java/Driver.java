import java.net.URI;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Drives a cluster through the stock client's FileSystem API.
 *
 * <pre>
 * put URI LOCAL REMOTE BLOCK-SIZE   stores a local tree
 * sums URI REMOTE                   reads a tree: one JSON line for each file and directory
 * append URI LOCAL REMOTE…          appends each file of a local directory, by name, to each remote file
 * flush URI LOCAL REMOTE            appends a local file, makes it visible, says so, and closes when told to
 * truncate URI LENGTH REMOTE
 * rename URI FROM TO
 * concat URI TARGET SOURCE…
 * wait URI SECONDS                  waits until the cluster leaves safe mode and takes a block
 * history URI REMOTE FILE SEED      works without end, and writes down what was acknowledged
 * writing-on URI ROUNDS              appends, truncates, and loses data servers while it writes
 * verify URI REMOTE FILE            holds the cluster against such a history
 * </pre>
 */
public final class Driver {
  public static void main(String[] arguments) throws Exception {
    String command = arguments[0];
    Configuration conf = configuration(command);
    try (FileSystem fs = FileSystem.newInstance(URI.create(arguments[1]), conf)) {
      switch (command) {
        case "put":
          Tree.put(fs, Path.of(arguments[2]), remote(arguments[3]), Long.parseLong(arguments[4]));
          break;
        case "sums":
          Tree.sums(fs, remote(arguments[2]));
          break;
        case "append":
          Change.append(fs, Path.of(arguments[2]), remotes(arguments, 3));
          break;
        case "flush":
          Change.flush(fs, Path.of(arguments[2]), remote(arguments[3]));
          break;
        case "truncate":
          Change.truncate(fs, Long.parseLong(arguments[2]), remote(arguments[3]));
          break;
        case "rename":
          fs.rename(remote(arguments[2]), remote(arguments[3]));
          break;
        case "concat":
          fs.concat(remote(arguments[2]), remotes(arguments, 3).toArray(new org.apache.hadoop.fs.Path[0]));
          break;
        case "wait":
          Ready.await(fs, Integer.parseInt(arguments[2]));
          break;
        case "history":
          new HistoryWriter(fs, remote(arguments[2]), Path.of(arguments[3]), Long.parseLong(arguments[4])).run();
          break;
        case "writing-on":
          WritingOn.run(URI.create(arguments[1]), Integer.parseInt(arguments[2]));
          break;
        case "verify":
          new HistoryVerifier(fs, remote(arguments[2]), Path.of(arguments[3])).run();
          break;
        default:
          throw new IllegalArgumentException(command);
      }
    }
  }

  private static Configuration configuration(String command) {
    Configuration conf = new Configuration();
    FsPermission.setUMask(conf, new FsPermission((short) 0022));
    if (command.equals("history")) {
      // The servers are about to be killed: a call that fails is what the history is for, so do not try for minutes.
      conf.setInt("ipc.client.connect.max.retries", 1);
      conf.setInt("ipc.client.connect.retry.interval", 100);
    }
    return conf;
  }

  private static List<org.apache.hadoop.fs.Path> remotes(String[] arguments, int first) {
    return Arrays.stream(arguments).skip(first).map(Driver::remote).collect(Collectors.toList());
  }

  private static org.apache.hadoop.fs.Path remote(String path) {
    return new org.apache.hadoop.fs.Path(path);
  }
}
