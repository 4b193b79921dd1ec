import java.io.IOException;
import java.net.URI;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.security.UserGroupInformation;

/** One of the two clusters: a client for each user, the streams that are open, and when each step began. */
final class Side {
  /** Times that a client has set are all before this, in 2001. */
  private static final long SET_BY_HAND = 1_000_000_000_000L;

  final String name;
  final URI uri;
  private final Configuration conf;
  private final Set<String> families;
  /** What of this side runs in this JVM, or null. */
  private final Mini mini;
  private final Map<String, DistributedFileSystem> users = new LinkedHashMap<>();
  final Map<String, Stream> streams = new LinkedHashMap<>();
  /** What each was opened as. */
  final Map<String, Path> written = new LinkedHashMap<>();
  /** A snapshot was taken in this round. */
  boolean hasSnapshots;
  private final List<Long> begun = new ArrayList<>();
  /** Texts that mean the same on both sides but read differently, and what stands for them. */
  final Map<String, String> aliases = new LinkedHashMap<>();

  Side(String name, URI uri, Configuration conf, Set<String> families, Mini mini) {
    this.families = families;
    this.mini = mini;
    this.name = name;
    this.uri = uri;
    this.conf = new Configuration(conf);
    FileSystem.setDefaultUri(this.conf, uri);
  }

  DistributedFileSystem as(String user) throws IOException {
    DistributedFileSystem known = users.get(user);
    if (known == null) {
      try {
        known = (DistributedFileSystem) UserGroupInformation.createRemoteUser(user)
            .doAs((PrivilegedExceptionAction<FileSystem>) () -> FileSystem.newInstance(uri, conf));
      } catch (InterruptedException interrupted) {
        throw new IOException(interrupted);
      }
      users.put(user, known);
    }
    return known;
  }

  /** Families of operations that are in play. */
  Set<String> families() {
    return families;
  }

  /** Directories of which a quota's usage is wrong on this side, but for what is used of media, which is right afterwards. */
  Map<String, String> recount() throws Exception {
    return mini == null ? Map.of() : mini.recount();
  }

  DistributedFileSystem root() throws IOException {
    return as("root");
  }

  void beginRound() {
    hasSnapshots = false;
    begun.clear();
    aliases.clear();
    streams.clear();
    written.clear();
  }

  /** Two steps never share a millisecond, so that a time tells its step. */
  void beginStep() throws InterruptedException {
    long last = System.currentTimeMillis();
    while (System.currentTimeMillis() <= last + 1) {
      Thread.sleep(1);
    }
    begun.add(System.currentTimeMillis());
    aliases.clear();
  }

  /** A time as the number of the step in which it was taken. */
  String time(long ms) {
    if (ms < SET_BY_HAND) {
      return String.valueOf(ms);
    }
    int step = step(ms);
    return step == 0 ? "before" : "step" + step;
  }

  /** The number of the step that had begun at this time, from 1; 0: none had. */
  private int step(long ms) {
    int low = 0;
    int high = begun.size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (begun.get(middle) <= ms) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  /** The time on this side that means what one means on the other. */
  long sameTime(long ms, Side other) {
    int step = other.step(ms);
    return ms < SET_BY_HAND ? ms : step == 0 ? 1 : begun.get(step - 1);
  }

  /** `@inode:/a` is /a by its number, `@inode:/a@/b` something below it; everything else is itself. */
  Path path(String text) throws IOException {
    return new Path(plain(text));
  }

  String plain(String text) throws IOException {
    if (!text.startsWith("@inode:")) {
      return text;
    }
    String rest = text.substring("@inode:".length());
    int cut = rest.indexOf('@');
    String path = cut < 0 ? rest : rest.substring(0, cut);
    String below = cut < 0 ? "" : rest.substring(cut + 1);
    long id = 424242;
    try {
      org.apache.hadoop.hdfs.protocol.HdfsFileStatus status = root().getClient().getFileInfo(path);
      if (status != null) {
        id = status.getFileId();
      }
    } catch (IOException none) {
      // Then there is no such inode.
    }
    String found = "/.reserved/.inodes/" + id;
    aliases.put(found, "@inode:" + path);
    return found + below;
  }
}
