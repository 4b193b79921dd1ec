package org.apache.hadoop.hdfs;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;

/** A data server as tests find it with the NameNode: each look at it asks the cluster for its report of data servers. */
class SeenServer extends DatanodeDescriptor {
  /** Tests that wait for another state cannot be interrupted. */
  private static final int ALIKE_ANSWERS_MAX = 100;
  private static final long ALIKE_ANSWERS_NS = 60_000_000_000L;

  private final Inside inside;
  private AdminStates last;
  private int alike;
  private long since;

  SeenServer(Inside inside, DatanodeInfo info) {
    super(info);
    this.inside = inside;
    setNetworkLocation(info.getNetworkLocation());
    setSoftwareVersion(info.getSoftwareVersion());
  }

  private DatanodeInfo now() {
    try {
      DatanodeInfo found = inside.server(getDatanodeUuid());
      return found == null ? new DatanodeInfoBuilder().setNodeID(this).build() : found;
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  @Override
  public AdminStates getAdminState() {
    AdminStates state = now().getAdminState();
    if (state != last) {
      last = state;
      alike = 0;
      since = System.nanoTime();
    } else if (++alike > ALIKE_ANSWERS_MAX && System.nanoTime() - since > ALIKE_ANSWERS_NS) {
      throw new IllegalStateException(getXferAddr() + " stays " + state);
    }
    return state;
  }

  @Override
  public boolean isInService() {
    return getAdminState() == AdminStates.NORMAL;
  }

  @Override
  public boolean isDecommissionInProgress() {
    return getAdminState() == AdminStates.DECOMMISSION_INPROGRESS;
  }

  @Override
  public boolean isDecommissioned() {
    return getAdminState() == AdminStates.DECOMMISSIONED;
  }

  @Override
  public boolean isEnteringMaintenance() {
    return getAdminState() == AdminStates.ENTERING_MAINTENANCE;
  }

  @Override
  public boolean isInMaintenance() {
    return getAdminState() == AdminStates.IN_MAINTENANCE;
  }

  @Override
  public boolean isMaintenance() {
    return isEnteringMaintenance() || isInMaintenance();
  }

  /** No report has it; a test that only wants another server back in service repeats what it reads here. */
  @Override
  public long getMaintenanceExpireTimeInMS() {
    return Long.MAX_VALUE;
  }

  @Override
  public boolean isAlive() {
    return inside == null || inside.isAlive(getDatanodeUuid());
  }

  @Override
  public long getCapacity() {
    return now().getCapacity();
  }

  @Override
  public long getDfsUsed() {
    return now().getDfsUsed();
  }

  @Override
  public long getRemaining() {
    return now().getRemaining();
  }

  @Override
  public int getXceiverCount() {
    return now().getXceiverCount();
  }

  @Override
  public int numBlocks() {
    return now().getNumBlocks();
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }

  @Override
  public boolean equals(Object other) {
    return super.equals(other);
  }
}
