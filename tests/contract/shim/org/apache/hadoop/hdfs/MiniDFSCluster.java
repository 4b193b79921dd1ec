package org.apache.hadoop.hdfs;

import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonConfigurationKeysPublic;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.protocol.ClientProtocol;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ErasureCodingPolicyInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction;
import org.apache.hadoop.hdfs.protocol.SnapshottableDirectoryStatus;
import org.apache.hadoop.hdfs.server.common.HdfsServerConstants.StartupOption;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.namenode.FSNamesystem;
import org.apache.hadoop.hdfs.server.namenode.NameNode;
import org.apache.hadoop.hdfs.server.protocol.DatanodeRegistration;
import org.apache.hadoop.hdfs.server.protocol.NamenodeProtocols;
import org.apache.hadoop.ipc.Client;
import org.apache.hadoop.ipc.ProtobufRpcEngine2;
import org.apache.hadoop.ipc.RemoteException;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.test.GenericTestUtils;
import org.mockito.Mockito;

/**
 * Stands in for Hadoop's class of this name, first on the class path, so that Hadoop's own tests run unmodified against
 * a cluster that runs elsewhere, at the URI in the property {@code clover.contract.uri}. "Starting" it empties that
 * cluster, as each test class (some: each test) expects a new one; ending it leaves it alone. Where the property {@code
 * clover.contract.layouts} is set and the test wants other data servers, racks, media or keys than there are, the cluster's owner is
 * asked for a new one.
 *
 * <p>Only what a client can do is here. A test that reaches into the servers' memory finds a mock there, or meets a {@link
 * NoSuchMethodError}, whatever cluster it runs on; where that makes it fail, it counts for nobody. The mocks are for tests that only hold
 * on to such things, in their set-up for instance.
 */
public class MiniDFSCluster extends OnDisk implements Closeable {
  /** Names that tests refer to; they choose directories and ports of servers that are not started here. */
  public static final String HDFS_MINIDFS_BASEDIR = "hdfs.minidfs.basedir";
  public static final String PROP_TEST_BUILD_DATA = "test.build.data";
  public static final String DFS_NAMENODE_SAFEMODE_EXTENSION_TESTING_KEY = "dfs.namenode.safemode.extension.testing";
  public static final String DFS_NAMENODE_DECOMMISSION_INTERVAL_TESTING_KEY = "dfs.namenode.decommission.interval.testing";

  /** A debug build replays a few thousand edits, and three data servers report. */
  private static final int RESTART_S = 60;
  private static final int ACTIVE_S = 20;
  /** Hadoop's default, and a little. */
  private static final int HEARTBEAT_MS = 3_500;

  private static final boolean HAS_LAYOUTS = Boolean.getBoolean("clover.contract.layouts");
  private static final String[] SERVERS_KEYS = System.getProperty("clover.contract.keys", "").split(",");

  static {
    // Clients of one kind after the other in one JVM are no error then.
    DefaultMetricsSystem.setMiniClusterMode(true);
  }

  private final Configuration conf;
  private final URI uri = URI.create(System.getProperty("clover.contract.uri"));
  /** Those that run, by the owner's numbers; a server that is stopped and started again is the last one, as with Hadoop's class. */
  private final List<Integer> running = new ArrayList<>();
  private Inside inside;

  public static class Builder {
    private final Configuration conf;
    private int dataServers = 1;
    private boolean format = true;
    private boolean waits = true;
    private boolean listsHosts;
    private int storagesPerServer = 2;
    private String[] racks;
    private StorageType[][] storages;

    public Builder(Configuration conf) {
      this.conf = conf;
    }

    public Builder(Configuration conf, File directory) {
      this(conf);
    }

    public Builder numDataNodes(int count) {
      dataServers = count;
      return this;
    }

    public Builder racks(String[] racks) {
      this.racks = racks;
      return this;
    }

    public Builder hosts(String[] hosts) {
      return this;
    }

    public Builder format(boolean format) {
      this.format = format;
      return this;
    }

    public Builder storageTypes(StorageType[] types) {
      this.storages = new StorageType[][] {types};
      return this;
    }

    public Builder storageTypes(StorageType[][] types) {
      this.storages = types;
      return this;
    }

    public Builder storageCapacities(long[][] bytes) {
      return simulatedCapacities(bytes == null ? null : bytes[0]);
    }

