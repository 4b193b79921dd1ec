import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.hdfs.protocol.SnapshottableDirectoryStatus;

/** Everything that a superuser can see of one side, as named lines. */
final class Tree {
  private final Session session;
  final Map<String, String> lines = new LinkedHashMap<>();
  /** Paths outside of snapshots. */
  final List<String> paths = new ArrayList<>();
  final List<String> files = new ArrayList<>();

  private Tree(Session session) {
    this.session = session;
  }

  static Tree of(Side side) throws IOException {
    side.aliases.clear();
    Tree tree = new Tree(new Session(side, "root", side.root()));
    DistributedFileSystem fs = side.root();
    tree.entry(fs.getFileStatus(new Path("/")), "/", false);
    if (side.families().contains("snapshot")) {
      tree.snapshots();
    }
    return tree;
  }

  private interface Look {
    Object see() throws Exception;
  }

  private void line(String name, Look look) {
    String text;
    try {
      text = String.valueOf(look.see());
    } catch (Exception failure) {
      text = "! " + Outcome.error(failure);
    }
    lines.put(name, Outcome.normal(session.side(), text));
  }

  private void entry(FileStatus status, String name, boolean past) throws IOException {
    DistributedFileSystem fs = session.fs();
    Path path = new Path(name);
    boolean open = !status.isDirectory() && !past && !fs.isFileClosed(path);
    line(name, () -> status(session.side(), status));
    if (session.side().families().contains("acl")) {
      line(name + " acl", () -> fs.getAclStatus(path));
    }
    if (session.side().families().contains("xattr")) {
      line(name + " xattrs", () -> XAttrs.values(fs.getXAttrs(path)));
    }
    line(name + " summary", () -> Reads.summary(session, fs.getContentSummary(path)));
    if (!past) {
      paths.add(name);
      if (!status.isDirectory()) {
        files.add(name);
      }
      if (session.side().families().contains("quota")) {
        line(name + " usage", () -> Reads.usage(session, fs.getQuotaUsage(path)));
      }
    }
    if (!status.isDirectory()) {
      // What others see of a file that is being written depends on packets under way.
      line(name + " content", open ? () -> "open" : () -> Files.content(fs, path));
      return;
    }
    for (FileStatus child : fs.listStatus(path)) {
      String childName = (name.equals("/") ? "" : name) + "/" + child.getPath().getName();
      // The client's URIs take apart what the servers do not.
      entry(child, childName, past);
    }
  }

  private void snapshots() throws IOException {
    DistributedFileSystem fs = session.fs();
    line("snapshottables", () -> Snapshots.snapshottables(session));
    SnapshottableDirectoryStatus[] found = fs.getSnapshottableDirListing();
    if (found == null) {
      return;
    }
    for (SnapshottableDirectoryStatus directory : found) {
      String name = directory.getFullPath().toString();
      Path past = new Path(name, HdfsConstants.DOT_SNAPSHOT_DIR);
      line(name + " snapshots", () -> Snapshots.listing(session, name));
      String before = null;
      FileStatus[] snapshots = fs.listStatus(past);
      // Where names go beyond ASCII, the two orders differ on purpose.
      Arrays.sort(snapshots, Comparator.comparing(snapshot -> snapshot.getPath().getName()));
      for (FileStatus snapshot : snapshots) {
        String label = snapshot.getPath().getName();
        String top = new Path(past, label).toString();
        entry(snapshot, top, true);
        lines.computeIfPresent(top, (unused, status) -> withoutChildren(status));
        String from = before;
        if (from != null) {
          line(name + " diff " + from + " " + label, () -> Snapshots.diff(session, fs.getSnapshotDiffReport(new Path(name), from, label)));
        }
        line(name + " diff " + label, () -> Snapshots.diff(session, fs.getSnapshotDiffReport(new Path(name), label, "")));
        before = label;
      }
    }
  }

  static String status(Side side, FileStatus status) {
    boolean isNumber = status.getPath().getParent() != null && status.getPath().getParent().getName().equals(".inodes");
    StringBuilder text = new StringBuilder(isNumber ? "number" : status.getPath().getName()).append(' ');
    text.append(status.isDirectory() ? 'd' : status.isSymlink() ? 'l' : '-').append(status.getPermission()).append(' ').append(status.getOwner()).append(':').append(status.getGroup());
    text.append(" x").append(status.getReplication()).append(" of ").append(status.getBlockSize()).append(" length ").append(status.getLen());
    // In a snapshot, Hadoop may tell the time of a later change of a directory.
    boolean isPast = status.isDirectory() && status.getPath().toUri().getPath().contains("/.snapshot/");
    text.append(" mtime ").append(isPast ? "-" : side.time(status.getModificationTime()));
    // Ours are not kept for directories: docs/hadoop-differences.md.
    text.append(" atime ").append(status.isDirectory() ? "-" : side.time(status.getAccessTime()));
    text.append(status.hasAcl() ? " acl" : "").append(status.isEncrypted() ? " encrypted" : "").append(status.isErasureCoded() ? " ec" : "");
    text.append(status.isSnapshotEnabled() && side.families().contains("snapshot") ? " snapshottable" : "");
    if (status instanceof HdfsFileStatus more) {
      text.append(" policy ").append(more.getStoragePolicy());
      // The top of a snapshot, among the others, says in Hadoop how many children its directory has now.
      boolean isTop = status.getPath().getParent() != null && status.getPath().getParent().getName().equals(HdfsConstants.DOT_SNAPSHOT_DIR);
      text.append(isTop ? "" : " children " + more.getChildrenNum());
    }
    return text.toString();
  }

  /** The top of a snapshot says how many children its directory has now; ours says how many it had. */
  static String withoutChildren(String status) {
    return status.replaceFirst(" children \\d+$", "");
  }

  /** Lines that differ, with both texts. */
  static List<String> differences(Tree hadoop, Tree clover) {
    List<String> found = new ArrayList<>();
    for (Map.Entry<String, String> line : hadoop.lines.entrySet()) {
      String other = clover.lines.get(line.getKey());
      if (!line.getValue().equals(other)) {
        found.add(line.getKey() + "\n    hadoop: " + line.getValue() + "\n    clover: " + other);
      }
    }
    for (String name : clover.lines.keySet()) {
      if (!hadoop.lines.containsKey(name)) {
        found.add(name + "\n    hadoop: nothing\n    clover: " + clover.lines.get(name));
      }
    }
    return found;
  }
}
