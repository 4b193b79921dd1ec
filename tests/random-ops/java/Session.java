import java.io.IOException;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/** A user on one side. */
record Session(Side side, String user, DistributedFileSystem fs) {
  Path path(String text) throws IOException {
    return side.path(text);
  }
}
