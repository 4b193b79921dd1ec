"""A real ZooKeeper server: the jars that scripts/setup-test lays out, with short sessions allowed."""

import socket
import time

from .process import Process
from .report import Failure

SERVING_S = 60


class ZooKeeper:
    def __init__(self, jars, address, port, directory):
        if not list(jars.glob("zookeeper-3.*.jar")):
            raise SystemExit(f"{jars} has no ZooKeeper: run scripts/setup-test")
        self.jars = jars
        self.address = address
        self.port = port
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

    def stop(self):
        if self.process:
            self.process.end()
