"""Clover's metadata server stays; Clover's data server and Hadoop's DataNode take turns on the data server's directory."""

import shutil

from harness.clients import call
from harness.cluster import toml
from harness.report import check
from place import DEBUG, SIZES, Place, eventually, play, telling


def run(report, stock, work, seed):
    play(tell, report, Place(stock, work, seed + 1))


def tell(report, place):
    case = telling(report, "Clover")
    begun = {}
    with case("clover data writes, and is killed with a file open"):
        place.configure()
        config = place.work / "meta.toml"
        toml(
            config,
            name_dir=place.work / "meta",
            rpc_address=f"127.0.0.1:{place.port}",
            http_address="127.0.0.1:0",
            safe_mode_extension_ms=0,
            heartbeat_interval_ms=1000,
            default_replication=1,
        )
        call([place.stock.clover, "meta", "format", "--config", config])
        place.meta = place.spawn("clover-meta", [place.stock.clover, "meta", "--config", config])
        place.start_clover()
        wait_ready(place)
        place.store(SIZES, "/data/clover")
        place.leave_open("/data/open-of-clover", 100_000)
        begun["versions"] = place.versions()
        begun["checksums"] = place.checksums("/data/clover")
        place.kill()
    with case("Hadoop's DataNode takes the directory over") as note:
        finished, open_replicas = place.replicas()
        check(min(finished) > 0 and open_replicas == 1, f"replicas are not where they should be: {finished}, {open_replicas}")
        place.start_data_node()
        wait_ready(place)
        recover(place, "/data/open-of-clover")
        note.text = f"{place.check_files()}; finished replicas on the volumes: {finished}, in rbw: {open_replicas}"
        check(place.checksums("/data/clover") == begun["checksums"], "the stock client computes other checksums")
        same_versions(place, begun)
    with case("two servers on one directory: the second is refused") as note:
        note.text = place.refused("another process holds this data directory")
    with case("Hadoop's DataNode writes, appends, truncates and deletes") as note:
        place.store(SIZES, "/data/hadoop")
        place.append("/data/clover/file-5-3000", 5_000)
        place.append("/data/clover/file-9-3500000", 600_000)
        place.truncate("/data/clover/file-7-700001", 123_456)
        before = sum(place.replicas()[0])
        place.delete("/data/clover/file-6-65536")
        eventually("its replicas are gone from the disk", lambda: sum(place.replicas()[0]) < before)
        place.leave_open("/data/open-of-hadoop", 200_000)
        note.text = place.check_files()
    with case("clover data takes it back") as note:
        place.stop_data_node()
        place.start_clover()
        wait_ready(place)
        recover(place, "/data/open-of-hadoop")
        note.text = f"{place.check_files()}; {healthy(place)}; {place.inspect()} replicas verified"
        same_versions(place, begun)
        place.append("/data/open-of-hadoop", 1_000)
        place.append("/data/hadoop/file-5-3000", 70_000)
    with case("Hadoop's DataNode once more") as note:
        place.stop_clover()
        place.start_data_node()
        wait_ready(place)
        note.text = f"{place.check_files()}; {healthy(place)}"
        same_versions(place, begun)
        place.kill()
    with case("a directory of another cluster is refused") as note:
        place.meta.end()
        shutil.rmtree(place.work / "meta")
        call([place.stock.clover, "meta", "format", "--config", place.work / "meta.toml"])
        place.meta = place.spawn("clover-meta", [place.stock.clover, "meta", "--config", place.work / "meta.toml"])
        note.text = place.refused("the directory belongs to another cluster")


def wait_ready(place):
    def is_ready():
        for process in (place.meta, place.server):
            check(process.is_running, f"{process.name} has ended:\n{process.tail()}")
        log = place.server.log.read_text(errors="replace")
        reported = any(words in log for words in ("sent a full block report", "Successfully sent block report"))
        return reported and "Safe mode is OFF" in call([place.stock.clover, "admin", "safe-mode", "get", "--fs", place.uri]).decode()

    eventually("the data server has reported", is_ready, place.server.tail)


def recover(place, path):
    """The writer is gone: its file is closed with what it had flushed."""
    eventually(f"{path} is closed", lambda: b"SUCCEEDED" in call(place.hadoop(DEBUG, "recoverLease", "-path", path, "-retries", "20")))


def healthy(place):
    call([place.stock.clover, "fsck", "--fs", place.uri, "/"])
    return "fsck: healthy"


def same_versions(place, begun):
    found = place.versions()
    check(found == begun["versions"], f"VERSION files are others: {found}, and were {begun['versions']}")
