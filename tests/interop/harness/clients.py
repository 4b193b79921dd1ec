"""The foreign clients, and our own, behind one face: store a tree, read a tree."""

import contextlib
import json
import os
import shutil
import subprocess

from . import trees

# Longer than any step takes on two slow cores; a client that hangs is a failure, not a wait without end.
TIMEOUT_S = 1800


class Stock:
    """Where the clients were put by scripts/setup-test, and how each is called."""

    def __init__(self, root, hadoop, clover, work):
        self.clients = root / "target/clients"
        self.hadoop = hadoop
        self.clover = clover
        self.scratch = work / "read"
        self.python_driver = root / "tests/interop/clients/python/driver.py"
        classes = self.clients / f"driver-{hadoop}"
        if not classes.is_dir():
            raise SystemExit(f"{classes} is missing: run scripts/setup-test {hadoop}")
        # Hadoop's shell will not start without these two files, even when they say nothing.
        self.bare = work / "conf"
        self.bare.mkdir()
        for name in ("core-site.xml", "hdfs-site.xml"):
            (self.bare / name).write_text("<configuration/>\n")
        self.class_path = f"{classes}:{self.clients / f'hadoop-{hadoop}'}/*"

    def shell(self, uri, *words):
        """Hadoop's own shell: `hdfs dfs` without its start script."""
        return self.java("org.apache.hadoop.fs.FsShell", "-fs", uri, *words)

    def all(self):
        """Every client that stores and reads trees."""
        found = [Java(self), HadoopShell(self), HdfsNative(self), Go(self)]
        if self.clover:
            found.append(CloverShell(self))
        return found

    def java(self, *arguments, conf=None):
        """The command that runs a class of the stock client, or of our driver, with a configuration directory."""
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        return ["java", *options, "-Dfile.encoding=UTF-8", "-cp", f"{conf or self.bare}:{self.class_path}", *map(str, arguments)]

    def data_node(self, conf):
        """The command that runs Hadoop's DataNode; its jars are those of Hadoop's own tests."""
        jars = next(self.clients.glob("contract-[0-9]*"), None)
        if not jars:
            raise SystemExit(f"{self.clients} has no Hadoop DataNode: run scripts/setup-test")
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
        return ["java", *options, "-cp", f"{conf}:{jars}/*", "org.apache.hadoop.hdfs.server.datanode.DataNode"]


def environment():
    """The names in the trees are UTF-8, and the JVM reads them as the locale says."""
    return {**os.environ, "LC_ALL": "C.UTF-8"}


def call(command, **options):
    """Runs a command to its end and returns what it printed; a failure carries its output."""
    command = list(map(str, command))
    options = {"timeout": TIMEOUT_S, "env": environment(), "stdin": subprocess.DEVNULL, **options}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, **options)
    return done.stdout


class Driver:
    """A client with a driver program of ours around it; all drivers take the same arguments."""

    takes_many = True
    # Each file that is appended is an append of its own.
    appends_at_once = False
    changes = {"append", "flush", "truncate", "rename", "concat"}

    def __init__(self, stock):
        self.stock = stock

    def command(self):
        raise NotImplementedError

    def put(self, uri, local, remote, block_size):
        call([*self.command(), "put", uri, local, remote, block_size])

    def sums(self, uri, remote):
        lines = call([*self.command(), "sums", uri, remote]).decode().splitlines()
        entries = [json.loads(line) for line in lines]
        return {entry["path"]: (entry["size"], entry["sha256"]) for entry in entries}

    def append(self, uri, pieces, remotes):
        """Each file of the directory `pieces`, by name, behind each of the remote ones."""
        call([*self.command(), "append", uri, pieces, *remotes])

    @contextlib.contextmanager
    def flushed(self, uri, piece, remote):
        """The piece is appended and can be read, and the file is open until the end of the `with` block."""
        command = list(map(str, [*self.command(), "flush", uri, piece, remote]))
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        with subprocess.Popen(command, **pipes) as process:
            try:
                visible = process.stdout.readline() == b"visible\n"
                if visible:
                    yield
                output, errors = process.communicate(b"\n", timeout=TIMEOUT_S)
            finally:
                process.kill()
        if not visible or process.returncode != 0:
            raise subprocess.CalledProcessError(process.returncode, command, output, errors)

    def truncate(self, uri, length, remote):
        """Returns when the file can be appended to again."""
        call([*self.command(), "truncate", uri, length, remote])

    def rename(self, uri, source, target):
        call([*self.command(), "rename", uri, source, target])

    def concat(self, uri, target, sources):
        call([*self.command(), "concat", uri, target, *sources])


class Java(Driver):
    name = "hadoop api"
    takes_large = True

    def command(self):
        return self.stock.java("Driver")


class HdfsNative(Driver):
    name = "hdfs-native"
    takes_large = True
    # Its Python face has no truncate, and it has no concat at all.
    changes = {"append", "flush", "rename"}

    def command(self):
        return [self.stock.clients / "venv/bin/python", self.stock.python_driver]


class Go(Driver):
    name = "go hdfs"
    takes_large = False
    changes = Driver.changes - {"concat"}

    def command(self):
        return [self.stock.clients / "go-driver"]


class Shell:
    """A command line with `-put` and `-get`; it reads a tree by fetching it."""

    takes_large = False
    takes_many = False
    appends_at_once = True
    changes = Driver.changes - {"flush"}

    def __init__(self, stock):
        self.stock = stock

    def command(self, uri):
        raise NotImplementedError

    def options(self, block_size):
        return ["-D", f"dfs.blocksize={block_size}"]

    def put(self, uri, local, remote, block_size):
        parent = remote.rsplit("/", 1)[0] or "/"
        call([*self.command(uri), "-mkdir", "-p", parent])
        call([*self.command(uri), *self.options(block_size), "-put", local, remote])

    def sums(self, uri, remote):
        shutil.rmtree(self.stock.scratch, ignore_errors=True)
        self.stock.scratch.mkdir(parents=True)
        call([*self.command(uri), "-get", remote, self.stock.scratch / "tree"])
        found = trees.sums(self.stock.scratch / "tree")
        shutil.rmtree(self.stock.scratch)
        return found


    def append(self, uri, pieces, remotes):
        """All pieces in one append."""
        for remote in remotes:
            call([*self.command(uri), "-appendToFile", *sorted(pieces.iterdir()), remote])

    def truncate(self, uri, length, remote):
        call([*self.command(uri), "-truncate", "-w", length, remote])

    def rename(self, uri, source, target):
        call([*self.command(uri), "-mv", source, target])

    def concat(self, uri, target, sources):
        call([*self.command(uri), "-concat", target, *sources])


class HadoopShell(Shell):
    name = "hadoop fs"

    def command(self, uri):
        return self.stock.shell(uri)


class CloverShell(Shell):
    name = "clover fs"
    takes_large = True
    takes_many = True

    def command(self, uri):
        return [self.stock.clover, "fs", "-fs", uri]
