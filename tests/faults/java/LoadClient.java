import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/**
 * A stock client that loads a cluster without pause and writes down what it was told, whatever happens to the cluster.
 *
 * <pre>
 * LoadClient load ROOT HISTORY SEED OWN CELL DATA STREAM PAUSE-US TREE MIXED   until standard input ends
 * LoadClient dump ROOT FILE                                                    the whole tree with sizes and checksums
 * LoadClient blocks ROOT FILE                                                  the blocks of all its files
 * LoadClient pens ROOT                                                         does what it is told, see Pens
 * </pre>
 *
 * <p>The cluster is the one that the configuration on the class path names. OWN, CELL, DATA, STREAM, TREE and MIXED are counts of
 * threads of each kind; each class says what its kind does. PAUSE-US is the rest between two operations of a thread.
 */
public final class LoadClient {
  /** A thread that still waits for an answer so long after the end is written down as waiting, and left. */
  private static final long LINGER_MS = 120_000;

  private LoadClient() {}

  public static void main(String[] words) throws Exception {
    try (FileSystem fs = FileSystem.newInstance(new Configuration())) {
      Path root = new Path(words[1]);
      switch (words[0]) {
        case "load":
          load(fs, root, words);
          break;
        case "dump":
          Dump.write(fs, root, java.nio.file.Path.of(words[2]));
          break;
        case "blocks":
          Blocks.write(fs, root, java.nio.file.Path.of(words[2]));
          break;
        case "pens":
          Pens.serve((DistributedFileSystem) fs);
          break;
        default:
          throw new IllegalArgumentException("unknown command " + words[0]);
      }
    }
    // A thread that hangs in a call must not keep the process.
    System.exit(0);
  }

  private static void load(FileSystem fs, Path root, String[] words) throws Exception {
    History history = new History(java.nio.file.Path.of(words[2]));
    long seed = Long.parseLong(words[3]);
    long pauseUs = Long.parseLong(words[8]);
    int own = Integer.parseInt(words[4]);
    int cell = Integer.parseInt(words[5]);
    int data = Integer.parseInt(words[6]);
    int stream = Integer.parseInt(words[7]);
    int tree = Integer.parseInt(words[9]);
    int mixed = Integer.parseInt(words[10]);
    List<Worker> workers = new ArrayList<>();
    for (int i = 0; i < own; i++) {
      workers.add(new OwnWorker(fs, root, history, "own-" + seed + "-" + i, seed * 1_000 + i));
    }
    for (int i = 0; i < cell; i++) {
      workers.add(new CellWorker(fs, root, history, "cell-" + seed + "-" + i, seed * 1_000 + 100 + i));
    }
    for (int i = 0; i < data; i++) {
      workers.add(new DataWorker(fs, root, history, "data-" + seed + "-" + i, seed * 1_000 + 200 + i));
    }
    for (int i = 0; i < stream; i++) {
      workers.add(new StreamWorker(fs, root, history, "stream-" + seed + "-" + i, seed * 1_000 + 300 + i));
    }
    for (int i = 0; i < tree; i++) {
      workers.add(new TreeWorker(fs, root, history, "tree-" + seed + "-" + i, seed * 1_000 + 400 + i));
    }
    for (int i = 0; i < mixed; i++) {
      workers.add(new MixedWorker(fs, root, history, "mixed-" + seed + "-" + i, seed * 1_000 + 500 + i));
    }
    for (Worker worker : workers) {
      worker.start(pauseUs);
    }
    byte[] ignored = new byte[64];
    while (System.in.read(ignored) > 0) {
      // The harness says nothing: the end of its input is the word.
    }
    for (Worker worker : workers) {
      worker.finish();
    }
    long deadline = System.currentTimeMillis() + LINGER_MS;
    for (Worker worker : workers) {
      worker.join(Math.max(1, deadline - System.currentTimeMillis()));
    }
    history.close();
    System.out.write("ended\n".getBytes(StandardCharsets.UTF_8));
    System.out.flush();
  }
}
