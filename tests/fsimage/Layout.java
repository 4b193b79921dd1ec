import java.io.OutputStream;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.fs.XAttrSetFlag;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;

/**
 * Lays a tree out: everything that an image can hold, in one order, so that two file systems give out numbers in one order as well.
 *
 * <p>Layout URI DIRECTORIES: so many directories with files for the mass. At the end a file is open, and the program ends as if it were killed.
 */
public class Layout {
  /** A small block, so that files have several. */
  static final int BLOCK = 4096;

  static DistributedFileSystem fs;
  static final Random random = new Random(7);

  public static void main(String[] words) throws Exception {
    Configuration conf = new Configuration();
    conf.set("fs.defaultFS", words[0]);
    conf.setInt("dfs.replication", 1);
    conf.setInt("dfs.blocksize", BLOCK);
    conf.setInt("io.file.buffer.size", BLOCK);
    fs = (DistributedFileSystem) new Path("/").getFileSystem(conf);
    names();
    rights();
    attributes();
    quotas();
    policies();
    appended();
    mass(Integer.parseInt(words[1]));
    snapshots();
    moves();
    // Never closed, and what was written is there. The second has nothing yet.
    FSDataOutputStream open = create("/open/half", BLOCK * 2 + 100);
    ((HdfsDataOutputStream) open).hsync(EnumSet.of(HdfsDataOutputStream.SyncFlag.UPDATE_LENGTH));
    fs.create(new Path("/open/empty <now>"));
    System.out.println("laid out");
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  static FSDataOutputStream create(String path, int size) throws Exception {
    FSDataOutputStream out = fs.create(new Path(path), FsPermission.createImmutable((short) 0644),
        EnumSet.of(CreateFlag.CREATE, CreateFlag.OVERWRITE), BLOCK, (short) 1, BLOCK, null);
    byte[] bytes = new byte[size];
    random.nextBytes(bytes);
    out.write(bytes);
    return out;
  }

  static void file(String path, int size) throws Exception {
    create(path, size).close();
  }

  static void append(String path, int size) throws Exception {
    OutputStream out = fs.append(new Path(path));
    byte[] bytes = new byte[size];
    random.nextBytes(bytes);
    out.write(bytes);
    out.close();
  }

  static void directory(String path) throws Exception {
    fs.mkdirs(new Path(path));
  }

  /** Names that texts in between may change: for XML, for tables, for both. */
  static void names() throws Exception {
    directory("/names");
    for (String name : List.of("<tag a=\"b\">&amp;'", "a&b;]]>", "tab\there", "new\nline", "\u0001bell\u0007", "%25 of 100%", "comma,quote\"",
        "back\\slash\\0001;", "\u00fcber \u65e5\u672c\u8a9e", "\ud83d\ude00", " leading and trailing ", "\u007f", "-dash", "\ufffe", "{}")) {
      file("/names/" + name, 10);
      directory("/names/d " + name);
    }
    directory("/empty");
    file("/files/none", 0);
    file("/files/one", 1);
    file("/files/block", BLOCK);
    file("/files/several", BLOCK * 5 + 1);
    fs.setTimes(new Path("/files/one"), 1_000_000_000_000L, 999_999_999_999L);
    fs.setTimes(new Path("/empty"), 86_400_000L, -1);
    fs.setReplication(new Path("/files/block"), (short) 3);
  }

  static void rights() throws Exception {
    directory("/rights/shared");
    fs.setPermission(new Path("/rights/shared"), FsPermission.createImmutable((short) 01777));
    fs.setOwner(new Path("/rights/shared"), "ann", "staff");
    file("/rights/secret", 20);
    fs.setPermission(new Path("/rights/secret"), FsPermission.createImmutable((short) 0));
    fs.setOwner(new Path("/rights/secret"), "j\u00fcrgen@EXAMPLE.ORG", null);
    fs.modifyAclEntries(new Path("/rights/secret"), AclEntry.parseAclSpec("user:bob:rw-,group:ops:r--,user:ann:---", true));
    directory("/rights/inherits");
    fs.setAcl(new Path("/rights/inherits"), AclEntry.parseAclSpec(
        "user::rwx,user:zoe:r-x,group::r--,mask::rwx,other::--x,default:user::rwx,default:user:bob:r--,default:group::r-x,default:group:ops:rwx,default:mask::r-x,default:other::---",
        true));
    directory("/rights/inherits/below");
    file("/rights/inherits/file", 30);
    fs.setAcl(new Path("/rights"), AclEntry.parseAclSpec("user::rwx,group::r-x,other::r-x,default:user::rwx,default:group::r-x,default:other::r--", true));
  }

  static void attributes() throws Exception {
    file("/attributes/file", 40);
    Path file = new Path("/attributes/file");
    fs.setXAttr(file, "user.text", "text <&>".getBytes("UTF-8"));
    fs.setXAttr(file, "user.empty", new byte[0]);
    fs.setXAttr(file, "trusted.bytes", new byte[] {0, (byte) 0xff, 10});
    fs.setXAttr(file, "user.name with \u00fc", new byte[] {1});
    fs.setXAttr(file, "security.hdfs.unreadable.by.superuser", null);
    fs.setXAttr(new Path("/attributes"), "user.text", "of a directory".getBytes("UTF-8"), EnumSet.of(XAttrSetFlag.CREATE));
  }

  static void quotas() throws Exception {
    directory("/quotas/names");
    fs.setQuota(new Path("/quotas/names"), 1000, HdfsConstants.QUOTA_DONT_SET);
    directory("/quotas/space");
    fs.setQuota(new Path("/quotas/space"), HdfsConstants.QUOTA_DONT_SET, 1L << 40);
    directory("/quotas/types");
    fs.setQuotaByStorageType(new Path("/quotas/types"), StorageType.SSD, 1L << 41);
    fs.setQuotaByStorageType(new Path("/quotas/types"), StorageType.ARCHIVE, 1L << 20);
    file("/quotas/names/file", 50);
    directory("/quotas/gone");
    fs.setQuota(new Path("/quotas/gone"), 5, 1L << 30);
    fs.setQuota(new Path("/quotas/gone"), HdfsConstants.QUOTA_RESET, HdfsConstants.QUOTA_RESET);
  }

  static void policies() throws Exception {
    directory("/policies/cold/deep");
    fs.setStoragePolicy(new Path("/policies/cold"), "COLD");
    file("/policies/file", 60);
    fs.setStoragePolicy(new Path("/policies/file"), "ALL_SSD");
    directory("/policies/unset");
    fs.setStoragePolicy(new Path("/policies/unset"), "WARM");
    fs.unsetStoragePolicy(new Path("/policies/unset"));
  }

  static void appended() throws Exception {
    file("/appended/file", 100);
    append("/appended/file", BLOCK);
    file("/appended/cut", BLOCK * 3);
    fs.truncate(new Path("/appended/cut"), BLOCK * 2);
    file("/appended/whole", BLOCK);
    file("/appended/part", BLOCK * 2);
    fs.concat(new Path("/appended/whole"), new Path[] {new Path("/appended/part")});
    file("/appended/deleted", BLOCK);
    fs.delete(new Path("/appended/deleted"), false);
  }

  static void mass(int directories) throws Exception {
    for (int number = 0; number < directories; number++) {
      String directory = "/mass/" + number % 10 + "/" + number;
      directory(directory);
      for (int file = 0; file < 2; file++) {
        fs.create(new Path(directory + "/file-" + file)).close();
      }
    }
  }

  /** Each kind of change after a snapshot, and snapshots that went before others. */
  static void snapshots() throws Exception {
    for (String kept : Arrays.asList("stays", "deleted", "renamed", "appended", "cut", "rights", "times", "replaced")) {
      file("/snapshots/d/" + kept, BLOCK + 10);
    }
    directory("/snapshots/d/tree/below");
    file("/snapshots/d/tree/below/file", 5);
    directory("/snapshots/d/rights and more");
    Path root = new Path("/snapshots/d");
    fs.allowSnapshot(root);
    fs.createSnapshot(root, "s <1>");
    fs.delete(new Path(root, "deleted"), false);
    fs.rename(new Path(root, "renamed"), new Path(root, "renamed <again>"));
    append("/snapshots/d/appended", 20);
    fs.truncate(new Path(root, "cut"), BLOCK);
    fs.setPermission(new Path(root, "rights"), FsPermission.createImmutable((short) 0600));
    fs.setAcl(new Path(root, "rights and more"), AclEntry.parseAclSpec("user::rwx,user:bob:r-x,group::r--,mask::r-x,other::--x", true));
    fs.setXAttr(new Path(root, "rights and more"), "user.later", new byte[] {3});
    fs.setQuota(new Path(root, "rights and more"), 100, 1L << 35);
    fs.setTimes(new Path(root, "times"), 1_000_000_000_001L, 1_000_000_000_002L);
    file("/snapshots/d/came", 5);
    fs.createSnapshot(root, "s2");
    fs.delete(new Path(root, "came"), false);
    fs.delete(new Path(root, "tree"), true);
    file("/snapshots/d/tree", 6);
    append("/snapshots/d/appended", BLOCK);
    file("/snapshots/d/replaced", 7);
    fs.createSnapshot(root, "s3");
    file("/snapshots/d/after", 8);
    fs.setOwner(root, "ann", "staff");
    fs.deleteSnapshot(root, "s2");
    fs.renameSnapshot(root, "s3", "s three");
    // A directory of which snapshots may be made, and one of which there was one.
    directory("/snapshots/allowed");
    fs.allowSnapshot(new Path("/snapshots/allowed"));
    directory("/snapshots/emptied/deep");
    fs.allowSnapshot(new Path("/snapshots/emptied"));
    fs.createSnapshot(new Path("/snapshots/emptied"), "gone");
    fs.delete(new Path("/snapshots/emptied/deep"), true);
    fs.deleteSnapshot(new Path("/snapshots/emptied"), "gone");
  }

  /** Moves out of snapshots, into others and within. */
  static void moves() throws Exception {
    directory("/moves/a/tree/deep");
    file("/moves/a/tree/deep/file", 10);
    file("/moves/a/file", 20);
    file("/moves/a/twice", 30);
    file("/moves/a/gone later", 40);
    directory("/moves/b");
    directory("/moves/c");
    Path a = new Path("/moves/a");
    Path b = new Path("/moves/b");
    Path c = new Path("/moves/c");
    fs.allowSnapshot(a);
    fs.allowSnapshot(b);
    fs.createSnapshot(a, "one");
    fs.rename(new Path(a, "tree"), new Path(b, "forest"));
    fs.rename(new Path(a, "file"), new Path(c, "file"));
    fs.rename(new Path(a, "twice"), new Path(b, "first"));
    fs.rename(new Path(a, "gone later"), new Path(c, "gone later"));
    fs.createSnapshot(b, "two");
    fs.rename(new Path(b, "first"), new Path(a, "twice"), Options.Rename.OVERWRITE);
    file("/moves/b/forest/deep/new", 50);
    fs.delete(new Path(b, "forest/deep/file"), false);
    fs.setPermission(new Path(c, "file"), FsPermission.createImmutable((short) 0640));
    fs.delete(new Path(c, "gone later"), false);
    fs.createSnapshot(a, "three");
    fs.delete(new Path(a, "twice"), false);
  }
}
