"""A real ZooKeeper server: the jars that scripts/setup-test lays out, with short sessions allowed."""

import socket
import struct
import time

from harness.report import Failure

from .process import Process
from .proxy import exactly

SERVING_S = 60
# Kinds of requests.
GET_DATA, SET_DATA, CLOSE = 4, 5, -11
BAD_VERSION = -103


class BadVersion(Exception):
    """Somebody else changed the node first."""


class ZooKeeper:
    def __init__(self, jars, network, directory):
        if not list(jars.glob("zookeeper-3.*.jar")):
            raise SystemExit(f"{jars} has no ZooKeeper: run scripts/setup-test")
        self.jars = jars
        self.address = network.zookeeper
        self.port = network.port(self.address, 2181)
        self.directory = directory
        self.process = None

    @property
    def servers(self):
        return f"{self.address}:{self.port}"

    def start(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = self.directory / "zoo.cfg"
        settings.write_text(
            f"dataDir={self.directory}/data\nclientPort={self.port}\nclientPortAddress={self.address}\n"
            "tickTime=200\ninitLimit=50\nsyncLimit=25\nminSessionTimeout=200\nmaxSessionTimeout=60000\n"
            "maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=srvr,mntr,dump\n"
        )
        options = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
        self.process = Process(
            "zookeeper",
            ["java", *options, "-cp", f"{self.jars}/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain", settings],
            self.directory / "log",
        )
        deadline = time.monotonic() + SERVING_S
        while "Mode:" not in self.says("srvr"):
            if not self.process.is_running or time.monotonic() > deadline:
                raise Failure(f"ZooKeeper does not serve:\n{self.process.tail()}")
            time.sleep(0.05)

    def says(self, word):
        """The answer to one of its four-letter words; nothing while it does not serve."""
        try:
            with socket.create_connection((self.address, self.port), timeout=2) as connection:
                connection.sendall(word.encode())
                answer = b""
                while piece := connection.recv(1 << 16):
                    answer += piece
                return answer.decode(errors="replace")
        except OSError:
            return ""

    def get(self, path):
        """The value of a node, and its version."""
        answer = self.ask(GET_DATA, text(path) + b"\0")
        size = struct.unpack_from(">i", answer)[0]
        # The node's zxids and times come before its version.
        return answer[4 : 4 + size], struct.unpack_from(">i", answer, 4 + size + 32)[0]

    def set(self, path, value, version):
        """Changes a node that still has this version."""
        self.ask(SET_DATA, text(path) + struct.pack(">i", len(value)) + value + struct.pack(">i", version))

    def ask(self, kind, body):
        """One request in a session of its own; the protocol is small."""
        with socket.create_connection((self.address, self.port), timeout=2) as connection:
            hello = struct.pack(">iqiq", 0, 0, 4000, 0) + struct.pack(">i", 16) + bytes(16) + b"\0"
            send(connection, hello)
            receive(connection)
            send(connection, struct.pack(">ii", 1, kind) + body)
            answer = receive(connection)
            send(connection, struct.pack(">ii", 2, CLOSE))
        error = struct.unpack_from(">i", answer, 12)[0]
        if error == BAD_VERSION:
            raise BadVersion
        if error:
            raise OSError(f"ZooKeeper answers with error {error}")
        return answer[16:]

    def stop(self):
        if self.process:
            self.process.end()


def text(value):
    return struct.pack(">i", len(value)) + value.encode()


def send(connection, frame):
    connection.sendall(struct.pack(">i", len(frame)) + frame)


def receive(connection):
    size = struct.unpack(">i", exactly(connection, 4))[0]
    return exactly(connection, size)
