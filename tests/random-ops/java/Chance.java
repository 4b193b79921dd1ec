import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;

/** Draws everything that is random, with a liking for what exists already: from a small set of names, collisions are frequent. */
final class Chance {
  static final String[] USERS = {"root", "alice", "bob", "carol", "sam", "nobody-known"};
  static final String[] GROUPS = {"staff", "dev", "guests", "supergroup", "root", "elsewhere"};
  private static final String[] PLAIN = {"a", "b", "c", "d"};
  private static final String[] ODD = {"e f", "ü", "日本", ".x", "A", "a.txt", "b+c%41", "𝄞", "~", "x".repeat(255)};

  private final Random random;
  private final Set<String> families;
  /** Paths that are, or were not long ago. */
  private final TreeSet<String> seen = new TreeSet<>();
  private List<String> list = new ArrayList<>();
  private List<String> files = new ArrayList<>();
  private final List<String> snapshottable = new ArrayList<>();

  Chance(long seed, Set<String> families) {
    this.random = new Random(seed);
    this.families = families;
  }

  int below(int bound) {
    return random.nextInt(bound);
  }

  boolean in(int count) {
    return random.nextInt(count) == 0;
  }

  boolean percent(int share) {
    return random.nextInt(100) < share;
  }

  @SafeVarargs
  final <T> T pick(T... choices) {
    return choices[random.nextInt(choices.length)];
  }

  <T> T pick(List<T> choices) {
    return choices.get(random.nextInt(choices.size()));
  }

  /** What a dump of the tree has shown replaces what was believed. */
  void know(List<String> paths, List<String> files) {
    seen.clear();
    seen.addAll(paths);
    list = new ArrayList<>(seen);
    this.files = new ArrayList<>(files);
  }

  void sawFile(String path) {
    if (path.startsWith("/")) {
      files.add(path);
    }
  }

  /** Mostly a file. */
  String file() {
    return files.isEmpty() || in(4) ? existing() : pick(files);
  }

  void saw(String path) {
    if (path.startsWith("/") && path.length() < 400 && seen.add(path)) {
      list.add(path);
    }
  }

  String user() {
    int number = below(100);
    return number < 40 ? "root" : number < 68 ? "alice" : number < 86 ? "bob" : number < 95 ? "carol" : "sam";
  }

  String name() {
    return families.contains("odd") && in(12) ? pick(ODD) : pick(PLAIN);
  }

  private String drawn() {
    int number = below(100);
    int depth = number < 25 ? 1 : number < 65 ? 2 : number < 90 ? 3 : 4;
    StringBuilder path = new StringBuilder();
    for (int level = 0; level < depth; level++) {
      path.append('/').append(name());
    }
    return path.toString();
  }

  private String known() {
    return list.isEmpty() ? drawn() : pick(list);
  }

  /** Mostly something that exists. */
  String existing() {
    int number = below(100);
    return number < 80 ? known() : number < 94 ? drawn() : strange();
  }

  /** Mostly a place for something new: below something that exists, or anywhere. */
  String fresh() {
    int number = below(100);
    if (number < 45) {
      String parent = known();
      return (parent.equals("/") ? "" : parent) + "/" + name();
    }
    return number < 80 ? drawn() : number < 96 ? known() : strange();
  }

  /** Either of both. */
  String path() {
    return in(2) ? existing() : fresh();
  }

  /** Places with a meaning of their own. */
  private String strange() {
    String path = known();
    String slashed = path.equals("/") ? "" : path;
    switch (below(16)) {
      case 0, 1, 2, 3, 4, 5:
        if (families.contains("reserved")) {
          return reserved(path);
        }
        break;
      case 6, 7, 8, 9:
        if (families.contains("snapshot")) {
          return pick("/.snapshot", slashed + "/.snapshot", slashed + "/.snapshot/" + pick("s1", "s2", "s3") + pick("", "/" + name(), "/" + name() + "/" + name()));
        }
        break;
      case 10:
        if (families.contains("odd")) {
          return slashed + "/" + "y".repeat(pick(254, 256, 1000));
        }
        break;
      case 11:
        if (families.contains("odd")) {
          return slashed + ("/" + name()).repeat(pick(20, 60));
        }
        break;
      case 12:
        if (families.contains("odd") && in(3)) {
          return pick("/" + "d/".repeat(999) + "d", "/" + "d/".repeat(1000) + "d", "/" + ("z".repeat(200) + "/").repeat(41) + "e");
        }
        break;
      default:
        break;
    }
    return in(3) ? "/" : drawn();
  }

  private String reserved(String path) {
    switch (below(6)) {
      case 0, 1:
        // Resolved when the step is made: the two sides count inodes apart.
        return "@inode:" + path;
      case 2:
        return "@inode:" + path + "@/" + name();
      case 3, 4:
        return "/.reserved/raw" + path;
      default:
        return pick("/.reserved", "/.reserved/.inodes", "/.reserved/raw", "/.reserved/other", "/.reserved/.inodes/1", "/.reserved/.inodes/16385/a",
            "/.reserved/.inodes/999999999", "/.reserved/.inodes/abc", "/.reserved/inodes/1", "/.reserved/raw/.reserved/raw/a");
    }
  }

  /** Mostly a directory of which snapshots may be taken. */
  String snapshottable() {
    return snapshottable.isEmpty() || in(8) ? existing() : pick(snapshottable);
  }

  void allows(String path) {
    if (!snapshottable.contains(path)) {
      snapshottable.add(path);
    }
  }

  String permission() {
    return pick("777", "755", "750", "700", "644", "640", "600", "000", "1777", "1755", "770", "111", "444", "666", "2755", "4755", "1000");
  }

  String length() {
    return String.valueOf(pick(0, 0, 1, 100, 511, 512, 1023, 1024, 1025, 2048, 2500, 3072, 5000));
  }

  String size() {
    return pick("1024", "1024", "1024", "2048", "4096", "512", "1000", "1536", "0", "1048576");
  }

  String replication() {
    return pick("1", "2", "3", "3", "2", "1", "4", "0", "-1", "600");
  }
}
