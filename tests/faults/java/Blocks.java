import java.io.BufferedWriter;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlocks;

/** All files below a directory with their blocks, one line a block: PATH, closed or open, id, generation stamp, length, servers that have it, and how many the file wants. */
final class Blocks {
  private Blocks() {}

  static void write(FileSystem fs, Path root, java.nio.file.Path file) throws IOException {
    try (BufferedWriter out = Files.newBufferedWriter(file)) {
      below((DistributedFileSystem) fs, root, out);
    }
  }

  private static void below(DistributedFileSystem fs, Path directory, Writer out) throws IOException {
    for (FileStatus status : fs.listStatus(directory)) {
      if (status.isDirectory()) {
        below(fs, status.getPath(), out);
      } else {
        blocks(fs, status.getPath().toUri().getPath(), status.getReplication(), out);
      }
    }
  }

  private static void blocks(DistributedFileSystem fs, String path, short wanted, Writer out) throws IOException {
    LocatedBlocks found = fs.getClient().getLocatedBlocks(path, 0, Long.MAX_VALUE);
    String state = found.isUnderConstruction() ? "open" : "closed";
    for (LocatedBlock block : found.getLocatedBlocks()) {
      String numbers =
          block.getBlock().getBlockId() + "\t" + block.getBlock().getGenerationStamp() + "\t" + block.getBlock().getNumBytes();
      out.write(path + "\t" + state + "\t" + numbers + "\t" + block.getLocations().length + "\t" + wanted + "\n");
    }
  }
}
