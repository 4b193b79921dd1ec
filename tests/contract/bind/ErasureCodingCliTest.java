package clover.contract;

import java.util.stream.Stream;
import org.apache.hadoop.cli.TestErasureCodingCLI;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** hdfs ec. Hadoop's class holds hundreds of cases in one test; here each is a test of its own. */
public class ErasureCodingCliTest extends TestErasureCodingCLI {
  @TestFactory
  public Stream<DynamicTest> cases() {
    return Cases.of(testsFromConfigFile, list -> testsFromConfigFile = list, () -> super.testAll());
  }

  @Override
  public void testAll() {}
}
