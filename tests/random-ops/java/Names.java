import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.fs.Options.Rename;
import org.apache.hadoop.fs.permission.FsPermission;

/** The tree of names: making, renaming, deleting. */
final class Names {
  private Names() {}

  static void add(List<Operation> all) {
    all.add(new Operation("mkdirs", "names", 10, c -> new String[] {c.fresh(), c.permission()}, (s, a) ->
        s.fs().mkdirs(s.path(a[0]), permission(a[1]))));
    all.add(new Operation("mkdir", "names", 3, c -> new String[] {c.fresh(), c.permission()}, (s, a) ->
        s.fs().mkdir(s.path(a[0]), permission(a[1]))));
    all.add(new Operation("rename", "names", 8, c -> new String[] {c.existing(), c.path()}, (s, a) ->
        s.fs().rename(s.path(a[0]), s.path(a[1]))));
    all.add(new Operation("rename2", "names", 8, c -> new String[] {c.existing(), c.path(), c.pick("", "OVERWRITE", "TO_TRASH", "OVERWRITE,TO_TRASH")},
        (s, a) -> {
          List<Rename> options = new ArrayList<>();
          Stream.of(a[2].split(",")).filter(word -> !word.isEmpty()).forEach(word -> options.add(Rename.valueOf(word)));
          s.fs().rename(s.path(a[0]), s.path(a[1]), options.toArray(new Rename[0]));
          return "";
        }));
    all.add(new Operation("delete", "names", 6, c -> new String[] {c.existing(), c.pick("true", "false", "false")}, (s, a) ->
        s.fs().delete(s.path(a[0]), Boolean.parseBoolean(a[1]))));
    all.add(new Operation("symlink", "symlinks", 1, c -> new String[] {c.path(), c.fresh(), c.pick("true", "false")}, (s, a) -> {
      s.fs().createSymlink(s.path(a[0]), s.path(a[1]), Boolean.parseBoolean(a[2]));
      return "";
    }));
    // As no Path would have it: without the client's own tidying up.
    all.add(new Operation("rawMkdirs", "raw", 1, c -> new String[] {untidy(c)}, (s, a) ->
        s.fs().getClient().getNamenode().mkdirs(a[0], permission("755"), true)));
    all.add(new Operation("rawStatus", "raw", 1, c -> new String[] {untidy(c)}, (s, a) ->
        s.fs().getClient().getNamenode().getFileInfo(a[0]) != null));
    all.add(new Operation("rawDelete", "raw", 1, c -> new String[] {untidy(c)}, (s, a) ->
        s.fs().getClient().getNamenode().delete(a[0], false)));
    all.add(new Operation("rawListing", "raw", 1, c -> new String[] {untidy(c)}, (s, a) ->
        s.fs().getClient().getNamenode().getListing(a[0], new byte[0], false) != null));
  }

  private static String untidy(Chance c) {
    String path = c.existing();
    return c.pick("", "a", "a/b", path.substring(1), path + "/", "/a:b", "/a\\b", path);
  }

  static FsPermission permission(String octal) {
    return new FsPermission((short) Integer.parseInt(octal, 8));
  }

  static String lines(Stream<String> lines) {
    return lines.collect(Collectors.joining("\n  "));
  }
}
