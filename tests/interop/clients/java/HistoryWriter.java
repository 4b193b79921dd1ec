import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

/** Works without end in a few threads and writes the history, until the process or the cluster dies. */
final class HistoryWriter {
  private static final long BLOCK_SIZE = 1 << 20;
  /** Three blocks and a bit, so that the kill also meets files between two blocks. */
  private static final long SIZE_MAX = 3 * BLOCK_SIZE + 12_345;

  private final FileSystem fs;
  private final Path root;
  private final OutputStream history;
  private final long seed;

  HistoryWriter(FileSystem fs, Path root, java.nio.file.Path history, long seed) throws IOException {
    this.fs = fs;
    this.root = root;
    // Unbuffered: a line is with the operating system before the next operation begins.
    this.history = new FileOutputStream(history.toFile());
    this.seed = seed;
  }

  void run() throws Exception {
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < History.WORKERS; i++) {
      Worker worker = new Worker(i);
      Thread thread = new Thread(worker::run, "worker-" + i);
      thread.start();
      threads.add(thread);
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private void write(String line) throws IOException {
    byte[] bytes = (line + "\n").getBytes(StandardCharsets.UTF_8);
    synchronized (history) {
      history.write(bytes);
    }
  }

  private interface Operation {
    boolean run() throws IOException;
  }

  private final class Worker {
    private final int number;
    private final SplittableRandom random;
    private final List<String> files = new ArrayList<>();
    private final List<String> directories = new ArrayList<>();
    private long operations;
    private long names;

    Worker(int number) {
      this.number = number;
      this.random = new SplittableRandom(seed * 1_000 + number);
    }

    void run() {
      try {
        String top = History.directory(number);
        does("mkdir\t" + top, () -> fs.mkdirs(path(top)));
        directories.add(top);
        while (true) {
          step();
        }
      } catch (IOException stopped) {
        System.err.println("worker " + number + " stopped after " + operations + " operations: " + stopped);
      }
    }

    /** One operation out of a mix in which most things that are made also stay. */
    private void step() throws IOException {
      int choice = random.nextInt(100);
      if (choice < 15) {
        String made = fresh("directory ");
        does("mkdir\t" + made, () -> fs.mkdirs(path(made)));
        directories.add(made);
      } else if (choice < 70 || files.isEmpty()) {
        String made = fresh("file-");
        long content = random.nextLong();
        long size = size();
        does("create\t" + made + "\t" + content + "\t" + size, () -> create(made, content, size));
        files.add(made);
      } else if (choice < 82) {
        int which = random.nextInt(files.size());
        String from = files.get(which);
        String to = fresh("moved-");
        does("rename\t" + from + "\t" + to, () -> fs.rename(path(from), path(to)));
        files.set(which, to);
      } else if (choice < 92) {
        String gone = files.remove(random.nextInt(files.size()));
        does("delete\t" + gone, () -> fs.delete(path(gone), false));
      } else {
        String which = files.get(random.nextInt(files.size()));
        int mode = 0600 | random.nextInt(0100);
        does("chmod\t" + which + "\t" + mode, () -> chmod(which, mode));
      }
    }

    private void does(String what, Operation operation) throws IOException {
      long id = operations++;
      write("begin\t" + number + "\t" + id + "\t" + what);
      if (!operation.run()) {
        throw new IOException("refused: " + what);
      }
      write("ok\t" + number + "\t" + id);
    }

    private boolean create(String name, long content, long size) throws IOException {
      byte[] buffer = new byte[1 << 15];
      History.Content bytes = new History.Content(content, size);
      try (OutputStream out = fs.create(path(name), false, 1 << 15, fs.getDefaultReplication(path(name)), BLOCK_SIZE)) {
        for (int count; (count = bytes.next(buffer)) > 0; ) {
          out.write(buffer, 0, count);
        }
      }
      return true;
    }

    private boolean chmod(String name, int mode) throws IOException {
      fs.setPermission(path(name), new FsPermission((short) mode));
      return true;
    }

    /** Many small ones, some of one byte or none, some of several blocks. */
    private long size() {
      int choice = random.nextInt(10);
      if (choice == 0) {
        return random.nextInt(2);
      }
      return choice < 8 ? random.nextInt(20_000) : random.nextLong(SIZE_MAX);
    }

    private String fresh(String kind) {
      return directories.get(random.nextInt(directories.size())) + "/" + kind + names++;
    }

    private Path path(String relative) {
      return new Path(root, relative);
    }
  }
}
