package clover.contract;

import static org.junit.jupiter.api.Assertions.fail;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.hadoop.cli.util.CLITestData;
import org.apache.hadoop.cli.util.ComparatorData;
import org.junit.jupiter.api.DynamicTest;

/** Takes a list of shell cases apart into tests. */
final class Cases {
  private Cases() {}

  /** {@code use} makes a list the one that {@code run} carries out. */
  static Stream<DynamicTest> of(List<CLITestData> cases, Consumer<ArrayList<CLITestData>> use, Runnable run) {
    Stream<DynamicTest> tests =
        IntStream.range(0, cases.size())
            .mapToObj(
                index -> {
                  CLITestData one = cases.get(index);
                  String name = String.format("%03d %s", index + 1, one.getTestDesc().strip().replaceAll("\\s+", " "));
                  return DynamicTest.dynamicTest(name, () -> carryOut(one, use, run));
                });
    // What Hadoop's class prints at its end would tell of the last case only.
    return tests.onClose(() -> use.accept(new ArrayList<>()));
  }

  private static void carryOut(CLITestData one, Consumer<ArrayList<CLITestData>> use, Runnable run) {
    use.accept(new ArrayList<>(List.of(one)));
    run.run();
    use.accept(new ArrayList<>());
    if (!one.getTestResult()) {
      StringBuilder said = new StringBuilder();
      for (ComparatorData compared : one.getComparatorData()) {
        if (!compared.getTestResult()) {
          String actual = compared.getActualOutput();
          said.append("expected ").append(compared.getExpectedOutput()).append(", got ").append(actual == null ? "" : actual.replace("\n", "\\n"));
        }
      }
      fail(said.toString());
    }
  }
}
