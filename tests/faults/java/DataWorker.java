import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Writes small files through the real pipeline, reads them back, moves and deletes some. */
final class DataWorker extends Worker {
  private static final int SIZE_MAX = 20_000;
  private static final int FILES_MAX = 200;

  private static final class Stored {
    final String path;
    final long size;
    final long sum;

    Stored(String path, long size, long sum) {
      this.path = path;
      this.size = size;
      this.sum = sum;
    }
  }

  private final List<Stored> files = new ArrayList<>();
  private long names;

  DataWorker(FileSystem fs, Path root, History history, String name, long seed) {
    super(fs, root, history, name, seed);
  }

  @Override
  void begin() throws IOException {
    makeSurely(name);
  }

  @Override
  void step() throws IOException {
    int choice = random.nextInt(100);
    if ((choice < 50 && files.size() < FILES_MAX) || files.isEmpty()) {
      store();
    } else if (choice < 85) {
      Stored which = files.get(random.nextInt(files.size()));
      record("read", () -> read(which), which.path, String.valueOf(which.size), Long.toHexString(which.sum));
    } else {
      Stored which = files.remove(random.nextInt(files.size()));
      if (choice < 92) {
        delete(which.path);
      } else {
        String to = name + "/m" + names++;
        if (rename(which.path, to)) {
          files.add(new Stored(to, which.size, which.sum));
        }
      }
    }
  }

  private void store() throws IOException {
    String made = name + "/f" + names++;
    FSDataOutputStream out = create(made);
    if (out == null) {
      return;
    }
    byte[] content = new byte[1 + random.nextInt(SIZE_MAX)];
    random.nextBytes(content);
    CRC32 sum = new CRC32();
    sum.update(content);
    if (!does("write", () -> write(out, content), made)) {
      return;
    }
    if (close(out, made, content.length, sum.getValue())) {
      files.add(new Stored(made, content.length, sum.getValue()));
    }
  }

  private static History.Result write(FSDataOutputStream out, byte[] content) throws IOException {
    out.write(content);
    return History.Result.of(true);
  }

  private History.Result read(Stored which) throws IOException {
    try (InputStream in = fs.open(path(which.path))) {
      CRC32 sum = new CRC32();
      byte[] content = in.readAllBytes();
      sum.update(content);
      boolean same = content.length == which.size && sum.getValue() == which.sum;
      return new History.Result(same ? "ok" : "other", content.length + " " + Long.toHexString(sum.getValue()));
    }
  }
}
