import java.io.FileNotFoundException;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException;
import org.apache.hadoop.ipc.RemoteException;

/** An exception as one word: what it says about the name, or its own class. */
final class Outcome {
  private Outcome() {}

  static String of(Throwable failed) {
    Throwable cause = failed instanceof RemoteException ? ((RemoteException) failed).unwrapRemoteException() : failed;
    if (cause instanceof FileNotFoundException) {
      return "missing";
    }
    // The second is how a file is refused that exists and is still being written.
    if (cause instanceof FileAlreadyExistsException || cause instanceof AlreadyBeingCreatedException) {
      return "exists";
    }
    return "error:" + cause.getClass().getSimpleName();
  }

  static String sentence(Throwable failed) {
    String text = String.valueOf(failed.getMessage()).replace('\t', ' ');
    int end = text.indexOf('\n');
    text = end < 0 ? text : text.substring(0, end);
    return text.substring(0, Math.min(300, text.length()));
  }
}
