import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSOutputStream;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream.SyncFlag;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.HdfsConstants.DatanodeReportType;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.ipc.RemoteException;

/**
 * Files that are written on, and pipelines that lose a server at each of their stages.
 *
 * <p>Speaks with whoever has started it, a line each: `begin NAME`, then `freeze PORT`, `kill PORT` or `start PORT`, which
 * name a data server and wait for a line in answer, then `end ok` or `end` with what went wrong.
 */
final class WritingOn {
  private static final int BLOCK = 4 << 20;
  /** Ends inside a chunk of 512 bytes. */
  private static final int BEGINNING = (1 << 20) + 700;
  /** Goes over into a second block. */
  private static final int TOTAL = BLOCK + (1 << 20) + 123;
  private static final long PATIENCE_MS = 30_000;
  private static final Path ROOT = new Path("/writing-on");

  private final URI uri;
  private final int rounds;
  private final BufferedReader answers = new BufferedReader(new InputStreamReader(System.in));
  private DistributedFileSystem fs;

  private WritingOn(URI uri, int rounds) {
    this.uri = uri;
    this.rounds = rounds;
  }

  /** As many rounds as there are places in a pipeline: in each another one is lost. */
  static void run(URI uri, int rounds) throws Exception {
    new WritingOn(uri, rounds).run();
  }

  private interface Case {
    void run() throws Exception;
  }

  private enum Stage { SET_UP, STREAMING, HFLUSH, CLOSE }

  private void run() throws Exception {
    fs = connect("DEFAULT");
    fs.mkdirs(ROOT);
    tell("append, also to a new block", this::append);
    tell("truncate at a border and inside a block, then append", this::truncate);
    tell("truncate inside blocks that snapshots show", this::truncateUnderSnapshots);
    tell("concat", this::concat);
    tell("what is flushed is read while it is written", this::readWhileWritten);
    tell("one writer at a time; an abandoned one keeps what it flushed", this::oneWriter);
    for (int place = 0; place < rounds; place++) {
      int lost = place;
      for (Stage stage : Stage.values()) {
        String what = stage.name().toLowerCase().replace('_', '-') + ", server " + (place + 1) + " killed";
        tell("create: " + what, () -> lose(stage, lost, false, "DEFAULT"));
        tell("append: " + what, () -> lose(stage, lost, true, "DEFAULT"));
      }
      tell("policy ALWAYS: server " + (place + 1) + " killed is replaced", () -> lose(Stage.HFLUSH, lost, false, "ALWAYS"));
      tell("policy NEVER: server " + (place + 1) + " killed is not", () -> lose(Stage.HFLUSH, lost, false, "NEVER"));
      tell("truncate while server " + (place + 1) + " is dead", () -> truncateWithout(lost));
    }
    fs.delete(ROOT, true);
  }

  private DistributedFileSystem connect(String policy) throws IOException {
    Configuration conf = new Configuration();
    conf.setInt("dfs.replication", 3);
    conf.setInt("dfs.blocksize", BLOCK);
    conf.setInt("dfs.client.socket-timeout", 20_000);
    conf.set("dfs.client.block.write.replace-datanode-on-failure.policy", policy);
    return (DistributedFileSystem) FileSystem.newInstance(uri, conf);
  }

  private void tell(String name, Case story) throws IOException {
    System.out.println("begin " + name);
    try {
      story.run();
      System.out.println("end ok");
    } catch (Exception | AssertionError failed) {
      failed.printStackTrace();
      System.out.println("end " + failed.toString().replace('\n', ' '));
    }
  }

  private void order(String what, int port) throws IOException {
    System.out.println(what + " " + port);
    check(answers.readLine() != null, "nobody answers any more");
  }

  // What is done without faults.

  private void append() throws Exception {
    Path path = new Path(ROOT, "appended");
    write(fs.create(path), 0, 10);
    int[] ends = {511, 512, 700, BLOCK - 1, BLOCK, BLOCK + 5};
    int at = 10;
    for (int end : ends) {
      write(fs.append(path), at, end);
      at = end;
      expect(path, at);
    }
    write(fs.append(path, EnumSet.of(CreateFlag.APPEND, CreateFlag.NEW_BLOCK), 4096, null), at, at + 7);
    expect(path, at + 7);
    List<LocatedBlock> blocks = fs.getClient().getLocatedBlocks(path.toString(), 0).getLocatedBlocks();
    check(blocks.size() == 3 && blocks.get(2).getBlockSize() == 7, "a block of its own: " + blocks);
    fs.append(path).close();
    expect(path, at + 7);
  }

