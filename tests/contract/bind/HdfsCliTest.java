package clover.contract;

import java.util.stream.Stream;
import org.apache.hadoop.cli.TestHDFSCLI;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The shell and dfsadmin. Hadoop's class holds hundreds of cases in one test; here each is a test of its own. */
public class HdfsCliTest extends TestHDFSCLI {
  @TestFactory
  public Stream<DynamicTest> cases() {
    return Cases.of(testsFromConfigFile, list -> testsFromConfigFile = list, () -> super.testAll());
  }

  @Override
  public void testAll() {}
}
