package clover.contract;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.contract.AbstractContractAppendTest;
import org.apache.hadoop.fs.contract.AbstractContractConcatTest;
import org.apache.hadoop.fs.contract.AbstractContractContentSummaryTest;
import org.apache.hadoop.fs.contract.AbstractContractCreateTest;
import org.apache.hadoop.fs.contract.AbstractContractDeleteTest;
import org.apache.hadoop.fs.contract.AbstractContractGetFileStatusTest;
import org.apache.hadoop.fs.contract.AbstractContractMkdirTest;
import org.apache.hadoop.fs.contract.AbstractContractOpenTest;
import org.apache.hadoop.fs.contract.AbstractContractRenameTest;
import org.apache.hadoop.fs.contract.AbstractContractRootDirectoryTest;
import org.apache.hadoop.fs.contract.AbstractContractSeekTest;
import org.apache.hadoop.fs.contract.AbstractContractSetTimesTest;
import org.apache.hadoop.fs.contract.AbstractFSContract;
import org.apache.hadoop.fs.contract.hdfs.HDFSContract;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;

/** The abstract contract tests bound to {@code webhdfs://}, which hadoop-hdfs itself does not do. */
public final class OverWebHdfs {
  private OverWebHdfs() {}

  /** HDFS's own contract, asked over HTTP. */
  static final class Contract extends HDFSContract {
    private final URI uri = URI.create("webhdfs://" + System.getProperty("clover.contract.http"));

    Contract(Configuration conf) {
      super(conf);
    }

    @Override
    public FileSystem getTestFileSystem() throws IOException {
      return FileSystem.get(uri, getConf());
    }

    @Override
    public String getScheme() {
      return "webhdfs";
    }

    @Override
    public Path getTestPath() {
      return new Path("/test");
    }
  }

  static final class Cluster implements BeforeAllCallback, AfterAllCallback {
    @Override
    public void beforeAll(ExtensionContext context) throws IOException {
      HDFSContract.createCluster();
    }

    @Override
    public void afterAll(ExtensionContext context) throws IOException {
      HDFSContract.destroyCluster();
    }
  }

  @ExtendWith(Cluster.class)
  public static class Append extends AbstractContractAppendTest {
    /**
     * No test here: the client does not wait for an answer when it opens a file for writing, so that the next request may come first,
     * on Hadoop too.
     */
    @Override
    public void testRenameFileBeingAppended() {}

    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new Contract(conf);
    }
  }

  @ExtendWith(Cluster.class)
  public static class Concat extends AbstractContractConcatTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new Contract(conf);
    }
  }

  @ExtendWith(Cluster.class)
  public static class ContentSummary extends AbstractContractContentSummaryTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new Contract(conf);
    }
  }

  @ExtendWith(Cluster.class)
  public static class Create extends AbstractContractCreateTest {
    /**
     * No test here: the client does not wait for an answer when it opens a file for writing, so that the next request may come first,
     * on Hadoop too.
     */
    @Override
    public void testCreatedFileIsImmediatelyVisible() {}

    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new Contract(conf);
    }
  }

  @ExtendWith(Cluster.class)
  public static class Delete extends AbstractContractDeleteTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new Contract(conf);
    }
  }

  @ExtendWith(Cluster.class)
  public static class GetFileStatus extends AbstractContractGetFileStatusTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new Contract(conf);
    }
  }

  @ExtendWith(Cluster.class)
  public static class Mkdir extends AbstractContractMkdirTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new Contract(conf);
    }
  }

  @ExtendWith(Cluster.class)
  public static class Open extends AbstractContractOpenTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new Contract(conf);
    }
  }

  @ExtendWith(Cluster.class)
  public static class Rename extends AbstractContractRenameTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new Contract(conf);
    }
  }

  @ExtendWith(Cluster.class)
  public static class RootDirectory extends AbstractContractRootDirectoryTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new Contract(conf);
    }
  }

  @ExtendWith(Cluster.class)
  public static class Seek extends AbstractContractSeekTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new Contract(conf);
    }
  }

  @ExtendWith(Cluster.class)
  public static class SetTimes extends AbstractContractSetTimesTest {
    @Override
    protected AbstractFSContract createContract(Configuration conf) {
      return new Contract(conf);
    }
  }
}