  private void truncate() throws Exception {
    Path path = new Path(ROOT, "truncated");
    write(fs.create(path), 0, TOTAL);
    check(fs.truncate(path, BLOCK), "at the end of a block at once");
    expect(path, BLOCK);
    for (int length : new int[] {BLOCK - 1, 1024, 700, 1}) {
      check(!fs.truncate(path, length), "inside a block later");
      check(!fs.isFileClosed(path), "the data servers have still to be told");
      awaitClosed(path);
      expect(path, length);
    }
    write(fs.append(path), 1, BEGINNING);
    expect(path, BEGINNING);
    check(fs.truncate(path, 0), "to nothing at once");
    expect(path, 0);
    refused("Cannot truncate to a larger file size. Current size: 0, truncate size: 5.", () -> fs.truncate(path, 5));
  }

  /** What a snapshot shows stays as it was, also when that goes while a block is being copied. */
  private void truncateUnderSnapshots() throws Exception {
    Path directory = new Path(ROOT, "shown");
    Path path = new Path(directory, "truncated");
    fs.mkdirs(directory);
    fs.allowSnapshot(directory);
    write(fs.create(path), 0, TOTAL);
    fs.createSnapshot(directory, "whole");
    int[] lengths = {BLOCK + 700, BLOCK - 1, 513, 1};
    for (int length : lengths) {
      check(!fs.truncate(path, length), "inside a block later");
      awaitClosed(path);
      expect(path, length);
      fs.createSnapshot(directory, "s" + length);
    }
    expect(new Path(directory, ".snapshot/whole/truncated"), TOTAL);
    for (int length : lengths) {
      expect(new Path(directory, ".snapshot/s" + length + "/truncated"), length);
    }
    write(fs.append(path), 1, TOTAL);
    fs.createSnapshot(directory, "last");
    check(!fs.truncate(path, TOTAL - 5), "inside a block later");
    fs.deleteSnapshot(directory, "last");
    awaitClosed(path);
    expect(path, TOTAL - 5);
    fs.deleteSnapshot(directory, "whole");
    for (int length : lengths) {
      expect(new Path(directory, ".snapshot/s" + length + "/truncated"), length);
      fs.deleteSnapshot(directory, "s" + length);
    }
    expect(path, TOTAL - 5);
    fs.disallowSnapshot(directory);
  }

  private void concat() throws Exception {
    Path[] parts = {new Path(ROOT, "p0"), new Path(ROOT, "p1"), new Path(ROOT, "p2")};
    // What comes before the last block is a multiple of a checksum chunk: those of 3.3.6 cannot append otherwise, for they
    // take the length of the file for that of its last block. Hadoop's DataNodes refuse what they send then as well.
    int[] ends = {0, 1000, BLOCK + 1024, BLOCK + 1025};
    for (int part = 0; part < parts.length; part++) {
      write(fs.create(parts[part]), ends[part], ends[part + 1]);
    }
    fs.concat(parts[0], new Path[] {parts[1], parts[2]});
    expect(parts[0], BLOCK + 1025);
    check(!fs.exists(parts[1]) && !fs.exists(parts[2]), "the parts are gone");
    refused("concat: the src file " + parts[0] + " is the same with the target file " + parts[0],
        () -> fs.concat(parts[0], new Path[] {parts[0]}));
    write(fs.append(parts[0]), BLOCK + 1025, TOTAL);
    expect(parts[0], TOTAL);
  }

  private void readWhileWritten() throws Exception {
    Path path = new Path(ROOT, "read while written");
    try (FSDataOutputStream out = fs.create(path)) {
      int at = 0;
      for (int end : new int[] {5, 512, 1300, 70_000, BLOCK, BLOCK + 4, BLOCK + 9}) {
        out.write(bytes(at, end));
        out.hflush();
        at = end;
        same(path, at);
      }
      long known = fs.getFileStatus(path).getLen();
      // The client tells it with the first flush of a block.
      check(known == BLOCK + 4, "the length that the metadata server was told: " + known);
      ((HdfsDataOutputStream) out).hsync(EnumSet.of(SyncFlag.UPDATE_LENGTH));
      check(fs.getFileStatus(path).getLen() == at, "told now: " + fs.getFileStatus(path).getLen());
      check(!fs.isFileClosed(path), "it is open");
    }
    check(fs.isFileClosed(path), "it is closed");
    try (FSDataOutputStream out = fs.append(path)) {
      out.write(bytes(BLOCK + 9, BLOCK + 600));
      out.hflush();
      same(path, BLOCK + 600);
    }
    expect(path, BLOCK + 600);
  }

