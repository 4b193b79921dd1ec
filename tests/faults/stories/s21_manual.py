"""docs/operating/groups.md step by step, each server in a network namespace: set up, hand over, fail, add, remove, replace, and
go on with an incomplete member."""

import dataclasses
import json
import os
import shutil
import subprocess
import time

from harness.clients import call
from harness.report import Failure, check
from rig.cluster import Cluster

ITEM = "21"
IN_SLICE = False
NEEDS_CABLES = True
MINUTES = 5
LIMIT_S = MINUTES * 60


def run(scene_of):
    stage = scene_of(members=4, data=3)
    manual = Manual(stage, stage.cluster)
    manual.cluster.directory.mkdir(parents=True)
    try:
        manual.set_up()
        manual.give_orders()
        manual.add_a_member()
        manual.remove_a_member()
        manual.replace_a_machine()
        manual.go_on_with_an_incomplete_one()
        return Verdict(manual.done)
    except BaseException:
        print(manual.cluster.tails(), flush=True)
        raise
    finally:
        stage.options.network.heal()
        manual.cluster.stop()


@dataclasses.dataclass
class Verdict:
    done: list

    def tell(self, say):
        pass

    def judge(self):
        pass

    def summary(self):
        return f"{len(self.done)} steps of the manual do what it says"


