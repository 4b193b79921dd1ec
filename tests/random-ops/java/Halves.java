import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/**
 * Hadoop does the first half of a creation that it refuses on the way: the directories made before stay, a file that was
 * to be replaced is gone. Clover does nothing then (docs/hadoop-differences.md). This makes the two alike again.
 */
final class Halves {
  private static final Pattern ON_THE_WAY =
      Pattern.compile("! .*(NSQuotaExceededException|PathComponentTooLongException|is a reserved name|Cannot find a block policy with the name).*", Pattern.DOTALL);
  /** The calls that may, and which of their arguments is the path. */
  private static final Map<String, Integer> CALLS = Map.of("mkdirs", 0, "create", 0, "createOdd", 0, "createNonRecursive", 0, "createNewFile", 0, "builder", 0,
      "openStream", 1, "concatMade", 0, "rawMkdirs", 0);

  private final Side hadoop;
  private final Side clover;

  Halves(Side hadoop, Side clover) {
    this.hadoop = hadoop;
    this.clover = clover;
  }

  void settle(Step step, String outcome) throws IOException {
    Integer argument = CALLS.get(step.operation());
    if (argument == null || !ON_THE_WAY.matcher(outcome).matches()) {
      return;
    }
    String path = place(step.arguments()[argument]);
    boolean isPair = step.operation().equals("concatMade");
    for (String each : isPair ? List.of(path + ".1", path + ".2") : List.of(path)) {
      if (each.startsWith("/")) {
        settle(new Path(each));
      }
    }
  }

  /** Without the ways to say it otherwise. */
  private static String place(String path) {
    if (path.startsWith("@inode:")) {
      return path.substring("@inode:".length()).replace("@", "");
    }
    return path.startsWith("/.reserved/raw/") ? path.substring("/.reserved/raw".length()) : path;
  }

  private void settle(Path path) throws IOException {
    FileStatus replaced = found(clover, path);
    if (replaced != null && replaced.isFile() && found(hadoop, path) == null) {
      clover.root().delete(path, false);
      return;
    }
    List<Path> down = new ArrayList<>();
    for (Path at = path.getParent(); at != null && !at.isRoot(); at = at.getParent()) {
      down.add(0, at);
    }
    for (Path at : down) {
      if (found(hadoop, at) != null && found(clover, at) == null) {
        hadoop.root().delete(at, true);
        Path parent = at.getParent();
        long modified = clover.root().getFileStatus(parent).getModificationTime();
        hadoop.root().setTimes(parent, hadoop.sameTime(modified, clover), -1);
        return;
      }
    }
  }

  private static FileStatus found(Side side, Path path) throws IOException {
    try {
      return side.root().getFileStatus(path);
    } catch (FileNotFoundException none) {
      return null;
    }
  }
}
