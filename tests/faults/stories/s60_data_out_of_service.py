"""A data server is decommissioned under load while the active dies, and is switched off; another one is away for maintenance."""

import json
import time

from harness.report import Failure, check
from rig import replicas
from rig.after import COPIES, REPORTS, After
from rig.servers import uuid_of

ITEM = "60"
IN_SLICE = False
NEEDS_CABLES = False

FILES = 400
# A data server that is silent for two of these and ten heartbeats is dead.
RECHECK_MS = 1_000
DEAD_S = 9
LEAVE_S = 180


def run(scene_of):
    scene = scene_of(members=3, data=5, meta_keys={"heartbeat_recheck_ms": RECHECK_MS, **COPIES})
    cluster = scene.cluster
    cluster.data_keys = REPORTS
    orders = Orders(scene, cluster.directory / "data-servers.json")
    cluster.meta_keys["data_servers_file"] = orders.file
    cluster.before_format = orders.write
    with scene:
        count = FILES // 8 if scene.options.is_slice else FILES
        kept = store(scene, "/kept", count)
        scene.start_load()
        leaving, resting = scene.chance.sample(sorted(cluster.data), 2)
        decommissioned(scene, orders, leaving, kept)
        maintained(scene, orders, resting, kept)
        verdict = scene.verdict(after=After({f"/kept/{name}": content for name, content in kept.contents.items()}, without=[leaving]))
        check_contents(scene, kept)
        return verdict


def decommissioned(scene, orders, name, kept):
    cluster = scene.cluster
    held = holds(cluster, name, kept.blocks)
    begun = time.monotonic()
    orders.give(name, "DECOMMISSIONED")
    scene.say(f"{name} is to be decommissioned; it has {held} of {len(kept.blocks)} blocks that are watched, and others")
    number = scene.kill_active("meanwhile, kill -9 of the active")
    scene.wait_progress()
    scene.restart(number)
    orders.wait_for(name, "decommissioned")
    took_s = time.monotonic() - begun
    counts = copies(cluster, kept.blocks, without=name)
    check(min(counts.values()) >= 3, f"a block has {min(counts.values())} replicas on other servers")
    said = cluster.admin("report")
    check("may be switched off: no block needs it" in said, said)
    scene.say(f"after {took_s:.1f} s no block needs it: {held / took_s:.0f} of the watched blocks a second")
    scene.fault(f"{name} is switched off for good", cluster.data[name].kill)
    scene.wait_progress()
    time.sleep(DEAD_S)
    check(orders.server(name)["service"] == "decommissioned", orders.server(name))
    check_contents(scene, kept)


def maintained(scene, orders, name, kept):
    cluster = scene.cluster
    orders.give(name, "IN_MAINTENANCE")
    orders.wait_for(name, "in maintenance")
    before = copies(cluster, kept.blocks, without=name)
    scene.fault(f"{name} is in maintenance, and switched off", cluster.data[name].kill)
    time.sleep(DEAD_S)
    check(not orders.server(name)["alive"], "it is dead by now")
    report = json.loads(cluster.admin("report", "--json"))
    check(report["missing_blocks"] == 0, "no block is missing")
    scene.wait_progress()
    after = copies(cluster, kept.blocks, without=name)
    check(after == before, "nothing that it has is copied from elsewhere meanwhile")
    scene.fault(f"and {name} is back", cluster.start_data, name)
    orders.wait_alive(name)
    orders.give(name, "NORMAL")
    orders.wait_for(name, "in service")
    scene.wait_progress()


class Orders:
    """The list of data servers in JSON, which all members read."""

    def __init__(self, scene, file):
        self.cluster, self.file, self.states = scene.cluster, file, {}

    def write(self):
        listed = [
            {"hostName": address.rpartition(":")[0], "port": int(address.rpartition(":")[2]), "adminState": state}
            for address, state in self.states.items()
        ]
        self.file.write_text(json.dumps(listed))

    def give(self, name, state):
        self.states[self.server(name)["address"]] = state
        # Servers that are not listed may take part as long as none is listed that is in service.
        self.states = {address: state for address, state in self.states.items() if state != "NORMAL"}
        self.write()
        self.cluster.admin("refresh-nodes")

    def server(self, name):
        uuid = uuid_of(self.cluster.data_directories[name])
        report = json.loads(self.cluster.admin("report", "--json"))
        return next(server for server in report["data_servers"] if server["uuid"] == uuid)

    def wait_for(self, name, service):
        deadline = time.monotonic() + LEAVE_S
        while (server := self.server(name))["service"] != service:
            if time.monotonic() > deadline:
                raise Failure(f"after {LEAVE_S} s {name} is {server['service']}, and {server['blocks_in_need']} blocks need it")
            time.sleep(0.2)

    def wait_alive(self, name):
        deadline = time.monotonic() + LEAVE_S
        while not self.server(name)["alive"]:
            check(time.monotonic() < deadline, f"{name} is not alive again")
            time.sleep(0.2)


class Kept:
    def __init__(self, contents, blocks):
        self.contents, self.blocks = contents, blocks


def store(scene, directory, count):
    """So many files of one block with three replicas each."""
    source = scene.directory / "files" / directory.strip("/")
    source.mkdir(parents=True)
    contents = {f"f{number}": bytes((number % 256,)) * (20_000 + number) for number in range(count)}
    for name, content in contents.items():
        (source / name).write_bytes(content)
    replicas.shell(scene, "-mkdir", "-p", directory)
    replicas.shell(scene, "-put", *(source / name for name in contents), directory)
    found = replicas.on_disk(scene.cluster)
    lengths = {len(content) for content in contents.values()}
    blocks = {block for held in found.values() for block in held if block[2] in lengths}
    check(len(blocks) == count, f"{count} blocks were written, {len(blocks)} are there")
    return Kept(contents, blocks)


def holds(cluster, name, blocks):
    return len(replicas.on_disk(cluster)[name] & blocks)


def copies(cluster, blocks, without):
    """The number of replicas of each of these blocks, those of one server left out."""
    found = replicas.on_disk(cluster)
    others = [held for name, held in found.items() if name != without]
    return {block: sum(block in held for held in others) for block in blocks}


def check_contents(scene, kept):
    """All files at once, as they were written."""
    target = scene.directory / "read-back"
    for old in target.glob("*") if target.exists() else ():
        old.unlink()
    target.mkdir(exist_ok=True)
    replicas.shell(scene, "-get", *(f"/kept/{name}" for name in kept.contents), target)
    for name, content in kept.contents.items():
        check((target / name).read_bytes() == content, f"/kept/{name} is what was written")
