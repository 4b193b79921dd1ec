import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;

/** Stores and reads whole trees, several files at a time. */
final class Tree {
  /** By eye: enough to hide the waits of a close, few enough for two cores. */
  private static final int STREAMS = 8;

  private Tree() {}

  static void put(FileSystem fs, Path local, org.apache.hadoop.fs.Path remote, long blockSize) throws Exception {
    List<Path> entries;
    try (Stream<Path> walk = Files.walk(local)) {
      entries = walk.sorted().collect(Collectors.toList());
    }
    List<Callable<Void>> files = new ArrayList<>();
    for (Path entry : entries) {
      String relative = local.relativize(entry).toString();
      org.apache.hadoop.fs.Path target = relative.isEmpty() ? remote : new org.apache.hadoop.fs.Path(remote, relative);
      if (Files.isDirectory(entry)) {
        check(fs.mkdirs(target), "mkdirs " + target);
      } else {
        files.add(() -> putFile(fs, entry, target, blockSize));
      }
    }
    all(files);
  }

  private static Void putFile(FileSystem fs, Path local, org.apache.hadoop.fs.Path target, long blockSize)
      throws Exception {
    short replication = fs.getDefaultReplication(target);
    try (InputStream in = Files.newInputStream(local);
        FSDataOutputStream out = fs.create(target, false, 1 << 16, replication, blockSize)) {
      in.transferTo(out);
    }
    return null;
  }

  static void sums(FileSystem fs, org.apache.hadoop.fs.Path remote) throws Exception {
    List<Callable<String>> lines = new ArrayList<>();
    list(fs, remote, "", lines);
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    all(lines).forEach(out::println);
    out.flush();
  }

  private static void list(FileSystem fs, org.apache.hadoop.fs.Path directory, String prefix, List<Callable<String>> lines)
      throws Exception {
    for (FileStatus status : fs.listStatus(directory)) {
      String path = prefix + status.getPath().getName();
      if (status.isDirectory()) {
        lines.add(() -> line(path + "/", 0, ""));
        list(fs, status.getPath(), path + "/", lines);
      } else {
        lines.add(() -> sum(fs, status, path));
      }
    }
  }

  private static String sum(FileSystem fs, FileStatus status, String path) throws Exception {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    long size = 0;
    byte[] buffer = new byte[1 << 16];
    try (InputStream in = fs.open(status.getPath())) {
      for (int count; (count = in.read(buffer)) >= 0; size += count) {
        digest.update(buffer, 0, count);
      }
    }
    check(size == status.getLen(), path + ": read " + size + " bytes of " + status.getLen());
    return line(path, size, hex(digest.digest()));
  }

  static String hex(byte[] bytes) {
    StringBuilder text = new StringBuilder();
    for (byte b : bytes) {
      text.append(String.format("%02x", b));
    }
    return text.toString();
  }

  private static String line(String path, long size, String sum) {
    StringBuilder quoted = new StringBuilder("\"");
    for (char c : path.toCharArray()) {
      if (c == '"' || c == '\\') {
        quoted.append('\\').append(c);
      } else if (c < ' ') {
        quoted.append(String.format("\\u%04x", (int) c));
      } else {
        quoted.append(c);
      }
    }
    return "{\"path\": " + quoted + "\", \"size\": " + size + ", \"sha256\": \"" + sum + "\"}";
  }

  /** Runs all, in a few threads; the first failure is thrown. */
  static <T> List<T> all(List<Callable<T>> tasks) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(STREAMS);
    try {
      List<T> results = new ArrayList<>();
      for (Future<T> future : pool.invokeAll(tasks)) {
        results.add(future.get());
      }
      return results;
    } finally {
      pool.shutdownNow();
    }
  }

  static void check(boolean holds, String what) {
    if (!holds) {
      throw new IllegalStateException(what);
    }
  }
}
