import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.fs.Options.Rename;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSInotifyEventInputStream;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.client.HdfsAdmin;
import org.apache.hadoop.hdfs.inotify.Event;
import org.apache.hadoop.hdfs.inotify.EventBatch;
import org.apache.hadoop.util.ToolRunner;

/** The stock client's stream of events: `scenes` prints what each change tells, `follow` what a stream tells while it makes directories. */
public class Watch {
  static final long PATIENCE_S = 120;
  static final long BEGUN = System.currentTimeMillis();

  final Configuration conf = new Configuration();
  final DistributedFileSystem fs = (DistributedFileSystem) FileSystem.get(conf);
  final DFSInotifyEventInputStream stream;
  final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
  int marks = 0;

  Watch() throws Exception {
    stream = new HdfsAdmin(URI.create(conf.get("fs.defaultFS")), conf).getInotifyEventStream();
  }

  public static void main(String[] words) throws Exception {
    Watch watch = new Watch();
    switch (words[0]) {
      case "scenes" -> watch.scenes(java.nio.file.Path.of(words[1]));
      case "follow" -> watch.follow();
      default -> throw new IllegalArgumentException(words[0]);
    }
  }

  interface Act {
    void run() throws Exception;
  }

  /** All events until one that is the last. */
  void take(Predicate<Event> isLast, Consumer<Event> each) throws Exception {
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
    long last = 0;
    while (System.nanoTime() < until) {
      EventBatch batch = stream.poll(1, TimeUnit.SECONDS);
      if (batch == null) {
        continue;
      }
      if (batch.getTxid() <= last) {
        throw new IllegalStateException("entry " + batch.getTxid() + " comes behind " + last);
      }
      last = batch.getTxid();
      for (Event event : batch.getEvents()) {
        if (isLast.test(event)) {
          return;
        }
        each.accept(event);
      }
    }
    throw new IllegalStateException("the last event has not come within " + PATIENCE_S + " s");
  }

  static boolean creates(Event event, String path) {
    return event instanceof Event.CreateEvent create && create.getPath().equals(path);
  }

  /** Does it, and prints the events up to a directory that is made behind it. */
  void scene(String name, Act act) throws Exception {
    out.println("> " + name);
    act.run();
    String mark = "/mark-" + marks++;
    fs.mkdirs(new Path(mark));
    take(event -> creates(event, mark), event -> out.println(text(event)));
  }

  void shell(String... words) throws Exception {
    scene(String.join(" ", words).replaceAll("/\\S*/local/", ""), () -> {
      PrintStream own = System.out;
      System.setOut(System.err);
      int code = ToolRunner.run(conf, new FsShell(), words);
      System.setOut(own);
      if (code != 0) {
        throw new IllegalStateException(String.join(" ", words) + " ended with " + code);
      }
    });
  }

