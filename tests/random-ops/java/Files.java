import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream.SyncFlag;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream;
import org.apache.hadoop.hdfs.protocol.OpenFileEntry;

/** Files: writing them whole, holding them open, adding to them, cutting them, joining them. */
final class Files {
  private static final String[] SLOTS = {"one", "two", "three"};

  private Files() {}

  static void add(List<Operation> all) {
    all.add(new Operation("create", "files", 14, c -> new String[] {
        c.fresh(), c.permission(), c.pick("true", "false"), c.pick("1", "2", "3", "3"), "1024", c.length()}, Files::create));
    all.add(new Operation("createOdd", "files", 2, c -> new String[] {
        c.fresh(), c.permission(), c.pick("true", "false"), c.replication(), c.size(), c.length()}, Files::create));
    all.add(new Operation("createNonRecursive", "files", 3, c -> new String[] {
        c.fresh(), c.permission(), c.pick("CREATE", "OVERWRITE", "CREATE,OVERWRITE", "APPEND", "CREATE,APPEND", "CREATE,SYNC_BLOCK",
            "CREATE,LAZY_PERSIST,OVERWRITE", "CREATE,IGNORE_CLIENT_LOCALITY", "CREATE,NO_LOCAL_WRITE"), c.length()}, (s, a) -> {
          EnumSet<CreateFlag> flags = flags(a[2]);
          if (!s.side().families().contains("policy")) {
            flags.remove(CreateFlag.LAZY_PERSIST);
          }
          if (flags.contains(CreateFlag.APPEND) && !s.side().families().contains("append")) {
            return "left out";
          }
          try (FSDataOutputStream out = s.fs().createNonRecursive(s.path(a[0]), Names.permission(a[1]), flags, 4096, (short) 3, 1024, null)) {
            write(out, Integer.parseInt(a[3]), a[0]);
          }
          return "";
        }));
    all.add(new Operation("createNewFile", "files", 1, c -> new String[] {c.fresh()}, (s, a) -> s.fs().createNewFile(s.path(a[0]))));
    all.add(new Operation("builder", "files", 1, c -> new String[] {c.fresh(), c.pick("", "recursive"), c.pick("overwrite", ""),
        c.pick("", "", "HOT", "COLD", "NOSUCH"), c.pick("", "", "replicate", "RS-6-3-1024k", "XOR-2-1-1024k", "NOSUCH")}, (s, a) -> {
          var builder = s.fs().createFile(s.path(a[0])).overwrite(a[2].equals("overwrite")).blockSize(2048).replication((short) 2);
          if (a[1].equals("recursive")) {
            builder.recursive();
          }
          if (a[4].equals("replicate")) {
            builder.replicate();
          } else if (!a[4].isEmpty() && s.side().families().contains("ec")) {
            builder.ecPolicyName(a[4]);
          }
          if (!a[3].isEmpty() && s.side().families().contains("policy")) {
            builder.storagePolicyName(a[3]);
          }
          try (FSDataOutputStream out = builder.build()) {
            write(out, 10, a[0]);
          }
          return "";
        }));

    all.add(new Operation("openStream", "open", 3, c -> new String[] {
        c.pick(SLOTS), c.fresh(), c.pick("true", "false"), c.length()}, (s, a) -> {
          if (s.side().streams.containsKey(a[0])) {
            return "busy";
          }
          FSDataOutputStream out = s.fs().create(s.path(a[1]), Boolean.parseBoolean(a[2]), 4096, (short) 2, 1024);
          s.side().streams.put(a[0], new Stream(s, out));
          s.side().written.put(a[0], s.path(a[1]));
          return flushed(out, Integer.parseInt(a[3]), a[0]);
        }));
    all.add(new Operation("writeStream", "open", 3, c -> new String[] {c.pick(SLOTS), c.length(), c.pick("hflush", "hflush", "hsync", "length")}, (s, a) -> {
      Stream held = s.side().streams.get(a[0]);
      if (held == null) {
        return "none";
      }
      return held.unlessLost(s, out -> {
        write(out, Integer.parseInt(a[1]), a[0]);
        switch (a[2]) {
          case "hsync" -> out.hsync();
          case "length" -> ((HdfsDataOutputStream) out).hsync(EnumSet.of(SyncFlag.UPDATE_LENGTH));
          default -> out.hflush();
        }
        return out.getPos();
      });
    }));
    all.add(new Operation("closeStream", "open", 3, c -> new String[] {c.pick(SLOTS)}, (s, a) -> {
      Stream held = s.side().streams.remove(a[0]);
      if (held == null) {
        return "none";
      }
      return held.unlessLost(s, out -> {
        out.close();
        return "";
      });
    }));
    all.add(new Operation("isFileClosed", "open", 1, c -> new String[] {c.file()}, (s, a) -> s.fs().isFileClosed(s.path(a[0]))));
    all.add(new Operation("listOpenFiles", "openfiles", 1, c -> new String[] {c.pick("/", c.existing())}, (s, a) -> {
      List<String> found = new ArrayList<>();
      var entries = s.fs().listOpenFiles(EnumSet.of(org.apache.hadoop.hdfs.protocol.OpenFilesIterator.OpenFilesType.ALL_OPEN_FILES), a[0]);
      while (entries.hasNext()) {
        OpenFileEntry entry = entries.next();
        found.add(entry.getFilePath());
      }
      Collections.sort(found);
      return found;
    }));
    all.add(new Operation("recoverLease", "leases", 1, c -> new String[] {c.file()}, (s, a) -> recover(s, s.path(a[0]))));
    // From a writer that goes on as if nothing had happened.
    all.add(new Operation("recoverStream", "leases", 2, c -> new String[] {c.pick(SLOTS)}, (s, a) -> {
      Path path = s.side().written.get(a[0]);
      return path == null ? "none" : recover(s, path);
    }));

    all.add(new Operation("append", "append", 10, c -> new String[] {c.file(), c.pick("APPEND", "APPEND", "APPEND,NEW_BLOCK", "APPEND,SYNC_BLOCK"),
        c.length()}, (s, a) -> {
          try (FSDataOutputStream out = s.fs().append(s.path(a[0]), flags(a[1]), 4096, null)) {
            long before = out.getPos();
            write(out, Integer.parseInt(a[2]), "append");
            return before;
          }
        }));
    all.add(new Operation("appendStream", "append", 2, c -> new String[] {c.pick(SLOTS), c.file(), c.length()}, (s, a) -> {
      if (s.side().streams.containsKey(a[0])) {
        return "busy";
      }
      FSDataOutputStream out = s.fs().append(s.path(a[1]));
      s.side().streams.put(a[0], new Stream(s, out));
      s.side().written.put(a[0], s.path(a[1]));
      return flushed(out, Integer.parseInt(a[2]), a[0]);
    }));
    all.add(new Operation("truncate", "truncate", 6, c -> new String[] {c.file(), c.pick("0", "1", "100", "512", "1000", "1024", "1500", "2048", "9999", "-1")},
        (s, a) -> {
          Path path = s.path(a[0]);
          boolean done = s.fs().truncate(path, Long.parseLong(a[1]));
          // In the background otherwise; when it ends is nobody's promise.
          for (int patience = 0; !done && patience < 400 && !s.fs().isFileClosed(path); patience++) {
            Thread.sleep(25);
          }
          return done + " " + s.fs().getFileStatus(path).getLen();
        }));
    all.add(new Operation("concat", "concat", 6, c -> {
      int count = c.pick(0, 1, 1, 1, 2, 2, 3);
      String[] words = new String[count + 1];
      for (int index = 0; index <= count; index++) {
        words[index] = c.file();
      }
      return words;
    }, (s, a) -> {
      Path[] sources = new Path[a.length - 1];
      for (int index = 1; index < a.length; index++) {
        sources[index - 1] = s.path(a[index]);
      }
      s.fs().concat(s.path(a[0]), sources);
      return "";
    }));
    // Concat among neighbours of one directory that have whole blocks, which is what it takes.
    all.add(new Operation("concatMade", "concat", 3, c -> new String[] {c.fresh(), c.pick("1024", "2048", "1000"), c.pick("1024", "500", "0"), c.pick("1", "2"), c.pick("1", "2", "3")},
        (s, a) -> {
          Path target = s.path(a[0] + ".1");
          Path source = s.path(a[0] + ".2");
          try (FSDataOutputStream out = s.fs().create(target, true, 4096, (short) 2, 1024)) {
            write(out, Integer.parseInt(a[1]), "target");
          }
          try (FSDataOutputStream out = s.fs().create(source, true, 4096, Short.parseShort(a[4]), 1024L * Long.parseLong(a[3]))) {
            write(out, Integer.parseInt(a[2]), "source");
          }
          s.fs().concat(target, new Path[] {source});
          return s.fs().getFileStatus(target).getLen();
        }));
  }

