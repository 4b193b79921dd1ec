"""A data server gets a second disk while it runs, and its disk balancer fills it under load: ours, with a kill in its midst, and Hadoop's."""

import re
import time

from harness.report import check
from rig import disks, replicas, servers
from rig.after import COPIES, REPORTS, After
from rig.balancing import Stock
from rig.servers import log_of

ITEM = "63"
IN_SLICE = False
NEEDS_CABLES = False
LIMIT_S = 900
DATA = 4
NAME = "data-1"
FILES = 80
FILE_BYTES = 1_000_000
MIB = 1 << 20
PATIENCE_S = 180
why_not = disks.why_not


def run(scene_of):
    scene = scene_of(members=1, data=DATA, meta_keys=COPIES)
    cluster = scene.cluster
    one, other = (disks.Disk(cluster.directory / f"disk-{number}") for number in (1, 2))
    first, second = one.directory / "data", other.directory / "data"
    cluster.data_directories[NAME] = first
    cluster.data_keys = REPORTS

    def make():
        one.make()
        other.make()

    cluster.before_format = make
    try:
        with scene:
            contents = replicas.store_random(scene, "/stored", FILES, FILE_BYTES)
            scene.start_load(size=scene.options.size._replace(own=1, cell=1, data=1, stream=1))
            second.mkdir()
            use(scene, [first, second])
            killed_within(scene, first, second)
            evened_out(scene, first, second)
            by_hadoops_command(scene, first, second)
            return scene.verdict(after=After(contents))
    finally:
        one.remove()
        other.remove()


def killed_within(scene, first, second):
    """The server dies in the midst of a plan. None runs after its start, and no replica is lost or there twice."""
    cluster = scene.cluster
    scene.say(f"planned: {order(scene, 'disk-balancer', '--threshold', '1', '--plan').strip()}")
    order(scene, "disk-balancer", "--threshold", "1", "--bandwidth", "4m", "--no-wait")
    wait(lambda: held(second) > 2 * MIB, "the second disk stays empty")
    scene.fault(f"kill -9 of {NAME} while it moves replicas from disk to disk", cluster.data[NAME].kill)
    cluster.further_directories[NAME] = [second]
    before = len(addresses(scene))
    servers.start(cluster, [NAME])
    # The metadata server may know it from before, while the new process is still at its start.
    wait(lambda: len(addresses(scene)) > before, f"{NAME} does not start")
    check("no plan" in order(scene, "disk-balancer", "--status"), "a plan runs after the start")
    scene.wait_progress()


def evened_out(scene, first, second):
    """Its end is waited for. A second plan finds nothing to do."""
    begun = time.monotonic()
    said = order(scene, "disk-balancer", "--threshold", "1", "--bandwidth", "100m")
    check("done" in said, said)
    scene.say(f"after {time.monotonic() - begun:.1f} s the disks have {held(first) // MIB} and {held(second) // MIB} MiB")
    check(held(second) > held(first) // 2, "the disks are not even")
    scene.wait_progress()


def by_hadoops_command(scene, first, second):
    """Its plan is made of what the servers say, is carried out, and is asked for."""
    cluster, tools = scene.cluster, Stock(scene)
    code, text, _ = tools.run("tools.DiskBalancerCLI", "-query", address(scene))
    check(code == 0 and "PLAN_DONE" in text, text)
    uuid = servers.uuid_of(first)
    code, text, _ = tools.run("tools.DiskBalancerCLI", "-report", "-node", uuid)
    check(code == 0 and str(first) in text, text)
    # Only one of the disks goes on being written to.
    use(scene, [first])
    replicas.shell(scene, "-mkdir", "/more")
    replicas.shell(scene, "-put", *sorted(replicas.local_copies(scene, "/stored").iterdir()), "/more")
    use(scene, [first, second])
    before = held(second)
    code, text, _ = tools.run("tools.DiskBalancerCLI", "-plan", uuid, "-thresholdPercentage", "1", "-bandwidth", "50")
    file = re.search(r"(\S+\.plan\.json)", text)
    check(code == 0 and file, text)
    code, text, _ = tools.run("tools.DiskBalancerCLI", "-execute", file[1])
    check(code == 0, text)

    def is_done():
        code, text, _ = tools.run("tools.DiskBalancerCLI", "-query", address(scene))
        check(code == 0, text)
        return "PLAN_DONE" in text

    wait(is_done, "Hadoop's plan does not end")
    check(held(second) > before, "Hadoop's plan has moved nothing")
    scene.say(f"Hadoop's plan has brought the disks to {held(first) // MIB} and {held(second) // MIB} MiB")


def address(scene):
    return addresses(scene)[-1]


def addresses(scene):
    """One for each time that it has started."""
    return re.findall(r"data server started .*\bipc=(\S+)", log_of(scene.cluster, NAME))


def order(scene, word, *options):
    return scene.cluster.admin(word, address(scene), *options)


def use(scene, directories):
    servers.write_directories(scene.cluster, NAME, directories)
    said = order(scene, "reconfigure")
    check("dfs.datanode.data.dir: " in said and "FAILED" not in said, said)


def held(directory):
    """The bytes of the finished replicas in a data directory."""
    return sum(length for _, _, length in replicas.below(directory))


def wait(is_so, sentence):
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        check(time.monotonic() < deadline, sentence)
        time.sleep(0.1)
