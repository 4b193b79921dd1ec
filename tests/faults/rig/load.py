"""The clients that load the group: a stock Hadoop client as a process of its own, and what it writes down."""

import subprocess
import time
from typing import NamedTuple

from harness.process import Process
from harness.report import Failure

END_S = 180


class Size(NamedTuple):
    """Threads of each kind, and the rest between two operations of one."""

    own: int = 4
    cell: int = 3
    data: int = 2
    stream: int = 1
    pause_us: int = 2000
    # Threads with a tree of directories each, and threads that share names of files and of directories: in stories of several groups.
    tree: int = 0
    mixed: int = 0


class Java:
    """The load program, compiled against the stock client."""

    def __init__(self, root, hadoop, build):
        self.jars = root / f"target/clients/hadoop-{hadoop}"
        if not self.jars.is_dir():
            raise SystemExit(f"{self.jars} is missing: run scripts/setup-test {hadoop}")
        self.sources = sorted((root / "tests/faults/java").glob("*.java"))
        self.classes = build / "java"

    def compile(self):
        stamp = self.classes / "LoadClient.class"
        if stamp.exists() and all(stamp.stat().st_mtime > source.stat().st_mtime for source in self.sources):
            return
        self.classes.mkdir(parents=True, exist_ok=True)
        command = ["javac", "-XDsuppressNotes", "-nowarn", "--release", "11", "-d", self.classes, "-cp", f"{self.jars}/*"]
        subprocess.run([*command, *self.sources], check=True, stdin=subprocess.DEVNULL)

    def command(self, conf, *words):
        options = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
        options += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true"]
        options += ["-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"]
        return ["java", *options, "-cp", f"{conf}:{self.classes}:{self.jars}/*", "LoadClient", *words]


class Load:
    """One client process at work. Its name is that of its history."""

    def __init__(self, name, command_of, directory):
        """`command_of` makes the command for the file that it is to write its history to."""
        self.name = name
        self.history = directory / f"{name}.tsv"
        command = command_of(self.history)
        self.process = Process(name, command, directory / f"{name}.log", stdin=subprocess.PIPE)

    def done(self):
        """How many operations it was told are done."""
        return self.history.read_bytes().count(b"\tok\t") if self.history.exists() else 0

    def wait_for(self, operations, seconds=90):
        deadline = time.monotonic() + seconds
        while self.done() < operations:
            if not self.process.is_running or time.monotonic() > deadline:
                raise Failure(f"{self.name} got {self.done()} operations done:\n{self.process.tail()}")
            time.sleep(0.05)

    def end(self):
        """Its threads finish what they do; then it goes."""
        self.process.popen.stdin.close()
        try:
            self.process.wait_gone(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failure(f"{self.name} did not end:\n{self.process.tail()}") from None
        if "broke:" in self.process.log.read_text(errors="replace"):
            raise Failure(f"{self.name} has a fault of its own:\n{self.process.tail()}")


def stock(java, conf, root, seed, size):
    words = [seed, size.own, size.cell, size.data, size.stream, size.pause_us, size.tree, size.mixed]
    return lambda history: java.command(conf, "load", root, history, *words)


def native(clover, conf, root, seed, size):
    words = ["--root", root, "--seed", seed, "--own", size.own, "--cell", size.cell, "--pause-us", size.pause_us]
    return lambda history: [clover, "bench", "load", "--conf", conf, "--history", history, *words]


def dump(java, conf, root, file, log, what="dump"):
    """The namespace as it is now, or with "blocks" all blocks of its files."""
    process = Process(what, java.command(conf, what, root, file), log)
    if process.wait_gone(600) != 0:
        raise Failure(f"the namespace cannot be listed:\n{process.tail()}")
