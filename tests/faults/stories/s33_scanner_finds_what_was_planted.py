"""Replicas rot, are cut, go and appear on the disks of running data servers: each is found and healed, and no other is accused."""

import random
import re
import statistics
import time

from harness.report import check
from rig import replicas
from rig.after import After
from rig.servers import accusations, log_of

ITEM = "33"
IN_SLICE = False
NEEDS_CABLES = False
DATA = 5
# A look at everything every three seconds.
SCANS = {
    "block_scan_period_ms": 3000,
    "block_scan_bytes_per_second": 64 << 20,
    "directory_scan_interval_ms": 3000,
}
# A copy may be ordered from a replica before that is known to be damaged; it fails, and is ordered again after so long.
COPIES = {"transfer_retry_ms": 10_000}
FILES = "/scanned"
FILE_BYTES = 1 << 20
HEAL_S = 180
# A metadata server that has become active orders neither copies nor deletions for half a minute.
GRACE_S = 32


def run(scene_of):
    scene = scene_of(members=3, data=DATA, meta_keys=COPIES)
    scene.cluster.data_keys = SCANS
    with scene:
        # Writers, appenders and deleters go on all the time: what they do is no damage.
        scene.start_load(size=scene.options.size._replace(own=1, cell=1, data=2, stream=2))
        victims = store(scene)
        planted = {victim.number for victim in victims}
        scene.rest(GRACE_S)
        scene.fault(f"something happens to replicas of {len(victims)} blocks", lambda: [victim.plant() for victim in victims])
        watch(scene, victims)
        for way in dict.fromkeys(victim.way for victim in victims):
            of_way = [victim for victim in victims if victim.way == way]
            scene.say(f"{way}: found after {span([v.found_s for v in of_way])}, healed after {span([v.healed_s for v in of_way])}")
        replicas.check_files(scene, {victim.path: victim.content for victim in victims})
        # Another look at everything, now that all is well.
        scene.rest(5)
        accused = {number for name in scene.cluster.data for number in accusations(scene.cluster, name)}
        check(accused <= planted, f"replicas were accused to which nothing has happened: blocks {sorted(accused - planted)}")
        alone = {victim.number for victim in victims if victim.way == NO_BLOCK_FILE}
        return scene.verdict(after=After({victim.path: victim.content for victim in victims}, alone=alone))


class Victim:
    """A file of one block, and what happens to some of its replicas."""

    def __init__(self, scene, way, path, content, number):
        self.cluster, self.chance, self.way, self.path, self.content, self.number = scene.cluster, scene.chance, way, path, content, number
        self.spoilt, self.found_s, self.healed_s = [], None, None

    def plant(self):
        holders = sorted(self.holders())
        check(len(holders) == 3, f"{self.path} has {len(holders)} replicas before anything happens")
        self.chance.shuffle(holders)
        spoil, count = WAYS[self.way]
        if count == 0:
            # One too many, where there is none.
            others = sorted(set(self.cluster.data) - set(holders))
            self.spoilt = [self.chance.choice(others)]
            copy_in(self, holders[0], self.spoilt[0])
        else:
            self.spoilt = holders[:count]
            for index, name in enumerate(self.spoilt):
                spoil(self, self.block_file(name), index)
        self.begun = time.monotonic()

    def block_file(self, name):
        return next(self.cluster.data_directories[name].glob(f"current/BP-*/current/finalized/**/blk_{self.number}"), None)

    def holders(self):
        """The data servers with a block file."""
        return {name for name in self.cluster.data if self.block_file(name)}

    def is_healed(self):
        """Three replicas, each with every byte and a meta file as long as it should be, and no other."""
        files = [found for name in self.cluster.data if (found := self.block_file(name))]
        try:
            return len(files) == 3 and all(self.is_good(file) for file in files)
        except OSError:
            return False

    def is_good(self, file):
        metas = [path.read_bytes() for path in file.parent.glob(f"blk_{self.number}_*.meta")]
        return file.read_bytes() == self.content and self.sums in metas


def meta_of(file):
    return next(file.parent.glob(f"{file.name}_*.meta"))


def in_data(victim, file, _):
    replicas.flip(file, victim.chance.randrange(FILE_BYTES))


