import java.io.IOException;
import java.util.EnumSet;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.hdfs.DFSOutputStream;
import org.apache.hadoop.hdfs.protocol.OpenFileEntry;
import org.apache.hadoop.hdfs.protocol.OpenFilesIterator.OpenFilesType;

/** A file held open from one step to another, by whoever opened it. */
final class Stream {
  final FSDataOutputStream out;
  private final String holder;

  Stream(Session session, FSDataOutputStream out) {
    this.out = out;
    this.holder = session.fs().getClient().getClientName();
  }

  interface Use {
    Object run(FSDataOutputStream out) throws Exception;
  }

  /**
   * What becomes of a writer whose file was deleted or taken away is a matter of time: of when the data servers hear of it,
   * and of which of its calls is the first to fail.
   */
  Object unlessLost(Session session, Use use) throws Exception {
    if (isHeld(session.side())) {
      return use.run(out);
    }
    try {
      use.run(out);
    } catch (IOException expected) {
      // Or not.
    }
    return "lost";
  }

  private boolean isHeld(Side side) throws IOException {
    long file = ((DFSOutputStream) out.getWrappedStream()).getFileId();
    RemoteIterator<OpenFileEntry> open = side.root().listOpenFiles(EnumSet.of(OpenFilesType.ALL_OPEN_FILES), "/");
    while (open.hasNext()) {
      OpenFileEntry entry = open.next();
      if (entry.getId() == file && entry.getClientName().equals(holder)) {
        return true;
      }
    }
    return false;
  }
}
