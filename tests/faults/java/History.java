import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What a load was told, one line an operation, tab-separated:
 *
 * <pre>
 * THREAD OPERATION BEGIN-NS END-NS OUTCOME [VALUE] ARGUMENT…
 * </pre>
 *
 * <p>The times are the machine's monotonic clock, the same for all processes. The value of a created or found file is
 * its inode's number. An operation without an answer when the load ended has the outcome {@code waiting}.
 */
final class History {
  private final OutputStream out;
  private final Map<String, Operation> underWay = new ConcurrentHashMap<>();
  private boolean closed;

  History(java.nio.file.Path path) throws IOException {
    out = new BufferedOutputStream(new FileOutputStream(path.toFile()), 1 << 16);
  }

  /** What an operation comes to: an outcome, and a value or nothing. */
  static final class Result {
    final String outcome;
    final String value;

    Result(String outcome, String value) {
      this.outcome = outcome;
      this.value = value;
    }

    static Result of(boolean yes) {
      return new Result(yes ? "ok" : "false", "");
    }
  }

  interface Call {
    Result run() throws IOException;
  }

  private static final class Operation {
    final String name;
    final long begun;
    final String[] arguments;

    Operation(String name, long begun, String[] arguments) {
      this.name = name;
      this.begun = begun;
      this.arguments = arguments;
    }
  }

  /** Runs one operation and writes its line. An exception is an outcome too. */
  Result record(String thread, String operation, Call call, String... arguments) throws IOException {
    Operation begun = new Operation(operation, System.nanoTime(), arguments);
    underWay.put(thread, begun);
    Result result;
    try {
      result = call.run();
    } catch (Exception failed) {
      result = new Result(Outcome.of(failed), Outcome.sentence(failed));
    }
    underWay.remove(thread);
    line(thread, begun, System.nanoTime(), result);
    return result;
  }

  private synchronized void line(String thread, Operation operation, long ended, Result result) throws IOException {
    if (closed) {
      return;
    }
    StringBuilder text = new StringBuilder(160);
    text.append(thread).append('\t').append(operation.name).append('\t').append(operation.begun).append('\t');
    text.append(ended).append('\t').append(result.outcome).append('\t').append(result.value);
    for (String argument : operation.arguments) {
      text.append('\t').append(argument);
    }
    out.write(text.append('\n').toString().getBytes(StandardCharsets.UTF_8));
    // The harness reads along, and a line that was acknowledged must outlive this process.
    out.flush();
  }

  /** Operations that never got an answer are written down as such. */
  synchronized void close() throws IOException {
    for (Map.Entry<String, Operation> entry : underWay.entrySet()) {
      line(entry.getKey(), entry.getValue(), -1, new Result("waiting", ""));
    }
    closed = true;
    out.close();
  }
}