def in_meta(victim, file, _):
    replicas.flip(meta_of(file), victim.chance.randrange(7, 7 + FILE_BYTES // 512 * 4))


def in_both(victim, file, index):
    (in_data, in_meta)[index](victim, file, index)


def cut(victim, file, _):
    with open(file, "r+b") as opened:
        opened.truncate(victim.chance.randrange(FILE_BYTES))


def without_block(_victim, file, _):
    file.unlink()


def without_meta(_victim, file, _):
    meta_of(file).unlink()


def copy_in(victim, source, target):
    file = victim.block_file(source)
    place = victim.cluster.data_directories[target] / file.parent.relative_to(victim.cluster.data_directories[source])
    place.mkdir(parents=True, exist_ok=True)
    for path in (meta_of(file), file):
        (place / path.name).write_bytes(path.read_bytes())


NO_BLOCK_FILE = "a block file is gone"
# What happens, and to how many of the three replicas.
WAYS = {
    "a bit of the data of one": (in_data, 1),
    "a bit of the sums of one": (in_meta, 1),
    "a bit of the data of two": (in_data, 2),
    "a bit of the sums of two": (in_meta, 2),
    "a bit of the data of one and of the sums of another": (in_both, 2),
    "a block file is cut": (cut, 1),
    NO_BLOCK_FILE: (without_block, 1),
    "a meta file is gone": (without_meta, 1),
    "a replica is copied in": (None, 0),
}


def store(scene):
    """Three files for each way, and as many as it takes until each data server has been written to."""
    source = scene.directory / "files"
    source.mkdir()
    ways = [way for way in WAYS for _ in range(3)]
    chance = random.Random(scene.chance.random())
    contents = {f"f{number}": chance.randbytes(FILE_BYTES) for number in range(len(ways))}
    for name, content in contents.items():
        (source / name).write_bytes(content)
    replicas.shell(scene, "-mkdir", "-p", FILES)
    replicas.shell(scene, "-put", *(source / name for name in contents), FILES)
    wait_until(lambda: len(found_on_disks(scene.cluster, contents)) == len(contents), 60, "not all files are on three data servers")
    numbers = found_on_disks(scene.cluster, contents)
    victims = []
    for way, (name, content) in zip(ways, contents.items()):
        victim = Victim(scene, way, f"{FILES}/{name}", content, numbers[name])
        victim.sums = meta_of(victim.block_file(sorted(victim.holders())[0])).read_bytes()
        check(victim.is_healed(), f"{victim.path} is not what was written")
        victims.append(victim)
    return victims


def found_on_disks(cluster, contents):
    """The block of each file, by its name, where three data servers have it."""
    by_content = {content: name for name, content in contents.items()}
    numbers, counts = {}, {}
    for held in replicas.on_disk(cluster).values():
        for number, _, length in held:
            if length == FILE_BYTES:
                counts[number] = counts.get(number, 0) + 1
    for number, count in counts.items():
        if count != 3:
            continue
        for directory in cluster.data_directories.values():
            for path in directory.glob(f"current/BP-*/current/finalized/**/blk_{number}"):
                if name := by_content.get(path.read_bytes()):
                    numbers[name] = number
    return numbers


def watch(scene, victims):
    """Until each is found and healed; notes when."""
    deadline = time.monotonic() + HEAL_S
    while waiting := [victim for victim in victims if victim.found_s is None or victim.healed_s is None]:
        now = time.monotonic()
        seen = {name: mentioned(scene.cluster, name) for name in scene.cluster.data}
        for victim in waiting:
            if victim.found_s is None and all(victim.number in seen[name] for name in victim.spoilt):
                victim.found_s = now - victim.begun
            if victim.healed_s is None and victim.is_healed():
                victim.healed_s = now - victim.begun
        left = [f"{victim.way} (blk_{victim.number} of {victim.path})" for victim in waiting]
        check(now < deadline, f"after {HEAL_S} s these are not found and healed: {left}")
        time.sleep(0.1)


def mentioned(cluster, name):
    """The blocks of which the scanners of a data server have found something, be it damage or a replica that nobody knew."""
    known = re.findall(r"nobody knew is whole and is a replica from now on block=(?:BP\S*:)?blk_(\d+)_", log_of(cluster, name))
    return accusations(cluster, name) | {int(number) for number in known}


def span(seconds):
    return f"{min(seconds):.1f} to {max(seconds):.1f} s (median {statistics.median(seconds):.1f})"


def wait_until(holds, seconds, sentence):
    deadline = time.monotonic() + seconds
    while not holds():
        check(time.monotonic() < deadline, f"{sentence}, after {seconds} s")
        time.sleep(0.2)
