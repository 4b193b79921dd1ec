import java.util.List;
import java.util.regex.Pattern;

/** The differences on purpose. Each has its row, with the reason, in docs/hadoop-differences.md. */
final class Known {
  private record Rule(Pattern step, Pattern hadoop, Pattern clover) {}

  private static final List<Rule> RULES = List.of(
      // The root as the source of a rename: Hadoop trips over it before it refuses.
      rule("[a-z]+: rename2? / .*", "! (remote )?java.lang.NullPointerException: .*", "(= false|! .*)"),
      // Who may not change what is below /.reserved/raw is told where, not which call it was.
      rule(".*", "! .*AccessControlException: Access denied for user [a-z]+. Superuser privilege is required for operation .*",
          "! .*AccessControlException: Access denied for user [a-z]+. Superuser privilege is required for a change below /.reserved/raw"),
      // How many servers a client excluded before it gave up is a matter of time.
      rule(".*", "! .*could only be written to 0 of the 1 minReplication nodes.*", "! .*could only be written to 0 of the 1 minReplication nodes.*"),
      // A file that is gone while it is written: who says so first, metadata or data server, is a matter of time.
      rule("[a-z]+: (writeStream|closeStream) .*", "! .*does not have any open files.*", "! .*(Failed to replace a bad datanode|All datanodes|does not have any open files).*"),
      rule("[a-z]+: (writeStream|closeStream) .*", "! .*(Failed to replace a bad datanode|All datanodes).*", "! .*does not have any open files.*"),
      // Of several directories that may not be entered, the one is named that comes first; the order differs beyond ASCII.
      rule("[a-z]+: (glob|contentSummary|listFiles|delete|rename2) .*", "! .*AccessControlException: Permission denied.*", "! .*AccessControlException: Permission denied.*"),
      // A path from a raw client that is not in its only form.
      rule("[a-z]+: raw.*", ".*", "! (remote )?org.apache.hadoop.fs.InvalidPathException: .*"));

  private Known() {}

  private static Rule rule(String step, String hadoop, String clover) {
    return new Rule(Pattern.compile(step, Pattern.DOTALL), Pattern.compile(hadoop, Pattern.DOTALL), Pattern.compile(clover, Pattern.DOTALL));
  }

  static boolean same(Step step, String hadoop, String clover) {
    for (Rule rule : RULES) {
      if (rule.step.matcher(step.toString()).matches() && rule.hadoop.matcher(hadoop).matches() && rule.clover.matcher(clover).matches()) {
        return true;
      }
    }
    return false;
  }

  static boolean treeLine(String line) {
    return false;
  }
}
