package org.apache.hadoop.hdfs;

import java.io.BufferedReader;
import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.InterruptedIOException;
import java.lang.reflect.InvocationTargetException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonConfigurationKeysPublic;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction;
import org.apache.hadoop.hdfs.protocol.SnapshottableDirectoryStatus;
import org.apache.hadoop.hdfs.server.namenode.FSNamesystem;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.hdfs.server.protocol.NamenodeProtocols;
import org.apache.hadoop.security.UserGroupInformation;
import org.mockito.Mockito;

/**
 * Stands in for Hadoop's class of this name, first on the class path, so that Hadoop's own tests run unmodified against
 * a cluster that runs elsewhere, at the URI in the property {@code clover.contract.uri}. "Starting" it empties that
 * cluster, as each test class (some: each test) expects a new one; ending it leaves it alone.
 *
 * <p>Only what a client can do is here. A test that reaches into the servers' memory finds a mock there, or meets a {@link
 * NoSuchMethodError}, whatever cluster it runs on; where that makes it fail, it counts for nobody. The mocks are for tests that only hold
 * on to such things, in their set-up for instance.
 */
public class MiniDFSCluster implements Closeable {
  /** Names that tests refer to; they choose directories and ports of servers that are not started here. */
  public static final String HDFS_MINIDFS_BASEDIR = "hdfs.minidfs.basedir";
  public static final String PROP_TEST_BUILD_DATA = "test.build.data";
  public static final String DFS_NAMENODE_SAFEMODE_EXTENSION_TESTING_KEY = "dfs.namenode.safemode.extension.testing";
  public static final String DFS_NAMENODE_DECOMMISSION_INTERVAL_TESTING_KEY = "dfs.namenode.decommission.interval.testing";

  /** A debug build replays a few thousand edits, and three data servers report. */
  private static final int RESTART_S = 60;

  private final Configuration conf;
  private final URI uri = URI.create(System.getProperty("clover.contract.uri"));

  public static class Builder {
    private final Configuration conf;

    public Builder(Configuration conf) {
      this.conf = conf;
    }

    public Builder(Configuration conf, File directory) {
      this(conf);
    }

    public Builder numDataNodes(int count) {
      return this;
    }

    public Builder racks(String[] racks) {
      return this;
    }

    public Builder hosts(String[] hosts) {
      return this;
    }

    public Builder format(boolean format) {
      return this;
    }

    public Builder storageTypes(StorageType[] types) {
      return this;
    }

    public Builder storageTypes(StorageType[][] types) {
      return this;
    }

    public Builder nameNodeHttpPort(int port) {
      return this;
    }

    public Builder nameNodePort(int port) {
      return this;
    }

    public Builder storagesPerDatanode(int count) {
      return this;
    }

    public Builder checkExitOnShutdown(boolean check) {
      return this;
    }

    public Builder waitSafeMode(boolean wait) {
      return this;
    }

    public MiniDFSCluster build() throws IOException {
      return new MiniDFSCluster(conf);
    }
  }

  private MiniDFSCluster(Configuration conf) throws IOException {
    this.conf = conf;
    FileSystem.setDefaultUri(conf, uri);
    conf.set(CommonConfigurationKeysPublic.FS_DEFAULT_NAME_KEY, uri.toString());
    try {
      // Whoever the test is just then.
      UserGroupInformation.createRemoteUser(System.getProperty("user.name"))
          .doAs((PrivilegedExceptionAction<Void>) () -> {
            empty();
            return null;
          });
    } catch (InterruptedException error) {
      throw new InterruptedIOException();
    }
  }

  private void empty() throws IOException {
    try (DistributedFileSystem fs = (DistributedFileSystem) FileSystem.newInstance(uri, new HdfsConfiguration())) {
      fs.setSafeMode(SafeModeAction.SAFEMODE_LEAVE);
      clearRoot(fs);
      for (FileStatus found : fs.listStatus(new Path("/"))) {
        fs.delete(found.getPath(), true);
      }
    }
  }

  /** What earlier tests have hung on the root itself. */
  private static void clearRoot(DistributedFileSystem fs) throws IOException {
    Path root = new Path("/");
    dropSnapshots(fs);
    fs.setQuota(root, HdfsConstants.QUOTA_RESET, HdfsConstants.QUOTA_RESET);
    for (StorageType type : StorageType.getTypesSupportingQuota()) {
      fs.setQuotaByStorageType(root, type, HdfsConstants.QUOTA_RESET);
    }
    fs.unsetStoragePolicy(root);
    for (String name : fs.listXAttrs(root)) {
      fs.removeXAttr(root, name);
    }
    fs.removeAcl(root);
    fs.setPermission(root, new FsPermission((short) 0755));
    fs.setOwner(root, System.getProperty("user.name"), "supergroup");
  }

