"""A file system of each kind with one data server, and the stock tools that are pointed at them."""

import hashlib
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

from harness.clients import call, environment
from harness.cluster import free_port, toml, xml
from harness.process import Process
from harness.report import Failure, check

# Longer than anything takes that is waited for, on a machine that may be busy.
PATIENCE_S = 180

NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
VIEWER = "org.apache.hadoop.hdfs.tools.offlineImageViewer.OfflineImageViewerPB"
SHELL = "org.apache.hadoop.fs.FsShell"

SNAPSHOTTABLE = ["/snapshots/d", "/moves/a", "/moves/b"]
# Left out are open files, whose last block nobody can read once their writer's data server is gone, and /attributes, with a file that superusers may not read.
READ = ["/names", "/files", "/rights", "/quotas", "/policies", "/appended", "/snapshots", "/moves", *[f"{root}/.snapshot" for root in SNAPSHOTTABLE]]
LOGGING = """
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
"""

def wait(what, is_so, more=lambda: ""):
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            if is_so():
                return
        except (OSError, subprocess.CalledProcessError):
            pass
        time.sleep(0.1)
    raise Failure(f"after {PATIENCE_S} s not yet: {what}\n{more()}")


class Tools:
    """Hadoop's tools, each in a JVM of its own."""

    def __init__(self, clients, work, sources):
        self.work = work
        self.jars = next(clients.glob("contract-[0-9]*"), None)
        if not self.jars:
            raise SystemExit("Hadoop's jars are missing: run scripts/setup-test")
        self.classes = work / "classes"
        compiler = ["javac", "-XDsuppressNotes", "-nowarn", "--release", "17", "-encoding", "UTF-8", "-d", self.classes]
        call([*compiler, "-cp", f"{self.jars}/*", *sorted(sources.glob("*.java"))])

    def java(self, conf, name, *words, heap=256):
        options = [f"-Xmx{heap}m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Dfile.encoding=UTF-8"]
        path = f"{conf}:{self.classes}:{self.jars}/*"
        return ["java", *options, "-cp", path, name, *map(str, words)]

    def lay_out(self, place, directories):
        said = call(self.java(place.conf, "Layout", place.uri, directories))
        check(b"laid out" in said, f"the tree was not laid out: {said[-500:]}")

    def view(self, place, form):
        """The image as the stock viewer prints it."""
        printed = place.directory / f"{place.image.name}.{form}"
        call(self.java(place.conf, VIEWER, "-p", form, "-i", place.image, "-o", printed))
        return printed

    def look(self, place, commands):
        """The lines that commands of the shell print."""
        words = [word for command in commands for word in (";", *command)][1:]
        said = call(self.java(place.conf, "Look", *words)).decode("utf-8", "surrogateescape")
        return said.replace(place.uri, "").split("\n")

    def listings(self, place):
        """Names, rights, times and limits, as the stock shell shows them."""
        snapshots = [f"{root}/.snapshot" for root in SNAPSHOTTABLE]
        return self.look(
            place,
            [
                ["-ls", "-R", "/", *snapshots],
                *[["-getfacl", "-R", path] for path in ("/rights", *snapshots)],
                *[["-getfattr", "-R", "-d", "-e", "hex", path] for path in ("/attributes", "/snapshots", f"{snapshots[0]}/s <1>")],
                ["-count", "-q", "/quotas/names", "/quotas/space", "/quotas/gone", "/snapshots", "/moves"],
                ["-count", "-q", "-t", "SSD,ARCHIVE", "/quotas/types"],
                ["-stat", "%n %o %r %u %g %a %x %y", "/files/one", "/files/block", "/files/several", "/empty", "/policies/file"],
            ],
        )

    def sums(self, place):
        """Lengths and sums of all files that can be read."""
        return self.look(place, [["sums", *READ]])


