package clover.contract;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.contract.AbstractContractContentSummaryTest;
import org.apache.hadoop.fs.contract.AbstractFSContract;
import org.apache.hadoop.fs.contract.hdfs.HDFSContract;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;

/** getContentSummary, which hadoop-hdfs itself does not bind. */
public class ContentSummaryTest extends AbstractContractContentSummaryTest {
  @BeforeAll
  public static void createCluster() throws IOException {
    HDFSContract.createCluster();
  }

  @AfterAll
  public static void destroyCluster() throws IOException {
    HDFSContract.destroyCluster();
  }

  @Override
  protected AbstractFSContract createContract(Configuration conf) {
    return new HDFSContract(conf);
  }
}