  private void oneWriter() throws Exception {
    Path path = new Path(ROOT, "one writer");
    write(fs.create(path), 0, BEGINNING);
    try (DistributedFileSystem second = connect("DEFAULT"); DistributedFileSystem third = connect("DEFAULT")) {
      FSDataOutputStream abandoned = second.append(path);
      abandoned.write(bytes(BEGINNING, BEGINNING + 99_999));
      abandoned.hflush();
      for (Case refused : new Case[] {() -> third.append(path), () -> third.truncate(path, 1)}) {
        refused("because this file lease is currently owned by " + second.getClient().getClientName(), refused);
      }
      long begun = System.currentTimeMillis();
      while (!third.recoverLease(path)) {
        check(System.currentTimeMillis() - begun < PATIENCE_MS, "the lease is not recovered");
        Thread.sleep(100);
      }
      expect(path, BEGINNING + 99_999);
      write(third.append(path), BEGINNING + 99_999, TOTAL);
      expect(path, TOTAL);
      try {
        abandoned.close();
      } catch (IOException late) {
        // It has lost the file.
      }
    }
    expect(path, TOTAL);
  }

  // Servers that are lost.

  private void lose(Stage stage, int place, boolean isAppend, String policy) throws Exception {
    Path path = new Path(ROOT, stage + "-" + place + "-" + isAppend + "-" + policy);
    int port = -1;
    try (DistributedFileSystem client = connect(policy)) {
      int at = isAppend ? BEGINNING : 0;
      if (isAppend) {
        write(client.create(path), 0, BEGINNING);
        // The file is closed as soon as one server has reported the block: the others may do so a moment later.
        awaitPlaces(path);
      }
      FSDataOutputStream out;
      if (stage == Stage.SET_UP) {
        port = isAppend ? places(path).get(place) : aServer(place);
        order("freeze", port);
        out = isAppend ? client.append(path) : client.create(path);
        CompletableFuture<Void> writing = later(() -> { out.write(bytes(isAppend ? BEGINNING : 0, 2 << 20)); out.hflush(); });
        Thread.sleep(300);
        order("kill", port);
        writing.get();
        at = 2 << 20;
      } else {
        out = isAppend ? client.append(path) : client.create(path);
        out.write(bytes(at, at + (1 << 20) + 5));
        at += (1 << 20) + 5;
        if (stage != Stage.STREAMING) {
          out.hflush();
          same(path, at);
        }
        port = pipeline(out).get(place);
        if (stage == Stage.CLOSE) {
          // The end is on its way when the server dies.
          order("freeze", port);
          CompletableFuture<Void> closing = later(out::close);
          Thread.sleep(300);
          order("kill", port);
          closing.get();
        } else {
          order("kill", port);
          out.write(bytes(at, at + 300_000));
          at += 300_000;
          out.hflush();
          same(path, at);
          int replicas = ((HdfsDataOutputStream) out).getCurrentBlockReplication();
          // DEFAULT: a server is replaced if there were three and the block was flushed or appended to.
          boolean isReplaced = policy.equals("ALWAYS") || (policy.equals("DEFAULT") && (isAppend || stage == Stage.HFLUSH));
          // The flush may come before the streamer has seen what happened.
          boolean isEither = policy.equals("DEFAULT") && stage == Stage.STREAMING;
          check(replicas == (isReplaced ? 3 : 2) || (isEither && replicas == 3), replicas + " servers go on");
          check(!pipeline(out).contains(port), "the dead one is still in the pipeline");
        }
      }
      if (stage != Stage.CLOSE) {
        out.write(bytes(at, TOTAL));
        at = TOTAL;
        out.close();
      }
      expect(path, at);
      if (isAppend && stage == Stage.CLOSE) {
        write(client.append(path), at, TOTAL);
        expect(path, TOTAL);
      }
    } finally {
      restart(port);
    }
  }

