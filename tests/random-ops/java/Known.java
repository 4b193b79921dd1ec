import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The differences on purpose. Each has its row, with the reason, in docs/hadoop-differences.md. */
final class Known {
  private record Rule(Pattern step, Pattern hadoop, Pattern clover) {}

  /** What stands behind the path of the directory whose sticky bit forbids something: its owner, group and mode. */
  private static final Pattern STICKY_RIGHTS = Pattern.compile("(Permission denied by sticky bit: .*parent=\"[^\"]*\"):\\S+", Pattern.DOTALL);

  private static final List<Rule> RULES = List.of(
      // The root as the source of a rename: Hadoop trips over it before it refuses.
      rule("[a-z]+: rename2? / .*", "! (remote )?java.lang.NullPointerException: .*", "(= false|! .*)"),
      // Who may not change what is below /.reserved/raw is told where, not which call it was.
      rule(".*", "! .*AccessControlException: Access denied for user [a-z]+. Superuser privilege is required for operation .*",
          "! .*AccessControlException: Access denied for user [a-z]+. Superuser privilege is required for a change below /.reserved/raw"),
      // How many servers a client excluded before it gave up is a matter of time.
      rule(".*", "! .*could only be written to 0 of the 1 minReplication nodes.*", "! .*could only be written to 0 of the 1 minReplication nodes.*"),
      // Of several directories that may not be entered, the one is named that comes first; the order differs beyond ASCII.
      rule("[a-z]+: (glob|contentSummary|listFiles|delete|rename2|quotaUsage) .*", "! .*AccessControlException: Permission denied.*",
          "! .*AccessControlException: Permission denied.*"),
      // Which of several it is that forbids another above them, Hadoop leaves to a hash table.
      rule("[a-z]+: allowSnapshot .*", "! .*Nested snapshottable directories not allowed: path=[^ ]*, the subdirectory .*",
          "! .*Nested snapshottable directories not allowed: path=[^ ]*, the subdirectory .*"),
      // A snapshot's usage: Hadoop tells that of an empty directory, or what a directory holds now.
      rule("[a-z]+: quotaUsage .*/\\.snapshot/.*", "= inodes .*", "= inodes .*"),
      // A path from a raw client that is not in its only form.
      rule("[a-z]+: raw.*", ".*", "! (remote )?org.apache.hadoop.fs.InvalidPathException: .*"));

  /** Where several groups hold one namespace (docs/hadoop-differences.md): the end of a file that has moved may be two short blocks instead of one. */
  private static final List<Rule> RULES_OF_GROUPS = List.of(
      rule("[a-z]+: truncate .*", "= true .*", "= false .*"),
      // Directories are looked at before files, so of several things that refuse another may be named.
      rule("[a-z]+: diffReport .*", "! .*AccessControlException: Permission denied.*", "! .*AccessControlException: Permission denied.*"),
      // It looks at both paths before it asks for the file that is to move.
      rule("[a-z]+: rename2? .*", "! .*AccessControlException: Permission denied.*", "! .*AccessControlException: Permission denied.*"));
  private static final Pattern SPACE = Pattern.compile(" space \\d+");
  /** An open file that came from another home counts one block more. */
  private static final Pattern COUNTS = Pattern.compile("[a-z]+: (contentSummary|quotaUsage) .*", Pattern.DOTALL);

  static boolean hasGroups;

  private Known() {}

  private static Rule rule(String step, String hadoop, String clover) {
    return new Rule(Pattern.compile(step, Pattern.DOTALL), Pattern.compile(hadoop, Pattern.DOTALL), Pattern.compile(clover, Pattern.DOTALL));
  }

  static boolean same(Step step, String hadoop, String clover) {
    // Below the top of what is deleted or measured, Hadoop gives the top's rights as those of the directory that it names.
    if (withoutRights(hadoop).equals(withoutRights(clover))) {
      return true;
    }
    for (Rule rule : hasGroups ? Stream.concat(RULES.stream(), RULES_OF_GROUPS.stream()).toList() : RULES) {
      if (rule.step.matcher(step.toString()).matches() && rule.hadoop.matcher(hadoop).matches() && rule.clover.matcher(clover).matches()) {
        return true;
      }
    }
    return hasGroups && COUNTS.matcher(step.toString()).matches() && SPACE.matcher(hadoop).replaceAll("").equals(SPACE.matcher(clover).replaceAll(""));
  }

  private static String withoutRights(String text) {
    return STICKY_RIGHTS.matcher(text).replaceAll("$1");
  }

  /** Three lines: what it is, and what is there on either side. Sums differ by what an open file counts for that came from another home. */
  static boolean treeLine(String line) {
    if (!hasGroups) {
      return false;
    }
    String[] lines = SPACE.matcher(line).replaceAll("").split("\n");
    return lines.length == 3 && (lines[0].endsWith(" summary") || lines[0].endsWith(" usage")) && lines[1].replace("hadoop: ", "").trim().equals(lines[2].replace("clover: ", "").trim());
  }
}