    public Builder storageCapacities(long[] bytes) {
      return simulatedCapacities(bytes);
    }

    public Builder simulatedCapacities(long[] bytes) {
      refuseCapacities(bytes);
      return this;
    }

    public Builder setupHostsFile(boolean setUp) {
      listsHosts = setUp;
      return this;
    }

    public Builder dataNodeConfOverlays(Configuration[] overlays) {
      return this;
    }

    public Builder storagesPerDatanode(int count) {
      storagesPerServer = count;
      return this;
    }

    public Builder waitSafeMode(boolean wait) {
      waits = wait;
      return this;
    }

    public Builder nnTopology(MiniDFSNNTopology topology) {
      if (topology != null && topology.countNameNodes() != 1) {
        throw new UnsupportedOperationException("one metadata server is all there is here");
      }
      return this;
    }

    public Builder startupOption(StartupOption option) {
      if (option != null && option != StartupOption.REGULAR && option != StartupOption.FORMAT) {
        throw new UnsupportedOperationException("no start with " + option + " here");
      }
      return this;
    }

    public Builder nameNodeHttpPort(int port) {
      return this;
    }

    public Builder nameNodePort(int port) {
      return this;
    }

    public Builder checkExitOnShutdown(boolean check) {
      return this;
    }

    public Builder checkDataNodeAddrConfig(boolean check) {
      return this;
    }

    public Builder checkDataNodeHostConfig(boolean check) {
      return this;
    }

    public Builder clusterId(String id) {
      return this;
    }

    public Builder skipFsyncForTesting(boolean skip) {
      return this;
    }

    public Builder manageNameDfsDirs(boolean manage) {
      return this;
    }

    public Builder manageDataDfsDirs(boolean manage) {
      return this;
    }

    public Builder setNNRedundancyConsiderLoad(boolean consider) {
      return this;
    }

    public MiniDFSCluster build() throws IOException {
      return new MiniDFSCluster(this);
    }

    /** In the owner's words. */
    private List<String> layout() {
      List<String> words = new ArrayList<>(List.of("data=" + dataServers));
      if (racks != null) {
        words.add("racks=" + String.join(",", racks));
      }
      if (storages == null && storagesPerServer != 2) {
        StorageType[] plain = new StorageType[storagesPerServer];
        Arrays.fill(plain, StorageType.DEFAULT);
        storages = new StorageType[][] {plain};
      }
      if (storages != null) {
        List<String> media = new ArrayList<>();
        for (int number = 0; number < dataServers; number++) {
          StorageType[] types = storages[storages.length == 1 ? 0 : number];
          media.add(Arrays.stream(types).map(StorageType::name).collect(Collectors.joining(",")));
        }
        words.add("storages=" + String.join(";", media));
      }
      return words;
    }
  }

  private static void refuseCapacities(Object bytes) {
    if (bytes != null) {
      throw new UnsupportedOperationException("disks are as large as they are here");
    }
  }

  private MiniDFSCluster(Builder builder) throws IOException {
    conf = builder.conf;
    FileSystem.setDefaultUri(conf, uri);
    conf.set(CommonConfigurationKeysPublic.FS_DEFAULT_NAME_KEY, uri.toString());
    conf.set(DFSConfigKeys.DFS_NAMENODE_HTTP_ADDRESS_KEY, System.getProperty("clover.contract.http", ""));
    if (!HAS_LAYOUTS) {
      Owner.data().forEach(server -> running.add(running.size()));
      emptyAsOwner();
      return;
    }
    conf.setInt(DFSConfigKeys.DFS_REPLICATION_KEY, Math.min(conf.getInt(DFSConfigKeys.DFS_REPLICATION_KEY, 3), builder.dataServers));
    // Hadoop's class has a key of its own for this one.
    conf.setInt("dfs.namenode.safemode.extension", conf.getInt(DFS_NAMENODE_SAFEMODE_EXTENSION_TESTING_KEY, 0));
    // The reader of lists in JSON takes one that is not there for an empty one, and Clover does not.
    java.nio.file.Path list = Paths.get(conf.get("dfs.hosts", "").replaceFirst("^file:", ""));
    if (list.isAbsolute() && !Files.exists(list)) {
      Files.createDirectories(list.getParent());
      Files.createFile(list);
    }
    if (builder.format) {
      List<String> words = new ArrayList<>(List.of("lay-out"));
      words.addAll(builder.layout());
      words.addAll(serversKeys());
      String answer = Owner.ask(words.toArray(String[]::new));
      for (int number = 0; number < builder.dataServers; number++) {
        running.add(number);
      }
      if (answer.equals("same")) {
        emptyAsOwner();
      } else {
        forgetConnections();
      }
    } else {
      for (int number = 0; number < Owner.data().size(); number++) {
        running.add(number);
      }
      restart(false);
      if (builder.dataServers > running.size()) {
        startDataNodes(conf, builder.dataServers - running.size(), true, null, null);
      }
    }
    if (builder.listsHosts) {
      await(false);
      listHosts();
    }
    await(builder.waits);
  }

