import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/** A sequence of steps from an empty root, on both sides at once. */
final class Round {
  /** Background work, such as access times, is given this long. */
  private static final int PATIENCE_MS = 3000;

  /** Where the two sides parted: after which step, and in what. */
  record Difference(int after, Step step, String what, List<String> lines) {
    /** What must stay the same for a shorter sequence to count as showing the same. */
    String kind() {
      return what.replaceAll("user=[a-z]+|[a-z-]+:[a-z]+:[-drwxst]+", "…").replaceAll("[0-9]+", "#").replaceAll("/[^ \n]*", "/…");
    }
  }

  /** After these what Hadoop's quotas have used of media is not what a restart would find (docs/hadoop-differences.md). */
  private static final Set<String> MOVE_BETWEEN_MEDIA = Set.of("setPolicy", "unsetPolicy", "rename", "rename2", "createNonRecursive", "append", "appendStream",
      "truncate", "concat", "concatMade");

  /** Refused where several groups hold one namespace (docs/operating/several-groups.md). */
  private static final Pattern NOT_IN_GROUPS = Pattern.compile(
      "! .*(cannot be renamed (yet )?into a directory of another group of metadata servers|is not possible yet where the files of"
          + "|the block there was written in another group of metadata servers, before the file was renamed)");
  /** The root group does not know the files of others by their ids. */
  private static final Pattern NO_INODE = Pattern.compile("! .*File for given inode path does not exist");
  private static final Pattern PIPELINE_LOST = Pattern.compile("! java.io.IOException: (Failed to replace a bad datanode|All datanodes \\[.*\\] are bad)");

  private final Map<String, Operation> operations;
  private final Side hadoop;
  private final Side clover;
  private final int compareEvery;
  private final Set<String> families;
  private final Halves halves;
  private boolean hasSnapshots;
  /** Why the round ends without a judgement: the two sides are not to be compared any more. Null while they are. */
  String cutShort;
  /** What the last step gave on Hadoop; the first line of it. */
  String gave = "";
  final List<Step> made = new ArrayList<>();
  final Map<String, int[]> counts = new java.util.TreeMap<>();

  Round(Map<String, Operation> operations, Side hadoop, Side clover, int compareEvery) throws Exception {
    this.operations = operations;
    this.hadoop = hadoop;
    this.clover = clover;
    this.compareEvery = compareEvery;
    this.families = hadoop.families();
    this.halves = new Halves(hadoop, clover);
    for (Side side : List.of(hadoop, clover)) {
      Wipe.run(side);
      side.beginRound();
    }
    // What snapshots of the round before have left behind.
    hadoop.recount();
  }

  /** One step on both sides; the difference, or null. */
  Difference step(Step step, Chance chance) throws Exception {
    made.add(step);
    Operation operation = operations.get(step.operation());
    String expected = outcome(hadoop, operation, step);
    hasSnapshots |= step.operation().equals("createSnapshot") && expected.startsWith("=");
    hadoop.hasSnapshots = hasSnapshots;
    clover.hasSnapshots = hasSnapshots;
    if (hasSnapshots || (families.contains("typequota") && MOVE_BETWEEN_MEDIA.contains(operation.name()))) {
      Map<String, String> wrong = hadoop.recount();
      // Where snapshots keep something, what is added and taken away on the way misses some of it (docs/hadoop-differences.md).
      if (!wrong.isEmpty() && !hasSnapshots) {
        return new Difference(made.size(), step, step.operation() + ": a recount finds other usages in Hadoop", List.of(wrong.toString()));
      }
    }
    String found = outcome(clover, operation, step);
    gave = first(expected);
    int[] count = counts.computeIfAbsent(step.operation(), name -> new int[2]);
    count[expected.startsWith("=") ? 0 : 1]++;
    if (!expected.equals(found) && PIPELINE_LOST.matcher(expected).lookingAt()) {
      // A machine that is too busy; from here on the two hold different bytes.
      cutShort = "Hadoop's data servers did not answer in time";
      return null;
    }
    if (!expected.equals(found) && (NOT_IN_GROUPS.matcher(found).lookingAt() || (step.toString().contains("@inode:") && NO_INODE.matcher(found).lookingAt()))) {
      // What Hadoop has done, or had other reasons not to do.
      cutShort = "several groups cannot do this yet: " + step;
      return null;
    }
    if (!expected.equals(found) && !Known.same(step, expected, found)) {
      return new Difference(made.size(), step, step.operation() + ": hadoop: " + first(expected) + " clover: " + first(found),
          List.of("hadoop: " + expected, "clover: " + found));
    }
    halves.settle(step, expected);
    if (chance != null && expected.startsWith("=")) {
      for (String argument : step.arguments()) {
        if (!argument.contains(".snapshot") && !argument.contains(".reserved")) {
          chance.saw(argument);
        }
      }
      if (step.operation().startsWith("create")) {
        chance.sawFile(step.arguments()[0]);
      }
      if (step.operation().equals("allowSnapshot")) {
        chance.allows(step.arguments()[0]);
      }
    }
    return made.size() % compareEvery == 0 ? compare(chance) : null;
  }

  private static String first(String text) {
    int end = text.indexOf('\n');
    return end < 0 ? text : text.substring(0, end);
  }

  private String outcome(Side side, Operation operation, Step step) throws Exception {
    side.beginStep();
    return Outcome.of(operation, new Session(side, step.user(), side.as(step.user())), step.arguments());
  }

  /** The whole trees. */
  Difference compare(Chance chance) throws Exception {
    Tree expected = Tree.of(hadoop);
    if (chance != null) {
      chance.know(expected.paths, expected.files);
    }
    long deadline = System.currentTimeMillis() + PATIENCE_MS;
    while (true) {
      List<String> lines = Tree.differences(expected, Tree.of(clover));
      lines.removeIf(Known::treeLine);
      if (lines.isEmpty()) {
        return null;
      }
      if (System.currentTimeMillis() > deadline) {
        Step last = made.isEmpty() ? null : made.get(made.size() - 1);
        return new Difference(made.size(), last, "the trees: " + kinds(lines), lines);
      }
      Thread.sleep(200);
      expected = Tree.of(hadoop);
    }
  }

  /** Which sorts of lines differ: "summary", "acl", or the status itself. */
  private static String kinds(List<String> lines) {
    String line = lines.get(0);
    String name = line.substring(0, line.indexOf('\n'));
    int space = name.lastIndexOf(' ');
    return space < 0 ? "status" : name.substring(space + 1);
  }
}
