"""Hadoop's NameNode stays; its DataNode and Clover's data server take turns on the DataNode's directory."""

import json
import subprocess
import urllib.request

from harness.clients import call
from harness.report import check
from place import ADMIN, DEBUG, FSCK, NAME_NODE, SIZES, Place, eventually, play, telling

# Names of the pages in which the NameNode tells its figures begin with this.
BEANS = "Hadoop:service=NameNode,name"


def run(report, stock, work, seed):
    play(tell, report, Place(stock, work, seed))


def tell(report, place):
    case = telling(report, "NameNode")
    begun = {}
    with case("Hadoop writes, and stops with a file open"):
        place.configure()
        call(place.hadoop(NAME_NODE, "-format", "-force"))
        start_name_node(place)
        place.start_data_node()
        wait_live(place)
        place.store(SIZES, "/data/hadoop")
        place.leave_open("/data/open-of-hadoop", 100_000)
        begun["versions"] = place.versions()
        begun["checksums"] = place.checksums("/data/hadoop")
    with case("two servers on one directory: the second is refused") as note:
        note.text = place.refused("another process holds this data directory")
    with case("clover data takes the directory over") as note:
        place.stop_data_node()
        check(place.named("replicas"), "the DataNode has left no list of its replicas: this case shows nothing")
        finished, open_replicas = place.replicas()
        check(min(finished) > 0 and open_replicas == 1, f"replicas are not where they should be: {finished}, {open_replicas}")
        place.start_clover()
        wait_live(place)
        check(not place.named("replicas"), "the list of the DataNode's replicas is still there")
        recover(place, "/data/open-of-hadoop")
        note.text = f"{place.check_files()}; finished replicas on the volumes: {finished}, in rbw: {open_replicas}"
        check(place.checksums("/data/hadoop") == begun["checksums"], "the stock client computes other checksums")
        same_versions(place, begun)
    with case("and a DataNode that comes too early is refused"):
        place.second_data_node()
    with case("clover data writes, appends, truncates and deletes") as note:
        place.store(SIZES, "/data/clover")
        place.append("/data/hadoop/file-5-3000", 5_000)
        place.append("/data/hadoop/file-9-3500000", 600_000)
        place.truncate("/data/hadoop/file-7-700001", 123_456)
        delete_for_good(place, "/data/hadoop/file-6-65536")
        place.leave_open("/data/open-of-clover", 200_000)
        note.text = place.check_files()
    with case("Hadoop's DataNode takes it back") as note:
        place.kill()
        cursors = len(place.named("clover-scan.cursor"))
        place.start_data_node()
        wait_live(place)
        recover(place, "/data/open-of-clover")
        note.text = f"{place.check_files()}; {healthy(place)}"
        same_versions(place, begun)
        check(len(place.named("clover-scan.cursor")) == cursors == 2, "our scanner's cursors are gone")
    with case("Hadoop goes on with what Clover wrote, and Clover with that") as note:
        place.append("/data/clover/file-5-3000", 70_000)
        place.truncate("/data/clover/file-9-3500000", 1_500_000)
        delete_for_good(place, "/data/clover/file-7-700001")
        place.append("/data/open-of-clover", 1_000)
        place.stop_data_node()
        check(len(place.named("scanner.cursor")) == 2, "the DataNode's cursors are gone")
        place.start_clover()
        wait_live(place)
        note.text = f"{place.check_files()}; {healthy(place)}; {place.inspect()} replicas verified"
        same_versions(place, begun)
        check(len(place.named("scanner.cursor")) == 2, "the DataNode's cursors are gone")
    upgrades(case, place)
    with case("both kinds of data server stand side by side") as note:
        beside = place.another_data_node("data-node-beside", [place.work / "volume-2"])
        eventually("both are live", lambda: metrics(place, f"{BEANS}=FSNamesystemState")["NumLiveDataNodes"] == 2, beside.tail)
        # Old blocks are copied from one data server to the other. New blocks go through a pipeline of both.
        place.shell("-setrep", "-w", 2, "/data")
        place.store(SIZES, "/data/both", replication=2)
        place.append("/data/both/file-5-3000", 5_000)
        text = healthy(place)
        place.stop_clover()
        note.text = f"{place.check_files()} from the DataNode alone; {text}"
        beside.end()
    with case("a NameNode that wants block tokens is not served") as note:
        place.name_node.end()
        place.configure(**{"dfs.block.access.token.enable": "true"})
        start_name_node(place)
        note.text = place.refused("it wants block tokens")