  /** The addresses of all data servers, in the file that says which may take part. */
  private void listHosts() throws IOException {
    List<String> lines = new ArrayList<>();
    for (Owner.DataServer server : Owner.data()) {
      lines.add("127.0.0.1:" + server.port());
    }
    Files.write(Paths.get(conf.get("dfs.hosts")), lines);
    Inside.refresh();
  }

  /** Those that differ from what they are by themselves. */
  private List<String> serversKeys() {
    Configuration usual = new HdfsConfiguration();
    List<String> found = new ArrayList<>();
    for (String key : SERVERS_KEYS) {
      String value = conf.get(key);
      boolean isNoExtension = key.equals("dfs.namenode.safemode.extension") && "0".equals(value);
      if (value != null && !value.equals(usual.get(key)) && !isNoExtension) {
        found.add(key + "=" + value);
      }
    }
    return found;
  }

  private void emptyAsOwner() throws IOException {
    asOwner(
        () -> {
          empty();
          return null;
        });
  }

  /** The user that the test acts as at the moment. */
  private static <T> T asOwner(PrivilegedExceptionAction<T> action) throws IOException {
    try {
      return UserGroupInformation.createRemoteUser(System.getProperty("user.name")).doAs(action);
    } catch (InterruptedException error) {
      throw new InterruptedIOException();
    }
  }

  /** The stand-in's clients share no cache of connections with the test's, which may want another one. */
  private static Configuration ourConfiguration() {
    Configuration ours = new HdfsConfiguration();
    ours.set("dfs.client.context", "stand-in");
    return ours;
  }

