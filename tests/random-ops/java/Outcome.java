import java.util.Map;
import java.util.regex.Pattern;
import org.apache.hadoop.ipc.RemoteException;

/** What a step gave, as a text that is the same wherever the two clusters agree. */
final class Outcome {
  private static final Pattern ADDRESS = Pattern.compile("(localhost|127\\.0\\.0\\.1)?/?(localhost|127\\.0\\.0\\.1):\\d+");
  private static final Pattern CLIENT = Pattern.compile("DFSClient_NONMAPREDUCE_-?\\d+_\\d+");
  private static final Pattern BLOCK = Pattern.compile("(BP-[-0-9.]+:)?blk_-?\\d+(_\\d+)?");
  private static final Pattern INODE = Pattern.compile("(inode |fileId=|id=|inodeId=|INodeFile@|INodeDirectory@)[0-9a-f]+");
  private static final Pattern DATA_SERVER = Pattern.compile("DatanodeInfoWithStorage\\[[^\\]]*\\]");

  private Outcome() {}

  static String of(Operation operation, Session session, String[] arguments) {
    String text;
    try {
      text = "= " + operation.run().run(session, arguments);
    } catch (Exception | StackOverflowError | AssertionError failure) {
      text = "! " + error(failure);
    }
    return normal(session.side(), text);
  }

  static String error(Throwable failure) {
    String name = failure.getClass().getName();
    String message = String.valueOf(failure.getMessage());
    if (failure instanceof RemoteException remote) {
      name = "remote " + remote.getClassName();
    }
    // Hadoop's own is made of Java's, and programs catch Java's.
    name = name.replace("org.apache.hadoop.HadoopIllegalArgumentException", "java.lang.IllegalArgumentException");
    // The client puts the server's stack trace, which Clover does not send, in the middle of this one.
    if (failure instanceof org.apache.hadoop.fs.PathIOException) {
      message = message.replaceFirst("(?s)('?: (Directory is not empty|Is not a directory)).*", "$1");
    }
    // What follows is the server's stack trace.
    int trace = message.indexOf("\n\tat ");
    return name + ": " + (trace < 0 ? message : message.substring(0, trace)).strip();
  }

  static String normal(Side side, String text) {
    text = text.replace(side.uri.toString(), "hdfs://");
    for (Map.Entry<String, String> alias : side.aliases.entrySet()) {
      text = text.replace(alias.getKey(), alias.getValue());
    }
    text = ADDRESS.matcher(text).replaceAll("HOST:PORT");
    text = CLIENT.matcher(text).replaceAll("CLIENT");
    text = BLOCK.matcher(text).replaceAll("BLOCK");
    text = DATA_SERVER.matcher(text).replaceAll("SERVER");
    return INODE.matcher(text).replaceAll("$1N");
  }
}
