import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Keeps to a directory of its own, so that each answer is known in advance: create, mkdir, rename, delete, stat. A name
 * whose operation failed is never used again: nobody knows what became of it.
 */
final class OwnWorker extends Worker {
  private static final int FILES_MAX = 400;
  private static final int DIRECTORIES_MAX = 40;

  private final List<String> files = new ArrayList<>();
  private final List<String> directories = new ArrayList<>();
  private String gone;
  private long names;

  OwnWorker(FileSystem fs, Path root, History history, String name, long seed) {
    super(fs, root, history, name, seed);
  }

  @Override
  void begin() throws IOException {
    makeSurely(name);
    directories.add(name);
  }

  @Override
  void step() throws IOException {
    int choice = random.nextInt(100);
    if (choice < 10 && directories.size() < DIRECTORIES_MAX) {
      String made = fresh("d");
      if (mkdir(made)) {
        directories.add(made);
      }
    } else if ((choice < 40 && files.size() < FILES_MAX) || files.isEmpty()) {
      String made = fresh("f");
      FSDataOutputStream out = create(made);
      if (out != null && close(out, made, 0, 0)) {
        files.add(made);
      }
    } else if (choice < 60) {
      String from = take();
      String to = fresh("m");
      if (rename(from, to)) {
        files.add(to);
        gone = from;
      }
    } else if (choice < 75) {
      String which = take();
      if (delete(which)) {
        gone = which;
      }
    } else if (choice < 95 || gone == null) {
      stat(files.get(random.nextInt(files.size())));
    } else {
      stat(gone);
    }
  }

  private String take() {
    int which = random.nextInt(files.size());
    String last = files.remove(files.size() - 1);
    return which == files.size() ? last : files.set(which, last);
  }

  private String fresh(String kind) {
    return directories.get(random.nextInt(directories.size())) + "/" + kind + names++;
  }
}
