"""A group under load is backed up over a takeover; it is restored as of two moments, and every file's sum is compared."""

import hashlib
import json
import random
import signal
import subprocess
import threading
import time

from harness.report import check
from rig import conf
from stand import admin, clover, fs, until, uri

IN_SLICE = False
LIMIT_S = 900
WORKERS = 2


class Load:
    """Clients that write, replace, rename and delete files. Every content is another one, so that a sum names it."""

    def __init__(self, cluster, directory):
        self.cluster = cluster
        self.directory = directory
        self.files = {}
        self.unclear = set()
        self.is_over = threading.Event()
        self.locks = [threading.Lock() for _ in range(WORKERS)]
        self.threads = [threading.Thread(target=self.work, args=(number,), daemon=True) for number in range(WORKERS)]
        self.done = 0
        # All members by name: clients turn to the next active.
        self.conf = directory.with_name("conf")
        conf.write(cluster.clover, self.conf, [member.rpc for member in cluster.members.values()], "configured", {})

    def start(self):
        self.directory.mkdir(parents=True)
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def work(self, number):
        dice = random.Random(number)
        count = 0
        while not self.is_over.is_set():
            with self.locks[number]:
                self.one(number, count, dice)
            count += 1

    def one(self, number, count, dice):
        mine = sorted(path for path in self.files if path.startswith(f"/load/{number}-"))
        kind = dice.choice(["put", "put", "put", "replace", "rename", "delete"]) if len(mine) > 4 else "put"
        path = f"/load/{number}-{count:05}" if kind in ("put", "rename") else dice.choice(mine)
        if kind in ("put", "replace"):
            content = f"{number} {count} ".encode() * dice.randrange(1, 3000)
            local = self.directory / f"{number}"
            local.write_bytes(content)
            self.carry_out({path}, {path: hashlib.md5(content).hexdigest()}, "-put", "-f", local, path)
        elif kind == "rename":
            source = dice.choice(mine)
            self.carry_out({source, path}, {path: self.files[source]}, "-mv", source, path)
        else:
            self.carry_out({path}, {}, "-rm", "-skipTrash", path)

    def carry_out(self, touched, result, *words):
        done = clover(self.cluster, "fs", "--conf", self.conf, *words)
        for path in touched:
            self.files.pop(path, None)
        if done.code == 0:
            self.files |= result
            self.done += 1
        else:
            # It may have happened or not: nobody asks for these any more.
            self.unclear |= touched


class Mark:
    """What was there at a moment, and which entry and time that was."""

    def __init__(self, load):
        for lock in load.locks:
            lock.acquire()
        # Nothing is under way: all that was acknowledged has committed.
        self.entry = load.cluster.group()["committed"]
        time.sleep(0.3)
        self.ms = int(time.time() * 1000)
        time.sleep(0.3)
        self.files = dict(load.files)
        self.unclear = set(load.unclear)
        for lock in load.locks:
            lock.release()


class Follower:
    """`clover admin backup --follow`, beside everything else."""

    def __init__(self, cluster, directory, settings):
        self.told = directory.with_suffix(".jsonl")
        self.process = subprocess.Popen(
            [cluster.clover, "admin", "--fs", uri(cluster), "backup", directory, "--follow", "--json", "--config", settings],
            stdout=self.told.open("wb"),
            stderr=directory.with_suffix(".err").open("wb"),
        )

    def rounds(self):
        lines = [json.loads(line) for line in self.told.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [line for line in lines if line["event"] == "round"]

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=30)


def listed(cluster, backup, *point):
    """Path and length of each file as of then."""
    said = clover(cluster, "meta", "backup", "look", "-R", "--json", backup, "/load", *point).works()
    found = [json.loads(line) for line in said.out.splitlines()]
    return {one["path"]: one["length"] for one in found if one["type"] == "file"}


def same_paths(found, mark, what):
    there, expected = set(found) - mark.unclear, set(mark.files)
    check(there == expected, f"{what}: too many {sorted(there - expected)}, missing {sorted(expected - there)}")