  private static Object create(Session s, String[] a) throws Exception {
    try (FSDataOutputStream out = s.fs().create(s.path(a[0]), Names.permission(a[1]), Boolean.parseBoolean(a[2]), 4096, Short.parseShort(a[3]),
        Long.parseLong(a[4]), null)) {
      write(out, Integer.parseInt(a[5]), a[0]);
    }
    return "";
  }

  /** What stays in the client would take its blocks, and room in quotas, while others' calls are made. */
  private static String flushed(FSDataOutputStream out, int length, String seed) throws Exception {
    write(out, length, seed);
    out.hflush();
    return "";
  }

  private static String recover(Session s, Path path) throws Exception {
    for (int patience = 0; patience < 200; patience++) {
      if (s.fs().recoverLease(path)) {
        return "closed";
      }
      Thread.sleep(50);
    }
    return "still open";
  }

  private static EnumSet<CreateFlag> flags(String words) {
    EnumSet<CreateFlag> flags = EnumSet.noneOf(CreateFlag.class);
    List.of(words.split(",")).forEach(word -> flags.add(CreateFlag.valueOf(word)));
    return flags;
  }

  static void write(FSDataOutputStream out, int length, String seed) throws Exception {
    byte[] bytes = new byte[length];
    new Random(seed.hashCode() + length).nextBytes(bytes);
    out.write(bytes);
  }

  /** A number that stands for what is in the file, with its length. */
  static String content(FileSystem fs, Path path) throws Exception {
    java.util.zip.CRC32 sum = new java.util.zip.CRC32();
    long length = 0;
    byte[] buffer = new byte[8192];
    try (FSDataInputStream in = fs.open(path)) {
      for (int count; (count = in.read(buffer)) >= 0; length += count) {
        sum.update(buffer, 0, count);
      }
    }
    return length + " bytes " + Long.toHexString(sum.getValue());
  }
}
