import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSUtilClient;
import org.apache.hadoop.hdfs.protocol.SnapshotDiffReport;
import org.apache.hadoop.hdfs.protocol.SnapshotStatus;
import org.apache.hadoop.hdfs.protocol.SnapshottableDirectoryStatus;

/** Snapshots. */
final class Snapshots {
  private static final String[] NAMES = {"s1", "s2", "s3"};

  private Snapshots() {}

  private static String name(Chance c) {
    return c.in(25) ? c.pick("", "a/b", ".snapshot", "ü", "x".repeat(300)) : c.pick(NAMES);
  }

  /** Without a name the time would be it. */
  private static String given(Chance c) {
    String name = name(c);
    return name.isEmpty() ? "s1" : name;
  }

  static void add(List<Operation> all) {
    all.add(new Operation("allowSnapshot", "snapshot", 3, c -> new String[] {c.existing()}, (s, a) -> {
      s.fs().allowSnapshot(s.path(a[0]));
      return "";
    }));
    all.add(new Operation("disallowSnapshot", "snapshot", 1, c -> new String[] {c.existing()}, (s, a) -> {
      s.fs().disallowSnapshot(s.path(a[0]));
      return "";
    }));
    all.add(new Operation("createSnapshot", "snapshot", 6, c -> new String[] {c.snapshottable(), given(c)}, (s, a) -> s.fs().createSnapshot(s.path(a[0]), a[1])));
    all.add(new Operation("renameSnapshot", "snapshot", 2, c -> new String[] {c.snapshottable(), name(c), name(c)}, (s, a) -> {
      s.fs().renameSnapshot(s.path(a[0]), a[1], a[2]);
      return "";
    }));
    all.add(new Operation("deleteSnapshot", "snapshot", 4, c -> new String[] {c.snapshottable(), name(c)}, (s, a) -> {
      s.fs().deleteSnapshot(s.path(a[0]), a[1]);
      return "";
    }));
    all.add(new Operation("diffReport", "snapshot", 3, c -> new String[] {c.snapshottable(), c.pick("", c.pick(NAMES)), c.pick("", c.pick(NAMES))}, (s, a) ->
        diff(s, s.fs().getSnapshotDiffReport(s.path(a[0]), a[1], a[2]))));
    all.add(new Operation("snapshottables", "snapshot", 1, c -> new String[] {}, (s, a) -> snapshottables(s)));
    all.add(new Operation("snapshotListing", "snapshot", 1, c -> new String[] {c.snapshottable()}, (s, a) -> listing(s, a[0])));
    all.add(new Operation("snapshotRead", "snapshot", 3, c -> new String[] {c.snapshottable() + "/.snapshot/" + c.pick(NAMES) + "/" + c.name()}, (s, a) ->
        Files.content(s.fs(), s.path(a[0]))));
    all.add(new Operation("snapshotList", "snapshot", 2, c -> new String[] {c.snapshottable() + "/.snapshot" + c.pick("", "/" + c.pick(NAMES))}, (s, a) ->
        Reads.ordered(java.util.stream.Stream.of(s.fs().listStatus(s.path(a[0]))).map(status -> Tree.withoutChildren(Reads.status(s, status))).toList())));
  }

  /** The stock client asks for pages and merges them; the order within a path is its own. */
  static String diff(Session s, SnapshotDiffReport report) throws Exception {
    List<String> lines = new ArrayList<>();
    for (SnapshotDiffReport.DiffReportEntry entry : report.getDiffList()) {
      if (!isModifiedNowPerhaps(s, report, entry)) {
        lines.add(entry.toString());
      }
    }
    // Against the present, the order is another on purpose.
    boolean isNow = report.getFromSnapshot().isEmpty() || report.getLaterSnapshotName().isEmpty();
    return report.getFromSnapshot() + " to " + report.getLaterSnapshotName() + (isNow ? lines.stream().sorted().toList() : Reads.ordered(lines));
  }

  /**
   * Between two snapshots, Hadoop holds the attributes of a directory that is as it was then against those of now
   * (docs/hadoop-differences.md). That of its children something changed is told alike.
   */
  private static boolean isModifiedNowPerhaps(Session s, SnapshotDiffReport report, SnapshotDiffReport.DiffReportEntry entry) throws Exception {
    boolean isBetween = !report.getFromSnapshot().isEmpty() && !report.getLaterSnapshotName().isEmpty();
    if (!isBetween || entry.getType() != SnapshotDiffReport.DiffType.MODIFY) {
      return false;
    }
    String path = DFSUtilClient.bytes2String(entry.getSourcePath());
    for (SnapshotDiffReport.DiffReportEntry other : report.getDiffList()) {
      boolean isChild = other.getType() != SnapshotDiffReport.DiffType.MODIFY
          && (parent(other.getSourcePath()).equals(path) || (other.getTargetPath() != null && parent(other.getTargetPath()).equals(path)));
      if (isChild) {
        return false;
      }
    }
    for (String snapshot : List.of(report.getFromSnapshot(), report.getLaterSnapshotName())) {
      Path seen = new Path(report.getSnapshotRoot() + "/.snapshot/" + snapshot + (path.isEmpty() ? "" : "/" + path));
      if (s.side().root().exists(seen)) {
        return s.side().root().getFileStatus(seen).isDirectory();
      }
    }
    return false;
  }

  private static String parent(byte[] path) {
    String text = DFSUtilClient.bytes2String(path);
    int slash = text.lastIndexOf('/');
    return slash < 0 ? "" : text.substring(0, slash);
  }

  static String snapshottables(Session s) throws Exception {
    List<String> lines = new ArrayList<>();
    SnapshottableDirectoryStatus[] found = s.fs().getSnapshottableDirListing();
    if (found == null) {
      return "null";
    }
    for (SnapshottableDirectoryStatus directory : found) {
      var status = directory.getDirStatus();
      lines.add(directory.getFullPath() + " " + directory.getSnapshotNumber() + " of " + directory.getSnapshotQuota() + " " + status.getOwner() + " "
          + status.getPermission() + " " + s.side().time(status.getModificationTime()));
    }
    return Reads.ordered(lines).toString();
  }

  static String listing(Session s, String path) throws Exception {
    List<String> lines = new ArrayList<>();
    for (SnapshotStatus snapshot : s.fs().getSnapshotListing(s.path(path))) {
      var status = snapshot.getDirStatus();
      lines.add(snapshot.getFullPath() + " " + snapshot.isDeleted() + " " + status.getOwner() + " " + status.getPermission() + " "
          + s.side().time(status.getModificationTime()));
    }
    return Reads.ordered(lines).toString();
  }
}
