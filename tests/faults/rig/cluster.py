"""A whole cluster of separate processes: the members of a group, a ZooKeeper where there are several, data servers."""

import http.client
import json
import re
import signal
import subprocess
import time

from harness.clients import call
from harness.cluster import toml
from harness.process import Process
from harness.report import Failure

from . import conf, points
from .zookeeper import ZooKeeper

READY_S = 90
# Lines of a member's log that tell of a change of its role.
SERVES = re.compile(rb"is active in epoch (\d+) and serves")
ENDS = re.compile(
    rb"follows: another member leads|asks the coordinator for the next epoch|has been given epoch|hands over at the end"
    rb"|has stopped: "
)
HEARTBEAT_MS = 500


class Member:
    """One metadata server: its addresses, its directory, its process while it runs."""

    def __init__(self, cluster, number):
        self.cluster = cluster
        self.number = number
        # A program of its own, where it does not run what the cluster runs: stories of upgrades exchange it.
        self.own_clover = None
        self.address = cluster.network.member(number)
        self.rpc_port = cluster.network.port(self.address, 8020)
        self.http_port = cluster.network.port(self.address, 9870)
        self.peer_port = cluster.network.port(self.address, 8021)
        self.directory = cluster.directory / f"meta-{number}"
        self.log = cluster.directory / f"meta-{number}.log"
        self.settings = cluster.directory / f"meta-{number}.toml"
        self.process = None
        self.serving = None
        self.read_up_to = 0
        # Where in its log its present life begins.
        self.begun_at = 0
        # Whether its end is part of the story.
        self.may_end = False
        # Words before its own command: a program that runs it within limits.
        self.within = []

    @property
    def name(self):
        return f"m{self.number}"

    @property
    def rpc(self):
        return f"{self.address}:{self.rpc_port}"

    def configure(self, members, coordinator, **others):
        keys = {
            "name_dir": self.directory,
            "rpc_address": self.rpc,
            "http_address": f"{self.address}:{self.http_port}",
            "insecure_simple_auth": self.cluster.network.has_cables,
            # All servers start together, and nobody waits for stragglers.
            "safe_mode_extension_ms": 0,
            "heartbeat_interval_ms": HEARTBEAT_MS,
        }
        if coordinator:
            keys |= {
                "member": self.number,
                "members": members,
                "peer_address": f"{self.address}:{self.peer_port}",
                "coordinator": coordinator,
                # It listens on this machine, for the length of a story.
                "insecure_coordinator": True,
            }
        toml(self.settings, **{**keys, **others})

    @property
    def clover(self):
        return self.own_clover or self.cluster.clover

    @clover.setter
    def clover(self, program):
        self.own_clover = program

    def format(self, *words):
        """Again where ZooKeeper was too slow for it, as on a machine with much to do: nothing was made then."""
        command = [*self.inside, self.clover, "meta", "format", *words, "--config", self.settings]
        for patience in (3, 2, 1, 0):
            try:
                call(command, timeout=60)
                return
            except subprocess.CalledProcessError as refused:
                if not patience or b"nothing was made: ZooKeeper" not in refused.stderr:
                    raise

    def accept_disk(self):
        """By somebody who has looked at the disk. What the command says."""
        command = [*self.inside, self.cluster.clover, "meta", "accept-disk", "--config", self.settings]
        return call(command, timeout=60).decode()

    @property
    def inside(self):
        return self.cluster.network.inside(self.number)

    def start(self):
        command = [*self.inside, *self.within, self.clover, "meta", "--config", self.settings]
        self.begun_at = self.log.stat().st_size if self.log.exists() else 0
        self.serving, self.read_up_to = None, self.begun_at
        self.log.touch()
        self.process = Process(self.name, command, self.log, points.environment(self))

    def health(self, timeout=0.5):
        """What it says of itself; None when it says nothing."""
        try:
            connection = http.client.HTTPConnection(self.address, self.http_port, timeout=timeout)
            connection.request("GET", "/health")
            return json.loads(connection.getresponse().read())
        except (OSError, ValueError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def said_role(self):
        """The epoch in which it says that it serves, by the last change of role in its log; None where it does not."""
        with open(self.log, "rb") as log:
            log.seek(self.read_up_to)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self.read_up_to += len(line)
                if found := SERVES.search(line):
                    self.serving = int(found[1])
                elif ENDS.search(line):
                    self.serving = None
        return self.serving

    @property
    def is_awake(self):
        return self.process is not None and self.process.is_running and not self.process.is_frozen


class Cluster:
    def __init__(self, clover, network, directory, jars, members=3, data=3, meta_keys=None):
        self.clover = clover
        self.network = network
        self.directory = directory
        self.zookeeper = ZooKeeper(jars, network, directory / "zookeeper") if members > 1 else None
        for number in range(1, members + 1):
            network.add_member(number)
        self.members = {number: Member(self, number) for number in range(1, members + 1)}
        self.data = {f"data-{number}": None for number in range(1, data + 1)}
        self.data_directories = {name: directory / name for name in self.data}
        # More directories of a data server, where it has more than one disk.
        self.further_directories = {}
        # What each data server runs, where that is not what all others run.
        self.data_clover = {}
        # Words before a data server's own command.
        self.data_within = {}
        # The number of the machine of their own on which the data servers are, where a story cuts that off.
        self.data_machine = None
        self.meta_keys = meta_keys or {}
        # What a story sets on its data servers.
        self.data_keys = {}
        self.before_format = lambda: None

    @property
    def coordinator(self):
        return self.zookeeper and f"zookeeper://{self.zookeeper.servers}/clover/faults"

    @property
    def view_path(self):
        return "/clover/faults/g/1/state"

    def start(self):
        """Formats everything, starts everything, and returns when a block can be written."""
        self.directory.mkdir(parents=True)
        self.before_format()
        if self.zookeeper:
            self.zookeeper.start()
        for member in self.members.values():
            member.configure(list(self.members), self.coordinator, **self.meta_keys)
        first, *others = self.members.values()
        first.format()
        for member in others:
            member.format("--join")
        for member in self.members.values():
            member.start()
        for name in self.data:
            self.configure_data(name)
            self.start_data(name)
        self.wait_settled()

    def configure_data(self, name):
        address, machine = self.network.hub, self.machine_of(name)
        if machine:
            self.network.add_member(machine)
            address = self.network.member(machine)
        toml(
            self.directory / f"{name}.toml",
            data_dirs=self.directories_of(name),
            metadata_servers=[member.rpc for member in self.members.values()],
            transfer_address=f"{address}:0",
            ipc_address=f"{address}:0",
            data_http_address=f"{address}:0",
            heartbeat_interval_ms=HEARTBEAT_MS,
            insecure_simple_auth=self.network.has_cables,
            **self.data_keys,
        )

    def machine_of(self, name):
        """The number of the machine of its own on which a data server is; None: it is where the story is told."""
        return self.data_machine

    def directories_of(self, name):
        """The directories of a data server as its file names them."""
        return self.volumes_of(name)

    def volumes_of(self, name):
        """All its directories, one on each of its disks."""
        return [self.data_directories[name], *self.further_directories.get(name, ())]

    def start_data(self, name):
        machine = self.machine_of(name)
        inside = self.network.inside(machine) if machine else []
        command = [*inside, *self.data_within.get(name, []), self.data_clover.get(name, self.clover), "data", "--config", self.directory / f"{name}.toml"]
        self.data[name] = Process(name, command, self.directory / f"{name}.log")

    def view(self):
        """The global view, as the group keeps it in ZooKeeper; None while that cannot be asked."""
        try:
            value, _ = self.zookeeper.get(self.view_path)
        except (OSError, EOFError, AttributeError):
            return None
        return json.loads(value)

    def roles(self):
        """What each member is: active where it serves, standby where the view has it in sync, else junior; off or frozen
        where it cannot be any."""
        view, active = self.view(), self.active()
        in_sync = {pair[0] for pair in view["in_sync"]} if view else set()
        roles = {}
        for number, member in self.members.items():
            if not member.is_awake:
                roles[number] = "frozen" if member.process and member.process.is_running else "off"
            elif number == active:
                roles[number] = "active"
            else:
                roles[number] = "standby" if number in in_sync else "junior"
        return roles

    def active(self):
        """The number of the member that serves, or None: by its log, which is there at once. Of two that both believe it,
        one is cut off, and the later epoch counts."""
        serving = [(member.said_role(), number) for number, member in self.members.items() if member.is_awake]
        return max(((epoch, number) for epoch, number in serving if epoch is not None), default=(0, None))[1]

    def wait_active(self, seconds=60, other_than=None):
        deadline = time.monotonic() + seconds
        while True:
            number = self.active()
            if number is not None and number != other_than:
                return number
            self.check_running()
            if time.monotonic() > deadline:
                raise Failure(f"no member became active within {seconds} s: {self.roles()}\n{self.tails()}")
            time.sleep(0.005)

    def wait_roles(self, wanted, seconds=90):
        """Until each member named has the role that it is to have; `*` is any."""
        deadline = time.monotonic() + seconds
        while True:
            roles = self.roles()
            if all(roles[number] == role or role == "*" for number, role in wanted.items()):
                return
            if time.monotonic() > deadline:
                raise Failure(f"after {seconds} s the roles are {roles}, not {wanted}\n{self.tails()}")
            time.sleep(0.05)

    def wait_settled(self, seconds=READY_S, data=None):
        """One active, every other running member a standby, out of safe mode, so many data servers there, or all."""
        deadline = time.monotonic() + seconds
        while True:
            roles = self.roles()
            running = [role for role in roles.values() if role not in ("off", "frozen")]
            if sorted(set(running)) in (["active"], ["active", "standby"]) and running.count("active") == 1:
                health = self.members[self.active()].health() or {} if self.active() else {}
                if int(health.get("live_data_servers", 0)) >= (len(self.data) if data is None else data):
                    return
            self.check_running()
            if time.monotonic() > deadline:
                raise Failure(f"the cluster is not settled after {seconds} s: {roles}\n{self.tails()}")
            time.sleep(0.1)

    def check_running(self):
        """A server that ended by itself is a finding: no story does that."""
        for member in self.members.values():
            if member.may_end or member.process is None or member.process.is_running:
                continue
            if member.process.popen.returncode not in (-signal.SIGKILL, -signal.SIGTERM, 0):
                code = member.process.popen.returncode
                raise Failure(f"{member.name} ended by itself with {code}:\n{member.process.tail()}")

    def member_logs(self):
        return {m.name: m.log.read_text(errors="replace") for m in self.members.values() if m.log.exists()}

    def logs_by_group(self):
        return [self.member_logs()]

    def tails(self):
        return "\n".join(f"--- {m.name}\n{m.process.tail(1500)}" for m in self.members.values() if m.process)

    def admin(self, *words, succeeds=True):
        """`clover admin …`, asked of any member. What it says, on both channels where it is to fail."""
        directory = self.directory / "admin-conf"
        if not directory.exists():
            conf.write(self.clover, directory, [member.rpc for member in self.members.values()], "configured", {})
        proof = []
        if words[0] in ("group", "groups", "blocks", "upgrade"):
            proof = ["--config", next(iter(self.members.values())).settings]
        command = [self.clover, "admin", "--conf", directory, *words, *proof]
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
        )
        if (done.returncode == 0) != succeeds:
            raise Failure(f"clover admin {' '.join(map(str, words))} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout if succeeds else done.stdout + done.stderr

    def group(self):
        """What the group says of itself, as `clover admin group --json` tells it."""
        return json.loads(self.admin("group", "--json"))

    def processes(self):
        found = [*(member.process for member in self.members.values()), *self.data.values()]
        return [process for process in found if process]

    def stop(self):
        for process in self.processes():
            process.thaw()
            process.popen.terminate()
        for process in self.processes():
            process.end()
        if self.zookeeper:
            self.zookeeper.stop()
