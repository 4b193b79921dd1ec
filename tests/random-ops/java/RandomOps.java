import java.io.File;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.HdfsConfiguration;

/**
 * Makes the same random calls on a real Hadoop and on Clover, and tells where they part.
 *
 * <p>`RandomOps --clover URI --work DIR --groups MAPPING [--seed N] [--steps N] [--round N] [--compare N] [--ops A,B,…]
 * [--without NAME,…] [--several-groups yes] [--keep-going] [--shrink SECONDS] [--replay FILE] [--hadoop URI]`
 */
public final class RandomOps {
  /** What is compared when nothing else is asked for. */
  private static final String DEFAULT_OPS = "names,files,open,attributes,reads,raw,odd,append,truncate,concat,checksum,acl,xattr,reserved,zones,symlinks,quota,policy,openfiles,typequota,leases,ec,snapshot";

  private final Map<String, String> options = new LinkedHashMap<>();
  private final Map<String, Operation> operations = new LinkedHashMap<>();
  private final List<Operation> lots = new ArrayList<>();
  private final Set<String> families;
  private final Map<String, int[]> counts = new TreeMap<>();
  private final Map<String, Integer> kinds = new LinkedHashMap<>();
  private Side hadoop;
  private Side clover;

  private RandomOps(String[] arguments) {
    for (int index = 0; index < arguments.length; index++) {
      String name = arguments[index].substring(2);
      options.put(name, name.equals("keep-going") ? "yes" : arguments[++index]);
    }
    String ops = option("ops", DEFAULT_OPS);
    if (ops.startsWith("+")) {
      ops = DEFAULT_OPS + "," + ops.substring(1);
    }
    families = new LinkedHashSet<>(Arrays.asList(ops.split(",")));
    Known.hasGroups = options.containsKey("several-groups");
    Set<String> without = Set.of(option("without", "").split(","));
    List<Operation> all = new ArrayList<>();
    Names.add(all);
    Files.add(all);
    Attributes.add(all);
    Reads.add(all);
    Acls.add(all);
    XAttrs.add(all);
    Quotas.add(all);
    Snapshots.add(all);
    Set<String> unknown = new LinkedHashSet<>(families);
    for (Operation operation : all) {
      operations.put(operation.name(), operation);
      unknown.remove(operation.family());
      if (families.contains(operation.family()) && !without.contains(operation.name())) {
        for (int lot = 0; lot < operation.weight(); lot++) {
          lots.add(operation);
        }
      }
    }
    unknown.removeAll(Set.of("odd", "reserved")); // These change what is drawn alone.
    if (!unknown.isEmpty()) {
      throw new IllegalArgumentException("no such operations: " + unknown);
    }
  }

  private String option(String name, String otherwise) {
    return options.getOrDefault(name, otherwise);
  }

  private int number(String name, int otherwise) {
    return Integer.parseInt(option(name, String.valueOf(otherwise)));
  }

