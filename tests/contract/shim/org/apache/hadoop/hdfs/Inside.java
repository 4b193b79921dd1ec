package org.apache.hadoop.hdfs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Predicate;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.protocol.Block;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.apache.hadoop.hdfs.protocol.DatanodeID;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo.AdminStates;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockInfo;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockManager;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeManager;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStatistics;
import org.apache.hadoop.hdfs.server.blockmanagement.NumberReplicas;
import org.apache.hadoop.hdfs.server.blockmanagement.NumberReplicas.StoredReplicaState;
import org.apache.hadoop.hdfs.server.blockmanagement.SeenBlocks;
import org.apache.hadoop.hdfs.server.namenode.FSNamesystem;
import org.apache.hadoop.hdfs.server.namenode.SeenNames;
import org.mockito.Mockito;
import org.mockito.stubbing.Answer;
import org.mockito.stubbing.Stubber;

/**
 * The NameNode's inside as far as clients can know of it: mocks that ask the cluster for its reports, its figures and the places of
 * blocks each time a test looks. What no client is told is a mock's nothing.
 */
final class Inside {
  private static final long CONCLUDED_NS = 6_000_000_000L;

  private final MiniDFSCluster cluster;
  private final DistributedFileSystem fs;
  /** When each was first told to be dead. */
  private final Map<String, Long> dead = new ConcurrentHashMap<>();

  Inside(MiniDFSCluster cluster, DistributedFileSystem fs) {
    this.cluster = cluster;
    this.fs = fs;
  }

  FSNamesystem namesystem() {
    FSNamesystem mock = Mockito.mock(FSNamesystem.class, Mockito.RETURNS_DEEP_STUBS);
    BlockManager blocks = blockManager();
    Mockito.doReturn(blocks).when(mock).getBlockManager();
    Mockito.doAnswer(call -> cluster.blockPool()).when(mock).getBlockPoolId();
    SeenNames.fill(mock, fs.getClient().getNamenode());
    counted(live(server -> true)).when(mock).getNumLiveDataNodes();
    counted(dead(server -> true)).when(mock).getNumDeadDataNodes();
    counted(live(server -> server.getAdminState() == AdminStates.DECOMMISSIONED)).when(mock).getNumDecomLiveDataNodes();
    counted(dead(server -> server.getAdminState() == AdminStates.DECOMMISSIONED)).when(mock).getNumDecomDeadDataNodes();
    counted(any(server -> server.getAdminState() == AdminStates.DECOMMISSION_INPROGRESS)).when(mock).getNumDecommissioningDataNodes();
    counted(any(server -> server.getAdminState() == AdminStates.ENTERING_MAINTENANCE)).when(mock).getNumEnteringMaintenanceDataNodes();
    counted(live(server -> server.getAdminState() == AdminStates.IN_MAINTENANCE)).when(mock).getNumInMaintenanceLiveDataNodes();
    counted(dead(server -> server.getAdminState() == AdminStates.IN_MAINTENANCE)).when(mock).getNumInMaintenanceDeadDataNodes();
    counted(live(server -> server.getAdminState() == AdminStates.NORMAL)).when(mock).getNumInServiceLiveDataNodes();
    asked(call -> Arrays.stream(report(DatanodeReportType.LIVE)).mapToInt(DatanodeInfo::getXceiverCount).sum()).when(mock).getTotalLoad();
    figure(ClientProtocol.GET_STATS_LOW_REDUNDANCY_IDX).when(mock).getUnderReplicatedBlocks();
    figure(ClientProtocol.GET_STATS_LOW_REDUNDANCY_IDX).when(mock).getLowRedundancyBlocks();
    figure(ClientProtocol.GET_STATS_CORRUPT_BLOCKS_IDX).when(mock).getCorruptReplicaBlocks();
    figure(ClientProtocol.GET_STATS_MISSING_BLOCKS_IDX).when(mock).getMissingBlocksCount();
    figure(ClientProtocol.GET_STATS_MISSING_REPL_ONE_BLOCKS_IDX).when(mock).getMissingReplOneBlocksCount();
    figure(ClientProtocol.GET_STATS_PENDING_DELETION_BLOCKS_IDX).when(mock).getPendingDeletionBlocks();
    return mock;
  }