def upgrades(case, place):
    with case("nothing is deleted while the NameNode is in a rolling upgrade") as note:
        place.store([4_000], "/data/rolling")
        [path] = [path for path in place.files if path.startswith("/data/rolling/")]
        before = place.replicas()
        # An image is written for the way back.
        admin(place, "-safemode", "enter")
        admin(place, "-rollingUpgrade", "prepare")
        admin(place, "-safemode", "leave")
        eventually("clover data knows", lambda: "a rolling upgrade is under way" in place.server.log.read_text())
        place.delete(path)
        eventually("the order came", lambda: "not deleted during a rolling upgrade" in place.server.log.read_text())
        check(place.replicas() == before, f"{place.replicas()} replicas, and {before} before the deletion")
        note.text = f"replicas {before}"
    with case("a directory with the trash of a rolling upgrade is refused") as note:
        place.stop_clover()
        place.start_data_node()
        wait_live(place)
        eventually("the DataNode has made its mark", lambda: len(place.named("RollingUpgradeInProgress")) == 2)
        place.delete("/data/hadoop/file-4-513")
        eventually("the replica is in the trash", lambda: any("trash" in str(path) for path in place.named("blk_*")))
        place.stop_data_node()
        note.text = place.refused("a rolling upgrade is under way")
    with case("a directory of an upgrade that is not final is refused") as note:
        # As an older DataNode leaves it: the newer one makes `previous`, by hard links.
        for path in place.named("VERSION"):
            path.write_text(path.read_text().replace("layoutVersion=-57", "layoutVersion=-56"))
        place.refused("layoutVersion is -56")
        place.start_data_node()
        wait_live(place)
        previous = [path for path in place.named("previous") if path.is_dir()]
        check(len(previous) == 2, f"the upgrade has made {previous}")
        place.stop_data_node()
        note.text = place.refused("is not final")
    with case("once it is final, clover data takes over") as note:
        place.start_data_node()
        wait_live(place)
        admin(place, "-rollingUpgrade", "finalize")
        eventually("the DataNode has ended the upgrade", lambda: not any(map(place.named, ("previous", "trash", "RollingUpgradeInProgress"))))
        place.stop_data_node()
        place.start_clover()
        wait_live(place)
        note.text = f"{place.check_files()}; {healthy(place)}"


def start_name_node(place):
    place.name_node = place.spawn("name-node", place.hadoop(NAME_NODE))


def wait_live(place):
    """The one data server is registered, has reported, and the NameNode has ended its safe mode."""

    def is_there():
        for process in (place.name_node, place.server):
            check(process.is_running, f"{process.name} has ended:\n{process.tail()}")
        page = metrics(place, f"{BEANS}=FSNamesystem")
        state = metrics(place, f"{BEANS}=FSNamesystemState")
        return state["NumLiveDataNodes"] == 1 and page["MissingBlocks"] == 0 and is_registered(place) and not is_safe(place)

    eventually("the data server is live", is_there, place.server.tail)


def is_registered(place):
    """The server of now: its predecessor counts as live for a while."""
    log = place.server.log.read_text(errors="replace")
    return any(words in log for words in ("sent a full block report", "Successfully sent block report"))


def is_safe(place):
    return bool(metrics(place, f"{BEANS}=NameNodeInfo")["Safemode"])


def metrics(place, bean):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{place.http}/jmx?qry={bean}", timeout=10) as page:
            beans = json.load(page)["beans"]
    except OSError as error:
        raise subprocess.CalledProcessError(1, bean) from error
    if not beans:
        raise subprocess.CalledProcessError(1, bean)
    return beans[0]


def admin(place, *words):
    return call(place.hadoop(ADMIN, *words)).decode()


def recover(place, path):
    """The writer is gone: its file is closed with what it had flushed."""
    eventually(f"{path} is closed", lambda: b"SUCCEEDED" in call(place.hadoop(DEBUG, "recoverLease", "-path", path, "-retries", "20")))


def delete_for_good(place, path):
    """The file, and its replicas."""
    before = sum(place.replicas()[0])
    place.delete(path)
    eventually("its replicas are gone from the disk", lambda: sum(place.replicas()[0]) < before)


def healthy(place):
    found = call(place.hadoop(FSCK, "/")).decode()
    check("is HEALTHY" in found, found)
    return "fsck: healthy"


def same_versions(place, begun):
    found = place.versions()
    check(found == begun["versions"], f"VERSION files are others: {found}, and were {begun['versions']}")
