import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.security.UserGroupInformation;
import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs test classes one after the other in this JVM and writes a line for each test as it ends: class, test, result,
 * milliseconds and the first line of the reason, with tabs between; stack traces go to standard error.
 *
 * <p>{@code Judge RESULTS CLASS …}. Ends with 0 once all have run, whatever their results.
 */
public class Judge implements TestExecutionListener {
  /** A test may wait for what never comes. */
  private static final int TEST_TIMEOUT_S = Integer.getInteger("clover.contract.limit", 120);

  private final PrintWriter results;
  private final Map<String, Long> begun = new HashMap<>();
  private TestPlan plan;

  private Judge(PrintWriter results) {
    this.results = results;
  }

  public static void main(String[] arguments) throws IOException {
    tellGroups(Integer.getInteger("clover.contract.groups"));
    try (PrintWriter results = new PrintWriter(Files.newBufferedWriter(Path.of(arguments[0]), StandardCharsets.UTF_8), true)) {
      for (int index = 1; index < arguments.length; index++) {
        System.err.println("==== " + arguments[index]);
        // As at the start of a JVM: some tests make themselves somebody else, and do not come back.
        UserGroupInformation.reset();
        List<DiscoverySelector> selectors = new ArrayList<>();
        selectors.add(DiscoverySelectors.selectClass(arguments[index]));
        LauncherDiscoveryRequest request =
            LauncherDiscoveryRequestBuilder.request()
                .selectors(selectors)
                .configurationParameter("junit.jupiter.execution.timeout.default", TEST_TIMEOUT_S + " s")
                .configurationParameter("junit.jupiter.extensions.autodetection.enabled", "false")
                .build();
        LauncherFactory.create().execute(request, new Judge(results));
      }
    }
    // Tests leave threads behind that would keep the JVM.
    System.exit(0);
  }

  /** Tests put users into groups in this JVM only; the servers ask here. A line is a user, its answer the groups. */
  private static void tellGroups(int port) throws IOException {
    ServerSocket listener = new ServerSocket(port, 50, InetAddress.getLoopbackAddress());
    Thread thread =
        new Thread(
            () -> {
              while (true) {
                try (Socket asking = listener.accept()) {
                  String user = new BufferedReader(new InputStreamReader(asking.getInputStream(), StandardCharsets.UTF_8)).readLine();
                  String groups = String.join(" ", UserGroupInformation.createRemoteUser(user).getGroupNames());
                  asking.getOutputStream().write((groups + "\n").getBytes(StandardCharsets.UTF_8));
                } catch (IOException | RuntimeException error) {
                  error.printStackTrace();
                }
              }
            },
            "groups");
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void testPlanExecutionStarted(TestPlan plan) {
    this.plan = plan;
  }

  @Override
  public void executionStarted(TestIdentifier test) {
    begun.put(test.getUniqueId(), System.nanoTime());
  }

  @Override
  public void executionSkipped(TestIdentifier test, String reason) {
    write(test, "skipped", reason);
  }

  @Override
  public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    boolean whole = result.getStatus() == TestExecutionResult.Status.SUCCESSFUL;
    // A container is news only when it keeps its tests from running.
    if (!test.isTest() && whole) {
      return;
    }
    String reason = result.getThrowable().map(Throwable::toString).orElse("");
    switch (result.getStatus()) {
      case SUCCESSFUL -> write(test, "passed", "");
      case ABORTED -> write(test, "skipped", reason);
      case FAILED -> {
        write(test, "failed", reason);
        System.err.println("---- " + className(test) + " " + name(test));
        StringWriter trace = new StringWriter();
        result.getThrowable().ifPresent(error -> error.printStackTrace(new PrintWriter(trace)));
        System.err.println(trace);
      }
    }
  }

  private void write(TestIdentifier test, String result, String reason) {
    long since = begun.getOrDefault(test.getUniqueId(), System.nanoTime());
    long millis = (System.nanoTime() - since) / 1_000_000;
    String line = reason == null ? "" : reason.lines().findFirst().orElse("").replace('\t', ' ');
    results.println(String.join("\t", className(test), name(test), result, Long.toString(millis), line));
  }

  /** The simple name of the outermost class that was asked for. */
  private String className(TestIdentifier test) {
    String name = "?";
    for (Optional<TestIdentifier> at = Optional.of(test); at.isPresent(); at = plan.getParent(at.get())) {
      if (at.get().getSource().orElse(null) instanceof ClassSource source) {
        name = source.getClassName().substring(source.getClassName().lastIndexOf('.') + 1);
      }
    }
    return name;
  }

  /** The names of the containers within the class and of the test itself. */
  private String name(TestIdentifier test) {
    boolean dynamic = test.getUniqueIdObject().getLastSegment().getType().equals("dynamic-test");
    String name = (dynamic ? test.getDisplayName() : test.getLegacyReportingName()).replace('\t', ' ').replace('\n', ' ');
    for (Optional<TestIdentifier> at = plan.getParent(test); at.isPresent(); at = plan.getParent(at.get())) {
      if (at.get().getSource().orElse(null) instanceof ClassSource) {
        if (at.get().getUniqueIdObject().getLastSegment().getType().contains("invocation")) {
          name = at.get().getDisplayName() + " " + name;
        }
      }
    }
    return name;
  }
}
