"""Where the processes of a story live: each member in a network namespace of its own, all on one bridge. Where
namespaces are not permitted, on loopback addresses: then processes can be killed and frozen, but no cable be cut.

Everything but the members is in the namespace of the hub, this program too once `enter` was called. No packet leaves
the machine: the namespaces have no other link.
"""

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess

from harness.report import Failure

PREFIX = "clover-faults-"
BRIDGE = "02:00:00:00:00:01"
_CLONE_NEWNET = 0x40000000


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True, stdin=subprocess.DEVNULL)


def make(wants_namespaces=True):
    """The best network that this machine permits, and why it is not a better one (or None)."""
    remove_leftovers()
    if not wants_namespaces:
        return Loopback(), "asked for loopback addresses"
    if not shutil.which("nft"):
        return Loopback(), "nft is not installed, which cuts links"
    try:
        return Namespaces(), None
    except (OSError, subprocess.CalledProcessError) as refused:
        remove_leftovers(os.getpid())
        said = getattr(refused, "stderr", None) or str(refused).encode()
        return Loopback(), f"network namespaces are not permitted here: {said.decode(errors='replace').strip()}"


def remove_leftovers(mine=None):
    """Namespaces whose run is gone, with what still runs in them; or those of one run."""
    try:
        names = os.listdir("/run/netns")
    except FileNotFoundError:
        return
    for name in names:
        found = re.fullmatch(re.escape(PREFIX) + r"(\d+)-\w+", name)
        if not found or (mine is None and os.path.exists(f"/proc/{found[1]}")) or (mine not in (None, int(found[1]))):
            continue
        pids = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
        for pid in pids:
            if int(pid) != os.getpid():
                os.kill(int(pid), signal.SIGKILL)
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


class Loopback:
    has_cables = False
    hub = "127.0.0.1"
    zookeeper = "127.0.0.2"

    def member(self, number):
        return f"127.0.0.{10 + number}"

    def inside(self, number):
        """The words before a command that runs it on the member's machine."""
        return []

    def port(self, address, wanted):
        """Other processes of this machine may have the port that everybody would take."""
        with socket.socket() as listener:
            listener.bind((address, 0))
            return listener.getsockname()[1]

    def add_member(self, number):
        pass

    def enter(self):
        pass

    def heal(self):
        pass

    def remove(self):
        pass


class Namespaces:
    has_cables = True
    hub = "10.209.0.1"
    zookeeper = "10.209.0.2"

    def __init__(self):
        self.name = f"{PREFIX}{os.getpid()}-"
        self.members = {}
        ip("netns", "add", self.name + "hub")
        ip("-n", self.name + "hub", "link", "set", "lo", "up")
        # A bridge without an address of its own takes the lowest of its ports', and another one when a member is added:
        # those that are there already would go on sending to the old one.
        ip("-n", self.name + "hub", "link", "add", "bridge", "address", BRIDGE, "type", "bridge")
        for address in (self.hub, self.zookeeper):
            ip("-n", self.name + "hub", "address", "add", f"{address}/24", "dev", "bridge")
        ip("-n", self.name + "hub", "link", "set", "bridge", "up")

    def member(self, number):
        return f"10.209.0.{10 + number}"

    def inside(self, number):
        return ["nsenter", f"--net=/run/netns/{self.members[number]}", "--"]

    def port(self, address, wanted):
        return wanted

    def add_member(self, number):
        if number in self.members:
            return
        name, hub = f"{self.name}m{number}", self.name + "hub"
        ip("netns", "add", name)
        self.members[number] = name
        ip("-n", hub, "link", "add", f"to-{number}", "type", "veth", "peer", "name", "cable", "netns", name)
        ip("-n", hub, "link", "set", f"to-{number}", "master", "bridge", "up")
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "address", "add", f"{self.member(number)}/24", "dev", "cable")
        ip("-n", name, "link", "set", "cable", "up")

    def enter(self):
        """This program and all that it starts from now on are at the hub."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/run/netns/{self.name}hub") as namespace:
            if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                raise Failure(f"entering the hub's namespace: {os.strerror(ctypes.get_errno())}")

    def unplug(self, number):
        """The cable out, at the hub's end: the member sees its carrier go, and nothing else."""
        ip("-n", self.name + "hub", "link", "set", f"to-{number}", "down")

    def plug(self, number):
        ip("-n", self.name + "hub", "link", "set", f"to-{number}", "up")

    def narrow(self, number, rate):
        """The line to the member takes no more than this rate, as `tc` writes it: 10mbit. What the member sends goes as before."""
        self.tc("replace", number, "root", "tbf", "rate", rate, "burst", "32k", "latency", "50ms")

    def widen(self, number):
        self.tc("delete", number, "root")

    def tc(self, order, number, *words):
        command = ["tc", "-n", self.name + "hub", "qdisc", order, "dev", f"to-{number}", *words]
        done = subprocess.run(command, text=True, capture_output=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Failure(f"{' '.join(command)}: {done.stderr}")

    def drop(self, number, address, direction="both"):
        """Packets between a member and an address vanish: those that it sends, those that it would receive, or both."""
        rules = []
        if direction in ("both", "out"):
            rules.append(f"add rule inet faults sent ip daddr {address} drop")
        if direction in ("both", "in"):
            rules.append(f"add rule inet faults received ip saddr {address} drop")
        self.nft(number, *rules)

    def reject(self, number, address):
        """A firewall on the member's machine has had enough of an address: what goes either way is answered with a reset."""
        self.nft(
            number,
            f"add rule inet faults sent ip daddr {address} meta l4proto tcp reject with tcp reset",
            f"add rule inet faults received ip saddr {address} meta l4proto tcp reject with tcp reset",
        )

    def nft(self, number, *rules):
        script = "\n".join(
            [
                "add table inet faults",
                "add chain inet faults sent { type filter hook output priority 0; }",
                "add chain inet faults received { type filter hook input priority 0; }",
                *rules,
            ]
        )
        done = subprocess.run(
            [*self.inside(number), "nft", "-f", "-"], input=script, text=True, capture_output=True
        )
        if done.returncode != 0:
            raise Failure(f"nft: {done.stderr}")

    def heal(self, number=None):
        """All cables in, all packets through."""
        for member in self.members if number is None else [number]:
            self.plug(member)
            self.nft(member, "flush chain inet faults sent", "flush chain inet faults received")

    def remove(self):
        """Only at the very end: the hub's namespace lives until this program does."""
        for name in [*self.members.values(), self.name + "hub"]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

