import java.util.List;
import org.apache.hadoop.fs.permission.FsAction;

/** Rights, owners, times, replication. */
final class Attributes {
  private static final String[] TIMES = {"-1", "0", "1", "1000", "86400000", "999999999999"};

  private Attributes() {}

  static void add(List<Operation> all) {
    all.add(new Operation("setPermission", "attributes", 6, c -> new String[] {c.existing(), c.permission()}, (s, a) -> {
      s.fs().setPermission(s.path(a[0]), Names.permission(a[1]));
      return "";
    }));
    all.add(new Operation("setOwner", "attributes", 5, c -> new String[] {c.existing(), c.pick("", c.pick(Chance.USERS)), c.pick("", c.pick(Chance.GROUPS))}, (s, a) -> {
      s.fs().setOwner(s.path(a[0]), a[1].isEmpty() ? null : a[1], a[2].isEmpty() ? null : a[2]);
      return "";
    }));
    all.add(new Operation("setTimes", "attributes", 4, c -> new String[] {c.existing(), c.pick(TIMES), c.pick(TIMES)}, (s, a) -> {
      s.fs().setTimes(s.path(a[0]), Long.parseLong(a[1]), Long.parseLong(a[2]));
      return "";
    }));
    all.add(new Operation("setReplication", "attributes", 3, c -> new String[] {c.file(), c.replication()}, (s, a) ->
        s.fs().setReplication(s.path(a[0]), Short.parseShort(a[1]))));
    all.add(new Operation("access", "attributes", 3, c -> new String[] {c.existing(), c.pick(FsAction.values()).name()}, (s, a) -> {
      s.fs().access(s.path(a[0]), FsAction.valueOf(a[1]));
      return "";
    }));
  }
}
