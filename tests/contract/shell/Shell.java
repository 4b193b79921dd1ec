import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.tools.CacheAdmin;
import org.apache.hadoop.hdfs.tools.CryptoAdmin;
import org.apache.hadoop.hdfs.tools.DFSAdmin;
import org.apache.hadoop.hdfs.tools.DFSck;
import org.apache.hadoop.hdfs.tools.ECAdmin;
import org.apache.hadoop.hdfs.tools.GetConf;
import org.apache.hadoop.hdfs.tools.GetGroups;
import org.apache.hadoop.hdfs.tools.StoragePolicyAdmin;
import org.apache.hadoop.hdfs.tools.snapshot.LsSnapshot;
import org.apache.hadoop.hdfs.tools.snapshot.LsSnapshottableDir;
import org.apache.hadoop.hdfs.tools.snapshot.SnapshotDiff;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Hadoop's command lines, many times in one JVM: {@code Shell URI}. A line of standard input is user, tool, standard input,
 * arguments; a line of standard output is exit code, standard output, standard error. Tabs stand between, and texts are
 * in base64.
 */
public class Shell {
  private static final Map<String, UserGroupInformation> users = new HashMap<>();
  private static final List<FSDataOutputStream> held = new ArrayList<>();

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      String[] request = line.split("\t", -1);
      byte[] input = Base64.getDecoder().decode(request[2]);
      String[] words = Arrays.stream(request).skip(3).map(Shell::text).toArray(String[]::new);
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      ByteArrayOutputStream err = new ByteArrayOutputStream();
      int code = call(arguments[0], request[0], request[1], input, words, out, err);
      answers.println(code + "\t" + encode(out) + "\t" + encode(err));
      answers.flush();
    }
    System.exit(0);
  }

  /** Runs one command as a process of its own would see it: a fresh configuration, no file system left over. */
  private static int call(
      String uri, String user, String tool, byte[] input, String[] words, ByteArrayOutputStream out, ByteArrayOutputStream err)
      throws IOException {
    InputStream in = System.in;
    PrintStream oldOut = System.out;
    PrintStream oldErr = System.err;
    System.setIn(new ByteArrayInputStream(input));
    System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
    System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
    try {
      Configuration conf = new HdfsConfiguration();
      FileSystem.setDefaultUri(conf, uri);
      PrivilegedExceptionAction<Integer> action = () -> ToolRunner.run(conf, tool(tool, conf), words);
      return user.isEmpty() ? action.run() : as(user).doAs(action);
    } catch (Exception error) {
      // What a main function would let through: the stack trace's first line tells enough.
      System.err.println("Exception in thread \"main\" " + error);
      return 255;
    } finally {
      System.out.flush();
      System.err.flush();
      System.setIn(in);
      System.setOut(oldOut);
      System.setErr(oldErr);
      FileSystem.closeAll();
    }
  }

  private static Tool tool(String name, Configuration conf) throws ReflectiveOperationException, IOException {
    return switch (name) {
      case "dfs" -> new FsShell();
      case "dfsadmin" -> new DFSAdmin(conf);
      case "storagepolicies" -> new StoragePolicyAdmin(conf);
      case "fsck" -> new DFSck(conf, System.out);
      case "hold" -> new Hold();
      case "ec" -> new ECAdmin(conf);
      case "cacheadmin" -> new CacheAdmin(conf);
      case "crypto" -> new CryptoAdmin(conf);
      case "groups" -> new GetGroups(conf);
      case "getconf" -> getConf(conf);
      case "snapshotDiff" -> with(new SnapshotDiff(), conf);
      case "lsSnapshottableDir" -> with(new LsSnapshottableDir(), conf);
      case "lsSnapshot" -> with(new LsSnapshot(), conf);
      default -> throw new IllegalArgumentException("no such tool: " + name);
    };
  }

  /** Its constructor is for its own main function only, and that one ends the JVM. */
  private static Tool getConf(Configuration conf) throws ReflectiveOperationException {
    Constructor<GetConf> constructor = GetConf.class.getDeclaredConstructor(Configuration.class);
    constructor.setAccessible(true);
    return constructor.newInstance(conf);
  }

  private static Tool with(Tool tool, Configuration conf) {
    tool.setConf(conf);
    return tool;
  }

  /** {@code hold PATH}: writes standard input to a file, and leaves it open until this JVM ends. */
  private static class Hold extends Configured implements Tool {
    @Override
    public int run(String[] words) throws IOException {
      // One of its own, which is not closed with all others after the command.
      DistributedFileSystem system = new DistributedFileSystem();
      system.initialize(FileSystem.getDefaultUri(getConf()), getConf());
      FSDataOutputStream file = system.create(new Path(words[0]));
      System.in.transferTo(file);
      file.hflush();
      held.add(file);
      return 0;
    }
  }

  private static UserGroupInformation as(String user) {
    return users.computeIfAbsent(user, UserGroupInformation::createRemoteUser);
  }

  private static String text(String encoded) {
    return new String(Base64.getDecoder().decode(encoded), StandardCharsets.UTF_8);
  }

  private static String encode(ByteArrayOutputStream bytes) {
    return Base64.getEncoder().encodeToString(bytes.toByteArray());
  }
}
