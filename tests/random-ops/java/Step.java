import java.util.Arrays;

/** A call with all its arguments: a line of tab-separated words. */
record Step(String user, String operation, String[] arguments) {
  static Step parse(String line) {
    String[] words = line.split("\t", -1);
    return new Step(words[0], words[1], Arrays.copyOfRange(words, 2, words.length));
  }

  String line() {
    return user + "\t" + operation + (arguments.length == 0 ? "" : "\t" + String.join("\t", arguments));
  }

  @Override
  public String toString() {
    StringBuilder text = new StringBuilder(user).append(": ").append(operation);
    for (String argument : arguments) {
      text.append(' ').append(argument.isEmpty() || argument.contains(" ") ? '"' + argument + '"' : argument);
    }
    return text.toString();
  }
}
