package clover.contract;

import java.util.stream.Stream;
import org.apache.hadoop.cli.TestCryptoAdminCLI;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** hdfs crypto. Hadoop's class holds hundreds of cases in one test; here each is a test of its own. */
public class CryptoAdminCliTest extends TestCryptoAdminCLI {
  @TestFactory
  public Stream<DynamicTest> cases() {
    return Cases.of(testsFromConfigFile, list -> testsFromConfigFile = list, () -> super.testAll());
  }

  @Override
  public void testAll() {}
}
