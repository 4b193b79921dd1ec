"""Several groups of metadata servers that hold one namespace: a real ZooKeeper, and a process for every member."""

import subprocess
import time
from typing import NamedTuple

from .clients import call
from .cluster import CloverCluster, free_port, toml
from .report import Failure
from .zookeeper import ZooKeeper

PATIENCE_S = 60


class Member(NamedTuple):
    number: int
    group: int
    port: int
    peer_port: int

    @property
    def name(self):
        return f"meta-{self.number}"


class Groups:
    """What is otherwise than in a cluster of one server; comes before the class of such a cluster."""

    def __init__(self, *arguments, groups=3, members=2, **keys):
        super().__init__(*arguments, **keys)
        self.members = [
            Member(10 * (group - 1) + index, group, free_port(), free_port())
            for group in range(1, groups + 1)
            for index in range(1, members + 1)
        ]
        # Clients come in by a member of another group than the root group. If there are others, it is not the first of its group.
        self.door = self.members[-1]
        self.port = self.door.port
        self.uri = f"hdfs://127.0.0.1:{self.port}"
        self.zookeeper_port = free_port()
        self.zookeeper = None
        # Each that is laid out anew has a place of its own in ZooKeeper.
        self.clusters = 0

    def start(self, waits=True):
        if not self.zookeeper:
            jars = self.stock.clients / "zookeeper"
            place = self.directory.with_name(f"{self.directory.name}-zookeeper")
            self.zookeeper = ZooKeeper(jars, "127.0.0.1", self.zookeeper_port, place)
            self.zookeeper.start()
        if not self.directory.exists():
            self.clusters += 1
        super().start(waits)

    def stop(self):
        super().stop()
        if self.zookeeper:
            self.zookeeper.stop()
            self.zookeeper = None

    def metadata_servers(self):
        return [f"127.0.0.1:{member.port}" for member in self.members]

    def membership(self, member):
        """The keys that make a server this member."""
        return dict(
            rpc_address=f"127.0.0.1:{member.port}",
            peer_address=f"127.0.0.1:{member.peer_port}",
            member=member.number,
            members=[other.number for other in self.members if other.group == member.group],
            coordinator=f"zookeeper://127.0.0.1:{self.zookeeper_port}/clover/{self.clusters}",
            insecure_coordinator=True,
        )

    def configure_metadata(self):
        for member in self.members:
            toml(
                self.directory / f"{member.name}.toml",
                name_dir=self.directory / member.name,
                http_address="127.0.0.1:0",
                safe_mode_extension_ms=0,
                heartbeat_interval_ms=1000,
                **self.membership(member),
                **self.settings,
            )

    def format(self):
        """Group 1 runs before the others are made."""
        for group in sorted({member.group for member in self.members}):
            first, *others = [member for member in self.members if member.group == group]
            words = ["--group", group, "--join"] if group > 1 else []
            self.patiently("meta", "format", *words, "--config", self.config(first))
            for member in others:
                self.patiently("meta", "format", "--join", "--config", self.config(member))
            for member in (first, *others):
                self.start_member(member)

    def start_metadata(self):
        for member in self.members:
            if member.name not in self.processes:
                self.start_member(member)

    def start_member(self, member):
        self.spawn(member.name, "meta", "--config", self.config(member))

    def restart_metadata(self):
        """All members of all groups, in good order."""
        for member in self.members:
            process = self.processes.pop(member.name)
            process.terminate()
            process.wait(20)
        self.start_metadata()

    def complete(self):
        """Every group becomes a home of files."""
        for group in sorted({member.group for member in self.members} - {1}):
            self.patiently(
                "admin", "groups", "give-slots", group, "--yes",
                "--fs", f"hdfs://127.0.0.1:{self.port}", "--config", self.config(self.members[0]),
            )

    def config(self, member):
        return self.directory / f"{member.name}.toml"

    def patiently(self, *words):
        """A command that may come too early."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return call([self.clover, *words])
            except subprocess.CalledProcessError as refused:
                if time.monotonic() > deadline:
                    raise Failure(f"{' '.join(map(str, words))}: {refused.stderr.decode(errors='replace')}") from None
            time.sleep(0.2)


class GroupsCluster(Groups, CloverCluster):
    pass


def cluster_of(groups, *arguments, **keys):
    """A cluster of separate processes, not started: one metadata server, or so many groups of two."""
    return GroupsCluster(*arguments, groups=groups, **keys) if groups > 1 else CloverCluster(*arguments, **keys)
