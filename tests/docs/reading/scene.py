"""Where a page is read: a machine, or several, that nobody else sees."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from reading import pages
from reading.shells import Shell

PATIENCE_S = 60
# Network, files and processes of its own. A user who is not root becomes root of that little world alone. The shell, its first process,
# takes leave of processes that nobody else waits for.
WORLD = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
APART = ["unshare", *([] if os.geteuid() == 0 else ["--map-root-user"]), *WORLD, "sh", "-c", '"$@"; exit $?', "sh"]
# The machines that pages speak of.
ADDRESSES = {f"{kind}-{n}": f"10.0.0.{first + n}" for kind, first in (("meta", 0), ("data", 10)) for n in (1, 2, 3)}
# Empty for the reader, whatever this machine has there.
EMPTY = ["/tmp", "/srv", "/var/lib", "/var/log"]
SOURCE = Path("/mnt/source")
# Joins the machines. Here sits the reader, with ZooKeeper. Its own address stays when machines are added.
BRIDGE, READER = "02:00:00:00:00:01", "10.0.0.254"


def why_not():
    if not shutil.which("unshare") or not shutil.which("ip"):
        return "it wants `unshare` and `ip`"
    tried = subprocess.run([*APART, "sh", "-c", "mount -t tmpfs tmpfs /mnt && ip link add name machines type bridge"], capture_output=True, text=True)
    return None if tried.returncode == 0 else f"it wants namespaces of its own, which needs root here ({tried.stderr.strip()})"


def read_aloud(root, clover, page):
    """Inside those namespaces: runs what the page says. The process ends with 1 at the first thing that is not so."""
    steps = pages.read(page)
    # The README is read by people who have just built the program; all other pages by those who have put it into their PATH.
    home = furnish(root, clover, is_installed=page.name != "README.md")
    reader = Reader(home)
    for step in steps:
        try:
            reader.take(step)
        except AssertionError as error:
            print(f"\nNOT SO: {page.name}:{step.line}: {error}", flush=True)
            reader.last_words()
            return 1
    print(f"\n{page.name}: {len(steps)} steps, all as the page says", flush=True)
    return 0


def furnish(root, clover, is_installed):
    """Lays out the machine; returns the directory where the reader sits: the sources, with the program built."""
    sh("ip", "link", "set", "lo", "up")
    sh("ip", "link", "add", "name", "machines", "address", BRIDGE, "type", "bridge")
    sh("ip", "address", "add", f"{READER}/24", "dev", "machines")
    sh("ip", "link", "set", "machines", "up")
    # What has to be seen through the empty directories is put into a place that none of them hides.
    sh("mount", "-t", "tmpfs", "tmpfs", "/mnt")
    jars = (root / "target/clients/zookeeper").resolve()
    for name, origin in (("source", root), ("program", clover.parent), ("zookeeper", jars)):
        if origin.is_dir():
            (Path("/mnt") / name).mkdir()
            sh("mount", "--bind", origin, Path("/mnt") / name)
    for directory in EMPTY:
        sh("mount", "-t", "tmpfs", "tmpfs", directory)
    own_etc()
    hosts = [f"{address} {name}" for name, address in ADDRESSES.items()] + [f"{READER} zk-{n}" for n in (1, 2, 3)]
    Path("/etc/hosts").write_text("\n".join(["127.0.0.1 localhost", *hosts]) + "\n")
    home = Path("/tmp/clover")
    release = home / "target/release"
    release.mkdir(parents=True)
    for entry in SOURCE.iterdir():
        if entry.name not in ("target", ".git", "conf"):
            (home / entry.name).symlink_to(entry)
    (release / "clover").symlink_to(Path("/mnt/program") / clover.name)
    stock_client(release / "hdfs", root / "target/clients")
    if is_installed:
        os.environ["PATH"] = f"{release}:{os.environ['PATH']}"
    # `make demo` finds the program built.
    os.environ["CARGO"] = "true"
    os.environ.pop("CARGO_TARGET_DIR", None)
    os.environ["CLOVER_ZOOKEEPER_JARS"] = "/mnt/zookeeper"
    os.chdir(home)
    return home


def stock_client(command, clients):
    """Hadoop's `hdfs dfs`, as a reader has it who has Hadoop installed: from the jars that scripts/setup-test has fetched."""
    jars = sorted(clients.resolve().glob("hadoop-*"))
    if jars:
        words = f'-cp "$HADOOP_CONF_DIR:{jars[-1]}/*" org.apache.hadoop.fs.FsShell'
        command.write_text(f'#!/bin/sh\n[ "$1" = dfs ] || exit 127\nshift\nexec java -XX:TieredStopAtLevel=1 {words} "$@"\n')
        command.chmod(0o755)


