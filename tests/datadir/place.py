"""The two volumes that change hands, the servers that serve them, and the files that every server must give back."""

import contextlib
import hashlib
import json
import random
import shutil
import signal
import subprocess
import time

from harness.clients import call, environment
from harness.cluster import free_port, toml, xml
from harness.process import Process
from harness.report import Failure, check

DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
DEBUG = "org.apache.hadoop.hdfs.tools.DebugAdmin"
FSCK = "org.apache.hadoop.hdfs.tools.DFSck"
READY_S = 60
# The least that a NameNode takes by default, so that small files have several blocks.
BLOCK_SIZE = 1 << 20
# Both programs write it anew, or remove it.
LOCK = "in_use.lock"
# The lengths of the files: around a checksum's chunk, a packet, and a block.
SIZES = [0, 1, 511, 512, 513, 3_000, 65_536, 700_001, 1_048_576, 3_500_000]


class Broken(Exception):
    """A case has failed, and the next ones begin where it should have ended."""


def play(tell, report, place):
    """Tells a story in this place up to its first case that fails, and ends all servers."""
    try:
        tell(report, place)
    except Broken:
        pass
    finally:
        place.end_all()


class Place:
    """One directory with two volumes, configuration for both kinds of data server, and the server that serves now."""

    def __init__(self, stock, work, seed):
        work.mkdir(parents=True)
        self.stock, self.work, self.random = stock, work, random.Random(seed)
        self.port, self.http = free_port(), free_port()
        self.transfer, self.ipc = free_port(), free_port()
        self.uri = f"hdfs://127.0.0.1:{self.port}"
        self.volumes = [work / "volume-0", work / "volume-1"]
        self.conf = work / "conf"
        self.server = None
        self.running = []
        # Path in the file system: its bytes.
        self.files = {}
        self.count = 0

    def configure(self, **more):
        """Both data servers speak from the same addresses, so that clients and metadata servers take them for one."""
        keys = {
            "fs.defaultFS": self.uri,
            "dfs.namenode.name.dir": self.work / "name",
            "dfs.namenode.http-address": f"127.0.0.1:{self.http}",
            "dfs.namenode.safemode.extension": 0,
            "dfs.namenode.heartbeat.recheck-interval": 1000,
            "dfs.permissions.superusergroup": "supergroup",
            "dfs.datanode.data.dir": ",".join(map(str, self.volumes)),
            "dfs.datanode.address": f"127.0.0.1:{self.transfer}",
            "dfs.datanode.ipc.address": f"127.0.0.1:{self.ipc}",
            "dfs.datanode.http.address": "127.0.0.1:0",
            "dfs.heartbeat.interval": 1,
            "dfs.blockreport.intervalMsec": 5000,
            "dfs.replication": 1,
            "dfs.blocksize": BLOCK_SIZE,
            **more,
        }
        shutil.rmtree(self.conf, ignore_errors=True)
        xml(self.conf, keys)
        # Some of Hadoop's tools read only this one of the two.
        shutil.copy(self.conf / "hdfs-site.xml", self.conf / "core-site.xml")
        for name, transfer, ipc in (("data", self.transfer, self.ipc), ("second", 0, 0)):
            toml(
                self.work / f"{name}.toml",
                data_dirs=self.volumes,
                metadata_servers=[f"127.0.0.1:{self.port}"],
                transfer_address=f"127.0.0.1:{transfer}",
                ipc_address=f"127.0.0.1:{ipc}",
                data_http_address="127.0.0.1:0",
                heartbeat_interval_ms=1000,
            )

    # Processes.

    def hadoop(self, name, *arguments):
        """The command that runs a class of Hadoop's servers or tools."""
        jars = next(self.stock.clients.glob("contract-[0-9]*"), None)
        check(jars, f"{self.stock.clients} has no Hadoop servers: run scripts/setup-test")
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
        return ["java", *options, "-cp", f"{self.conf}:{jars}/*", name, *map(str, arguments)]

    def spawn(self, name, command):
        self.count += 1
        process = Process(name, command, self.work / f"{self.count:02}-{name}.log", environment())
        self.running.append(process)
        return process

    def start_data_node(self):
        self.server = self.spawn("data-node", self.hadoop(DATA_NODE))

    def start_clover(self):
        self.server = self.spawn("clover-data", [self.stock.clover, "data", "--config", self.work / "data.toml"])

    def stop_data_node(self):
        """In the way that Hadoop's documents tell, by which a DataNode writes down what it knows of its replicas."""
        call(self.hadoop(ADMIN, "-shutdownDatanode", f"127.0.0.1:{self.ipc}"))
        self.server.wait_gone()

    def stop_clover(self):
        check(self.server.end() == 0, f"clover data did not end well:\n{self.server.tail()}")

    def another_data_node(self, name, volumes):
        """Hadoop's DataNode beside the server of now, on ports of its own."""
        conf = self.work / name
        shutil.copytree(self.conf, conf)
        for path in conf.iterdir():
            text = path.read_text()
            for port in (self.transfer, self.ipc):
                text = text.replace(f"127.0.0.1:{port}<", "127.0.0.1:0<")
            path.write_text(text.replace(f">{','.join(map(str, self.volumes))}<", f">{','.join(map(str, volumes))}<"))
        return self.spawn(name, [word.replace(f"{self.conf}:", f"{conf}:") for word in self.hadoop(DATA_NODE)])

    def second_data_node(self):
        """Hadoop's DataNode on a directory that is served already: it says so and ends."""
        before = self.snapshot()
        process = self.another_data_node("second-data-node", self.volumes)
        process.wait_gone()
        check("Cannot lock storage" in process.log.read_text(), f"it does not name the lock:\n{process.tail()}")
        check(self.snapshot() == before, "the DataNode that was refused has changed files")

    def kill(self):
        self.server.kill()
        self.server.wait_gone()

    def end_all(self):
        for process in self.running:
            process.end()

    # Files, by the stock client.

    def bytes(self, size):
        return self.random.randbytes(size)

    def local(self, data):
        path = self.work / "local"
        path.write_bytes(data)
        return path

    def shell(self, *words):
        return call(self.client("org.apache.hadoop.fs.FsShell", "-fs", self.uri, *words)).decode()

    def client(self, *arguments, replication=1):
        """The command of a stock client, whose JVM lives for a moment only."""
        conf = self.conf
        if replication != 1:
            conf = self.work / f"client-{replication}"
            shutil.rmtree(conf, ignore_errors=True)
            shutil.copytree(self.conf, conf)
            for path in conf.iterdir():
                one, more = (f"<name>dfs.replication</name><value>{number}<" for number in (1, replication))
                path.write_text(path.read_text().replace(one, more))
        [java, *rest] = self.stock.java(*arguments, conf=conf)
        return [java, "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", *rest]

    def store(self, sizes, directory, replication=1):
        """Files of these sizes, in one call of the stock client."""
        source = self.work / "source"
        source.mkdir(exist_ok=True)
        for old in source.iterdir():
            old.unlink()
        for number, size in enumerate(sizes):
            name = f"file-{number}-{size}"
            self.files[f"{directory}/{name}"] = data = self.bytes(size)
            (source / name).write_bytes(data)
        call(self.client("Driver", "put", self.uri, source, directory, BLOCK_SIZE, replication=replication))

    def append(self, path, size):
        data = self.bytes(size)
        self.shell("-appendToFile", self.local(data), path)
        self.files[path] += data

    def truncate(self, path, length):
        self.shell("-truncate", "-w", length, path)
        self.files[path] = self.files[path][:length]

    def delete(self, path):
        self.shell("-rm", "-skipTrash", path)
        del self.files[path]

    def leave_open(self, path, size):
        """A writer that has flushed and is killed: its file stays open, and its block is in `rbw`."""
        piece = self.local(self.bytes(size))
        self.shell("-touchz", path)
        command = self.client("Driver", "flush", self.uri, piece, path)
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment())
        with subprocess.Popen(list(map(str, command)), **pipes) as writer:
            visible = writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
        check(visible == b"visible\n", f"the writer has not flushed: {visible}")
        self.files[path] = piece.read_bytes()

    def check_files(self):
        """The stock client reads all files, and gets the bytes that were written. Returns the number of files and of bytes."""
        lines = call(self.client("Driver", "sums", self.uri, "/data")).decode().splitlines()
        found = {}
        for entry in map(json.loads, lines):
            if not entry["path"].endswith("/"):
                found["/data/" + entry["path"]] = (entry["size"], entry["sha256"])
        wanted = {path: (len(data), hashlib.sha256(data).hexdigest()) for path, data in self.files.items()}
        wrong = sorted(path for path in found.keys() | wanted if found.get(path) != wanted.get(path))
        check(not wrong, f"not as they were written: {[(path, found.get(path), wanted.get(path)) for path in wrong[:5]]}")
        return f"{len(wanted)} files, {sum(map(len, self.files.values())):,} bytes"

    def checksums(self, directory):
        """As the data servers compute them, for the files of this directory."""
        return self.shell("-checksum", *sorted(path for path in self.files if path.startswith(f"{directory}/")))

    # The directories.

    def snapshot(self):
        """Every file of both volumes with size, time and sum, but for the locks."""
        found = {}
        for volume in self.volumes:
            for path in volume.rglob("*"):
                if path.is_file() and path.name != LOCK:
                    stat = path.stat()
                    found[str(path)] = (stat.st_size, stat.st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        return found

    def versions(self):
        """The lines of all VERSION files, without comments, which have a date."""
        found = {}
        for volume in self.volumes:
            for path in volume.rglob("VERSION"):
                lines = path.read_text().splitlines()
                found[str(path)] = sorted(line for line in lines if not line.startswith("#"))
        return found

    def named(self, name):
        return sorted(path for volume in self.volumes for path in volume.rglob(name))

    def replicas(self):
        """How many finished replicas each volume has, and how many of both are being written."""
        finished = [sum(1 for path in volume.rglob("finalized/**/blk_*") if path.suffix != ".meta") for volume in self.volumes]
        return finished, sum(1 for path in self.named("blk_*") if path.parent.name == "rbw" and path.suffix != ".meta")

    def inspect(self):
        """`clover inspect --verify` says that both volumes are sound; the number of replicas."""
        done = call([self.stock.clover, "inspect", "--verify", "--json", *self.volumes]).decode().splitlines()
        found = list(map(json.loads, done))
        check(all(one["sound"] and one["stranger_count"] == 0 for one in found), f"not sound: {done}")
        return sum(place["replicas"] for one in found for pool in one["pools"] for place in pool["places"].values())

    def refused(self, words):
        """`clover data` on the directory says why not, in these words, and leaves every file as it is."""
        before = self.snapshot()
        process = self.spawn("clover-refused", [self.stock.clover, "data", "--config", self.work / "second.toml"])
        try:
            eventually(f"clover data says `{words}`", lambda: words in process.log.read_text(errors="replace"), process.tail)
        finally:
            process.end()
        after = self.snapshot()
        changed = {path for path in before.keys() | after if before.get(path) != after.get(path)}
        check(not changed, f"a server that refuses has changed {sorted(changed)}")
        return f"{len(before)} files untouched"


def telling(report, server):
    """Makes cases of this column. After one that has failed none is begun."""

    @contextlib.contextmanager
    def case(name):
        is_over = False
        with report.case(server, name) as note:
            yield note
            is_over = True
        if not is_over:
            raise Broken

    return case


def eventually(what, holds, more=lambda: ""):
    """Waits until `holds()`; errors of commands count as not yet."""
    begun = time.monotonic()
    while time.monotonic() - begun < READY_S:
        with contextlib.suppress(subprocess.CalledProcessError):
            if holds():
                return
        time.sleep(0.3)
    raise Failure(f"after {READY_S} s still not: {what}\n{more()[-1000:]}")
