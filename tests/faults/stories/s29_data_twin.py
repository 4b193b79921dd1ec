"""A copy of a data server's directory is started on another machine: while the real one lives it is refused, and when that is dead it is the server."""

from harness.process import Process
from harness.report import Failure, check
from rig import replicas, servers, stores
from rig.after import COPIES, REPORTS, After

ITEM = "29"
IN_SLICE = False
NEEDS_CABLES = True
LIMIT_S = 600
DATA = 4
FILES, LATER = 40, 20
# The machine of the copy: members have the numbers below.
MACHINE = 41
TWIN = "twin"
META = {"heartbeat_recheck_ms": 1000, "stale_after_ms": 3_000, **COPIES}
REFUSED = "it cannot speak from"


def run(scene_of):
    scene = scene_of(members=1, data=DATA, meta_keys=META)
    cluster = scene.cluster
    cluster.data_keys = REPORTS
    with scene:
        contents = replicas_of(scene, "/kept", FILES)
        name = scene.chance.choice(sorted(cluster.data))
        copied = cluster.directory / TWIN
        stores.snapshot(cluster.data[name], cluster.data_directories[name], copied)
        scene.start_load(size=scene.options.size._replace(own=1, cell=1, data=1, stream=1))
        # So the copy lacks some replicas and has others of which no file knows.
        contents |= replicas_of(scene, "/later", LATER)
        for path in list(contents)[: FILES // 4]:
            replicas.shell(scene, "-rm", "-skipTrash", path)
            del contents[path]
        before = servers.report(cluster)[name]
        ours = {block.replica for directory in ("/kept", "/later") for block in After().listing(scene, directory)}
        held = replicas.on_disk(cluster)[name] & ours
        check(held, f"{name} has some of the files")
        twin = scene.fault(f"a copy of {name} is started elsewhere", start_twin, scene, copied)
        servers.wait(cluster, lambda said: REFUSED in log_of(twin) or not twin.is_running, "nothing is said about the copy")
        scene.rest(5)
        scene.wait_progress()
        now = servers.report(cluster)[name]
        check(now["alive"] and now["address"] == before["address"], f"{name} is where it was: {now}")
        check(held <= replicas.on_disk(cluster)[name], f"no replica of {name} was deleted")
        replicas.check_files(scene, contents)
        scene.say(f"the copy {'waits' if twin.is_running else 'has ended'}: {refusal(twin)}")
        scene.fault(f"kill -9 of {name}, the real one", cluster.data[name].kill)
        servers.wait(cluster, lambda said: said[name]["address"] != before["address"] or not said[name]["alive"], f"{name} is not missed")
        if not twin.is_running:
            twin = start_twin(scene, copied)
        # From here on the copy is the server.
        cluster.data_directories[name] = copied
        cluster.data[name] = twin
        servers.wait(cluster, lambda said: said[name]["alive"] and said[name]["address"] != before["address"], "the copy is not let in")
        scene.say(f"the copy is {name} now, at {servers.report(cluster)[name]['address']}")
        scene.wait_progress()
        return scene.verdict(after=After(contents))


def start_twin(scene, directory):
    cluster = scene.cluster
    cluster.data_machine, cluster.data_directories[TWIN] = MACHINE, directory
    try:
        cluster.configure_data(TWIN)
        inside = cluster.network.inside(MACHINE)
    finally:
        cluster.data_machine = None
        del cluster.data_directories[TWIN]
    command = [*inside, cluster.clover, "data", "--config", cluster.directory / f"{TWIN}.toml"]
    twin = Process(TWIN, command, cluster.directory / f"{TWIN}.log")
    scene.others.append(twin)
    return twin


def log_of(twin):
    return twin.log.read_text(errors="replace")


def refusal(twin):
    line = next((line for line in log_of(twin).splitlines() if REFUSED in line), None)
    if line is None:
        raise Failure(f"the copy was not refused:\n{twin.tail()}")
    return line[line.find(REFUSED) - 60 :][:200]


def replicas_of(scene, directory, count):
    contents = {f"{directory}/f{number}": scene.chance.randbytes(30_000 + number) for number in range(count)}
    replicas.shell(scene, "-mkdir", "-p", directory)
    source = scene.directory / "files" / directory.strip("/")
    source.mkdir(parents=True)
    for path, content in contents.items():
        (source / path.rpartition("/")[2]).write_bytes(content)
    replicas.shell(scene, "-put", *sorted(source.iterdir()), directory)
    return contents
