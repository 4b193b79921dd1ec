import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.zip.CRC32;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Keeps a tree of its own, in which each answer is known in advance: makes, renames and deletes directories with all that is in
 * them, and moves, joins, lists and reads files with blocks. What an operation that has failed was about is never used again.
 */
final class TreeWorker extends Worker {
  private static final int SIZE_MAX = 20_000;
  private static final int FILES_MAX = 50;
  private static final int DIRECTORIES_MAX = 14;

  private static final class Stored {
    final List<byte[]> pieces = new ArrayList<>();

    long size() {
      return pieces.stream().mapToLong(piece -> piece.length).sum();
    }

    String sum() {
      CRC32 sum = new CRC32();
      pieces.forEach(sum::update);
      return Long.toHexString(sum.getValue());
    }
  }

  private final TreeMap<String, Stored> files = new TreeMap<>();
  /** The first is the one that all others are in. */
  private final List<String> directories = new ArrayList<>();
  private long names;

  TreeWorker(FileSystem fs, Path root, History history, String name, long seed) {
    super(fs, root, history, name, seed);
  }

  @Override
  void begin() throws IOException {
    makeSurely(name);
    directories.add(name);
  }

  @Override
  void step() throws IOException {
    int choice = random.nextInt(100);
    if (choice < 14 && directories.size() < DIRECTORIES_MAX) {
      String made = fresh("d");
      if (mkdir(made)) {
        directories.add(made);
      }
    } else if ((choice < 40 && files.size() < FILES_MAX) || files.size() < 2) {
      store();
    } else if (choice < 58) {
      moveFile();
    } else if (choice < 64) {
      moveDirectory();
    } else if (choice < 68) {
      deleteDirectory();
    } else if (choice < 72) {
      String which = any();
      files.remove(which);
      delete(which);
    } else if (choice < 86) {
      join();
    } else if (choice < 93) {
      read(any());
    } else {
      String which = directories.get(random.nextInt(directories.size()));
      record("list", () -> list(which), which);
    }
  }

  private String any() {
    return files.keySet().stream().skip(random.nextInt(files.size())).findFirst().orElseThrow();
  }

  private String fresh(String kind) {
    return directories.get(random.nextInt(directories.size())) + "/" + kind + names++;
  }

  private void store() throws IOException {
    String made = fresh("f");
    FSDataOutputStream out = create(made);
    if (out == null) {
      return;
    }
    byte[] content = new byte[1 + random.nextInt(SIZE_MAX)];
    random.nextBytes(content);
    Stored stored = new Stored();
    stored.pieces.add(content);
    History.Call write =
        () -> {
          out.write(content);
          return History.Result.of(true);
        };
    if (does("write", write, made) && does("close", () -> closed(out), made, size(stored), stored.sum())) {
      files.put(made, stored);
    }
  }

  private static History.Result closed(FSDataOutputStream out) throws IOException {
    out.close();
    return History.Result.of(true);
  }

  private static String size(Stored stored) {
    return String.valueOf(stored.size());
  }

  private void moveFile() throws IOException {
    String from = any();
    Stored stored = files.remove(from);
    String to = fresh("m");
    if (rename(from, to)) {
      files.put(to, stored);
    }
  }

  private void moveDirectory() throws IOException {
    String from = directories.get(random.nextInt(directories.size()));
    String to = fresh("n");
    if (from.equals(name) || to.startsWith(from + "/")) {
      return;
    }
    Map<String, Stored> moved = takeFiles(from);
    List<String> below = takeDirectories(from);
    if (rename(from, to)) {
      moved.forEach((path, stored) -> files.put(to + path.substring(from.length()), stored));
      below.forEach(path -> directories.add(to + path.substring(from.length())));
    }
  }

  private void deleteDirectory() throws IOException {
    String gone = directories.get(random.nextInt(directories.size()));
    if (!gone.equals(name)) {
      takeFiles(gone);
      takeDirectories(gone);
      does("delete", () -> History.Result.of(fs.delete(path(gone), true)), gone);
    }
  }

  private Map<String, Stored> takeFiles(String directory) {
    Map<String, Stored> below = files.subMap(directory + "/", directory + "0");
    Map<String, Stored> taken = new TreeMap<>(below);
    below.clear();
    return taken;
  }

  private List<String> takeDirectories(String directory) {
    List<String> taken =
        directories.stream().filter(it -> it.equals(directory) || it.startsWith(directory + "/")).collect(Collectors.toList());
    directories.removeAll(taken);
    return taken;
  }

  /** One file gets the bytes of up to three others in its directory, which are gone then. */
  private void join() throws IOException {
    String target = any();
    String directory = target.substring(0, target.lastIndexOf('/') + 1);
    List<String> sources = new ArrayList<>();
    for (String path : files.keySet()) {
      boolean isBeside = path.startsWith(directory) && path.indexOf('/', directory.length()) < 0;
      if (isBeside && !path.equals(target) && sources.size() < 3) {
        sources.add(path);
      }
    }
    if (sources.isEmpty()) {
      return;
    }
    Stored joined = files.remove(target);
    sources.forEach(source -> joined.pieces.addAll(files.remove(source).pieces));
    Path[] paths = sources.stream().map(this::path).toArray(Path[]::new);
    List<String> words = new ArrayList<>(List.of(target, size(joined), joined.sum()));
    words.addAll(sources);
    History.Call concat =
        () -> {
          fs.concat(path(target), paths);
          return History.Result.of(true);
        };
    if (does("concat", concat, words.toArray(String[]::new))) {
      files.put(target, joined);
    }
  }

  private void read(String which) throws IOException {
    Stored stored = files.get(which);
    record("read", () -> read(which, stored), which, size(stored), stored.sum());
  }

  private History.Result read(String which, Stored stored) throws IOException {
    try (InputStream in = fs.open(path(which))) {
      CRC32 sum = new CRC32();
      byte[] content = in.readAllBytes();
      sum.update(content);
      String found = Long.toHexString(sum.getValue());
      boolean same = content.length == stored.size() && found.equals(stored.sum());
      return new History.Result(same ? "ok" : "other", content.length + " " + found);
    }
  }

  private History.Result list(String which) throws IOException {
    List<String> found = new ArrayList<>();
    for (FileStatus status : fs.listStatus(path(which))) {
      found.add(status.getPath().getName());
    }
    boolean isTwice = new TreeSet<>(found).size() < found.size();
    return new History.Result(isTwice ? "twice" : "ok", String.join(",", found));
  }
}