  private void truncateWithout(int place) throws Exception {
    Path path = new Path(ROOT, "truncated without " + place);
    write(fs.create(path), 0, BEGINNING);
    int port = places(path).get(place);
    try {
      order("kill", port);
      check(!fs.truncate(path, 1234), "inside a block later");
      awaitClosed(path);
      expect(path, 1234);
      write(fs.append(path), 1234, BEGINNING);
      expect(path, BEGINNING);
    } finally {
      restart(port);
    }
    // What the server brings back is of yesterday, and nobody is given it.
    for (int times = 0; times < 5; times++) {
      expect(path, BEGINNING);
    }
  }

  private void restart(int port) throws Exception {
    if (port < 0) {
      return;
    }
    long killed = System.currentTimeMillis();
    order("start", port);
    while (true) {
      for (DatanodeInfo server : fs.getDataNodeStats(DatanodeReportType.LIVE)) {
        if (server.getXferPort() == port && server.getLastUpdate() > killed) {
          return;
        }
      }
      check(System.currentTimeMillis() - killed < PATIENCE_MS, "server " + port + " does not come back");
      Thread.sleep(50);
    }
  }

  private int aServer(int place) throws IOException {
    Set<Integer> ports = new TreeSet<>();
    for (DatanodeInfo server : fs.getDataNodeStats(DatanodeReportType.LIVE)) {
      ports.add(server.getXferPort());
    }
    return ports.stream().skip(place).findFirst().orElseThrow();
  }

  /** The ports of the data servers that have the last block. */
  private List<Integer> places(Path path) throws IOException {
    return ports(fs.getClient().getLocatedBlocks(path.toString(), 0).getLastLocatedBlock().getLocations());
  }

  private static List<Integer> pipeline(FSDataOutputStream out) throws Exception {
    DFSOutputStream stream = (DFSOutputStream) out.getWrappedStream();
    for (int tries = 0; tries < 200; tries++) {
      DatanodeInfo[] servers = stream.getPipeline();
      if (servers != null) {
        return ports(servers);
      }
      Thread.sleep(20);
    }
    throw new AssertionError("there is no pipeline");
  }

  private static List<Integer> ports(DatanodeInfo[] servers) {
    return Arrays.stream(servers).map(DatanodeInfo::getXferPort).collect(Collectors.toList());
  }

  private static CompletableFuture<Void> later(Case work) {
    return CompletableFuture.runAsync(() -> {
      try {
        work.run();
      } catch (Exception error) {
        throw new IllegalStateException(error);
      }
    });
  }

  // Bytes.

  /** Those of a file from one place to another; no two pieces are alike. */
  private static byte[] bytes(int from, int to) {
    byte[] bytes = new byte[to - from];
    for (int i = 0; i < bytes.length; i++) {
      int at = (from + i) * 0x9E3779B1;
      bytes[i] = (byte) (at ^ at >>> 15);
    }
    return bytes;
  }

  private static void write(FSDataOutputStream out, int from, int to) throws IOException {
    try (out) {
      out.write(bytes(from, to));
    }
  }

  private void awaitPlaces(Path path) throws Exception {
    long begun = System.currentTimeMillis();
    while (places(path).size() < 3) {
      check(System.currentTimeMillis() - begun < PATIENCE_MS, path + " stays in too few places");
      Thread.sleep(20);
    }
  }

  private void awaitClosed(Path path) throws Exception {
    long begun = System.currentTimeMillis();
    while (!fs.isFileClosed(path)) {
      check(System.currentTimeMillis() - begun < PATIENCE_MS, path + " stays open");
      Thread.sleep(50);
    }
  }

  private void expect(Path path, int length) throws IOException {
    long known = fs.getFileStatus(path).getLen();
    check(known == length, path + " has " + known + " bytes instead of " + length);
    same(path, length);
  }

  /** Another client reads exactly the first bytes. */
  private void same(Path path, int length) throws IOException {
    byte[] read = new byte[length];
    try (InputStream in = fs.open(path)) {
      int got = in.readNBytes(read, 0, length);
      check(got == length, path + ": " + got + " of " + length + " bytes can be read");
      check(in.read() < 0, path + ": more than " + length + " bytes can be read");
    }
    int different = Arrays.mismatch(read, bytes(0, length));
    check(different < 0, path + " differs at " + different);
  }

  private static void refused(String why, Case call) throws Exception {
    try {
      call.run();
    } catch (RemoteException refused) {
      check(refused.getMessage().contains(why), refused.getMessage());
      return;
    }
    throw new AssertionError("not refused: " + why);
  }

  private static void check(boolean holds, String sentence) {
    if (!holds) {
      throw new AssertionError(sentence);
    }
  }
}
