package org.apache.hadoop.hdfs;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.server.datanode.FsDatasetTestUtils.MaterializedReplica;

/** The two files of a block on a data server's disks, which both kinds of server keep under the same names. */
record Replica(File data, File sums) implements MaterializedReplica {
  /** {@code null} where none of the directories has the block. */
  static Replica find(List<File> directories, ExtendedBlock block) throws IOException {
    String name = "blk_" + block.getBlockId();
    File data = null;
    File sums = null;
    for (File directory : directories) {
      try (Stream<Path> files = Files.walk(directory.toPath())) {
        for (Path path : files.toList()) {
          String found = path.getFileName().toString();
          if (found.equals(name)) {
            data = path.toFile();
          } else if (found.startsWith(name + "_") && found.endsWith(".meta")) {
            sums = path.toFile();
          }
        }
      } catch (java.io.UncheckedIOException moved) {
        // A file went elsewhere while the directory was read.
      }
    }
    return data == null ? null : new Replica(data, sums);
  }

  @Override
  public void corruptData() throws IOException {
    corrupt(data);
  }

  @Override
  public void corruptData(byte[] content) throws IOException {
    Files.write(data.toPath(), content);
  }

  @Override
  public void truncateData(long length) throws IOException {
    truncate(data, length);
  }

  @Override
  public void deleteData() throws IOException {
    Files.delete(data.toPath());
  }

  @Override
  public void corruptMeta() throws IOException {
    corrupt(sums);
  }

  @Override
  public void deleteMeta() throws IOException {
    Files.delete(sums.toPath());
  }

  @Override
  public void truncateMeta(long length) throws IOException {
    truncate(sums, length);
  }

  @Override
  public void makeUnreachable() throws IOException {
    Files.move(data.toPath(), data.toPath().resolveSibling("away-" + data.getName()));
  }

  /** Other bytes in the middle. */
  private static void corrupt(File file) throws IOException {
    try (RandomAccessFile access = new RandomAccessFile(file, "rw")) {
      long at = access.length() / 2;
      byte[] bytes = new byte[(int) Math.min(6, access.length() - at)];
      access.seek(at);
      access.readFully(bytes);
      for (int index = 0; index < bytes.length; index++) {
        bytes[index] ^= 0x5a;
      }
      access.seek(at);
      access.write(bytes);
    }
  }

  private static void truncate(File file, long length) throws IOException {
    try (RandomAccessFile access = new RandomAccessFile(file, "rw")) {
      access.setLength(length);
    }
  }
}