  void scenes(java.nio.file.Path local) throws Exception {
    Files.createDirectories(local);
    String small = local.resolve("small").toString();
    String more = local.resolve("more").toString();
    Files.writeString(local.resolve("small"), "a few bytes\n");
    Files.write(local.resolve("more"), new byte[3_000_000]);
    shell("-mkdir", "-p", "/d/e/f");
    shell("-mkdir", "/d/g");
    shell("-put", small, "/d/small");
    shell("-put", "-f", more, "/d/small");
    shell("-D", "dfs.blocksize=1048576", "-put", more, "/d/more");
    shell("-touchz", "/d/empty");
    shell("-appendToFile", small, "/d/more");
    shell("-appendToFile", small, "/d/empty");
    shell("-cp", "/d/more", "/d/copy");
    shell("-mv", "/d/copy", "/d/moved");
    shell("-mv", "/d/moved", "/d/g");
    shell("-mv", "/d/g", "/d/h");
    shell("-chmod", "640", "/d/more");
    shell("-chmod", "1777", "/d/h");
    shell("-chown", "eve:staff", "/d/more");
    shell("-chown", "bob", "/d/more");
    shell("-chgrp", "users", "/d/more");
    shell("-setrep", "2", "/d/more");
    shell("-touch", "-m", "-t", "20240102:030405", "/d/more");
    shell("-touch", "-a", "-t", "20240102:030406", "/d/more");
    shell("-touch", "-t", "20240102:030407", "/d/more");
    shell("-cat", "/d/empty");
    shell("-head", "/d/more");
    shell("-setfacl", "-m", "user:eve:rwx,group:staff:r--", "/d/more");
    shell("-setfacl", "-x", "user:eve", "/d/more");
    shell("-setfacl", "-b", "/d/more");
    shell("-setfacl", "-m", "default:user:eve:r-x", "/d/h");
    shell("-mkdir", "/d/h/heir");
    shell("-touchz", "/d/h/heir/file");
    shell("-setfacl", "-k", "/d/h/heir");
    shell("-setfacl", "--set", "user::rwx,group::r-x,other::---,user:eve:r--", "/d/h");
    shell("-setfattr", "-n", "user.colour", "-v", "red", "/d/more");
    shell("-setfattr", "-n", "user.colour", "-v", "blue", "/d/more");
    shell("-setfattr", "-n", "user.bare", "/d/more");
    shell("-setfattr", "-x", "user.colour", "/d/more");
    shell("-truncate", "-w", "2097152", "/d/more");
    shell("-truncate", "-w", "1500000", "/d/more");
    shell("-truncate", "-w", "0", "/d/empty");
    scene("concat", () -> {
      for (String name : new String[] {"/c/target", "/c/one", "/c/two"}) {
        write(name, CreateFlag.CREATE);
      }
      fs.concat(new Path("/c/target"), new Path[] {new Path("/c/one"), new Path("/c/two")});
    });
    scene("create where directories are missing, twice", () -> {
      write("/made/by/create", CreateFlag.CREATE);
      write("/made/by/create", CreateFlag.CREATE, CreateFlag.OVERWRITE);
    });
    scene("append", () -> append("/made/by/create"));
    scene("append in a new block", () -> append("/made/by/create", CreateFlag.NEW_BLOCK));
    scene("append in a new block behind a full one", () -> append("/c/target", CreateFlag.NEW_BLOCK));
    scene("rename over a file, and over an empty directory", () -> {
      write("/made/other", CreateFlag.CREATE);
      FileContext context = FileContext.getFileContext(conf);
      context.rename(new Path("/made/other"), new Path("/made/by/create"), Rename.OVERWRITE);
      fs.mkdirs(new Path("/made/x"));
      fs.mkdirs(new Path("/made/y/z"));
      context.rename(new Path("/made/y"), new Path("/made/x"), Rename.OVERWRITE);
    });
    scene("a file that is flushed, and taken from its writer", () -> {
      var open = fs.create(new Path("/taken"));
      open.write(new byte[1000]);
      open.hsync();
      long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_S);
      while (!fs.recoverLease(new Path("/taken"))) {
        if (System.nanoTime() > until) {
          throw new IllegalStateException("the file is not closed within " + PATIENCE_S + " s");
        }
        Thread.sleep(500);
      }
    });
    scene("quotas and policies", () -> {
      fs.setQuota(new Path("/d"), 1000, 1L << 40);
      fs.setStoragePolicy(new Path("/d/h"), "HOT");
      fs.unsetStoragePolicy(new Path("/d/h"));
    });
    scene("snapshots", () -> {
      fs.allowSnapshot(new Path("/d"));
      fs.createSnapshot(new Path("/d"), "one");
      fs.truncate(new Path("/d/more"), 1_200_000);
      while (!fs.isFileClosed(new Path("/d/more"))) {
        Thread.sleep(100);
      }
      fs.delete(new Path("/d/small"), false);
      fs.renameSnapshot(new Path("/d"), "one", "two");
      fs.deleteSnapshot(new Path("/d"), "two");
      fs.disallowSnapshot(new Path("/d"));
    });
    shell("-rm", "-skipTrash", "/d/more");
    shell("-rmdir", "/d/e/f");
    shell("-rm", "-r", "-skipTrash", "/d");
    scene("calls that do nothing", () -> {
      fs.mkdirs(new Path("/made/by"));
      fs.delete(new Path("/absent"), true);
      fs.truncate(new Path("/c/target"), (3 << 20) + 1);
      fs.rename(new Path("/made"), new Path("/made"));
    });
    shell("-touch", "-a", "-t", "20240102:030406", "/made");
    shell("-touch", "-t", "20240102:030406", "/made");
    shell("-mkdir", "/acl");
    shell("-setfacl", "-m", "user:eve:rwx", "/acl");
    shell("-setfacl", "-x", "user:eve", "/acl");
    shell("-setfacl", "-x", "mask::", "/acl");
    shell("-setfacl", "-m", "default:user:eve:rwx", "/acl");
    shell("-setfacl", "-k", "/acl");
    shell("-setfacl", "--set", "user::rwx,group::r-x,other::r--", "/acl");
    shell("-setfacl", "-b", "/acl");
    for (String time : new String[] {"once", "again"}) {
      shell("-chmod", "600", "/c/target");
      shell("-chown", "eve:staff", "/c/target");
      shell("-setrep", "2", "/c/target");
      shell("-touch", "-m", "-t", "20240102:030405", "/c/target");
      shell("-setfacl", "-m", "user:eve:rwx", "/c/target");
      scene("setXAttr " + time, () -> fs.setXAttr(new Path("/c/target"), "user.same", new byte[] {'x'}));
    }
  }

  void write(String path, CreateFlag... flags) throws Exception {
    EnumSet<CreateFlag> all = EnumSet.copyOf(List.of(flags));
    try (var open = fs.create(new Path(path), null, all, 4096, (short) 1, 1 << 20, null)) {
      open.write(new byte[1 << 20]);
    }
  }

  void append(String path, CreateFlag... more) throws Exception {
    EnumSet<CreateFlag> flags = EnumSet.of(CreateFlag.APPEND, more);
    try (var open = fs.append(new Path(path), flags, 4096, null)) {
      open.write(7);
    }
  }

  /** All that an event has. A time of the present is told as that. */
  static String text(Event event) {
    if (event instanceof Event.CreateEvent it) {
      String overwrite = "overwrite=" + it.getOverwrite();
      return String.join(" ", "CREATE", it.getiNodeType().name(), it.getPath(), time(it.getCtime()), it.getOwnerName(), it.getGroupName(),
          it.getPerms().toString(), "replication=" + it.getReplication(), "block=" + it.getDefaultBlockSize(), overwrite,
          "link=" + it.getSymlinkTarget(), "coded=" + it.isErasureCoded());
    } else if (event instanceof Event.CloseEvent it) {
      return String.join(" ", "CLOSE", it.getPath(), "" + it.getFileSize(), time(it.getTimestamp()));
    } else if (event instanceof Event.AppendEvent it) {
      return String.join(" ", "APPEND", it.getPath(), "new=" + it.toNewBlock());
    } else if (event instanceof Event.RenameEvent it) {
      return String.join(" ", "RENAME", it.getSrcPath(), it.getDstPath(), time(it.getTimestamp()));
    } else if (event instanceof Event.UnlinkEvent it) {
      return String.join(" ", "UNLINK", it.getPath(), time(it.getTimestamp()));
    } else if (event instanceof Event.TruncateEvent it) {
      return String.join(" ", "TRUNCATE", it.getPath(), "" + it.getFileSize(), time(it.getTimestamp()));
    } else if (event instanceof Event.MetadataUpdateEvent it) {
      String xattrs = it.getxAttrs() == null ? "null" : "";
      for (var xattr : it.getxAttrs() == null ? List.<org.apache.hadoop.fs.XAttr>of() : it.getxAttrs()) {
        byte[] value = xattr.getValue();
        xattrs += xattr.getNameSpace() + "." + xattr.getName() + "=" + (value == null ? "null" : new String(value, StandardCharsets.UTF_8)) + ";";
      }
      return String.join(" ", "UPDATE", it.getMetadataType().name(), it.getPath(), "mtime=" + time(it.getMtime()), "atime=" + time(it.getAtime()),
          "replication=" + it.getReplication(), "owner=" + it.getOwnerName(), "group=" + it.getGroupName(), "perms=" + it.getPerms(),
          "acls=" + it.getAcls(), "xattrs=" + xattrs, "removed=" + it.isxAttrsRemoved());
    }
    throw new IllegalStateException("" + event);
  }

  static String time(long ms) {
    return ms >= BEGUN - 60_000 && ms <= System.currentTimeMillis() + 60_000 ? "now" : "" + ms;
  }

  /** Makes directories until a line comes in, and then prints which were told. */
  void follow() throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    List<String> made = Collections.synchronizedList(new ArrayList<>());
    List<String> told = new ArrayList<>();
    AtomicBoolean isOver = new AtomicBoolean();
    Thread maker = new Thread(() -> {
      try {
        while (!isOver.get()) {
          String path = String.format("/followed/%06d", made.size());
          fs.mkdirs(new Path(path));
          made.add(path);
          if (made.size() % 100 == 0) {
            out.println("made " + made.size());
          }
          Thread.sleep(2);
        }
        fs.mkdirs(new Path("/over"));
      } catch (Exception error) {
        error.printStackTrace();
        System.exit(1);
      }
    });
    maker.start();
    Thread ending = new Thread(() -> {
      try {
        in.readLine();
        isOver.set(true);
      } catch (Exception error) {
        error.printStackTrace();
        System.exit(1);
      }
    });
    ending.setDaemon(true);
    ending.start();
    take(event -> creates(event, "/over"), event -> told.add(text(event)));
    maker.join();
    List<String> expected = new ArrayList<>();
    expected.add("/followed");
    expected.addAll(made);
    List<String> paths = told.stream().map(line -> line.split(" ")[2]).toList();
    if (!paths.equals(expected)) {
      int at = 0;
      while (at < Math.min(paths.size(), expected.size()) && paths.get(at).equals(expected.get(at))) {
        at++;
      }
      throw new IllegalStateException(paths.size() + " were told and " + expected.size() + " made; they differ from the " + at + "th on: "
          + paths.subList(at, Math.min(at + 3, paths.size())) + " for " + expected.subList(at, Math.min(at + 3, expected.size())));
    }
    out.println("all " + expected.size() + " were told once, in order");
  }
}
