package org.apache.hadoop.hdfs.server.blockmanagement;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.protocol.Block;
import org.apache.hadoop.hdfs.server.protocol.DatanodeStorage;
import org.mockito.Mockito;

/** Blocks as tests find them with the NameNode, made of what clients are told; in this package for what Hadoop keeps within it. */
public final class SeenBlocks {
  private SeenBlocks() {}

  public static BlockInfo block(Block block, short replication) {
    return new BlockInfoContiguous(block, replication);
  }

  public static void add(BlockInfo block, DatanodeDescriptor server, String id, StorageType type) {
    block.addStorage(new DatanodeStorageInfo(server, new DatanodeStorage(id, DatanodeStorage.State.NORMAL, type)), block);
  }

  /** None where there is no block. */
  public static List<DatanodeStorageInfo> storages(BlockInfo block) {
    List<DatanodeStorageInfo> found = new ArrayList<>();
    for (int index = 0; block != null && index < block.numNodes(); index++) {
      found.add(block.getStorageInfo(index));
    }
    return found;
  }

  /** The fields of a mock at which test utilities look. */
  public static void fill(BlockManager mock, Function<Block, BlockInfo> stored, BooleanSupplier isAnythingNeeded) {
    BlocksMap blocks = Mockito.mock(BlocksMap.class);
    Mockito.doAnswer(call -> storages(stored.apply(call.getArgument(0)))).when(blocks).getStorages(Mockito.any(Block.class));
    Mockito.doAnswer(call -> storages(stored.apply(call.getArgument(0)))).when(blocks).getStorages(Mockito.any(BlockInfo.class));
    LowRedundancyBlocks needed = Mockito.mock(LowRedundancyBlocks.class);
    Mockito.doAnswer(call -> isAnythingNeeded.getAsBoolean()).when(needed).contains(Mockito.any());
    set(mock, "blocksMap", blocks);
    set(mock, "neededReconstruction", needed);
    set(mock, "corruptReplicas", new CorruptReplicasMap());
  }

  private static void set(BlockManager mock, String name, Object value) {
    try {
      Field field = BlockManager.class.getDeclaredField(name);
      field.setAccessible(true);
      field.set(mock, value);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }
}
