"""Clover's processes as the judge wants them: laid out anew as a test asks, and their parts stopped and started."""

import os
import shutil
from dataclasses import replace

from harness.clients import call
from harness.cluster import CloverCluster, free_port, toml
from harness.groups import Groups

from .layout import DATA_KEYS, KEYS, Layout

# Hadoop's tests make blocks of 1 KiB, and some smaller ones.
MIN_BLOCK_SIZE = "dfs.namenode.fs-limits.min-block-size"
# The least that Clover takes, where tests set less; milliseconds for the last two.
LEAST = {MIN_BLOCK_SIZE: 1, "dfs.namenode.heartbeat.recheck-interval": 10, "dfs.namenode.stale.datanode.interval": 10}

# Racks of data servers that a test starts later; the list of racks is read at the start alone.
RACKS = ("/rack0", "/rack1", "/rack2", "/rack3", "/rack4", "/rack5", "/r0", "/r1", "/r2", "/r3", "/d1/r1", "/d1/r2")
RACKED_MAX = 16

ASK = """\
#!/bin/bash
# `id -Gn -- USER`: in the judge's JVM tests put users into groups.
if [ "$1" = -Gn ] && exec 3<>/dev/tcp/127.0.0.1/{port}; then
  echo "${{@: -1}}" >&3
  read -r groups <&3
  echo "$groups"
else
  exec {id} "$@"
fi 2>/dev/null
"""


class JudgedClover(CloverCluster):
    def __init__(self, clover, directory, stock, groups_port):
        super().__init__(clover, directory, stock)
        self.http_port = free_port()
        self.http = f"127.0.0.1:{self.http_port}"
        self.layout = Layout()
        self.ipc_ports = {}
        self.stopped = set()
        asking = directory.with_name("asking")
        asking.mkdir()
        (asking / "id").write_text(ASK.format(port=groups_port, id=shutil.which("id")))
        (asking / "id").chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{asking}:{os.environ['PATH']}"}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()

    def configure(self):
        number = self.layout.data_servers
        self.transfer_ports = (self.transfer_ports + [free_port() for _ in range(number)])[:number]
        self.configure_metadata()
        for number in range(len(self.transfer_ports)):
            self.configure_data(number)

    def configure_metadata(self):
        self.write_metadata("meta", rpc_address=f"127.0.0.1:{self.port}", http_address=self.http)

    def write_metadata(self, name, **keys):
        path = self.directory / f"{name}.toml"
        toml(path, name_dir=self.directory / name, groups_kept_ms=0, **keys)
        racks = {*RACKS, *filter(None, self.layout.racks)}
        lines = [f'"{host_of(number, rack)}" = "{rack}"\n' for number in range(RACKED_MAX) for rack in sorted(racks)]
        path.write_text(path.read_text() + "[racks]\n" + "".join(lines))

    def configure_data(self, number):
        toml(
            self.directory / f"data-{number}.toml",
            data_dirs=[f"[{medium}]{place}" for medium, place in zip(self.layout.media(number), self.places(number))],
            metadata_servers=self.metadata_servers(),
            transfer_address=f"127.0.0.1:{self.transfer_ports[number]}",
            hostname=self.host(number),
            # A client that knows a server which is started again asks it where it was.
            ipc_address=f"127.0.0.1:{self.ipc_ports.setdefault(number, free_port())}",
            data_http_address="127.0.0.1:0",
        )

    def spawn(self, name, *arguments):
        """With the keys that the test has set."""
        keys = {"dfs.heartbeat.interval": self.layout.keys.get("dfs.heartbeat.interval", "1")}
        known = KEYS if is_metadata(name) else DATA_KEYS
        keys.update((key, value) for key, value in self.layout.keys.items() if key in known)
        if is_metadata(name):
            # As Hadoop's MiniDFSCluster has it.
            keys = {"dfs.replication": str(max(1, min(3, self.layout.data_servers))), **keys}
            keys = {MIN_BLOCK_SIZE: "1", "dfs.namenode.safemode.extension": "0", **keys}
            for key, least in LEAST.items():
                if key in keys:
                    keys[key] = str(max(int(keys[key]), least))
        super().spawn(name, *arguments, *(word for pair in keys.items() for word in ("--set", "=".join(pair))))

    def host(self, number):
        """Racks are told by host, so that a data server on a rack needs one of its own."""
        rack = self.layout.racks[number] if number < len(self.layout.racks) else ""
        return host_of(number, rack) if rack else ""

    def places(self, number):
        return [self.directory / f"data-{number}" / str(index) for index, _ in enumerate(self.layout.media(number))]

    def lay_out(self, layout):
        """Whether everything is new; where the same was there already, it is left as it is."""
        whole = not self.stopped and all(process.poll() is None for process in self.processes.values())
        has_metadata = any(map(is_metadata, self.processes))
        if whole and layout == self.layout and layout.can_be_emptied() and has_metadata:
            return False
        self.kill()
        shutil.rmtree(self.directory)
        self.layout, self.stopped = layout, set()
        # The judge waits for data servers itself.
        self.start(waits=False)
        return True

    def renew(self):
        """Whatever a test that was broken off has left behind is gone."""
        self.lay_out(Layout(data_servers=0))
        self.lay_out(Layout())

    def restart_metadata(self, keys=None):
        self.stop_metadata()
        if keys is not None:
            self.layout = replace(self.layout, keys=keys)
        self.start_metadata()

    def stop_metadata(self):
        for name in list(filter(is_metadata, self.processes)):
            self.end(name)

    def stop_data(self, number):
        self.stopped.add(number)
        self.end(f"data-{number}")

    def start_data(self, number):
        self.stopped.discard(number)
        self.start_data_server(number)

    def add_data(self, rack, media):
        number = len(self.transfer_ports)
        self.layout = self.layout.with_server(rack, media)
        self.transfer_ports.append(free_port())
        self.configure_data(number)
        self.start_data_server(number)

    def refresh_nodes(self):
        call([self.clover, "admin", "refresh-nodes", "--fs", self.uri])

    def end(self, name):
        process = self.processes.pop(name)
        process.terminate()
        process.wait(20)

    def data(self):
        return [(port, self.places(number)) for number, port in enumerate(self.transfer_ports)]


class JudgedGroups(Groups, JudgedClover):
    """The same with several groups."""

    def configure_metadata(self):
        for member in self.members:
            http = self.http if member == self.door else "127.0.0.1:0"
            self.write_metadata(member.name, http_address=http, **self.membership(member))


def host_of(number, rack):
    return f"server-{number}{rack.replace('/', '-')}"


def is_metadata(name):
    return name.startswith("meta")