  private BlockManager blockManager() {
    BlockManager mock = Mockito.mock(BlockManager.class, Mockito.RETURNS_DEEP_STUBS);
    // Some tests wait for that.
    Mockito.doReturn(new ConcurrentLinkedQueue<>()).when(mock).getMarkedDeleteQueue();
    DatanodeManager servers = datanodeManager();
    Mockito.doReturn(servers).when(mock).getDatanodeManager();
    asked(call -> stored(call.getArgument(0))).when(mock).getStoredBlock(Mockito.any());
    asked(call -> SeenBlocks.storages(stored(call.getArgument(0)))).when(mock).getStorages(Mockito.any(Block.class));
    asked(call -> countNodes(call.getArgument(0))).when(mock).countNodes(Mockito.any());
    asked(call -> corrupt(call.getArgument(0))).when(mock).numCorruptReplicas(Mockito.any());
    figure(ClientProtocol.GET_STATS_LOW_REDUNDANCY_IDX).when(mock).getLowRedundancyBlocksCount();
    figure(ClientProtocol.GET_STATS_LOW_REDUNDANCY_IDX).when(mock).getLowRedundancyBlocks();
    figure(ClientProtocol.GET_STATS_CORRUPT_BLOCKS_IDX).when(mock).getCorruptReplicaBlocksCount();
    figure(ClientProtocol.GET_STATS_MISSING_BLOCKS_IDX).when(mock).getMissingBlocksCount();
    figure(ClientProtocol.GET_STATS_PENDING_DELETION_BLOCKS_IDX).when(mock).getPendingDeletionBlocksCount();
    asked(call -> (int) (stat(ClientProtocol.GET_STATS_LOW_REDUNDANCY_IDX) - stat(ClientProtocol.GET_STATS_MISSING_BLOCKS_IDX)))
        .when(mock).getUnderReplicatedNotMissingBlocks();
    SeenBlocks.fill(mock, this::stored, () -> stat(ClientProtocol.GET_STATS_LOW_REDUNDANCY_IDX) > 0);
    return mock;
  }

  private DatanodeManager datanodeManager() {
    DatanodeManager mock = Mockito.mock(DatanodeManager.class, Mockito.RETURNS_DEEP_STUBS);
    DatanodeStatistics figures = Mockito.mock(DatanodeStatistics.class, Mockito.RETURNS_DEEP_STUBS);
    figure(ClientProtocol.GET_STATS_CAPACITY_IDX).when(figures).getCapacityTotal();
    figure(ClientProtocol.GET_STATS_USED_IDX).when(figures).getCapacityUsed();
    figure(ClientProtocol.GET_STATS_REMAINING_IDX).when(figures).getCapacityRemaining();
    asked(call -> Arrays.stream(report(DatanodeReportType.LIVE)).mapToLong(DatanodeInfo::getBlockPoolUsed).sum())
        .when(figures).getBlockPoolUsed();
    Mockito.doReturn(figures).when(mock).getDatanodeStatistics();
    try {
      asked(call -> refresh()).when(mock).refreshNodes(Mockito.any());
      asked(call -> seen(call.<DatanodeID>getArgument(0).getDatanodeUuid())).when(mock).getDatanode(Mockito.any(DatanodeID.class));
    } catch (IOException impossible) {
      throw new UncheckedIOException(impossible);
    }
    asked(call -> seen(call.<String>getArgument(0))).when(mock).getDatanode(Mockito.anyString());
    asked(call -> new LinkedHashSet<>(servers(DatanodeReportType.ALL))).when(mock).getDatanodes();
    asked(call -> servers(call.getArgument(0))).when(mock).getDatanodeListForReport(Mockito.any());
    asked(call -> servers(DatanodeReportType.ALL).stream()
            .filter(server -> server.getIpAddr().equals(call.getArgument(0)) && server.getXferPort() == call.<Integer>getArgument(1))
            .findFirst()
            .orElse(null))
        .when(mock).getDatanodeByXferAddr(Mockito.anyString(), Mockito.anyInt());
    counted(live(server -> true)).when(mock).getNumLiveDataNodes();
    counted(dead(server -> true)).when(mock).getNumDeadDataNodes();
    asked(call -> {
          fetch(DatanodeReportType.LIVE, call.getArgument(0), call.getArgument(2));
          fetch(DatanodeReportType.DEAD, call.getArgument(1), call.getArgument(2));
          return null;
        }).when(mock).fetchDatanodes(Mockito.any(), Mockito.any(), Mockito.anyBoolean());
    return mock;
  }

