import java.io.IOException;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Shares a few names with every other such thread of every client. Names come in cells of three; operations stay within
 * one, so each cell's history can be checked for linearizability by itself. What a name holds is its inode's number. The names
 * of the last cells are in directories of their own, which may have their files in different groups of metadata servers.
 */
final class CellWorker extends Worker {
  private static final int CELLS = 6;
  private static final int NAMES = 3;
  private static final int SPREAD = 2;

  CellWorker(FileSystem fs, Path root, History history, String name, long seed) {
    super(fs, root, history, name, seed);
  }

  @Override
  void begin() throws IOException {
    for (int cell = 0; cell < CELLS; cell++) {
      makeSurely("cells/" + cell);
    }
    for (int cell = CELLS - SPREAD; cell < CELLS; cell++) {
      for (int name = 0; name < NAMES; name++) {
        makeSurely("cells/" + cell + "/in-" + name);
      }
    }
  }

  private String name(int cell, int name) {
    return "cells/" + cell + (cell < CELLS - SPREAD ? "/" + name : "/in-" + name + "/it");
  }

  @Override
  void step() throws IOException {
    int cell = random.nextInt(CELLS);
    String one = name(cell, random.nextInt(NAMES));
    String other = name(cell, random.nextInt(NAMES));
    int choice = random.nextInt(100);
    if (choice < 30) {
      FSDataOutputStream out = create(one);
      if (out != null) {
        // Another thread may have deleted it by now: how this ends says nothing.
        close(out, one, 0, 0);
      }
    } else if (choice < 50) {
      delete(one);
    } else if (choice < 80 || one.equals(other)) {
      stat(one);
    } else {
      rename(one, other);
    }
  }
}
