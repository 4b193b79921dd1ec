package org.apache.hadoop.hdfs;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.datanode.FsDatasetTestUtils.MaterializedReplica;

/** What tests do to the files of data servers, which both kinds of server keep in the same places under the same names. */
abstract class OnDisk {
  /** Those of a data server that runs, by its place among them. */
  abstract List<File> directories(int index);

  abstract int countServers();

  public abstract ArrayList<DataNode> getDataNodes();

  public File getInstanceStorageDir(int index, int directory) {
    return directories(index).get(directory);
  }

  public File getStorageDir(int index, int directory) {
    return directories(index).get(directory);
  }

  /** The name of the block pool, which a data server has as a directory. */
  String blockPool() {
    for (File directory : directories(0)) {
      String[] names = new File(directory, "current").list((parent, name) -> name.startsWith("BP-"));
      if (names != null && names.length > 0) {
        return names[0];
      }
    }
    throw new IllegalStateException("no data server has a block pool");
  }

  public static File getFinalizedDir(File directory, String blockPool) {
    return new File(directory, "current/" + blockPool + "/current/finalized");
  }

  public static File getRbwDir(File directory, String blockPool) {
    return new File(directory, "current/" + blockPool + "/current/rbw");
  }

  public static List<File> getAllBlockFiles(File directory) {
    return filesBelow(directory, false);
  }

  public static List<File> getAllBlockMetadataFiles(File directory) {
    return filesBelow(directory, true);
  }

  private static List<File> filesBelow(File directory, boolean areSums) {
    File[] here = directory.listFiles();
    if (here == null) {
      return null;
    }
    List<File> found = new ArrayList<>();
    for (File file : here) {
      if (file.isDirectory()) {
        found.addAll(filesBelow(file, areSums));
      } else if (file.getName().startsWith("blk_") && file.getName().endsWith(".meta") == areSums) {
        found.add(file);
      }
    }
    return found;
  }

  public void truncateMeta(int index, ExtendedBlock block, int length) throws IOException {
    getMaterializedReplica(index, block).truncateMeta(length);
  }

  public MaterializedReplica getMaterializedReplica(int index, ExtendedBlock block) throws IOException {
    Replica found = Replica.find(directories(index), block);
    if (found == null) {
      throw new org.apache.hadoop.hdfs.server.datanode.ReplicaNotFoundException(block);
    }
    return found;
  }

  public File getBlockFile(int index, ExtendedBlock block) {
    Replica found = replica(index, block);
    return found == null ? null : found.data();
  }

  public File getBlockMetadataFile(int index, ExtendedBlock block) {
    Replica found = replica(index, block);
    return found == null ? null : found.sums();
  }

  public File[] getAllBlockFiles(ExtendedBlock block) {
    List<File> found = new ArrayList<>();
    for (int index = 0; index < countServers(); index++) {
      Replica replica = replica(index, block);
      if (replica != null) {
        found.add(replica.data());
      }
    }
    return found.toArray(File[]::new);
  }

  private Replica replica(int index, ExtendedBlock block) {
    try {
      return Replica.find(directories(index), block);
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }

  public void corruptReplica(int index, ExtendedBlock block) throws IOException {
    getMaterializedReplica(index, block).corruptData();
  }

  public void corruptReplica(DataNode server, ExtendedBlock block) throws IOException {
    List<DataNode> servers = getDataNodes();
    for (int index = 0; index < servers.size(); index++) {
      if (servers.get(index).getXferPort() == server.getXferPort()) {
        corruptReplica(index, block);
      }
    }
  }

  public void corruptMeta(int index, ExtendedBlock block) throws IOException {
    getMaterializedReplica(index, block).corruptMeta();
  }

  public void deleteMeta(int index, ExtendedBlock block) throws IOException {
    getMaterializedReplica(index, block).deleteMeta();
  }

  public int corruptBlockOnDataNodes(ExtendedBlock block) throws IOException {
    int count = 0;
    for (int index = 0; index < countServers(); index++) {
      Replica found = replica(index, block);
      if (found != null) {
        found.corruptData();
        count++;
      }
    }
    return count;
  }

  public int corruptBlockOnDataNodesByDeletingBlockFile(ExtendedBlock block) throws IOException {
    int count = 0;
    for (File file : getAllBlockFiles(block)) {
      count += file.delete() ? 1 : 0;
    }
    return count;
  }

  public byte[] readBlockOnDataNodeAsBytes(int index, ExtendedBlock block) throws IOException {
    return DFSTestUtil.readFileAsBytes(getBlockFile(index, block));
  }

  public String readBlockOnDataNode(int index, ExtendedBlock block) throws IOException {
    return new String(readBlockOnDataNodeAsBytes(index, block), java.nio.charset.StandardCharsets.UTF_8);
  }
}
