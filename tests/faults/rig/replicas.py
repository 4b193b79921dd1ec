"""Files with blocks that a story stores and reads back, and the replicas that lie on the data servers' disks."""

import contextlib
import re
import subprocess
import time

from checks import blocks
from harness.report import Failure

META = re.compile(r"blk_(\d+)_(\d+)\.meta")
ORDER_S = 120
# The length of a replica of which there is only a meta file.
NO_BLOCK_FILE = -1


def flip(file, at):
    """Changes one bit of the byte at this place of a file."""
    with open(file, "r+b") as opened:
        opened.seek(at)
        byte = opened.read(1)[0]
        opened.seek(at)
        opened.write(bytes([byte ^ 1 << (at % 8)]))


def shell(scene, *words, sent=None):
    """`clover fs`, with all members known to it. What it printed."""
    command = [scene.options.clover, "fs", "--conf", scene.conf(), *words]
    given = {"stdin": subprocess.DEVNULL} if sent is None else {"input": sent}
    done = subprocess.run(list(map(str, command)), capture_output=True, timeout=ORDER_S, **given)
    if done.returncode != 0:
        raise Failure(f"clover fs {words[0]}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def write_files(scene, directory, count, servers=None):
    """So many files with different contents, each of one block on all data servers, or on these. What is in each, by its path."""
    source = scene.directory / "files" / directory.strip("/")
    source.mkdir(parents=True)
    contents = {f"f{number}": bytes((number % 256,)) * (1000 + number) for number in range(count)}
    for name, content in contents.items():
        (source / name).write_bytes(content)
    before = on_disk(scene.cluster)
    shell(scene, "-mkdir", "-p", directory)
    shell(scene, "-put", *(source / name for name in contents), directory)
    deadline = time.monotonic() + 30
    while any(len(on_disk(scene.cluster)[name] - before[name]) < count for name in servers or before):
        if time.monotonic() > deadline:
            raise Failure(f"the {count} blocks of {directory} are not on all data servers after 30 s")
        time.sleep(0.1)
    return {f"{directory}/{name}": content for name, content in contents.items()}


def store_random(scene, directory, count, length):
    """So many files of random bytes, each a byte longer than the one before it. What is in each, by its path."""
    contents = {f"{directory}/f{number}": scene.chance.randbytes(length + number) for number in range(count)}
    source = local_copies(scene, directory)
    source.mkdir(parents=True)
    for path, content in contents.items():
        (source / path.rpartition("/")[2]).write_bytes(content)
    shell(scene, "-mkdir", "-p", directory)
    shell(scene, "-put", *sorted(source.iterdir()), directory)
    return contents


def local_copies(scene, directory):
    """Where the files lie that `store_random` has stored in this directory."""
    return scene.directory / "files" / directory.strip("/")


def check_files(scene, contents):
    for path, content in contents.items():
        if shell(scene, "-cat", path) != content:
            raise Failure(f"{path} is not what was written")


def on_disk(cluster):
    """The finished replicas on each data server's disk, as (id, stamp, length)."""
    return {name: below(directory) for name, directory in cluster.data_directories.items()}


def below(directory):
    """Those of one data directory."""
    held = set()
    for meta in directory.glob("current/BP-*/current/finalized/**/*.meta"):
        number, stamp = META.fullmatch(meta.name).groups()
        try:
            held.add((int(number), int(stamp), meta.with_name(f"blk_{number}").stat().st_size))
        except FileNotFoundError:
            continue
    return held


def everything(cluster, without=()):
    """All replicas of each data server but these, in whatever state, on all its disks."""
    found = {}
    for name in cluster.data:
        if name not in without:
            found[name] = set().union(*(in_any_state(directory) for directory in cluster.volumes_of(name)))
    return found


def in_any_state(directory):
    held = set()
    for place in ("current/finalized", "current/rbw", "tmp"):
        metas, files = {}, {}
        for path in directory.glob(f"current/BP-*/{place}/**/blk_*"):
            if match := META.fullmatch(path.name):
                metas[int(match[1])] = int(match[2])
            elif path.name.removeprefix("blk_").isdigit():
                with contextlib.suppress(FileNotFoundError):
                    files[int(path.name.removeprefix("blk_"))] = path.stat().st_size
        held |= {blocks.Replica(place.rpartition("/")[2], number, metas.get(number), length) for number, length in files.items()}
        held |= {blocks.Replica(place.rpartition("/")[2], number, metas[number], NO_BLOCK_FILE) for number in metas.keys() - files.keys()}
    return held


def gone(cluster, before):
    """How many of the replicas that were there are not any more."""
    after = on_disk(cluster)
    return sum(len(held - after[name]) for name, held in before.items())
