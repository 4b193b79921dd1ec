import java.util.List;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.protocol.BlockStoragePolicy;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;

/** Quotas and storage policies. */
final class Quotas {
  /** Without COLD: no medium takes its blocks here, and a client tries for half a minute. */
  private static final String[] POLICIES = {"HOT", "WARM", "ALL_SSD", "ONE_SSD", "hot", "LAZY_PERSIST", "PROVIDED", "NOSUCH", "ALL_NVDIMM", ""};

  private Quotas() {}

  private static String limit(Chance c, boolean space) {
    String[] counts = {"1", "2", "3", "5", "10", "20", "100"};
    String[] bytes = {"1024", "3000", "6144", "10000", "20000", "100000", "1000000"};
    int number = c.below(100);
    return number < 50 ? c.pick(space ? bytes : counts)
        : number < 70 ? String.valueOf(HdfsConstants.QUOTA_RESET)
        : number < 90 ? String.valueOf(HdfsConstants.QUOTA_DONT_SET) : c.pick("0", "-2", "-1");
  }

  static void add(List<Operation> all) {
    all.add(new Operation("setQuota", "quota", 6, c -> new String[] {c.existing(), limit(c, false), limit(c, true)}, (s, a) -> {
      s.fs().setQuota(s.path(a[0]), Long.parseLong(a[1]), Long.parseLong(a[2]));
      return "";
    }));
    all.add(new Operation("setTypeQuota", "typequota", 3, c -> new String[] {c.existing(), c.pick("DISK", "DISK", "SSD", "ARCHIVE", "RAM_DISK", "NVDIMM", "PROVIDED"), limit(c, true)}, (s, a) -> {
      s.fs().setQuotaByStorageType(s.path(a[0]), StorageType.valueOf(a[1]), Long.parseLong(a[2]));
      return "";
    }));
    all.add(new Operation("setPolicy", "policy", 5, c -> new String[] {c.existing(), c.pick(POLICIES)}, (s, a) -> {
      s.fs().setStoragePolicy(s.path(a[0]), a[1]);
      return "";
    }));
    all.add(new Operation("unsetPolicy", "policy", 2, c -> new String[] {c.existing()}, (s, a) -> {
      s.fs().unsetStoragePolicy(s.path(a[0]));
      return "";
    }));
    all.add(new Operation("getPolicy", "policy", 2, c -> new String[] {c.existing()}, (s, a) -> s.fs().getStoragePolicy(s.path(a[0])).getName()));
    all.add(new Operation("getPolicies", "policy", 1, c -> new String[] {}, (s, a) -> {
      StringBuilder text = new StringBuilder();
      for (BlockStoragePolicy policy : s.fs().getStoragePolicies()) {
        text.append(policy).append(' ').append(policy.isCopyOnCreateFile()).append("\n  ");
      }
      return text;
    }));
  }
}