def own_etc():
    """A copy of /etc that may be written to."""
    copy = Path("/tmp/.etc")
    copy.mkdir(exist_ok=True)
    sh("mount", "-t", "tmpfs", "tmpfs", copy)
    # Files that only another user may read are not needed.
    subprocess.run(["cp", "-a", "/etc/.", copy], capture_output=True)
    sh("mount", "--bind", copy, "/etc")
    Path("/etc/clover").mkdir(exist_ok=True)


def plug_in(machine, shell):
    """A cable from a new machine to all others."""
    sh("ip", "link", "add", "name", f"to-{machine}", "type", "veth", "peer", "name", "eth0", "netns", shell.process.pid)
    sh("ip", "link", "set", f"to-{machine}", "master", "machines", "up")
    for words in (f"address add {ADDRESSES[machine]}/24 dev eth0", "link set eth0 up", "link set lo up"):
        code, said = shell.run(f"ip {words}")
        assert code == 0, said


def sh(*words):
    subprocess.run([str(word) for word in words], check=True)


class Reader:
    """Types the steps of a page, on one machine or several."""

    def __init__(self, home):
        self.home = home
        self.shells = {"": Shell("", home)}
        self.servers = []

    def take(self, step):
        getattr(self, step.kind)(step)

    def shell(self, machine):
        if machine not in self.shells:
            assert machine in ADDRESSES, f"there is no machine {machine}: {', '.join(ADDRESSES)}"
            shell = self.shells[machine] = Shell(machine, self.home)
            plug_in(machine, shell)
        return self.shells[machine]

    def run(self, step):
        deadline = time.monotonic() + (PATIENCE_S if step.waits else 0)
        for command in step.commands:
            while True:
                wrong = self.type(command, step.any_numbers)
                if not wrong:
                    break
                assert time.monotonic() < deadline, wrong
                time.sleep(0.5)

    def type(self, command, any_numbers=False):
        """None, or what is not so."""
        code, printed = self.shell(command.machine).run(command.text)
        if code != 0:
            return f"`{command.text}` ended with {code}: {printed}"
        return pages.difference(command.output, printed, any_numbers) if command.output else None

    def setup(self, step):
        for command in step.commands:
            wrong = self.type(command)
            assert not wrong, wrong

    def write(self, step):
        path, _, machine = step.word.partition(" on ")
        target = self.shell(machine).file(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(step.text)

    def serve(self, step):
        for command in step.commands:
            server = self.shell(command.machine).start(command.text)
            deadline = time.monotonic() + PATIENCE_S
            while step.word not in server.said():
                if server.process.poll() is not None:
                    assert server.process.returncode == 0, f"`{command.text}` ended with {server.process.returncode}: {server.said()}"
                    break
                assert time.monotonic() < deadline, f"`{command.text}` has not said {step.word!r} after {PATIENCE_S} s: {server.said()}"
                time.sleep(0.05)
            else:
                self.servers.append(server)

    def stop(self, _step):
        for server in reversed(self.servers):
            server.interrupt(PATIENCE_S)
        self.servers.clear()

    def last_words(self):
        for server in self.servers:
            print(f"--- {server.text} said:\n{server.said()[-3000:]}")
        sys.stdout.flush()
