"""Several groups of metadata servers that hold one namespace, with a ZooKeeper and data servers for all."""

import json
import subprocess
import time

from harness.report import Failure

from .cluster import READY_S, Cluster

# The root group makes all changes of directories.
ROOT = 1
FORMAT_S = 60


class GroupsCluster(Cluster):
    """Members are numbered through all groups. What a story asks of "the active" is asked of the root group, unless it names another."""

    def __init__(self, *arguments, groups=2, members=2, **keys):
        super().__init__(*arguments, members=groups * members, **keys)
        self.of_each = members
        self.groups = list(range(1, groups + 1))

    def members_of(self, group):
        first = (group - 1) * self.of_each + 1
        return {number: self.members[number] for number in range(first, first + self.of_each)}

    def start(self):
        self.directory.mkdir(parents=True)
        self.zookeeper.start()
        for group in self.groups:
            members = self.members_of(group)
            for member in members.values():
                member.configure(list(members), self.coordinator, **self.meta_keys)
        for group in self.groups:
            first, *others = self.members_of(group).values()
            self.make(first, group)
            for member in others:
                member.format("--join")
            for member in (first, *others):
                member.start()
        for name in self.data:
            self.configure_data(name)
            self.start_data(name)
        self.wait_settled()
        for group in self.groups[1:]:
            self.patiently(lambda: self.admin("groups", "give-slots", group, "--yes"))

    def make(self, first, group):
        """The first member of a group. Another group than the first is made when that one serves."""
        words = ["--group", group, "--join"] if group != ROOT else []
        self.patiently(lambda: first.format(*words))

    def patiently(self, what):
        deadline = time.monotonic() + FORMAT_S
        while True:
            try:
                return what()
            except (Failure, subprocess.CalledProcessError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def view_of(self, group):
        try:
            value, _ = self.zookeeper.get(f"/clover/faults/g/{group}/state")
        except (OSError, EOFError, AttributeError):
            return None
        return json.loads(value)

    def active(self, group=ROOT):
        serving = [(member.said_role(), number) for number, member in self.members_of(group).items() if member.is_awake]
        return max(((epoch, number) for epoch, number in serving if epoch is not None), default=(0, None))[1]

    def roles(self):
        roles = {}
        for group in self.groups:
            view, active = self.view_of(group), self.active(group)
            in_sync = {pair[0] for pair in view["in_sync"]} if view else set()
            for number, member in self.members_of(group).items():
                if not member.is_awake:
                    roles[number] = "frozen" if member.process and member.process.is_running else "off"
                elif number == active:
                    roles[number] = "active"
                else:
                    roles[number] = "standby" if number in in_sync else "junior"
        return roles

    def wait_active_of(self, group, seconds=60, other_than=None):
        deadline = time.monotonic() + seconds
        while True:
            number = self.active(group)
            if number is not None and number != other_than:
                return number
            self.check_running()
            if time.monotonic() > deadline:
                raise Failure(f"no member of group {group} became active within {seconds} s: {self.roles()}\n{self.tails()}")
            time.sleep(0.005)

    def wait_settled(self, seconds=READY_S, data=None):
        """Each group has one active, and all its other members are standbys; all data servers have told every active."""
        deadline = time.monotonic() + seconds
        while not self.is_settled(len(self.data) if data is None else data):
            self.check_running()
            if time.monotonic() > deadline:
                raise Failure(f"the groups are not settled after {seconds} s: {self.roles()}\n{self.tails()}")
            time.sleep(0.1)

    def is_settled(self, data):
        roles = self.roles()
        for group in self.groups:
            of_group = [roles[number] for number in self.members_of(group)]
            if sorted(set(of_group)) not in (["active"], ["active", "standby"]) or of_group.count("active") != 1:
                return False
            health = self.members[self.active(group)].health() or {}
            if int(health.get("live_data_servers", 0)) < data:
                return False
        return True

    def logs_by_group(self):
        """Epochs are each group's own."""
        logs = self.member_logs()
        return [{m.name: logs[m.name] for m in self.members_of(group).values() if m.name in logs} for group in self.groups]
