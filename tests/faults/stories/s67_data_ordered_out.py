"""A data server is ordered out by a command that waits, the active dies meanwhile, and the next one goes on with the order; then it comes back."""

import json
import subprocess
import threading
import time

from harness.report import Failure, check
from rig import conf
from rig.after import COPIES, REPORTS, After
from rig.servers import uuid_of
from stories.s60_data_out_of_service import check_contents, copies, holds, store

ITEM = "67"
IN_SLICE = False
NEEDS_CABLES = False

FILES = 400
# A data server that is silent for two of these and ten heartbeats is dead.
RECHECK_MS = 1_000
DEAD_S = 9
LEAVE_S = 240


def run(scene_of):
    scene = scene_of(members=3, data=5, meta_keys={"heartbeat_recheck_ms": RECHECK_MS, **COPIES})
    cluster = scene.cluster
    cluster.data_keys = REPORTS
    with scene:
        count = FILES // 8 if scene.options.is_slice else FILES
        kept = store(scene, "/kept", count)
        scene.start_load()
        leaving, resting = scene.chance.sample(sorted(cluster.data), 2)
        refused(scene, server(cluster, leaving)["address"])
        ordered_out(scene, leaving, kept)
        back_again(scene, leaving)
        rests(scene, resting, kept)
        verdict = scene.verdict(after=After({f"/kept/{name}": content for name, content in kept.contents.items()}))
        check_contents(scene, kept)
        return verdict


def refused(scene, address):
    """Orders that cannot be meant change nothing."""
    cluster = scene.cluster
    host = address.rpartition(":")[0]
    said = cluster.admin("decommission", host, succeeds=False)
    check("may be any of 5 data servers" in said, said)
    said = cluster.admin("decommission", f"{host}:1", succeeds=False)
    check("--expected" in said, said)
    everybody = [one["address"] for one in servers(cluster)]
    said = cluster.admin("decommission", *everybody[:3], succeeds=False)
    check("2 data servers would stay in service" in said, said)
    check(orders(cluster) == [], "nothing was ordered")


def ordered_out(scene, name, kept):
    cluster = scene.cluster
    address = server(cluster, name)["address"]
    held = holds(cluster, name, kept.blocks)
    begun = time.monotonic()
    waiting = Waiting(cluster, "decommission", address, "--wait")
    wait_until("the order is in the journal", lambda: orders(cluster) != [] or waiting.is_over())
    scene.say(f"{name} is ordered out; it has {held} of {len(kept.blocks)} blocks that are watched, and others")
    number = scene.kill_active("meanwhile, kill -9 of the active")
    scene.wait_progress()
    scene.restart(number)
    waiting.end()
    took_s = time.monotonic() - begun
    counts = copies(cluster, kept.blocks, without=name)
    check(min(counts.values()) >= 3, f"a block has {min(counts.values())} replicas on other servers")
    scene.say(f"the command that waited says after {took_s:.1f} s: {waiting.lines()[-1]}")
    check(waiting.lines()[-1] == f"{address} may be switched off: no block needs it.", waiting.text)
    told = orders(cluster)
    check([(one["journal"], one["service"], one["may_be_off"]) for one in told] == [("decommission", "decommissioned", True)], told)
    check("It is ordered in the journal." in cluster.admin("report"), "the report tells the source")
    scene.fault(f"{name} is switched off", cluster.data[name].kill)
    scene.wait_progress()
    time.sleep(DEAD_S)
    check_contents(scene, kept)


def back_again(scene, name):
    """It starts, is known to be out of service at once, and is taken back."""
    cluster = scene.cluster
    keep_address(cluster, name)
    scene.fault(f"{name} is started again", cluster.start_data, name)
    wait_until(f"{name} is alive", lambda: server(cluster, name)["alive"])
    check(server(cluster, name)["service"] != "in service", "the order holds for a server that registers later")
    address = server(cluster, name)["address"]
    said = cluster.admin("recommission", address)
    check("is in service again" in said, said)
    check(orders(cluster) == [] and server(cluster, name)["service"] == "in service", "the order is gone")
    scene.wait_progress()


def rests(scene, name, kept):
    """In maintenance, with an end. The active dies meanwhile; the end comes under the next one."""
    cluster = scene.cluster
    address = server(cluster, name)["address"]
    waiting = Waiting(cluster, "maintenance", address, "--for", "60s", "--wait")
    waiting.end()
    check(waiting.lines()[-1] == f"{address} may be switched off: no block needs it.", waiting.text)
    before = copies(cluster, kept.blocks, without=name)
    scene.fault(f"{name} is in maintenance for a minute, and switched off", cluster.data[name].kill)
    number = scene.kill_active("meanwhile, kill -9 of the active")
    scene.wait_progress()
    scene.restart(number)
    if orders(cluster)[0]["over"]:
        scene.say("the minute was over before the blocks could be looked at")
    else:
        report = json.loads(cluster.admin("report", "--json"))
        check(report["missing_blocks"] == 0, "no block is missing")
        check(copies(cluster, kept.blocks, without=name) == before, "nothing that it has is copied from elsewhere meanwhile")
    keep_address(cluster, name)
    scene.fault(f"and {name} is back", cluster.start_data, name)
    wait_until(f"{name} is alive", lambda: server(cluster, name)["alive"])
    wait_until("the maintenance is over", lambda: server(cluster, name)["service"] == "in service")
    check(orders(cluster)[0]["over"], "the order is told to be over")
    cluster.admin("recommission", address)
    check(orders(cluster) == [], "the order is gone")
    scene.wait_progress()


def keep_address(cluster, name):
    """Orders are for the server at an address and port. The story's servers take any port that is free, but for this one from now on."""
    settings = cluster.directory / f"{name}.toml"
    address = server(cluster, name)["address"]
    free = f"{address.rpartition(':')[0]}:0"
    before = settings.read_text()
    after = "".join(
        line.replace(free, address) if line.startswith("transfer_address") else line for line in before.splitlines(keepends=True)
    )
    check(after != before, f"{settings} names a port")
    settings.write_text(after)


class Waiting:
    """A command that waits, as an operator has it in a window of its own."""

    def __init__(self, cluster, *words):
        directory = cluster.directory / "admin-conf"
        if not directory.exists():
            conf.write(cluster.clover, directory, [member.rpc for member in cluster.members.values()], "configured", {})
        command = [cluster.clover, "admin", "--conf", directory, *words]
        self.process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL
        )
        self.text = ""
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.text += line

    def is_over(self):
        return self.process.poll() is not None

    def end(self):
        try:
            code = self.process.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failure(f"the command still waits after {LEAVE_S} s: {self.text}") from None
        finally:
            self.reader.join()
        check(code == 0, f"the command ends with {code}: {self.text}")

    def lines(self):
        return self.text.splitlines()


def servers(cluster):
    return json.loads(cluster.admin("report", "--json"))["data_servers"]


def server(cluster, name):
    uuid = uuid_of(cluster.data_directories[name])
    return next(one for one in servers(cluster) if one["uuid"] == uuid)


def orders(cluster):
    return json.loads(cluster.admin("orders", "--json"))["orders"]


def wait_until(what, is_so):
    deadline = time.monotonic() + LEAVE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise Failure(f"after {LEAVE_S} s it is not so: {what}")
        time.sleep(0.2)
