"""A story on its stage: the cluster, the clients at work, the faults with their moments, and the verdict."""

import contextlib
import dataclasses
import random
import resource
import time
from pathlib import Path

from checks import blocks, doubled, epochs, errors, gaps, history, linear, lost, outage, stages, trees
from harness.report import Failure

from . import conf, load, replicas
from .cluster import Cluster
from .groups import GroupsCluster

# Until a client may have felt a fault: the next fault or the end of the load comes first, as a rule.
FELT_S = 60
ROOT = "/faults"
CHECK_BYTES = 3 << 30
# Until data servers have deleted what no file has any more.
BLOCKS_S = 60


@dataclasses.dataclass
class Options:
    """What the whole run was started with."""

    clover: Path
    # The same, but that it panics when it is asked to; None where there is none.
    planted: Path | None
    java: load.Java
    zookeeper_jars: Path
    network: object
    work: Path
    seed: int
    is_long: bool
    is_slice: bool
    has_no_goals: bool
    size: load.Size


@dataclasses.dataclass
class Fault:
    label: str
    at: int
    end: int | None = None


class Scene:
    """What a story is told with. Everything it starts ends with the `with` block."""

    def __init__(self, options, name, members=3, data=3, meta_keys=None, groups=1, planted=False, cluster_of=None, **words):
        """With several groups, so many members are in each. `planted`: the servers are of the program that was built for stories.
        `cluster_of` makes a cluster of a story's own kind, of further words."""
        self.options = options
        self.name = name
        self.chance = random.Random(f"{options.seed} {name}")
        self.directory = options.work / name
        place = (options.planted if planted else options.clover, options.network, self.directory / "cluster", options.zookeeper_jars)
        keys = {"members": members, "data": data, "meta_keys": meta_keys}
        if cluster_of:
            del keys["data"]
            self.cluster = cluster_of(*place, **keys, **words)
        else:
            self.cluster = GroupsCluster(*place, groups=groups, **keys) if groups > 1 else Cluster(*place, **keys)
        self.has_groups = groups > 1
        self.loads = []
        # Processes of a story's own, which end with it.
        self.others = []
        self.faults = []
        self.takeovers = []
        # Where clients are told that the members are, if not where they really are.
        self.proxied = None
        # Clients whose patience a story made long on purpose: their outage has no goal.
        self.patient = set()

    def __enter__(self):
        (self.directory / "clients").mkdir(parents=True)
        try:
            self.cluster.start()
        except BaseException:
            self.cluster.stop()
            raise
        return self

    def __exit__(self, *error):
        self.options.network.heal()
        for client in self.loads:
            client.process.kill()
        for process in self.others:
            process.end()
        self.cluster.stop()

    def say(self, sentence):
        print(f"    {sentence}", flush=True)

    # The clients.

    def conf(self, provider="configured", first=None, **properties):
        """A directory with a client's configuration. A client calls the member `first` where one is named, else any."""
        name = "-".join(["conf", provider, str(first or "any"), *(f"{key}={value}" for key, value in sorted(properties.items()))])
        directory = self.directory / name
        if not directory.exists():
            numbers = sorted(self.cluster.members, key=lambda number: number != first)
            addresses = [self.cluster.members[number].rpc for number in numbers]
            if first:
                properties["dfs.client.failover.random.order"] = "false"
            conf.write(self.options.clover, directory, self.proxied or addresses, provider, properties)
        return directory

    def start_load(self, name="hadoop", provider="configured", size=None, first=None, **properties):
        """A stock client begins, and has some operations behind it when this returns."""
        size = size or self.options.size
        if self.has_groups:
            size = size._replace(tree=size.tree or 2, mixed=size.mixed or (1 if self.options.is_slice else 2))
        words = (self.options.java, self.conf(provider, first, **properties), ROOT, self.load_seed(), size)
        return self.begin(name, load.stock(*words))

    def start_loads_of_groups(self, size=None):
        """Two stock clients. One calls a member of another group than the one that makes all changes of directories, and the other the first of all."""
        self.start_load("by-the-last", first=max(self.cluster.members), size=size)
        self.start_load("by-the-first", first=1, size=size)

    def start_native(self, name="native", first=None):
        """The same with our own client."""
        size = self.options.size
        return self.begin(name, load.native(self.options.clover, self.conf(first=first), ROOT, self.load_seed(), size))

    def load_seed(self):
        return self.options.seed * 100 + len(self.loads) + 1

    def begin(self, name, command_of):
        client = load.Load(name, command_of, self.directory / "clients")
        self.loads.append(client)
        client.wait_for(100)
        return client

    def rest(self, low, high=None):
        """Lets the load go on for a while, of a length drawn by the seed."""
        time.sleep(low if high is None else self.chance.uniform(low, high))

    # The faults.

    def fault(self, label, action, *words):
        """Does it, and notes when: the clients' outages are measured around that moment."""
        self.note_end()
        fault = Fault(label, time.monotonic_ns())
        result = action(*words)
        self.faults.append(fault)
        self.say(f"{label}")
        return result

    def note_end(self):
        """What the clients feel from here on is no more the doing of the last fault."""
        if self.faults and self.faults[-1].end is None:
            self.faults[-1].end = time.monotonic_ns()

    def kill_active(self, why="kill -9 of the active"):
        number = self.cluster.wait_active()
        self.fault(f"{why}, m{number}", self.cluster.members[number].process.kill)
        return number

    def kill_active_of(self, groups):
        """The actives of these groups at the same moment."""
        numbers = [self.cluster.wait_active_of(group) for group in groups]
        what = " and ".join(f"m{number} of group {group}" for group, number in zip(groups, numbers))
        self.fault(f"kill -9 of the active {what}", lambda: [self.cluster.members[number].process.kill() for number in numbers])
        return numbers

    def restart(self, number):
        self.cluster.members[number].process.wait_gone()
        self.cluster.members[number].start()

    def wait_progress(self, operations=50, seconds=60):
        """Until every client that still runs got so many more operations done: the service is back."""
        wanted = {client: client.done() + operations for client in self.loads if client.process.is_running}
        for client, count in wanted.items():
            client.wait_for(count, seconds)

    def keep_takeovers(self):
        """What the group says of its last takeovers; nothing where it cannot say."""
        try:
            found = self.cluster.group().get("takeovers", [])
        except (Failure, ValueError, OSError):
            return
        known = {takeover.get("epoch") for takeover in self.takeovers}
        self.takeovers += [takeover for takeover in found if takeover.get("epoch") not in known]

    # The verdict.

    def verdict(self, allowed=frozenset(), goal_ms=None, after=None):
        """Ends the load, lists the namespace and holds it against the histories. No client may have seen a longer outage than
        `goal_ms`; a slice, which runs with the debug build beside other work, is not held to that. `after` says what the data servers must have at the end."""
        self.note_end()
        for client in self.loads:
            client.end()
        self.keep_takeovers()
        listing = self.directory / "clients" / "namespace.txt"
        load.dump(self.options.java, self.conf(), ROOT, listing, self.directory / "clients" / "dump.log")
        astray = after.faults(self) if after else []
        astray += self.blocks_astray() + self.trees_apart() if self.has_groups else []
        histories = [history.read(client.history) for client in self.loads]
        with bounded_memory():
            return Verdict.of(self, histories, history.read_listing(listing), allowed, None if self.options.has_no_goals else goal_ms, astray)

    def trees_apart(self):
        """Ends all servers, which say how their trees are if they were built for stories."""
        if self.cluster.clover != self.options.planted:
            return []
        self.cluster.wait_settled()
        for member in self.cluster.members.values():
            member.process.popen.terminate()
        for member in self.cluster.members.values():
            member.process.end()
        return trees.violations(self.cluster.logs_by_group())

    def blocks_astray(self):
        """The faults of the blocks on the disks that are still there when the servers have had time to delete and to copy."""
        listing = self.directory / "clients" / "blocks.txt"
        deadline = time.monotonic() + BLOCKS_S
        while True:
            load.dump(self.options.java, self.conf(), ROOT, listing, self.directory / "clients" / "blocks.log", "blocks")
            found = blocks.violations(blocks.read_listing(listing), replicas.on_disk(self.cluster))
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(1)


