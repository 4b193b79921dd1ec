import java.util.SplittableRandom;

/**
 * What a worker did, one line an event, tab-separated:
 *
 * <pre>
 * begin WORKER NUMBER mkdir PATH
 * begin WORKER NUMBER create PATH SEED SIZE
 * begin WORKER NUMBER rename PATH TARGET
 * begin WORKER NUMBER delete PATH
 * begin WORKER NUMBER chmod PATH MODE
 * ok WORKER NUMBER
 * </pre>
 *
 * <p>A worker has one operation under way at a time and keeps to its own directory. So after a disaster all its
 * operations with an {@code ok} must have had their effect, and at most one, its last, may or may not have had it.
 * The content of a file follows from its seed and size.
 */
final class History {
  static final int WORKERS = 6;

  private History() {}

  static String directory(int worker) {
    return "worker-" + worker;
  }

  /** The bytes of a file, in pieces of the buffer's size. */
  static final class Content {
    private final SplittableRandom random;
    private long left;

    Content(long seed, long size) {
      random = new SplittableRandom(seed);
      left = size;
    }

    /** Fills the buffer and returns how many bytes of it count; 0 at the end. */
    int next(byte[] buffer) {
      int count = (int) Math.min(left, buffer.length);
      for (int i = 0; i < count; i += 8) {
        long word = random.nextLong();
        for (int j = i; j < Math.min(i + 8, count); j++, word >>>= 8) {
          buffer[j] = (byte) word;
        }
      }
      left -= count;
      return count;
    }
  }
}