  private void empty() throws IOException {
    try (DistributedFileSystem fs = (DistributedFileSystem) FileSystem.newInstance(uri, ourConfiguration())) {
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
    dropErasureCoding(fs);
    try {
      for (String name : fs.listXAttrs(root)) {
        fs.removeXAttr(root, name);
      }
      fs.removeAcl(root);
    } catch (IOException switchedOff) {
      // Then a test has come as far as this with a server that has none of them.
    }
    fs.setPermission(root, new FsPermission((short) 0755));
    fs.setOwner(root, System.getProperty("user.name"), "supergroup");
  }

  private static void dropErasureCoding(DistributedFileSystem fs) throws IOException {
    if (fs.getErasureCodingPolicy(new Path("/")) != null) {
      fs.unsetErasureCodingPolicy(new Path("/"));
    }
    for (ErasureCodingPolicyInfo policy : fs.getAllErasureCodingPolicies()) {
      if (policy.isEnabled()) {
        fs.disableErasureCodingPolicy(policy.getPolicy().getName());
      }
    }
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

  /** Until the metadata server knows the data servers that run. Some were stopped in a way of which nothing is known here, so not for ever. */
  public void waitActive() throws IOException {
    if (!HAS_LAYOUTS) {
      return;
    }
    long deadline = System.nanoTime() + ACTIVE_S * 1_000_000_000L;
    try (DistributedFileSystem fs = (DistributedFileSystem) FileSystem.newInstance(uri, ourConfiguration())) {
      while (countReady(fs) < running.size() && System.nanoTime() < deadline) {
        Thread.sleep(50);
      }
    } catch (InterruptedException error) {
      throw new InterruptedIOException();
    }
  }

  public void waitActive(int index) throws IOException {
    waitActive();
  }

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
            // A call that could not be sent, for a `null` in it, leaves its number to the thread's next one, which then fails.
            ((ThreadLocal<?>) field(Client.class, "callId").get(null)).remove();
            // In a server's own process nothing is wrapped.
            throw error.getCause() instanceof RemoteException remote ? remote.unwrapRemoteException() : error.getCause();
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
    FSNamesystem names = getNamesystem();
    Mockito.doReturn(names).when(mock).getNamesystem();
    Mockito.doReturn(true).when(mock).isActiveState();
    Mockito.doReturn(uri.getAuthority()).when(mock).getHostAndPort();
    Mockito.doReturn(new InetSocketAddress(uri.getHost(), uri.getPort())).when(mock).getNameNodeAddress();
    Mockito.doReturn(new InetSocketAddress(uri.getHost(), uri.getPort())).when(mock).getServiceRpcAddress();
    Mockito.doAnswer(call -> rpc.setSafeMode(SafeModeAction.SAFEMODE_GET, false)).when(mock).isInSafeMode();
    return mock;
  }

  public NameNode getNameNode(int index) throws IOException {
    return getNameNode();
  }

  public FSNamesystem getNamesystem() {
    try {
      return asOwner(this::inside).namesystem();
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }

  private synchronized Inside inside() throws IOException {
    if (inside == null) {
      inside = new Inside(this, (DistributedFileSystem) FileSystem.newInstance(uri, ourConfiguration()));
    }
    return inside;
  }

  public FSNamesystem getNamesystem(int index) {
    return getNamesystem();
  }

  /** With the configuration as it is by now. The data servers stay. */
  private synchronized void restart(boolean waits) throws IOException {
    List<String> words = new ArrayList<>(List.of("restart"));
    if (HAS_LAYOUTS) {
      words.addAll(serversKeys());
    }
    Owner.ask(words.toArray(String[]::new));
    forgetConnections();
    if (waits) {
      await(true);
    }
  }

  /** A client that is idle does not look at its connection, and Hadoop's class has another port each time. */
  private static void forgetConnections() {
    try {
      Object clients = field(ProtobufRpcEngine2.class, "CLIENTS").get(null);
      for (Object client : ((Map<?, ?>) field(clients.getClass(), "clients").get(clients)).values()) {
        for (Object connection : ((Map<?, ?>) field(client.getClass(), "connections").get(client)).values()) {
          Method close = connection.getClass().getDeclaredMethod("markClosed", IOException.class);
          close.setAccessible(true);
          close.invoke(connection, new IOException("the cluster is another one"));
        }
      }
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  private static Field field(Class<?> of, String name) throws NoSuchFieldException {
    Field found = of.getDeclaredField(name);
    found.setAccessible(true);
    return found;
  }

  /** Until the metadata server answers, and, if wanted, knows its data servers and is out of safe mode. */
  private void await(boolean entirely) throws IOException {
    long deadline = System.nanoTime() + RESTART_S * 1_000_000_000L;
    Configuration patient = ourConfiguration();
    patient.setInt("ipc.client.connect.max.retries", RESTART_S);
    try (DistributedFileSystem fs = (DistributedFileSystem) FileSystem.newInstance(uri, patient)) {
      while (true) {
        try {
          boolean isSafe = fs.setSafeMode(SafeModeAction.SAFEMODE_GET);
          if (!entirely || !isSafe && countReady(fs) >= running.size()) {
            return;
          }
        } catch (IOException error) {
          if (System.nanoTime() > deadline) {
            throw error;
          }
        }
        if (System.nanoTime() > deadline) {
          throw new IOException("in safe mode or without its data servers after " + RESTART_S + " s");
        }
        Thread.sleep(50);
      }
    } catch (InterruptedException error) {
      throw new InterruptedIOException();
    }
  }

  /** Before its first heartbeat Hadoop's NameNode knows of no room on a data server, and places nothing there. */
  private static long countReady(DistributedFileSystem fs) throws IOException {
    return Arrays.stream(fs.getDataNodeStats(DatanodeReportType.LIVE)).filter(server -> server.getCapacity() > 0).count();
  }

  public void restartNameNode(String... arguments) throws IOException {
    restart(true);
  }

  public void restartNameNode(boolean waitActive) throws IOException {
    restart(waitActive);
  }

  public void restartNameNode(int index) throws IOException {
    restart(true);
  }

  public void restartNameNode(int index, boolean waitActive, String... arguments) throws IOException {
    restart(waitActive);
  }

  public void restartNameNodes() throws IOException {
    restart(true);
  }

  public void shutdownNameNode(int index) throws IOException {
    Owner.ask("stop-metadata");
  }

  public void shutdownNameNodes() throws IOException {
    Owner.ask("stop-metadata");
  }

  /** A data server that a test has in its hand; its other fields are of no use outside of the server's process. */
  public static class DataNodeProperties {
    final int number;
    final DataNode datanode;
    final Configuration conf;

    DataNodeProperties(int number, DataNode datanode, Configuration conf) {
      this.number = number;
      this.datanode = datanode;
      this.conf = conf;
    }

    public DataNode getDatanode() {
      return datanode;
    }
  }

  /** Mocks that know who they are and where, and that can be shut down. */
  @Override
  public ArrayList<DataNode> getDataNodes() {
    ArrayList<DataNode> found = new ArrayList<>();
    try {
      for (int number : running) {
        found.add(dataNode(number));
      }
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
    return found;
  }

  public DataNode[] listDataNodes() {
    return getDataNodes().toArray(DataNode[]::new);
  }

  public DataNode getDataNode(int ipcPort) {
    return getDataNodes().stream().filter(node -> node.getIpcPort() == ipcPort).findFirst().orElse(null);
  }

  private DataNode dataNode(int number) throws IOException {
    int port = Owner.data().get(number).port();
    DatanodeInfo info = null;
    try (DistributedFileSystem fs = (DistributedFileSystem) FileSystem.newInstance(uri, ourConfiguration())) {
      for (DatanodeInfo candidate : fs.getDataNodeStats(DatanodeReportType.ALL)) {
        if (candidate.getXferPort() == port) {
          info = candidate;
        }
      }
    }
    DataNode mock = Mockito.mock(DataNode.class, Mockito.RETURNS_DEEP_STUBS);
    if (info != null) {
      Mockito.doReturn(info).when(mock).getDatanodeId();
      Mockito.doReturn(info.getDatanodeUuid()).when(mock).getDatanodeUuid();
      Mockito.doReturn(info.getXferAddr()).when(mock).getDisplayName();
      Mockito.doReturn(info.getXferPort()).when(mock).getXferPort();
      Mockito.doReturn(info.getIpcPort()).when(mock).getIpcPort();
      Mockito.doReturn(info.getInfoPort()).when(mock).getInfoPort();
      Mockito.doReturn(new InetSocketAddress(info.getIpAddr(), info.getXferPort())).when(mock).getXferAddress();
      Mockito.doReturn(new DatanodeRegistration(info, null, null, info.getSoftwareVersion())).when(mock).getDNRegistrationForBP(Mockito.any());
    }
    Mockito.doAnswer(call -> stop(number)).when(mock).shutdown();
    return mock;
  }

  private synchronized Void stop(int number) throws IOException {
    if (running.remove((Integer) number)) {
      Owner.ask("stop-data", Integer.toString(number));
    }
    return null;
  }

  public synchronized DataNodeProperties stopDataNode(int index) {
    if (index < 0 || index >= running.size()) {
      return null;
    }
    try {
      int number = running.get(index);
      DataNodeProperties stopped = new DataNodeProperties(number, dataNode(number), conf);
      stop(number);
      return stopped;
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }

  public synchronized DataNodeProperties stopDataNode(String address) {
    for (int index = 0; index < running.size(); index++) {
      if (getDataNodes().get(index).getDatanodeId().getXferAddr().equals(address)) {
        return stopDataNode(index);
      }
    }
    return null;
  }

  /** More of them, beside those that run. */
  private synchronized void add(int count, StorageType[][] types, String[] racks, Object capacities) throws IOException {
    refuseCapacities(capacities);
    for (int started = 0; started < count; started++) {
      StorageType[] media = types == null ? new StorageType[] {StorageType.DISK, StorageType.DISK} : types[started];
      String names = Arrays.stream(media).map(StorageType::name).collect(Collectors.joining(","));
      Owner.ask("add-data", racks == null ? "" : racks[started], names);
      running.add(Owner.data().size() - 1);
    }
  }

  public void startDataNodes(
      Configuration conf,
      int count,
      StorageType[][] types,
      boolean manages,
      StartupOption option,
      String[] racks,
      String[] hosts,
      long[][] capacities,
      long[] simulated,
      boolean listsHosts,
      boolean checksAddress,
      boolean checksHost,
      Configuration[] overlays,
      int[] httpPorts,
      int[] ipcPorts)
      throws IOException {
    add(count, types, racks, capacities == null ? simulated : capacities);
  }

  public void startDataNodes(
      Configuration conf, int count, boolean manages, StartupOption option, String[] racks, String[] hosts, long[] simulated)
      throws IOException {
    add(count, null, racks, simulated);
  }

  public void startDataNodes(
      Configuration conf, int count, boolean manages, StartupOption option, String[] racks, String[] hosts, long[] simulated, boolean listsHosts)
      throws IOException {
    add(count, null, racks, simulated);
    if (listsHosts) {
      listHosts();
    }
  }

  public void startDataNodes(Configuration conf, int count, boolean manages, StartupOption option, String[] racks, long[] simulated)
      throws IOException {
    add(count, null, racks, simulated);
  }

  public void startDataNodes(Configuration conf, int count, boolean manages, StartupOption option, String[] racks) throws IOException {
    add(count, null, racks, null);
  }

  public void shutdownDataNode(int index) throws IOException {
    stop(running.get(index));
  }

  public void shutdownDataNodes() throws IOException {
    for (int number : List.copyOf(running)) {
      stop(number);
    }
  }

  public synchronized boolean restartDataNode(DataNodeProperties stopped, boolean keepPort) throws IOException {
    Owner.ask("start-data", Integer.toString(stopped.number));
    running.add(stopped.number);
    return true;
  }

  public boolean restartDataNode(DataNodeProperties stopped) throws IOException {
    return restartDataNode(stopped, false);
  }

  public boolean restartDataNode(int index, boolean keepPort) throws IOException {
    DataNodeProperties stopped = stopDataNode(index);
    return stopped != null && restartDataNode(stopped, keepPort);
  }

  /** Where a test wants the metadata server to take it for dead in between, it does not, on either side. */
  public boolean restartDataNode(int index, boolean keepPort, boolean expire) throws IOException {
    return restartDataNode(index, keepPort);
  }

  public boolean restartDataNode(int index) throws IOException {
    return restartDataNode(index, false);
  }

  public boolean restartDataNode(String address) throws IOException {
    DataNodeProperties stopped = stopDataNode(address);
    return stopped != null && restartDataNode(stopped);
  }

  public boolean restartDataNodes(boolean keepPort) throws IOException {
    for (int index = running.size() - 1; index >= 0; index--) {
      restartDataNode(index, keepPort);
    }
    return true;
  }

  public boolean restartDataNodes() throws IOException {
    return restartDataNodes(false);
  }

  public boolean isDataNodeUp() {
    return !running.isEmpty();
  }

  /** They do so by themselves, at each of their heartbeats. */
  public void triggerHeartbeats() throws InterruptedException {
    Thread.sleep(HEARTBEAT_MS);
  }

  public void triggerBlockReports() throws InterruptedException {
    Thread.sleep(HEARTBEAT_MS);
  }

  public void triggerDeletionReports() throws InterruptedException {
    Thread.sleep(HEARTBEAT_MS);
  }

  public void waitDatanodeFullyStarted(DataNode server, int timeout) throws IOException {
    await(true);
  }

  public void waitFirstBRCompleted(int index, int timeout) throws IOException, TimeoutException, InterruptedException {
    await(true);
  }

  @Override
  List<File> directories(int index) {
    try {
      return Owner.data().get(running.get(index)).directories();
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
  }

  @Override
  int countServers() {
    return running.size();
  }

  public int getNumNameNodes() {
    return 1;
  }

  public String getHttpUri(int index) {
    return "http://" + System.getProperty("clover.contract.http");
  }

  public static String getBaseDirectory() {
    return GenericTestUtils.getTestDir("dfs").getAbsolutePath() + File.separator;
  }

  public void setWaitSafeMode(boolean wait) {}

  public void setNameNodeConf(int index, Configuration changed) {
    for (Map.Entry<String, String> entry : changed) {
      conf.set(entry.getKey(), entry.getValue());
    }
  }

  public void waitNameNodeUp(int index) throws IOException {
    await(true);
  }

  public boolean isNameNodeUp(int index) {
    return true;
  }

  public void shutdown() {}

  public void shutdown(boolean deleteDirectory) {}

  public void shutdown(boolean deleteDirectory, boolean closeFileSystem) {}

  public static void shutdownCluster(MiniDFSCluster cluster) {}

  @Override
  public void close() {}
}
