import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Looks for a shorter sequence that shows the same difference, by leaving steps out and making the rest again. */
final class Shrink {
  private final Map<String, Operation> operations;
  private final Side hadoop;
  private final Side clover;
  private final long deadline;

  Shrink(Map<String, Operation> operations, Side hadoop, Side clover, int seconds) {
    this.operations = operations;
    this.hadoop = hadoop;
    this.clover = clover;
    this.deadline = System.currentTimeMillis() + seconds * 1000L;
  }

  List<Step> run(List<Step> steps, Round.Difference difference) throws Exception {
    List<Step> shortest = new ArrayList<>(steps);
    for (int chunk = Math.max(1, shortest.size() / 2); chunk >= 1; chunk /= 2) {
      // From the end: what came last is most often what matters, and what is before it goes quickest.
      for (int at = shortest.size() - 1 - chunk; at > -chunk; at -= chunk) {
        if (System.currentTimeMillis() > deadline) {
          return shortest;
        }
        int from = Math.max(0, at);
        int to = Math.min(shortest.size() - 1, at + chunk);
        if (from >= to) {
          continue;
        }
        List<Step> shorter = new ArrayList<>(shortest.subList(0, from));
        shorter.addAll(shortest.subList(to, shortest.size()));
        if (shows(shorter, difference)) {
          shortest = shorter;
        }
      }
    }
    return shortest;
  }

  private boolean shows(List<Step> steps, Round.Difference difference) throws Exception {
    boolean ofTrees = difference.what().startsWith("the trees");
    Round round = new Round(operations, hadoop, clover, Integer.MAX_VALUE);
    for (int index = 0; index < steps.size(); index++) {
      Round.Difference found = round.step(steps.get(index), null);
      if (found != null) {
        return index == steps.size() - 1 && found.kind().equals(difference.kind());
      }
    }
    if (!ofTrees) {
      return false;
    }
    Round.Difference found = round.compare(null);
    return found != null && found.kind().equals(difference.kind());
  }
}
