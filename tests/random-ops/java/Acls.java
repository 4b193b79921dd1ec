import java.util.List;
import org.apache.hadoop.fs.permission.AclEntry;

/** Access lists. */
final class Acls {
  private static final String[] WHO = {"user::", "user:alice:", "user:bob:", "user:carol:", "group::", "group:dev:", "group:guests:", "mask::", "other::"};
  private static final String[] WHAT = {"rwx", "r-x", "r--", "---", "rw-", "-wx", "--x"};

  private Acls() {}

  private static String entries(Chance c, boolean what) {
    int count = c.pick(1, 1, 2, 3, 4, 5);
    StringBuilder text = new StringBuilder();
    for (int index = 0; index < count; index++) {
      String who = c.pick(WHO);
      text.append(index == 0 ? "" : ",").append(c.in(3) ? "default:" : "").append(what ? who + c.pick(WHAT) : who.substring(0, who.length() - 1));
    }
    return text.toString();
  }

  /** What setAcl asks for, mostly: the three that must be there, and some more. */
  private static String whole(Chance c) {
    String base = "user::" + c.pick(WHAT) + ",group::" + c.pick(WHAT) + ",other::" + c.pick(WHAT);
    return c.in(4) ? base : c.in(5) ? entries(c, true) : base + "," + entries(c, true);
  }

  static void add(List<Operation> all) {
    all.add(new Operation("modifyAcl", "acl", 6, c -> new String[] {c.existing(), entries(c, true)}, (s, a) -> {
      s.fs().modifyAclEntries(s.path(a[0]), AclEntry.parseAclSpec(a[1], true));
      return "";
    }));
    all.add(new Operation("removeAclEntries", "acl", 3, c -> new String[] {c.existing(), entries(c, false)}, (s, a) -> {
      s.fs().removeAclEntries(s.path(a[0]), AclEntry.parseAclSpec(a[1], false));
      return "";
    }));
    all.add(new Operation("removeDefaultAcl", "acl", 2, c -> new String[] {c.existing()}, (s, a) -> {
      s.fs().removeDefaultAcl(s.path(a[0]));
      return "";
    }));
    all.add(new Operation("removeAcl", "acl", 2, c -> new String[] {c.existing()}, (s, a) -> {
      s.fs().removeAcl(s.path(a[0]));
      return "";
    }));
    all.add(new Operation("setAcl", "acl", 5, c -> new String[] {c.existing(), whole(c)}, (s, a) -> {
      s.fs().setAcl(s.path(a[0]), AclEntry.parseAclSpec(a[1], true));
      return "";
    }));
    all.add(new Operation("getAcl", "acl", 3, c -> new String[] {c.existing()}, (s, a) -> s.fs().getAclStatus(s.path(a[0]))));
  }
}
