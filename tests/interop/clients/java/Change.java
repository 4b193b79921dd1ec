import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/** Changes files that are there. */
final class Change {
  private Change() {}

  /** Appends each file of a local directory, by name, to each remote file; opened anew each time. */
  static void append(FileSystem fs, Path local, List<org.apache.hadoop.fs.Path> remotes) throws IOException {
    List<Path> pieces;
    try (Stream<Path> list = Files.list(local)) {
      pieces = list.sorted().collect(Collectors.toList());
    }
    for (org.apache.hadoop.fs.Path remote : remotes) {
      for (Path piece : pieces) {
        try (FSDataOutputStream out = fs.append(remote)) {
          out.write(Files.readAllBytes(piece));
        }
      }
    }
  }

  /** Appends a local file, makes it visible, says so, and closes when told to. */
  static void flush(FileSystem fs, Path local, org.apache.hadoop.fs.Path remote) throws IOException {
    try (FSDataOutputStream out = fs.append(remote)) {
      out.write(Files.readAllBytes(local));
      out.hflush();
      System.out.println("visible");
      System.in.read();
    }
  }

  /** Returns when the last block has been cut: then the file can be appended to again. */
  static void truncate(FileSystem fs, long length, org.apache.hadoop.fs.Path remote) throws Exception {
    boolean done = fs.truncate(remote, length);
    for (int tries = 0; !done && tries < 600; tries++) {
      Thread.sleep(100);
      done = ((DistributedFileSystem) fs).isFileClosed(remote);
    }
    if (!done) {
      throw new IOException(remote + " is still not of " + length + " bytes");
    }
  }
}