  /** The lists of data servers are read again. Hadoop's NameNode forgets which files they are in when a client asks it. */
  static Void refresh() throws IOException {
    Owner.ask("refresh-nodes");
    return null;
  }

  private void fetch(DatanodeReportType type, List<DatanodeDescriptor> into, boolean withoutDecommissioned) throws IOException {
    if (into == null) {
      return;
    }
    into.addAll(servers(type));
    if (withoutDecommissioned) {
      into.removeIf(DatanodeInfo::isDecommissioned);
    }
  }

  private static Stubber asked(Answer<?> answer) {
    return Mockito.doAnswer(answer);
  }

  private static Stubber counted(Callable<Integer> count) {
    return Mockito.doAnswer(call -> count.call());
  }

  private Stubber figure(int index) {
    return Mockito.doAnswer(call -> stat(index));
  }

  private long stat(int index) {
    try {
      return fs.getClient().getNamenode().getStats()[index];
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private Callable<Integer> live(Predicate<DatanodeInfo> which) {
    return () -> (int) Arrays.stream(report(DatanodeReportType.LIVE)).filter(which).count();
  }

  private Callable<Integer> dead(Predicate<DatanodeInfo> which) {
    return () -> (int) Arrays.stream(report(DatanodeReportType.DEAD)).filter(which).count();
  }

  private Callable<Integer> any(Predicate<DatanodeInfo> which) {
    return () -> (int) Arrays.stream(report(DatanodeReportType.ALL)).filter(which).count();
  }

  private DatanodeInfo[] report(DatanodeReportType type) throws IOException {
    return fs.getDataNodeStats(type);
  }

  /** {@code null} where the cluster knows of none. */
  DatanodeInfo server(String uuid) throws IOException {
    return Arrays.stream(report(DatanodeReportType.ALL)).filter(server -> uuid.equals(server.getDatanodeUuid())).findFirst().orElse(null);
  }

  /**
   * Hadoop's NameNode tells a silent DataNode among the dead before it draws its conclusions, for which it has a look around every few
   * seconds. It is dead here when they must be drawn.
   */
  boolean isAlive(String uuid) {
    try {
      boolean isTold = Arrays.stream(report(DatanodeReportType.LIVE)).anyMatch(server -> uuid.equals(server.getDatanodeUuid()));
      if (isTold) {
        dead.remove(uuid);
        return true;
      }
      long since = dead.computeIfAbsent(uuid, first -> System.nanoTime());
      return System.nanoTime() - since < CONCLUDED_NS;
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private SeenServer seen(String uuid) throws IOException {
    DatanodeInfo info = server(uuid);
    return info == null ? null : new SeenServer(this, info);
  }

  private List<DatanodeDescriptor> servers(DatanodeReportType type) throws IOException {
    List<DatanodeDescriptor> found = new ArrayList<>();
    for (DatanodeInfo info : report(type)) {
      found.add(new SeenServer(this, info));
    }
    return found;
  }

  private record Found(LocatedBlock block, short replication) {}

  /** A block of a file that is there. */
  private Found find(Block block) throws IOException {
    RemoteIterator<LocatedFileStatus> files = fs.listFiles(new Path("/"), true);
    while (files.hasNext()) {
      LocatedFileStatus file = files.next();
      String path = file.getPath().toUri().getPath();
      for (LocatedBlock located : fs.getClient().getLocatedBlocks(path, 0, Long.MAX_VALUE).getLocatedBlocks()) {
        if (located.getBlock().getBlockId() == block.getBlockId()) {
          return new Found(located, file.getReplication());
        }
      }
    }
    return null;
  }

  /** The block with the replicas that clients are told of, and those on servers in maintenance, which clients are not sent to. */
  private BlockInfo stored(Block block) {
    try {
      Found found = find(block);
      if (found == null) {
        return null;
      }
      LocatedBlock located = found.block();
      BlockInfo stored = SeenBlocks.block(located.getBlock().getLocalBlock(), found.replication());
      List<String> told = new ArrayList<>();
      if (!located.isCorrupt()) {
        DatanodeInfo[] servers = located.getLocations();
        for (int index = 0; index < servers.length; index++) {
          told.add(servers[index].getDatanodeUuid());
          SeenBlocks.add(stored, new SeenServer(this, servers[index]), located.getStorageIDs()[index], located.getStorageTypes()[index]);
        }
      }
      for (SeenServer server : holders(located)) {
        if (!told.contains(server.getDatanodeUuid()) && server.isInMaintenance()) {
          SeenBlocks.add(stored, server, "storage-of-" + server.getDatanodeUuid(), StorageType.DISK);
        }
      }
      return stored;
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** The data servers on whose disks the block is. */
  private List<SeenServer> holders(LocatedBlock located) throws IOException {
    List<SeenServer> found = new ArrayList<>();
    List<Owner.DataServer> disks = Owner.data();
    for (DatanodeInfo info : report(DatanodeReportType.ALL)) {
      for (Owner.DataServer server : disks) {
        if (server.port() == info.getXferPort() && Replica.find(server.directories(), located.getBlock()) != null) {
          found.add(new SeenServer(this, info));
        }
      }
    }
    return found;
  }

  private NumberReplicas countNodes(BlockInfo block) throws IOException {
    NumberReplicas counts = new NumberReplicas();
    BlockInfo now = block == null ? null : stored(block);
    if (now == null) {
      return counts;
    }
    SeenBlocks.storages(now).forEach(storage -> counts.add(state(storage.getDatanodeDescriptor().getAdminState()), 1));
    counts.add(StoredReplicaState.CORRUPT, corrupt(block));
    return counts;
  }

  private static StoredReplicaState state(AdminStates state) {
    return switch (state) {
      case NORMAL -> StoredReplicaState.LIVE;
      case DECOMMISSION_INPROGRESS -> StoredReplicaState.DECOMMISSIONING;
      case DECOMMISSIONED -> StoredReplicaState.DECOMMISSIONED;
      case ENTERING_MAINTENANCE -> StoredReplicaState.MAINTENANCE_FOR_READ;
      case IN_MAINTENANCE -> StoredReplicaState.MAINTENANCE_NOT_FOR_READ;
    };
  }

  /** Those on disks of which clients are not told, while the cluster has damaged blocks. */
  private int corrupt(Block block) throws IOException {
    Found found = find(block);
    if (found == null || stat(ClientProtocol.GET_STATS_CORRUPT_BLOCKS_IDX) == 0) {
      return 0;
    }
    List<SeenServer> holders = holders(found.block());
    if (!found.block().isCorrupt()) {
      List<String> told = Arrays.stream(found.block().getLocations()).map(DatanodeInfo::getDatanodeUuid).toList();
      holders.removeIf(server -> told.contains(server.getDatanodeUuid()) || server.isInMaintenance());
    }
    return holders.size();
  }
}