class Place:
    """The configuration of stock programs, and the processes."""

    def __init__(self, tools, directory):
        self.tools, self.directory = tools, directory
        directory.mkdir(parents=True)
        self.port, self.http = free_port(), free_port()
        self.uri = f"hdfs://127.0.0.1:{self.port}"
        self.conf = directory / "conf"
        self.image = None
        self.running = []
        xml(
            self.conf,
            {
                "fs.defaultFS": self.uri,
                "dfs.namenode.name.dir": directory / "name",
                "dfs.namenode.http-address": f"127.0.0.1:{self.http}",
                "dfs.namenode.safemode.extension": 0,
                "dfs.namenode.fs-limits.min-block-size": 0,
                "dfs.namenode.ec.system.default.policy": "",
                "dfs.permissions.superusergroup": "supergroup",
                "dfs.datanode.data.dir": self.data_dir(),
                "dfs.datanode.address": f"127.0.0.1:{free_port()}",
                "dfs.datanode.ipc.address": f"127.0.0.1:{free_port()}",
                "dfs.datanode.http.address": "127.0.0.1:0",
                "dfs.heartbeat.interval": 1,
                "dfs.replication": 1,
            },
        )
        # What is logged must not come among the answers.
        (self.conf / "log4j.properties").write_text(LOGGING)
        # Some of Hadoop's tools read only this one of the two.
        shutil.copy(self.conf / "hdfs-site.xml", self.conf / "core-site.xml")

    def data_dir(self):
        return self.directory / "data"

    def spawn(self, name, command):
        process = Process(name, command, self.directory / f"{name}.log", environment())
        self.running.append(process)
        return process

    def end_all(self):
        for process in self.running:
            process.end()
        self.running = []

    def admin(self, *words):
        return call(self.tools.java(self.conf, ADMIN, *words)).decode()

    def fetch(self):
        into = self.directory / "fetched"
        into.mkdir(exist_ok=True)
        self.admin("-fetchImage", into)
        fetched = list(into.iterdir())
        check(len(fetched) == 1, f"one image was to be fetched: {fetched}")
        self.image = fetched[0]
        return self.image


class HadoopPlace(Place):
    name = "hadoop"

    def start(self):
        call(self.tools.java(self.conf, NAME_NODE, "-format", "-force"))
        self.serve()

    def serve(self):
        name_node = self.spawn("name-node", self.tools.java(self.conf, NAME_NODE, heap=512))
        data_node = self.spawn("data-node", self.tools.java(self.conf, DATA_NODE))

        def tails():
            return "\n".join(process.log.read_text(errors="replace")[-3000:] for process in (name_node, data_node))

        wait("the NameNode has left safe mode, with a DataNode", self.is_ready, tails)

    def is_ready(self):
        page = f"http://127.0.0.1:{self.http}/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"
        with urllib.request.urlopen(page, timeout=10) as answer:
            beans = json.load(answer)["beans"]
        # It is not there from the beginning.
        return any(bean["Safemode"] == "" and len(json.loads(bean["LiveNodes"])) == 1 for bean in beans)

    def fetch(self):
        # A NameNode gives out its last checkpoint.
        self.admin("-safemode", "enter")
        self.admin("-saveNamespace")
        return super().fetch()


class StockPlace(HadoopPlace):
    """A NameNode on an image that is not its own, with a DataNode on the directory of Clover's data server."""

    name = "stock"

    def __init__(self, tools, directory, clover):
        self.clover = clover
        super().__init__(tools, directory)

    def data_dir(self):
        return self.clover.data_dir()

    def start(self):
        """On a copy of the directory that Clover has made."""
        facts = {}
        for version in self.data_dir().glob("current/**/VERSION"):
            facts.update(lines_of(version))
        made = lines_of(self.clover.name_directory / "current/VERSION")
        differing = {key: value for key, value in made.items() if key not in ("storageType", "layoutVersion") and facts[key] != value}
        check(not differing, f"{differing} is not what the data server's directory says: {facts}")
        shutil.copytree(self.clover.name_directory, self.directory / "name")
        self.serve()


