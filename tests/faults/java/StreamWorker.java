import java.io.IOException;
import java.util.zip.CRC32;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Keeps one file open for long and writes on, over several blocks: a failover of a metadata server, or the death of a
 * data server, finds it between two blocks, in the middle of one, or at its end.
 */
final class StreamWorker extends Worker {
  private static final int PIECE = 48 << 10;
  /** Six to seven blocks. */
  private static final int PIECES = 140;

  private FSDataOutputStream out;
  private String made;
  private CRC32 sum;
  private long size;
  private int pieces;
  private long names;

  StreamWorker(FileSystem fs, Path root, History history, String name, long seed) {
    super(fs, root, history, name, seed);
  }

  @Override
  void begin() throws IOException {
    makeSurely(name);
  }

  @Override
  void step() throws IOException {
    if (out == null) {
      made = name + "/s" + names++;
      out = create(made);
      sum = new CRC32();
      size = 0;
      pieces = 0;
      return;
    }
    byte[] piece = new byte[1 + random.nextInt(PIECE)];
    random.nextBytes(piece);
    sum.update(piece);
    size += piece.length;
    // An acknowledged flush is on every data server of the pipeline; its size is what a reader may count on.
    if (!does("flush", () -> flush(piece), made, String.valueOf(size))) {
      out = null;
      return;
    }
    if (++pieces == PIECES) {
      end();
    }
  }

  @Override
  void end() throws IOException {
    if (out != null) {
      FSDataOutputStream last = out;
      out = null;
      close(last, made, size, sum.getValue());
    }
  }

  private History.Result flush(byte[] piece) throws IOException {
    out.write(piece);
    out.hflush();
    return History.Result.of(true);
  }
}