class Manual:
    def __init__(self, stage, cluster: Cluster):
        self.stage = stage
        self.cluster = cluster
        self.conf = stage.directory / "conf"
        self.done = []

    def step(self, sentence):
        self.done.append(sentence)
        self.stage.say(sentence)

    # What an operator types.

    def admin(self, *words, member=1, succeeds=True):
        command = [self.cluster.clover, "admin", "group", *words, "--fs", f"hdfs://{self.cluster.members[member].rpc}"]
        command += ["--config", self.cluster.members[member].settings]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL)
        said = done.stdout + done.stderr
        check((done.returncode == 0) == succeeds, f"clover admin group {' '.join(words)} ended with {done.returncode}: {said}")
        return said

    def seen(self, member=1):
        return json.loads(self.admin("--json", member=member))

    def fs(self, *words):
        environment = {**os.environ, "HADOOP_CONF_DIR": str(self.conf)}
        return call([self.cluster.clover, "fs", *words], env=environment).decode()

    def wait_in_sync(self, wanted, member=1, seconds=60):
        """Until these members, and no others, are in sync and one of them serves."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                group = self.seen(member)
                serving = [one["member"] for one in group["members"] if one["role"] == "active"]
                in_sync = sorted(one["member"] for one in group["members"] if one["in_sync"] == "yes")
                if in_sync == sorted(wanted) and len(serving) == 1:
                    return serving[0]
            except (Failure, ValueError, subprocess.TimeoutExpired) as error:
                group = error
            check(time.monotonic() < deadline, f"in sync should be {wanted}; seen is {group}")
            time.sleep(0.1)

    # The steps, in the manual's order.

    def set_up(self):
        cluster = self.cluster
        cluster.zookeeper.start()
        for member in cluster.members.values():
            # The fourth is added later, and its file says what it said on the others.
            member.configure([1, 2, 3] if member.number < 4 else [1, 2, 3, 4], cluster.coordinator)
        cluster.members[1].format()
        cluster.members[1].start()
        self.step("the first server makes the cluster; it waits for a second copy")
        for number in (2, 3):
            cluster.members[number].format("--join")
            cluster.members[number].start()
        self.wait_in_sync([1, 2, 3])
        text = self.admin()
        for part in ("member 1 is active in epoch 1", "3 of 3 members in sync", "MEMBER", "standby", "in sync"):
            check(part in text, f"`{part}` is not in what `clover admin group` prints:\n{text}")
        self.step("the others join, and `clover admin group` shows what the manual shows")
        for name in cluster.data:
            cluster.configure_data(name)
            cluster.start_data(name)
        addresses = ",".join(cluster.members[number].rpc for number in (1, 2, 3))
        call([cluster.clover, "client-config", self.conf, "--members", addresses, "--nameservice", "my-cluster"])
        file = self.stage.directory / "file"
        file.write_text("a line\n")
        deadline = time.monotonic() + 60
        while True:
            try:
                self.fs("-put", "-f", file, "/file")
                break
            except subprocess.CalledProcessError as refused:
                check(time.monotonic() < deadline, f"nothing can be stored: {refused.stderr}")
                time.sleep(0.5)
        check(self.fs("-cat", "/file") == "a line\n", "what was stored is read back")
        self.step("data servers and clients get all members, and a file is stored")

    def give_orders(self):
        self.admin("hand-over", "--to", "2")
        check(self.wait_in_sync([1, 2, 3]) == 2, "member 2 has the lead")
        self.step("the lead is handed over to a member that is named")
        said = self.admin("fail-active")
        self.cluster.members[2].may_end = True
        self.step(f"the active ends as if killed: {said.splitlines()[-1] if said.splitlines() else said}")
        self.bring_back(2)
        self.wait_in_sync([1, 2, 3])
        check(self.fs("-cat", "/file") == "a line\n", "the file is there")
        self.step("it comes back and follows")

    def bring_back(self, number):
        """As whatever starts services does; one that starts again in its process needs nobody."""
        member = self.cluster.members[number]
        time.sleep(1)
        if not member.process.is_running:
            member.start()

    def add_a_member(self):
        self.admin("add", "4")
        self.cluster.members[4].format("--join")
        self.cluster.members[4].start()
        self.wait_in_sync([1, 2, 3, 4])
        self.step("a fourth member is added, joins, and is in sync")

    def remove_a_member(self):
        if self.wait_in_sync([1, 2, 3, 4]) == 3:
            said = self.admin("remove", "3", succeeds=False)
            check("hand-over" in said, said)
            self.admin("hand-over", "--to", "1")
        self.admin("remove", "3")
        self.cluster.members[3].process.end()
        self.wait_in_sync([1, 2, 4])
        self.step("member 3 is removed")

    def replace_a_machine(self):
        member = self.cluster.members[2]
        member.process.end()
        shutil.rmtree(member.directory)
        self.fs("-mkdir", "/while-it-was-away")
        member.format("--join", "--replace")
        member.start()
        self.wait_in_sync([1, 2, 4])
        self.step("a machine is replaced, under the same number")

    def go_on_with_an_incomplete_one(self):
        cluster = self.cluster
        cluster.members[4].process.end()
        self.wait_in_sync([1, 2])
        self.fs("-mkdir", "/known-to-two")
        for number in (1, 2):
            cluster.members[number].process.kill()
            cluster.members[number].process.wait_gone()
            shutil.rmtree(cluster.members[number].directory)
        cluster.members[4].start()
        time.sleep(3)
        check(self.cluster.members[4].said_role() is None, "an incomplete member waits")
        said = self.admin("unclean-elect", "--member", "4", member=4, succeeds=False)
        check("Nothing has been done" in said and "--off 1,2" in said, said)
        self.step("two of three are lost for good: the third waits, and `unclean-elect` says what would be lost")
        said = self.admin("unclean-elect", "--member", "4", "--off", "1,2", "--yes-lose-data", member=4)
        check("Member 4 goes on" in said, said)
        for number in (1, 2):
            cluster.members[number].format("--join", "--replace")
            cluster.members[number].start()
        self.wait_in_sync([1, 2, 4], member=4)
        listed = self.fs("-ls", "/")
        check("/while-it-was-away" in listed and "/known-to-two" not in listed, f"what only the lost ones knew is lost: {listed}")
        text = self.admin(member=4)
        check("unclean" in text.lower(), f"the loss is shown:\n{text}")
        self.fs("-mkdir", "/afterwards")
        self.step("it goes on by order, the others join with empty directories, and the loss is shown")