@contextlib.contextmanager
def bounded_memory():
    """A checker that goes astray fails; it must not take the machine with it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (CHECK_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@dataclasses.dataclass
class Verdict:
    operations: int
    lost: list
    doubled: list
    errors: list
    disorder: list
    epochs: list
    felt: list
    worst_ms: float
    goal_ms: float | None
    takeovers: list
    # The faults of blocks and trees that the story has found, if it looks for them.
    astray: list
    # Whether there are so many faults that their kinds are told.
    has_kinds: bool

    @classmethod
    def of(cls, scene, histories, listing, allowed, goal_ms, astray):
        felt, worst = [], 0.0
        for index, fault in enumerate(scene.faults):
            for client in histories:
                name = client[0].client if client else "?"
                end = min(fault.end, fault.at + FELT_S * 10**9)
                if client and client[0].begun >= end:
                    continue  # It began afterwards.
                seen = outage.of(client, fault.at, end)
                felt.append({"fault": fault.label, "client": name, "gap_ms": round(seen.gap_ms), "slowest_ms": round(seen.slowest_ms)})
                if name not in scene.patient:
                    worst = max(worst, seen.gap_ms)
        return cls(
            operations=sum(1 for client in histories for o in client if not o.is_unknown),
            lost=lost.violations(histories, listing),
            doubled=doubled.violations(histories, listing),
            errors=errors.violations(histories, allowed) + errors.unanswered(histories),
            disorder=linear.violations(histories),
            epochs=[sentence for logs in scene.cluster.logs_by_group() for sentence in epochs.violations(logs)],
            felt=felt,
            worst_ms=worst,
            goal_ms=goal_ms,
            takeovers=scene.takeovers,
            astray=astray,
            has_kinds=scene.has_groups,
        )

    def tell(self, say):
        for row in self.felt:
            say(f"felt by {row['client']}: {row['gap_ms']} ms without service (slowest call {row['slowest_ms']} ms) after {row['fault']}")
        for sentence in gaps.sentences(self.felt) if self.has_kinds else []:
            say(f"gaps after {sentence}")
        for takeover in self.takeovers:
            say("takeover: " + stages.sentence(takeover))
        found_by_kind = {"lost": self.lost, "doubled": self.doubled, "error": self.errors, "order": self.disorder}
        for what, found in {**found_by_kind, "epoch": self.epochs, "astray": self.astray}.items():
            for sentence in found[:8]:
                say(f"{what}: {sentence}")
            if len(found) > 8:
                say(f"{what}: and {len(found) - 8} more")

    def summary(self):
        return (
            f"{self.operations} operations, lost {len(self.lost)}, doubled {len(self.doubled)}, errors {len(self.errors)}, "
            f"out of order {len(self.disorder)}, astray {len(self.astray)}, epochs with two actives {len(self.epochs)}, worst outage {self.worst_ms:.0f} ms"
            + (f" of {self.goal_ms:.0f}" if self.goal_ms is not None else "")
        )

    def judge(self):
        """Raises where something is not as it must be."""
        if self.lost or self.doubled or self.errors or self.disorder or self.epochs or self.astray:
            raise Failure(self.summary())
        if self.goal_ms is not None and self.worst_ms > self.goal_ms:
            raise Failure(f"{self.summary()}: longer than it may be")
