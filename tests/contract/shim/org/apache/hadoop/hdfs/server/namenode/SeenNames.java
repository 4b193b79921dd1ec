package org.apache.hadoop.hdfs.server.namenode;

import java.io.IOException;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.mockito.Mockito;

/** What tests ask of the NameNode's namespace; in this package for what Hadoop keeps within it. */
public final class SeenNames {
  private SeenNames() {}

  public static void fill(FSNamesystem mock, ClientProtocol client) {
    try {
      Mockito.doAnswer(call -> client.getBlockLocations(call.getArgument(1), call.getArgument(2), call.getArgument(3)))
          .when(mock)
          .getBlockLocations(Mockito.any(), Mockito.any(), Mockito.anyLong(), Mockito.anyLong());
    } catch (IOException impossible) {
      throw new IllegalStateException(impossible);
    }
  }
}