def run(make):
    keys = {"edits_per_image": 100, "image_period_ms": 3000}
    cluster = make.start(members=3, data=2, **keys)
    settings = cluster.members[1].settings
    backup = make.directory / "backup"
    fs(cluster, "-mkdir", "/load").works()
    load = Load(cluster, make.directory / "local")
    load.start()
    until("there is something to back up", lambda: load.done > 30)
    until("there is an image", lambda: any(cluster.directory.glob("meta-1/group-1/images/*.image")))

    # While it serves and others write.
    said = clover(cluster, "admin", "--fs", uri(cluster), "backup", backup, "--config", settings).works("Archived", "an image of", "of cluster")
    clover(cluster, "meta", "backup", "verify", "--deep", backup).works("verdict: sound")
    print(said.out)

    follower = Follower(cluster, backup, settings)
    first = Mark(load)
    more = load.done + 40
    until("files of the first mark are replaced and deleted", lambda: load.done > more)
    active = cluster.members[cluster.wait_active()]
    active.process.kill()
    active.process.wait_gone()
    cluster.wait_active(other_than=active.number)
    more = load.done + 30
    until("clients go on at the next active", lambda: load.done > more, seconds=120)
    active.start()
    second = Mark(load)
    until("the follower has the second mark", lambda: (r := follower.rounds()) and r[-1]["sn"] >= second.entry)
    load.stop()
    last = Mark(load)
    until("it has the end", lambda: (r := follower.rounds())[-1]["sn"] >= last.entry and (r[-1]["complete_ms"] or 0) > last.ms)
    check(len({r["active"] for r in follower.rounds() if r["active"]}) > 1, "it has seen the takeover")
    check(follower.stop() == 0, follower.told.read_text()[-500:])
    clover(cluster, "meta", "backup", "verify", "--deep", backup).works("verdict: sound")
    clover(cluster, "meta", "backup", "list", backup).works("FIRST SN").does_not_say("Nothing between")

    # The names of then, by entry and by time.
    for mark, what in ((first, "the first mark"), (second, "the second mark"), (last, "the end")):
        for point in (("--entry", mark.entry), ("--at", mark.ms)):
            same_paths(listed(cluster, backup, *point), mark, f"{what} by {point[0]}")
    # Those whose contents are gone since: by sum, for a rename loses nothing.
    alive = set(last.files.values())
    gone = {path for path, total in first.files.items() if total not in alive}
    check(gone and gone != set(first.files), f"{len(gone)} of {len(first.files)}")
    said = clover(cluster, "meta", "backup", "look", "--gone-since", "--json", backup, "/load", "--entry", first.entry).works()
    foretold = {json.loads(line)["path"] for line in said.out.splitlines()}
    check(foretold - last.unclear == gone - last.unclear, f"{foretold ^ gone}")
    print(f"{load.done} operations; {len(first.files)} files at the first mark, {len(gone)} of them gone since; {len(last.files)} at the end")

    # Data servers carry out what was ordered, then everything is lost but the backup and the data.
    time.sleep(5)
    for member in cluster.members.values():
        member.process.kill()
        member.process.wait_gone()

    restored(cluster, keys, backup, first, "first", ["--entry", first.entry])
    admin(cluster, "safe-mode", "get").works("ON")
    # An empty list would say that nothing is lost.
    admin(cluster, "list-corrupt-files").is_refused("safe mode")
    admin(cluster, "safe-mode", "leave").works()
    until("lost blocks are found", lambda: admin(cluster, "list-corrupt-files").works().out)
    time.sleep(1)
    said = admin(cluster, "list-corrupt-files", "--json").works()
    lost = {json.loads(line)["path"] for line in said.out.splitlines() if json.loads(line)["path"].startswith("/load/")}
    check(lost - last.unclear - first.unclear == gone - last.unclear, f"listed and not gone {lost - gone}, gone and not listed {gone - lost}")
    same_contents(cluster, {path: total for path, total in first.files.items() if path not in lost})
    held = json.loads(admin(cluster, "blocks", "allow-deletions", "--json").out)
    check(held["held_since_epoch"] and held["replicas"] + held["skipped_replicas"] > 0, held)
    letter = make.directory / "letter"
    letter.write_text("written after the restore\n")
    fs(cluster, "-put", letter, "/after").works()
    check(fs(cluster, "-cat", "/after").works().out == letter.read_text(), "what was written after the restore")

    # The backup was of another history: it is not added to.
    clover(cluster, "admin", "--fs", uri(cluster), "backup", backup, "--config", settings).is_refused("Keep this directory")
    time.sleep(3)
    for member in cluster.members.values():
        member.process.kill()
        member.process.wait_gone()

    # Nothing was lost by trying: what came after the first mark is all there.
    restored(cluster, keys, backup, last, "last", [])
    admin(cluster, "safe-mode", "leave").works()
    said = admin(cluster, "list-corrupt-files").works()
    check(not [line for line in said.out.splitlines() if line.startswith("/load/")], said)
    same_contents(cluster, last.files)


def restored(cluster, keys, backup, mark, name, point):
    """A group of three from the backup, at a path of its own, as the manual says it."""
    coordinator = f"zookeeper://{cluster.zookeeper.servers}/clover/{name}"
    first, *others = cluster.members.values()
    for member in cluster.members.values():
        member.directory = cluster.directory / f"{name}-{member.number}"
        member.configure(list(cluster.members), coordinator, **keys)
    said = clover(cluster, "meta", "restore", backup, "--config", first.settings, *point).works("Restored cluster", "allow-deletions")
    check(f"-{mark.entry}," in said.out or not point, said)
    clover(cluster, "meta", "restore", backup, "--config", first.settings, *point).is_refused("is not empty")
    for member in others:
        member.format("--join")
    for member in cluster.members.values():
        member.start()
    until("a member serves", lambda: cluster.active() is not None)
    # One data server runs on, the other one begins again.
    cluster.data["data-2"].kill()
    cluster.start_data("data-2")

    def all_have_reported():
        active = cluster.active()
        health = cluster.members[active].health() if active else None
        return health and int(health.get("live_data_servers", 0)) == 2

    until("all data servers are there", all_have_reported)
    until("all members are in sync", lambda: admin(cluster, "group").out.count("in sync") >= 3)
    until("all storages have reported", lambda: json.loads(admin(cluster, "blocks", "allow-deletions", "--json").out)["storages_not_reported"] == 0)
    time.sleep(2)


def same_contents(cluster, files):
    for path, total in sorted(files.items()):
        said = subprocess.run(
            [cluster.clover, "fs", "-fs", uri(cluster), "-cat", path], capture_output=True, timeout=60, stdin=subprocess.DEVNULL
        )
        found = hashlib.md5(said.stdout).hexdigest()
        check(said.returncode == 0 and found == total, f"{path}: {found} where {total} was written; {said.stderr.decode()}")
    print(f"the sums of {len(files)} files are right")
