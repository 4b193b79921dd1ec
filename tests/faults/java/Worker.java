import java.io.IOException;
import java.util.SplittableRandom;
import java.util.concurrent.locks.LockSupport;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSOutputStream;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/** One thread of the load: a step after the other until the end, and the calls that all kinds make. */
abstract class Worker {
  private static final long BLOCK_SIZE = 1 << 20;
  private static final int BUFFER = 1 << 15;
  private static final long REST_NS = 20_000_000;

  final FileSystem fs;
  final Path root;
  final String name;
  final SplittableRandom random;
  private final History history;
  private Thread thread;
  private volatile boolean finished;

  Worker(FileSystem fs, Path root, History history, String name, long seed) {
    this.fs = fs;
    this.root = root;
    this.history = history;
    this.name = name;
    this.random = new SplittableRandom(seed);
  }

  /** Before the first step. */
  abstract void begin() throws IOException;

  abstract void step() throws IOException;

  /** After the last step. */
  void end() throws IOException {}

  final void start(long pauseUs) {
    thread = new Thread(() -> run(pauseUs), name);
    thread.setDaemon(true);
    thread.start();
  }

  private void run(long pauseUs) {
    try {
      begin();
      while (!finished) {
        step();
        if (pauseUs > 0) {
          LockSupport.parkNanos(pauseUs * 1_000);
        }
      }
      end();
    } catch (IOException | RuntimeException broken) {
      // Answers are outcomes; what ends up here is a fault of the load itself.
      System.err.println(name + " broke: " + broken);
      broken.printStackTrace();
    }
  }

  final void finish() {
    finished = true;
  }

  final boolean isFinished() {
    return finished;
  }

  final void join(long ms) throws InterruptedException {
    thread.join(ms);
  }

  final History.Result record(String operation, History.Call call, String... arguments) throws IOException {
    History.Result result = history.record(name, operation, call, arguments);
    if (result.outcome.startsWith("error:")) {
      // Who is refused at once would fill the history with nothing else.
      LockSupport.parkNanos(REST_NS);
    }
    return result;
  }

  final Path path(String relative) {
    return new Path(root, relative);
  }

  final boolean mkdir(String made) throws IOException {
    return does("mkdir", () -> History.Result.of(fs.mkdirs(path(made))), made);
  }

  /** Makes a directory without which a thread can do nothing. Several threads may make the same one. */
  final void makeSurely(String made) throws IOException {
    boolean isMade = false;
    while (!isMade && !finished) {
      isMade = mkdir(made);
    }
  }

  final boolean rename(String from, String to) throws IOException {
    return does("rename", () -> History.Result.of(fs.rename(path(from), path(to))), from, to);
  }

  final boolean delete(String gone) throws IOException {
    return does("delete", () -> History.Result.of(fs.delete(path(gone), false)), gone);
  }

  final void stat(String which) throws IOException {
    record("stat", () -> new History.Result("ok", inode(fs.getFileStatus(path(which)))), which);
  }

  /** Makes a file and leaves it open; null if that was refused. */
  final FSDataOutputStream create(String made) throws IOException {
    FSDataOutputStream[] opened = new FSDataOutputStream[1];
    record(
        "create",
        () -> {
          opened[0] = fs.create(path(made), false, BUFFER, fs.getDefaultReplication(path(made)), BLOCK_SIZE);
          return new History.Result("ok", String.valueOf(((DFSOutputStream) opened[0].getWrappedStream()).getFileId()));
        },
        made);
    return opened[0];
  }

  final boolean close(FSDataOutputStream out, String which, long size, long sum) throws IOException {
    return does(
        "close",
        () -> {
          out.close();
          return History.Result.of(true);
        },
        which,
        String.valueOf(size),
        Long.toHexString(sum));
  }

  final boolean does(String operation, History.Call call, String... arguments) throws IOException {
    return record(operation, call, arguments).outcome.equals("ok");
  }

  private static String inode(FileStatus status) {
    return String.valueOf(((HdfsFileStatus) status).getFileId());
  }
}