  public static void main(String[] arguments) throws Exception {
    System.setOut(new java.io.PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), true, StandardCharsets.UTF_8));
    int status = 2;
    try {
      status = new RandomOps(arguments).run();
    } catch (Throwable failure) {
      failure.printStackTrace();
    } finally {
      System.out.flush();
      Runtime.getRuntime().halt(status);
    }
  }

  private int run() throws Exception {
    Configuration conf = new HdfsConfiguration();
    conf.set("fs.permissions.umask-mode", "022");
    conf.setLong("dfs.blocksize", 1024);
    // Closing a file asks again after this; the default of 400 ms is most of a run otherwise.
    conf.setInt("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", 5);
    File work = new File(option("work", "target/random-ops/hadoop"));
    Mini mini = options.containsKey("hadoop") ? null : Mini.start(work, option("groups", ""));
    hadoop = new Side("hadoop", mini == null ? URI.create(options.get("hadoop")) : mini.uri(), conf, families, mini);
    clover = new Side("clover", URI.create(options.get("clover")), conf, families, null);
    return options.containsKey("replay") ? replay() : draw();
  }

  private int replay() throws Exception {
    List<Step> steps = java.nio.file.Files.readAllLines(Path.of(options.get("replay"))).stream().map(Step::parse).toList();
    Round round = new Round(operations, hadoop, clover, number("compare", 1));
    for (Step step : steps) {
      Round.Difference difference = round.step(step, null);
      System.out.println(step + "  " + round.gave);
      if (difference != null) {
        tell(difference);
        return 1;
      }
    }
    Round.Difference difference = round.compare(null);
    if (difference != null) {
      tell(difference);
    }
    return difference == null ? 0 : 1;
  }

  private int draw() throws Exception {
    long seed = Long.parseLong(option("seed", "1"));
    int steps = number("steps", 2000);
    int roundSteps = number("round", 250);
    long begun = System.nanoTime();
    int done = 0;
    int different = 0;
    for (int number = 0; done < steps; number++) {
      // A round can be made alone: its seed is all it needs.
      long roundSeed = seed + number;
      Chance chance = new Chance(roundSeed, families);
      Round round = new Round(operations, hadoop, clover, number("compare", 25));
      Round.Difference difference = null;
      for (Step step : opening(roundSeed)) {
        if (difference == null) {
          difference = round.step(step, chance);
        }
      }
      for (int step = round.made.size(); step < Math.min(roundSteps, steps - done) && difference == null && round.cutShort == null; step++) {
        Operation operation = chance.pick(lots);
        difference = round.step(new Step(chance.user(), operation.name(), operation.draw().draw(chance)), chance);
      }
      if (round.cutShort != null) {
        System.out.println("seed " + roundSeed + " ends after step " + round.made.size() + ": " + round.cutShort);
      } else if (difference == null) {
        difference = round.compare(chance);
      }
      done += round.made.size();
      round.counts.forEach((name, count) -> {
        int[] sum = counts.computeIfAbsent(name, unused -> new int[2]);
        sum[0] += count[0];
        sum[1] += count[1];
      });
      if (difference != null) {
        different++;
        Integer before = kinds.merge(difference.kind(), 1, Integer::sum);
        if (before == 1) {
          report(round, difference, roundSeed);
        }
        if (!options.containsKey("keep-going")) {
          break;
        }
      }
    }
    summary(done, different, seed, (System.nanoTime() - begun) / 1e9);
    return different == 0 ? 0 : 1;
  }

  /** Without room for the others, nearly everything would be refused. */
  private List<Step> opening(long roundSeed) {
    List<Step> steps = new ArrayList<>(List.of(
        new Step("root", "mkdirs", new String[] {"/a", "755"}),
        new Step("root", "setPermission", new String[] {"/a", "777"}),
        new Step("root", "mkdirs", new String[] {"/b", "755"}),
        new Step("root", "setPermission", new String[] {"/b", "1777"}),
        new Step("root", "mkdirs", new String[] {"/c", "755"}),
        new Step("root", "setOwner", new String[] {"/c", "alice", "dev"}),
        new Step("root", "setPermission", new String[] {"/c", "770"})));
    // Not always: what snapshots may be taken of is moved and deleted less easily.
    if (families.contains("snapshot") && roundSeed % 2 == 0) {
      steps.add(new Step("root", "allowSnapshot", new String[] {"/a"}));
      if (roundSeed % 4 == 0) {
        steps.add(new Step("root", "allowSnapshot", new String[] {"/c"}));
      }
    }
    return steps;
  }

  private void report(Round round, Round.Difference difference, long seed) throws Exception {
    System.out.println("\n=== seed " + seed + ", step " + difference.after() + " (of " + families + ")");
    int from = Math.max(0, round.made.size() - 12);
    for (Step step : round.made.subList(from, round.made.size())) {
      System.out.println("  " + step);
    }
    tell(difference);
    int seconds = number("shrink", 60);
    if (seconds > 0) {
      List<Step> shortest = new Shrink(operations, hadoop, clover, seconds).run(round.made, difference);
      System.out.println("--- " + shortest.size() + " steps show it:");
      shortest.forEach(step -> System.out.println("  " + step));
      File file = new File(option("work", ".") + "-" + seed + ".steps");
      java.nio.file.Files.write(file.toPath(), shortest.stream().map(Step::line).toList());
      System.out.println("--- again: tests/random-ops/run --replay " + file);
    }
  }

  private static void tell(Round.Difference difference) {
    System.out.println("*** " + difference.what());
    difference.lines().stream().limit(12).forEach(line -> System.out.println("  " + line));
  }

  private void summary(int done, int different, long seed, double seconds) {
    System.out.println();
    counts.forEach((name, count) -> System.out.printf("%-20s %6d done %6d refused%n", name, count[0], count[1]));
    if (kinds.size() > 1) {
      kinds.forEach((kind, count) -> System.out.println(count + " x " + kind));
    }
    System.out.printf("%d steps from seed %d in %.0f s: %s%n", done, seed, seconds, different == 0 ? "no difference" : different + " rounds differ");
  }
}
