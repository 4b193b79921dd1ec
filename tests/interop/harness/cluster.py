"""A cluster of separate processes: one metadata server, three data servers or more."""

import json
import random
import signal
import socket
import subprocess
import time

from .clients import call
from .report import Failure

DATA_SERVERS = 3
READY_S = 90


class AttachedCluster:
    """Someone else's cluster, which is neither started nor stopped here."""

    def __init__(self, uri):
        self.uri = uri

    def start(self):
        pass

    def stop(self):
        pass


class CloverCluster:
    """Clover's processes, their configuration files and directories, all below one directory."""

    def __init__(self, clover, directory, stock, settings=None, data_servers=DATA_SERVERS):
        """`settings` are more keys of the metadata server's file."""
        self.settings = settings or {}
        self.clover = clover
        self.directory = directory
        self.stock = stock
        self.processes = {}
        # The processes' variables; None for this one's own.
        self.environment = None
        self.port = free_port()
        # Fixed, so that a data server which is started again is where it was.
        self.transfer_ports = [free_port() for _ in range(data_servers)]
        self.uri = f"hdfs://127.0.0.1:{self.port}"

    def start(self, waits=True):
        """Formats at the first start, and returns when a block can be written, unless somebody else waits for that."""
        is_new = not self.directory.exists()
        if is_new:
            self.directory.mkdir(parents=True)
            self.configure()
            self.format()
        self.start_metadata()
        for number in range(len(self.transfer_ports)):
            self.start_data_server(number)
        if is_new:
            self.complete()
        if waits:
            self.wait()

    def metadata_servers(self):
        """Their addresses, as data servers have them in their files."""
        return [f"127.0.0.1:{self.port}"]

    def format(self):
        call([self.clover, "meta", "format", "--config", self.directory / "meta.toml"])

    def start_metadata(self):
        self.spawn("meta", "meta", "--config", self.directory / "meta.toml")

    def complete(self):
        """What is done once, when all servers run for the first time."""

    def start_data_server(self, number):
        self.spawn(f"data-{number}", "data", "--config", self.directory / f"data-{number}.toml")

    def configure(self):
        self.configure_metadata()
        for number, transfer_port in enumerate(self.transfer_ports):
            toml(
                self.directory / f"data-{number}.toml",
                data_dirs=[self.directory / f"data-{number}"],
                metadata_servers=self.metadata_servers(),
                transfer_address=f"127.0.0.1:{transfer_port}",
                ipc_address="127.0.0.1:0",
                data_http_address="127.0.0.1:0",
                heartbeat_interval_ms=1000,
            )

    def configure_metadata(self):
        """No extension of safe mode: all servers start together here, and nobody waits for stragglers."""
        toml(
            self.directory / "meta.toml",
            name_dir=self.directory / "meta",
            rpc_address=f"127.0.0.1:{self.port}",
            http_address="127.0.0.1:0",
            safe_mode_extension_ms=0,
            heartbeat_interval_ms=1000,
            **self.settings,
        )

    def spawn(self, name, *arguments):
        self.spawn_command(name, [str(self.clover), *map(str, arguments)])

    def spawn_command(self, name, command):
        log = open(self.directory / f"{name}.log", "ab")
        self.processes[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment)
        log.close()

    def wait(self):
        waiting = subprocess.Popen(
            self.stock.java("Driver", "wait", self.uri, READY_S), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        while waiting.poll() is None:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    waiting.kill()
                    raise Failure(f"{name} ended with {process.returncode}:\n{self.tail(name)}")
            time.sleep(0.1)
        if waiting.returncode != 0:
            logs = "\n".join(f"--- {name}\n{self.tail(name)}" for name in self.processes)
            raise Failure(waiting.stdout.read().decode(errors="replace")[-2000:] + logs)

    def tail(self, name):
        return (self.directory / f"{name}.log").read_text(errors="replace")[-3000:]

    def restart_metadata(self):
        """The metadata server alone, in good order; clients find out when it serves again."""
        process = self.processes.pop("meta")
        process.terminate()
        process.wait(20)
        self.start_metadata()

    def kill(self):
        """Every process at once, with no chance to say goodbye."""
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        self.processes.clear()

    def signal(self, number, which):
        """To a data server."""
        self.processes[f"data-{number}"].send_signal(which)

    def thaw(self):
        """Frozen processes would not end."""
        for process in self.processes.values():
            process.send_signal(signal.SIGCONT)

    def stop(self):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()


class StockDataServers(CloverCluster):
    """Clover's metadata server with Hadoop's own DataNodes."""

    def start_data_server(self, number):
        self.spawn_command(f"data-{number}", self.stock.data_node(self.directory / f"data-{number}-conf"))

    def configure(self):
        super().configure()
        for number, transfer_port in enumerate(self.transfer_ports):
            xml(
                self.directory / f"data-{number}-conf",
                {
                    "fs.defaultFS": self.uri,
                    "dfs.datanode.data.dir": self.directory / f"data-{number}",
                    "dfs.datanode.address": f"127.0.0.1:{transfer_port}",
                    "dfs.datanode.ipc.address": "127.0.0.1:0",
                    "dfs.datanode.http.address": "127.0.0.1:0",
                    "dfs.heartbeat.interval": 1,
                },
            )


def xml(directory, properties):
    """A directory with Hadoop's two files, everything in the second, which is read last."""
    directory.mkdir()
    lines = [f"<property><name>{name}</name><value>{value}</value></property>\n" for name, value in properties.items()]
    (directory / "core-site.xml").write_text("<configuration/>\n")
    (directory / "hdfs-site.xml").write_text(f"<configuration>\n{''.join(lines)}</configuration>\n")


def toml(path, **keys):
    """JSON's texts, numbers and arrays are TOML's too; its tables are not."""

    def text(value):
        if isinstance(value, dict):
            return "{ " + ", ".join(f"{json.dumps(key)} = {text(held)}" for key, held in value.items()) + " }"
        return json.dumps(value, default=str)

    path.write_text("".join(f"{key} = {text(value)}\n" for key, value in keys.items()))


def free_port():
    """Below the ports that the kernel gives to whoever asks for any: nobody takes it before it is used."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
