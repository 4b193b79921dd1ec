import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.PartialListing;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/** What changes nothing. */
final class Reads {
  private Reads() {}

  static void add(List<Operation> all) {
    all.add(new Operation("status", "reads", 4, c -> new String[] {c.path()}, (s, a) -> status(s, s.fs().getFileStatus(s.path(a[0])))));
    all.add(new Operation("linkStatus", "reads", 1, c -> new String[] {c.path()}, (s, a) -> status(s, s.fs().getFileLinkStatus(s.path(a[0])))));
    all.add(new Operation("list", "reads", 4, c -> new String[] {c.existing()}, (s, a) ->
        ordered(Stream.of(s.fs().listStatus(s.path(a[0]))).map(status -> status(s, status)).toList())));
    all.add(new Operation("listLocated", "reads", 2, c -> new String[] {c.existing()}, (s, a) -> {
      List<String> found = new ArrayList<>();
      RemoteIterator<? extends FileStatus> entries = s.fs().listLocatedStatus(s.path(a[0]));
      while (entries.hasNext()) {
        found.add(status(s, entries.next()));
      }
      return ordered(found);
    }));
    all.add(new Operation("listFiles", "reads", 1, c -> new String[] {c.existing()}, (s, a) -> {
      List<String> found = new ArrayList<>();
      RemoteIterator<? extends FileStatus> entries = s.fs().listFiles(s.path(a[0]), true);
      while (entries.hasNext()) {
        found.add(entries.next().getPath().toString());
      }
      return ordered(found);
    }));
    all.add(new Operation("listBatched", "reads", 1, c -> new String[] {c.existing(), c.path(), c.existing()}, (s, a) -> {
      List<String> found = new ArrayList<>();
      List<Path> paths = new ArrayList<>();
      for (String path : a) {
        paths.add(s.path(path));
      }
      RemoteIterator<PartialListing<FileStatus>> lists = s.fs().batchedListStatusIterator(paths);
      while (lists.hasNext()) {
        PartialListing<FileStatus> list = lists.next();
        found.add(list.getListedPath().toString());
        try {
          list.get().forEach(status -> found.add(status(s, status)));
        } catch (java.io.IOException refused) {
          found.add(Outcome.error(refused));
        }
      }
      return ordered(found);
    }));
    all.add(new Operation("read", "reads", 4, c -> new String[] {c.file()}, (s, a) -> Files.content(s.fs(), s.path(a[0]))));
    all.add(new Operation("readAt", "reads", 1, c -> new String[] {c.file(), c.pick("0", "1", "511", "1024", "1500", "9000"), c.pick("1", "10", "2000")}, (s, a) -> {
      try (FSDataInputStream in = s.fs().open(s.path(a[0]))) {
        byte[] buffer = new byte[Integer.parseInt(a[2])];
        int count = in.read(Long.parseLong(a[1]), buffer, 0, buffer.length);
        return count + " " + Arrays.hashCode(buffer);
      }
    }));
    all.add(new Operation("checksum", "checksum", 1, c -> new String[] {c.file()}, (s, a) -> String.valueOf(s.fs().getFileChecksum(s.path(a[0])))));
    all.add(new Operation("contentSummary", "reads", 2, c -> new String[] {c.existing()}, (s, a) -> summary(s, s.fs().getContentSummary(s.path(a[0])))));
    all.add(new Operation("quotaUsage", "quota", 1, c -> new String[] {c.existing()}, (s, a) -> usage(s, s.fs().getQuotaUsage(s.path(a[0])))));
    all.add(new Operation("blockLocations", "reads", 1, c -> new String[] {c.file(), c.pick("0", "1", "1024", "4000", "-1"), c.pick("0", "1", "1024", "100000", "-1")}, (s, a) -> {
      List<String> found = new ArrayList<>();
      for (BlockLocation block : s.fs().getFileBlockLocations(s.path(a[0]), Long.parseLong(a[1]), Long.parseLong(a[2]))) {
        found.add(block.getOffset() + "+" + block.getLength());
      }
      return ordered(found);
    }));
    all.add(new Operation("glob", "reads", 2, c -> new String[] {c.pick("/*", "/*/*", "/a/*", "/{a,b}/*", "/[a-c]/?", "/*/*/*", c.fresh() + "*", "/a*/../b", "/**", "/{a,b", "/[", "/\\a")}, (s, a) -> {
      FileStatus[] found = s.fs().globStatus(s.path(a[0]));
      return found == null ? "null" : Names.lines(Stream.of(found).map(status -> status.getPath().toString()));
    }));
    all.add(new Operation("linkTarget", "symlinks", 1, c -> new String[] {c.existing()}, (s, a) -> s.fs().getLinkTarget(s.path(a[0]))));
    all.add(new Operation("preferredBlockSize", "reads", 1, c -> new String[] {c.file()}, (s, a) ->
        s.fs().getClient().getBlockSize(s.path(a[0]).toUri().getPath())));
    all.add(new Operation("enclosingRoot", "reads", 1, c -> new String[] {c.path()}, (s, a) -> s.fs().getEnclosingRoot(s.path(a[0]))));
    all.add(new Operation("ecPolicy", "ec", 1, c -> new String[] {c.existing()}, (s, a) -> s.fs().getErasureCodingPolicy(s.path(a[0]))));
    all.add(new Operation("encryptionZone", "zones", 1, c -> new String[] {c.existing()}, (s, a) -> s.fs().getEZForPath(s.path(a[0]))));
    all.add(new Operation("trashRoot", "reads", 1, c -> new String[] {c.path()}, (s, a) -> s.fs().getTrashRoot(s.path(a[0]))));
    all.add(new Operation("createZone", "zones", 1, c -> new String[] {c.existing()}, (s, a) -> {
      s.fs().createEncryptionZone(s.path(a[0]), "key");
      return "";
    }));
    all.add(new Operation("setEcPolicy", "ec", 1, c -> new String[] {c.existing(), c.pick("RS-6-3-1024k", "XOR-2-1-1024k", "NOSUCH", "REPLICATION", "replication")}, (s, a) -> {
      s.fs().setErasureCodingPolicy(s.path(a[0]), a[1]);
      return "";
    }));
    all.add(new Operation("unsetEcPolicy", "ec", 1, c -> new String[] {c.existing()}, (s, a) -> {
      s.fs().unsetErasureCodingPolicy(s.path(a[0]));
      return "";
    }));
    all.add(new Operation("ecPolicies", "ec", 1, c -> new String[] {}, (s, a) -> s.fs().getAllErasureCodingPolicies()));
  }

