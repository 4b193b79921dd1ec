import java.io.IOException;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSOutputStream;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/**
 * Shares a few names with every other such thread of every client, as {@link CellWorker} does; but a name may hold a file or a directory. Each
 * name is in a directory of its own. So one group of metadata servers may decide about a file of that name, and another one about a directory. The
 * history tells an f or a d before the number of the inode that a name holds.
 */
final class MixedWorker extends Worker {
  private static final int CELLS = 3;
  private static final int NAMES = 3;

  MixedWorker(FileSystem fs, Path root, History history, String name, long seed) {
    super(fs, root, history, name, seed);
  }

  @Override
  void begin() throws IOException {
    for (int cell = 0; cell < CELLS; cell++) {
      for (int name = 0; name < NAMES; name++) {
        Path made = path("mixed/" + cell + "/in-" + name);
        while (!isFinished() && !does("prepare", () -> History.Result.of(fs.mkdirs(made)), made.toString())) {
          // Each such thread of each client makes all of them. The first one to come makes the directory, and the others find it.
        }
      }
    }
  }

  private static String name(int cell, int name) {
    return "mixed/" + cell + "/in-" + name + "/it";
  }

  @Override
  void step() throws IOException {
    int cell = random.nextInt(CELLS);
    String one = name(cell, random.nextInt(NAMES));
    String other = name(cell, random.nextInt(NAMES));
    int choice = random.nextInt(100);
    if (choice < 15) {
      FSDataOutputStream[] opened = new FSDataOutputStream[1];
      record("create", () -> created(one, opened), one);
      if (opened[0] != null) {
        close(opened[0], one, 0, 0);
      }
    } else if (choice < 30) {
      mkdir(one);
    } else if (choice < 50) {
      does("delete", () -> History.Result.of(fs.delete(path(one), true)), one);
    } else if (choice < 75 || one.equals(other)) {
      record("stat", () -> new History.Result("ok", what(fs.getFileStatus(path(one)))), one);
    } else {
      record("rename", () -> renamed(one, other), one, other);
    }
  }

  private History.Result created(String made, FSDataOutputStream[] opened) throws IOException {
    opened[0] = fs.create(path(made), false);
    String inode = String.valueOf(((DFSOutputStream) opened[0].getWrappedStream()).getFileId());
    return new History.Result("ok", "f" + inode);
  }

  /** The other rename moves into a directory that is there: this one refuses. */
  private History.Result renamed(String from, String to) throws IOException {
    ((DistributedFileSystem) fs).rename(path(from), path(to), Options.Rename.NONE);
    return History.Result.of(true);
  }

  private static String what(FileStatus status) {
    return (status.isDirectory() ? "d" : "f") + ((HdfsFileStatus) status).getFileId();
  }
}