def lines_of(version):
    return dict(line.split("=", 1) for line in version.read_text().splitlines() if "=" in line and not line.startswith("#"))


class CloverPlace(Place):
    name = "clover"

    def __init__(self, tools, directory, clover):
        super().__init__(tools, directory)
        self.clover = clover
        (self.directory / "data").mkdir()
        toml(
            directory / "meta.toml",
            name_dir=directory / "meta",
            rpc_address=f"127.0.0.1:{self.port}",
            http_address=f"127.0.0.1:{self.http}",
            min_block_size=1,
            safe_mode_extension_ms=0,
            heartbeat_interval_ms=500,
        )
        toml(
            directory / "data.toml",
            data_dirs=[self.data_dir()],
            metadata_servers=[f"127.0.0.1:{self.port}"],
            transfer_address="127.0.0.1:0",
            ipc_address="127.0.0.1:0",
            data_http_address="127.0.0.1:0",
            heartbeat_interval_ms=500,
        )

    def start(self):
        call([self.clover, "meta", "format", "--config", self.directory / "meta.toml"])
        for role in ("meta", "data"):
            self.spawn(role, [self.clover, role, "--config", self.directory / f"{role}.toml"])
        wait("a data server is there", self.is_ready)

    def is_ready(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/ready", timeout=10) as answer:
            is_ready = json.load(answer)["ready"]
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/metrics", timeout=10) as answer:
            return is_ready and "clover_data_servers_live 1\n" in answer.read().decode()

    def ask(self, query):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/imagetransfer?{query}", timeout=PATIENCE_S) as answer:
            return answer.headers, answer.read()

    def check_transfer(self):
        """The headers say what the bytes are, and all ways to ask lead to one image."""
        headers, data = self.ask("getimage=1&txid=latest")
        digest = hashlib.md5(data).hexdigest()
        check(headers["X-MD5-Digest"] == digest, f"{headers['X-MD5-Digest']} is not {digest}")
        check(int(headers["Content-Length"]) == len(data), headers["Content-Length"])
        name = headers["X-Image-Edits-Name"]
        check(headers["Content-Disposition"] == f"attachment; filename={name}", str(headers))
        number = int(name.split("_")[1])
        again, same = self.ask(f"getimage=1&txid={number}")
        check(again["X-Image-Edits-Name"] == name and same == data, "two images of one moment differ")
        if self.image.name == name:
            check(self.image.read_bytes() == data, "the stock client has fetched other bytes")
        for query in (f"getimage=1&txid={number + 1000}", "getedit=1&startTxId=1&endTxId=2", "getimage=1"):
            try:
                self.ask(query)
                raise Failure(f"{query} was answered")
            except urllib.error.HTTPError as error:
                check(error.code == 410, f"{query}: {error}")
        return f"{name}, {len(data):,} bytes"

    def make_name_directory(self):
        backup, self.name_directory = self.directory / "backup", self.directory / "name-directory"
        call([self.clover, "admin", "backup", backup, "--fs", self.uri, "--config", self.directory / "meta.toml"])
        call([self.clover, "meta", "name-directory", backup, self.name_directory])
        images = [path for path in (self.name_directory / "current").glob("fsimage_*") if path.suffix != ".md5"]
        check(len(images) == 1, f"one image was to be made: {images}")
        [made] = images
        digest, name = (made.parent / f"{made.name}.md5").read_text().split()
        check(digest == hashlib.md5(made.read_bytes()).hexdigest() and name == f"*{made.name}", f"{digest} {name}")
        # Nothing was asked of the server in the meantime.
        check(made.name == self.image.name, f"{made.name} is not {self.image.name}")
        check(made.read_bytes() == self.image.read_bytes(), "the image out of a backup differs from the one that was fetched")
        return made.name

    def stop(self):
        for process in reversed(self.running):
            check(process.end() == 0, f"{process.name} did not end well")
        self.running = []

    def under_hadoop(self):
        return StockPlace(self.tools, self.directory.parent / "stock", self)