  /** Where names go beyond ASCII, the two orders differ on purpose. */
  static List<String> ordered(List<String> entries) {
    boolean plain = entries.stream().allMatch(entry -> entry.chars().allMatch(letter -> letter < 128));
    return plain ? entries : entries.stream().sorted().toList();
  }

  static String status(Session s, FileStatus status) {
    return Tree.status(s.side(), status);
  }

  static String summary(Session s, org.apache.hadoop.fs.ContentSummary summary) {
    String counts = "length " + summary.getLength() + " files " + summary.getFileCount() + " directories " + summary.getDirectoryCount();
    if (!s.side().families().contains("quota")) {
      return counts + " space " + summary.getSpaceConsumed();
    }
    return counts + " " + usage(s, summary)
        + " snapshot " + summary.getSnapshotLength() + " " + summary.getSnapshotFileCount() + " " + summary.getSnapshotDirectoryCount() + " "
        + summary.getSnapshotSpaceConsumed() + " ec " + summary.getErasureCodingPolicy();
  }

  static String usage(Session s, org.apache.hadoop.fs.QuotaUsage usage) {
    StringBuilder text = new StringBuilder();
    if (!(usage instanceof org.apache.hadoop.fs.ContentSummary)) {
      text.append("inodes ").append(usage.getFileAndDirectoryCount()).append(' ');
    }
    text.append("quota ").append(usage.getQuota()).append(" space ").append(usage.getSpaceConsumed()).append(" of ").append(usage.getSpaceQuota());
    for (org.apache.hadoop.fs.StorageType type : org.apache.hadoop.fs.StorageType.getTypesSupportingQuota()) {
      // What is used of each medium is what a recount finds, which a Hadoop elsewhere cannot be asked for.
      // What was moved away from where a snapshot sees it counts on the media of then, in Hadoop on those of now.
      boolean isCompared = s.side().families().contains("typequota") && !s.side().hasSnapshots;
      long used = isCompared ? usage.getTypeConsumed(type) : 0;
      long limit = usage.getTypeQuota(type);
      // A limit of 0 is told beside something else on a medium only, which may be what is not compared.
      if (isCompared ? limit != -1 || used != 0 : limit > 0) {
        text.append(' ').append(type).append(' ').append(used).append(" of ").append(limit);
      }
    }
    return text.toString();
  }
}
