"""What an operator's story stands on: clusters of real processes, commands as they are typed, and what was said."""

import http.client
import json
import os
import subprocess
import time

from harness.report import Failure, check
from rig.cluster import Cluster
from rig.network import Loopback

PATIENCE_S = 60


class Maker:
    """Makes the clusters of one story, and ends them all."""

    def __init__(self, clover, zookeeper_jars, directory):
        self.clover = clover
        self.jars = zookeeper_jars
        self.directory = directory
        self.clusters = []
        # What else is to be undone at the end.
        self.undo = []

    def cluster(self, name="cluster", members=1, data=1, **meta_keys):
        """Not started yet. Every process of it ends with the story."""
        cluster = Cluster(self.clover, Loopback(), self.directory / name, self.jars, members, data, meta_keys)
        self.clusters.append(cluster)
        return cluster

    def start(self, *words, **keys):
        cluster = self.cluster(*words, **keys)
        cluster.start()
        return cluster

    def stop(self):
        for cluster in self.clusters:
            cluster.stop()
        for undo in reversed(self.undo):
            undo()

    def small_disk(self, name, size):
        """A directory that is a disk of its own, so large."""
        directory = self.directory / name
        directory.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", directory], check=True)
        self.undo.append(lambda: subprocess.run(["umount", "--lazy", directory], capture_output=True))
        return directory


def needs_root():
    return None if os.geteuid() == 0 else "it mounts a small disk of its own, which needs root"


class Said:
    """What a command said, and how it ended."""

    def __init__(self, words, done, seconds):
        self.words = words
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr
        self.seconds = seconds

    def __str__(self):
        return f"{' '.join(map(str, self.words))} ended with {self.code} after {self.seconds:.1f} s\n{self.out}{self.err}"

    def works(self, *texts):
        """It ended well, and said all of this on either channel."""
        check(self.code == 0, f"it was to work: {self}")
        return self.says(*texts)

    def is_refused(self, *texts):
        """It ended with a failure, and said why."""
        check(self.code != 0, f"it was to be refused: {self}")
        return self.says(*texts)

    def says(self, *texts):
        for text in texts:
            check(text in self.out + self.err, f"{text!r} was to be said: {self}")
        return self

    def does_not_say(self, *texts):
        for text in texts:
            check(text not in self.out + self.err, f"{text!r} was not to be said: {self}")
        return self

    def json(self):
        return json.loads(self.out)


def clover(cluster, *words, timeout=90):
    """Any command of the program, as typed."""
    begun = time.monotonic()
    command = [str(word) for word in (cluster.clover, *words)]
    environment = {name: value for name, value in os.environ.items() if name not in ("HADOOP_CONF_DIR", "HADOOP_USER_NAME")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL, env=environment)
    return Said(words, done, time.monotonic() - begun)


def admin(cluster, *words):
    """`clover admin …`, for the whole group; orders carry the proof that they want."""
    proof = ["--config", next(iter(cluster.members.values())).settings] if words[0] in ("group", "blocks") else []
    return clover(cluster, "admin", "--fs", uri(cluster), *words, *proof)


def fs(cluster, *words):
    return clover(cluster, "fs", "-fs", uri(cluster), *words)


def uri(cluster):
    """Any member that runs: it passes on what is not for it."""
    running = [member for member in cluster.members.values() if member.is_awake]
    return f"hdfs://{(running or list(cluster.members.values()))[0].rpc}"


def page(member, path):
    """The status code and the text of one of a server's pages; (None, "") where nobody answers."""
    return page_at(member.address, member.http_port, path)


def page_at(address, port, path):
    connection = http.client.HTTPConnection(address, port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return None, ""
    finally:
        connection.close()


def health(member):
    """The status code of `/health`, and what it says."""
    code, text = page(member, "/health")
    return code, json.loads(text) if text else {}


def until(what, wanted, seconds=PATIENCE_S, every=0.1):
    """Waits until `wanted()` is true; returns what it was."""
    deadline = time.monotonic() + seconds
    while True:
        found = wanted()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Failure(f"after {seconds} s it is not so that {what}")
        time.sleep(every)
