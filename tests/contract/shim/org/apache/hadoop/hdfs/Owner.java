package org.apache.hadoop.hdfs;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Whoever started the cluster, at a port in the property {@code clover.contract.control}: a line asks, a line answers. */
final class Owner {
  /** A data server: its port for blocks and its directories. */
  record DataServer(int port, List<File> directories) {}

  private Owner() {}

  static synchronized String ask(String... words) throws IOException {
    int port = Integer.getInteger("clover.contract.control");
    try (Socket control = new Socket(InetAddress.getLoopbackAddress(), port)) {
      control.getOutputStream().write((String.join("\t", words) + "\n").getBytes(StandardCharsets.UTF_8));
      control.getOutputStream().flush();
      String answer = new BufferedReader(new InputStreamReader(control.getInputStream(), StandardCharsets.UTF_8)).readLine();
      if (answer == null || !answer.startsWith("done") && !answer.equals("same")) {
        throw new IOException("the cluster's owner did not " + words[0] + ": " + answer);
      }
      return answer;
    }
  }

  static List<DataServer> data() throws IOException {
    List<DataServer> found = new ArrayList<>();
    String[] words = ask("data").split("\t");
    for (String word : Arrays.asList(words).subList(1, words.length)) {
      String[] parts = word.split(":");
      found.add(new DataServer(Integer.parseInt(parts[0]), Arrays.stream(parts).skip(1).map(File::new).toList()));
    }
    return found;
  }
}
