"""A disk of a data server is taken out of its configuration under load (`hdfs dfsadmin -reconfig`), pulled, and put back: at once, later, and empty. No
acknowledged byte is lost, and the server goes on."""

import fcntl
import os
import re
import time

from harness.report import check
from rig import replicas
from rig.after import COPIES, HEAL_S, REPORTS, After, wait_whole
from rig.balancing import Stock
from rig.servers import log_of, working_volumes, write_directories

ITEM = "11"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900
DATA = 4
NAME = "data-1"
FILES = 60
FILE_BYTES = 400_000


def run(scene_of):
    scene = scene_of(members=1, data=DATA, meta_keys=COPIES)
    cluster = scene.cluster
    second = cluster.directory / f"{NAME}-second"
    cluster.data_keys = REPORTS
    cluster.further_directories[NAME] = [second]
    with scene:
        server = Server(scene, second)
        contents = replicas.store_random(scene, "/stored", FILES, FILE_BYTES)
        scene.start_load(size=scene.options.size._replace(own=1, cell=1, data=2, stream=2))
        server.check_properties()
        scene.rest(1, 2)
        out_and_in_at_once(scene, server)
        pulled_and_put_back(scene, server, contents)
        replaced(scene, server)
        refused(scene, server)
        return scene.verdict(after=After(contents))


def out_and_in_at_once(scene, server):
    for round_ in range(3):
        server.use_second(False)
        server.use_second(True)
        scene.wait_progress()
    scene.say(f"{NAME}'s second disk went out and in three times under load")


def pulled_and_put_back(scene, server, contents):
    held = replicas.below(server.second)
    check(len(held) > FILES // 4, f"the disk that is to be pulled has {len(held)} replicas")
    begun = time.monotonic()
    server.use_second(False)
    server.check_given_away()
    away = server.second.with_name("pulled")
    scene.fault(f"the second disk of {NAME} is pulled, with {len(held)} replicas", server.second.rename, away)
    wait_whole(scene)
    scene.say(f"all blocks are whole again {time.monotonic() - begun:.1f} s after the order")
    replicas.check_files(scene, contents)
    scene.wait_progress()
    away.rename(server.second)
    server.use_second(True)
    scene.note_end()
    wait_volumes(scene.cluster, 2)
    scene.wait_progress()


def replaced(scene, server):
    server.use_second(False)
    server.check_given_away()
    scene.fault(f"the second disk of {NAME} is replaced by an empty one", server.second.rename, server.second.with_name("old"))
    server.second.mkdir()
    server.use_second(True)
    wait_volumes(scene.cluster, 2)
    wait_whole(scene)
    scene.note_end()


def refused(scene, server):
    """What cannot be added is told, and the others stay."""
    nowhere = server.second.with_name("nowhere")
    server.order([server.first, server.second, nowhere])
    said = server.wait_status()
    check("FAILED: Change property dfs.datanode.data.dir" in said and "FAILED TO ADD: " in said and "is its disk mounted?" in said, said)
    check(not nowhere.exists(), f"{nowhere} was made")
    check(working_volumes(scene.cluster)[NAME] == 2, "both disks are in use")
    server.use_second(True)


class Server:
    """The data server whose disk is swapped, and Hadoop's command that orders it."""

    def __init__(self, scene, second):
        self.scene, self.second = scene, second
        self.first = scene.cluster.data_directories[NAME]
        self.tools = Stock(scene)
        self.address = re.findall(r"data server started .*\bipc=(\S+)", log_of(scene.cluster, NAME))[-1]

    def reconfig(self, word):
        code, text, _ = self.tools.run("tools.DFSAdmin", "-reconfig", "datanode", self.address, word)
        return code, text

    def check_properties(self):
        code, text = self.reconfig("properties")
        check(code == 0 and "dfs.datanode.data.dir" in text, text)

    def use_second(self, is_used):
        """Orders the second disk in or out, and waits for the end of that."""
        self.order([self.first, self.second] if is_used else [self.first])
        said = self.wait_status()
        check("SUCCESS: Changed property dfs.datanode.data.dir" in said or "No reconfigur" in said or "finished" in said, said)
        check("FAILED" not in said, said)

    def order(self, directories):
        write_directories(self.scene.cluster, NAME, directories)
        code, text = self.reconfig("start")
        check(code == 0 and "Started reconfiguration task on node" in text, text)

    def wait_status(self):
        deadline = time.monotonic() + HEAL_S
        while True:
            code, text = self.reconfig("status")
            if code == 0 and "finished at" in text:
                return text
            check(time.monotonic() < deadline, f"the reconfiguration has not ended: {text}")

    def check_given_away(self):
        """Nobody holds the lock, and the process has no file open there: the disk can be unmounted."""
        with open(self.second / "in_use.lock", "r+") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        files = f"/proc/{self.scene.cluster.data[NAME].pid}/fd"
        opened = [path for name in os.listdir(files) if (path := target(f"{files}/{name}")).startswith(str(self.second))]
        check(not opened, f"{NAME} has files of the removed disk open: {opened}")


def target(link):
    try:
        return os.readlink(link)
    except FileNotFoundError:
        return ""


def wait_volumes(cluster, count):
    deadline = time.monotonic() + HEAL_S
    while (working := working_volumes(cluster).get(NAME)) != count:
        check(time.monotonic() < deadline, f"{NAME} has {working} disks, and should have {count}")
        time.sleep(0.2)