  private static void dropSnapshots(DistributedFileSystem fs) throws IOException {
    SnapshottableDirectoryStatus[] directories = fs.getSnapshottableDirListing();
    if (directories == null) {
      return;
    }
    for (SnapshottableDirectoryStatus directory : directories) {
      Path path = directory.getFullPath();
      for (FileStatus snapshot : fs.listStatus(new Path(path, ".snapshot"))) {
        fs.deleteSnapshot(path, snapshot.getPath().getName());
      }
      fs.delete(new Path(path, FileSystem.TRASH_PREFIX), true);
      fs.disallowSnapshot(path);
    }
  }

  public void waitClusterUp() {}

  public void waitActive() {}

  public void waitActive(int index) {}

  public boolean isClusterUp() {
    return true;
  }

  public URI getURI() {
    return uri;
  }

  public URI getURI(int index) {
    return uri;
  }

  public int getNameNodePort() {
    return uri.getPort();
  }

  public Configuration getConfiguration(int index) {
    return conf;
  }

  public DistributedFileSystem getFileSystem() throws IOException {
    return (DistributedFileSystem) FileSystem.newInstance(uri, conf);
  }

  public DistributedFileSystem getFileSystem(int index) throws IOException {
    return getFileSystem();
  }

  public FileSystem getNewFileSystemInstance(int index) throws IOException {
    return getFileSystem();
  }

  /** What the cluster's RPC interface offers to clients; its other methods do nothing. */
  public NamenodeProtocols getNameNodeRpc() throws IOException {
    ClientProtocol client = getFileSystem().getClient().getNamenode();
    return Mockito.mock(
        NamenodeProtocols.class,
        call -> {
          if (!call.getMethod().getDeclaringClass().isInstance(client)) {
            return null;
          }
          try {
            return call.getMethod().invoke(client, call.getArguments());
          } catch (InvocationTargetException error) {
            throw error.getCause();
          }
        });
  }

  public NamenodeProtocols getNameNodeRpc(int index) throws IOException {
    return getNameNodeRpc();
  }

  public NameNode getNameNode() throws IOException {
    NameNode mock = Mockito.mock(NameNode.class, Mockito.RETURNS_DEEP_STUBS);
    NamenodeProtocols rpc = getNameNodeRpc();
    Mockito.doReturn(rpc).when(mock).getRpcServer();
    return mock;
  }

  public NameNode getNameNode(int index) throws IOException {
    return getNameNode();
  }

  public FSNamesystem getNamesystem() {
    return Mockito.mock(FSNamesystem.class, Mockito.RETURNS_DEEP_STUBS);
  }

  public FSNamesystem getNamesystem(int index) {
    return getNamesystem();
  }

  /** Whoever started the cluster restarts its metadata server; the port is in a property. The data servers stay. */
  private synchronized void restart() throws IOException {
    int port = Integer.getInteger("clover.contract.control");
    try (Socket control = new Socket(InetAddress.getLoopbackAddress(), port)) {
      control.getOutputStream().write("restart\n".getBytes(StandardCharsets.UTF_8));
      control.getOutputStream().flush();
      String answer = new BufferedReader(new InputStreamReader(control.getInputStream(), StandardCharsets.UTF_8)).readLine();
      if (!"done".equals(answer)) {
        throw new IOException("the metadata server was not restarted: " + answer);
      }
    }
    long deadline = System.nanoTime() + RESTART_S * 1_000_000_000L;
    try (DistributedFileSystem fs = getFileSystem()) {
      while (fs.setSafeMode(SafeModeAction.SAFEMODE_GET)) {
        if (System.nanoTime() > deadline) {
          throw new IOException("still in safe mode " + RESTART_S + " s after a restart");
        }
        Thread.sleep(50);
      }
    } catch (InterruptedException error) {
      throw new InterruptedIOException();
    }
  }

  public void restartNameNode(String... arguments) throws IOException {
    restart();
  }

  public void restartNameNode(boolean waitActive) throws IOException {
    restart();
  }

  public void restartNameNode(int index) throws IOException {
    restart();
  }

  public void restartNameNode(int index, boolean waitActive, String... arguments) throws IOException {
    restart();
  }

  public void restartNameNodes() throws IOException {
    restart();
  }

  public void shutdown() {}

  public void shutdown(boolean deleteDirectory) {}

  @Override
  public void close() {}
}
