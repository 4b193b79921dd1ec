import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;
import org.apache.hadoop.hdfs.protocol.NoECPolicySetException;
import org.apache.hadoop.hdfs.protocol.SnapshottableDirectoryStatus;

/** Brings a side back to where rounds begin: an empty root with nothing special about it. */
final class Wipe {
  private static final Path ROOT = new Path("/");

  private Wipe() {}

  static void run(Side side) throws IOException {
    for (Stream stream : side.streams.values()) {
      try {
        stream.out.close();
      } catch (IOException | RuntimeException gone) {
        // Its file was deleted, or its server has another opinion.
      }
    }
    side.streams.clear();
    DistributedFileSystem fs = side.root();
    if (side.families().contains("snapshot")) {
      SnapshottableDirectoryStatus[] found = fs.getSnapshottableDirListing();
      for (SnapshottableDirectoryStatus directory : found == null ? new SnapshottableDirectoryStatus[0] : found) {
        for (FileStatus snapshot : fs.listStatus(new Path(directory.getFullPath(), HdfsConstants.DOT_SNAPSHOT_DIR))) {
          fs.deleteSnapshot(directory.getFullPath(), snapshot.getPath().getName());
        }
        fs.disallowSnapshot(directory.getFullPath());
      }
    }
    for (FileStatus child : fs.listStatus(ROOT)) {
      fs.delete(child.getPath(), true);
    }
    if (side.families().contains("acl")) {
      fs.removeAcl(ROOT);
    }
    if (side.families().contains("xattr")) {
      for (String name : fs.listXAttrs(ROOT)) {
        if (!name.startsWith("security.")) {
          fs.removeXAttr(ROOT, name);
        }
      }
    }
    if (side.families().contains("quota")) {
      fs.setQuota(ROOT, Long.MAX_VALUE - 1, HdfsConstants.QUOTA_RESET);
      for (var type : org.apache.hadoop.fs.StorageType.getTypesSupportingQuota()) {
        fs.setQuotaByStorageType(ROOT, type, HdfsConstants.QUOTA_RESET);
      }
    }
    if (side.families().contains("ec")) {
      try {
        fs.unsetErasureCodingPolicy(ROOT);
      } catch (NoECPolicySetException none) {
        // As it should be.
      }
    }
    if (side.families().contains("policy")) {
      fs.unsetStoragePolicy(ROOT);
    }
    fs.setOwner(ROOT, "root", "supergroup");
    fs.setPermission(ROOT, new FsPermission((short) 0755));
    fs.setTimes(ROOT, 1, 0);
  }
}
