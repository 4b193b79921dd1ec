import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.fs.XAttrSetFlag;

/** Extended attributes. */
final class XAttrs {
  private static final String[] NAMES = {"user.a", "user.a", "user.b", "user.c", "trusted.a", "trusted.b", "system.a", "security.a", "raw.a", "User.a", "a", "other.a",
      "user.", "user.ü", "security.hdfs.unreadable.by.superuser"};

  private XAttrs() {}

  static void add(List<Operation> all) {
    all.add(new Operation("setXAttr", "xattr", 8, c -> new String[] {c.existing(), c.in(30) ? "user." + "n".repeat(c.pick(249, 250, 251, 300)) : c.pick(NAMES),
        c.pick("0", "1", "5", "20", "20", "16000", "16384", "17000"), c.pick("CREATE,REPLACE", "CREATE", "REPLACE")}, (s, a) -> {
          EnumSet<XAttrSetFlag> flags = EnumSet.noneOf(XAttrSetFlag.class);
          for (String word : a[3].split(",")) {
            flags.add(XAttrSetFlag.valueOf(word));
          }
          byte[] value = new byte[Integer.parseInt(a[2])];
          Arrays.fill(value, (byte) a[1].hashCode());
          s.fs().setXAttr(s.path(a[0]), a[1], value, flags);
          return "";
        }));
    all.add(new Operation("getXAttr", "xattr", 2, c -> new String[] {c.existing(), c.pick(NAMES)}, (s, a) ->
        value(s.fs().getXAttr(s.path(a[0]), a[1]))));
    all.add(new Operation("getXAttrs", "xattr", 2, c -> new String[] {c.existing()}, (s, a) -> values(s.fs().getXAttrs(s.path(a[0])))));
    all.add(new Operation("getSomeXAttrs", "xattr", 1, c -> new String[] {c.existing(), c.pick(NAMES), c.pick(NAMES)}, (s, a) ->
        values(s.fs().getXAttrs(s.path(a[0]), List.of(a[1], a[2])))));
    all.add(new Operation("listXAttrs", "xattr", 1, c -> new String[] {c.existing()}, (s, a) -> new TreeSet<>(s.fs().listXAttrs(s.path(a[0])))));
    all.add(new Operation("removeXAttr", "xattr", 3, c -> new String[] {c.existing(), c.pick(NAMES)}, (s, a) -> {
      s.fs().removeXAttr(s.path(a[0]), a[1]);
      return "";
    }));
  }

  static String value(byte[] value) {
    return value == null ? "null" : value.length + " bytes " + Arrays.hashCode(value);
  }

  static String values(Map<String, byte[]> found) {
    Map<String, String> sorted = new TreeMap<>();
    found.forEach((name, value) -> sorted.put(name, value(value)));
    return sorted.toString();
  }
}
