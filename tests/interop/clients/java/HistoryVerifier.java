import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Holds a cluster against a history: all that was acknowledged is there, nothing that was deleted came back. */
final class HistoryVerifier {
  private final FileSystem fs;
  private final Path root;
  private final List<String> lines;
  private final List<String> wrong = new ArrayList<>();

  HistoryVerifier(FileSystem fs, Path root, java.nio.file.Path history) throws IOException {
    this.fs = fs;
    this.root = root;
    String text = Files.readString(history);
    // The writer is killed too: what follows the last line's end was never finished.
    this.lines = List.of(text.substring(0, text.lastIndexOf('\n') + 1).split("\n"));
  }

  void run() throws Exception {
    long acknowledged = 0;
    List<Callable<Long>> checks = new ArrayList<>();
    for (int worker = 0; worker < History.WORKERS; worker++) {
      Model model = new Model();
      acknowledged += replay(worker, model);
      int number = worker;
      checks.add(() -> check(number, model));
    }
    long bytes = 0;
    for (long checked : Tree.all(checks)) {
      bytes += checked;
    }
    for (String sentence : wrong.subList(0, Math.min(20, wrong.size()))) {
      System.err.println(sentence);
    }
    System.out.printf("%d operations acknowledged, %d bytes read back, %d wrong%n", acknowledged, bytes, wrong.size());
    if (!wrong.isEmpty()) {
      throw new IllegalStateException(wrong.size() + " differences from the history");
    }
  }

  /** What one worker's directory must hold. */
  private static final class Model {
    final Map<String, Entry> before = new TreeMap<>();
    /** With the operation that was under way; the same as before when there is none. */
    final Map<String, Entry> after = new TreeMap<>();
    /** A file whose create was under way: it may be there with any part of its bytes, or not at all. */
    String underWay;
  }

  private static final class Entry {
    final boolean directory;
    final long seed;
    final long size;
    /** -1 until a chmod says. */
    final int mode;

    Entry(boolean directory, long seed, long size, int mode) {
      this.directory = directory;
      this.seed = seed;
      this.size = size;
      this.mode = mode;
    }
  }

  private long replay(int worker, Model model) {
    String mine = String.valueOf(worker);
    String[] begun = null;
    long acknowledged = 0;
    for (String line : lines) {
      String[] words = line.split("\t");
      if (!words[1].equals(mine)) {
        continue;
      }
      if (words[0].equals("begin")) {
        begun = words;
      } else {
        Tree.check(begun != null && begun[2].equals(words[2]), "the history is out of order: " + line);
        apply(begun, model.before);
        begun = null;
        acknowledged++;
      }
    }
    model.after.putAll(model.before);
    if (begun != null) {
      apply(begun, model.after);
      model.underWay = begun[3].equals("create") ? begun[4] : null;
    }
    return acknowledged;
  }

  private static void apply(String[] words, Map<String, Entry> tree) {
    String path = words[4];
    switch (words[3]) {
      case "mkdir":
        tree.put(path, new Entry(true, 0, 0, -1));
        break;
      case "create":
        tree.put(path, new Entry(false, Long.parseLong(words[5]), Long.parseLong(words[6]), -1));
        break;
      case "rename":
        tree.put(words[5], tree.remove(path));
        break;
      case "delete":
        tree.remove(path);
        break;
      case "chmod":
        Entry old = tree.get(path);
        tree.put(path, new Entry(false, old.seed, old.size, Integer.parseInt(words[5])));
        break;
      default:
        throw new IllegalArgumentException(words[3]);
    }
  }

  private long check(int worker, Model model) throws IOException {
    Map<String, FileStatus> found = new TreeMap<>();
    Path top = new Path(root, History.directory(worker));
    if (fs.exists(top)) {
      found.put(History.directory(worker), fs.getFileStatus(top));
      list(top, History.directory(worker), found);
    }
    // Either all of the operation under way is there, or nothing: the names decide which.
    if (model.underWay != null) {
      found.remove(model.underWay);
      model.after.remove(model.underWay);
    }
    boolean had = found.keySet().equals(model.after.keySet());
    Map<String, Entry> expected = had ? model.after : model.before;
    for (String path : expected.keySet()) {
      if (!found.containsKey(path)) {
        complain(path + " was acknowledged and is lost");
      }
    }
    long bytes = 0;
    for (Map.Entry<String, FileStatus> entry : found.entrySet()) {
      Entry wanted = expected.get(entry.getKey());
      if (wanted == null) {
        complain(entry.getKey() + " is there and nobody made it, or it was deleted");
      } else {
        boolean eitherMode = model.before.get(entry.getKey()) != model.after.get(entry.getKey());
        bytes += compare(entry.getKey(), wanted, entry.getValue(), eitherMode);
      }
    }
    return bytes;
  }

  private void list(Path directory, String prefix, Map<String, FileStatus> found) throws IOException {
    for (FileStatus status : fs.listStatus(directory)) {
      String path = prefix + "/" + status.getPath().getName();
      found.put(path, status);
      if (status.isDirectory()) {
        list(status.getPath(), path, found);
      }
    }
  }

  private long compare(String path, Entry wanted, FileStatus status, boolean eitherMode) {
    if (wanted.directory != status.isDirectory()) {
      complain(path + " is no longer what it was");
      return 0;
    }
    int mode = status.getPermission().toShort();
    if (wanted.mode >= 0 && mode != wanted.mode && !eitherMode) {
      complain(String.format("%s has mode %o instead of %o", path, mode, wanted.mode));
    }
    if (wanted.directory) {
      return 0;
    }
    if (status.getLen() != wanted.size) {
      complain(path + " has " + status.getLen() + " bytes instead of " + wanted.size);
      return 0;
    }
    try (InputStream in = fs.open(status.getPath())) {
      byte[] expected = new byte[1 << 15];
      History.Content content = new History.Content(wanted.seed, wanted.size);
      for (int count; (count = content.next(expected)) > 0; ) {
        byte[] read = in.readNBytes(count);
        if (!java.util.Arrays.equals(read, java.util.Arrays.copyOf(expected, count))) {
          complain(path + " reads back other bytes than were written");
          return 0;
        }
      }
    } catch (IOException unreadable) {
      complain(path + " cannot be read: " + unreadable);
    }
    return wanted.size;
  }

  private void complain(String sentence) {
    synchronized (wrong) {
      wrong.add(sentence);
    }
  }
}
