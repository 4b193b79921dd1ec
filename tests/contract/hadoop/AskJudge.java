import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.hadoop.security.GroupMappingServiceProvider;
import org.apache.hadoop.security.ShellBasedUnixGroupsMapping;

/** Which groups a user is in, as the tests in the judge's JVM have it; the system's answer while no judge runs. */
public class AskJudge implements GroupMappingServiceProvider {
  private final ShellBasedUnixGroupsMapping system = new ShellBasedUnixGroupsMapping();

  @Override
  public List<String> getGroups(String user) throws IOException {
    int port = Integer.getInteger("clover.contract.groups");
    try (Socket judge = new Socket(InetAddress.getLoopbackAddress(), port)) {
      judge.getOutputStream().write((user + "\n").getBytes(StandardCharsets.UTF_8));
      String line = new BufferedReader(new InputStreamReader(judge.getInputStream(), StandardCharsets.UTF_8)).readLine();
      return line == null || line.isEmpty() ? List.of() : List.of(line.split(" "));
    } catch (ConnectException nobody) {
      return system.getGroups(user);
    }
  }

  @Override
  public void cacheGroupsRefresh() {}

  @Override
  public void cacheGroupsAdd(List<String> groups) {}
}
