import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStream;
import java.io.Writer;
import java.nio.file.Files;
import java.util.zip.CRC32;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/** The namespace below a directory, one line an entry: PATH, d or f, inode number, size, CRC-32 of the bytes. */
final class Dump {
  private Dump() {}

  static void write(FileSystem fs, Path root, java.nio.file.Path file) throws IOException {
    try (BufferedWriter out = Files.newBufferedWriter(file)) {
      if (fs.exists(root)) {
        below(fs, root, "", out);
      }
    }
  }

  private static void below(FileSystem fs, Path directory, String prefix, Writer out) throws IOException {
    for (FileStatus status : fs.listStatus(directory)) {
      String path = prefix + status.getPath().getName();
      long inode = ((HdfsFileStatus) status).getFileId();
      if (status.isDirectory()) {
        out.write(path + "\td\t" + inode + "\t0\t0\n");
        below(fs, status.getPath(), path + "/", out);
      } else {
        out.write(path + "\tf\t" + inode + "\t" + status.getLen() + "\t" + sum(fs, status) + "\n");
      }
    }
  }

  /** A file that cannot be read is a finding of its own. */
  private static String sum(FileSystem fs, FileStatus status) {
    CRC32 sum = new CRC32();
    try (InputStream in = fs.open(status.getPath())) {
      byte[] buffer = new byte[1 << 16];
      for (int count; (count = in.read(buffer)) > 0; ) {
        sum.update(buffer, 0, count);
      }
      return Long.toHexString(sum.getValue());
    } catch (IOException unreadable) {
      return "unreadable: " + Outcome.sentence(unreadable);
    }
  }
}
