"""Files that must outlast everything: each written once, by either program, and read back by sum."""

import hashlib
import os
import random
import subprocess

from harness.report import check


class Keepsakes:
    def __init__(self, conf, directory, seed):
        # A client's configuration.
        self.conf = conf
        self.directory = directory
        self.chance = random.Random(f"{seed} keepsakes")
        self.sums = {}
        directory.mkdir(parents=True)

    def write(self, label, clover, count=4):
        """Files of a few bytes and of several packets, put by this program."""
        self.fs(clover, "-mkdir", "-p", "/kept")
        for number in range(count):
            content = self.chance.randbytes([17, 70_000, 300_001, 1][number % 4])
            local = self.directory / "content"
            local.write_bytes(content)
            path = f"/kept/{label}-{number}"
            self.fs(clover, "-put", local, path)
            self.sums[path] = hashlib.sha256(content).hexdigest()

    def check_all(self, clover):
        """Read by this program; what each holds is what was written."""
        for path, wanted in self.sums.items():
            found = hashlib.sha256(self.fs(clover, "-cat", path)).hexdigest()
            check(found == wanted, f"{path} has another content than was written")
        return len(self.sums)

    def fs(self, clover, *words):
        command = [clover, "fs", *words]
        environment = {**os.environ, "HADOOP_CONF_DIR": str(self.conf)}
        done = subprocess.run(list(map(str, command)), capture_output=True, timeout=120, stdin=subprocess.DEVNULL, env=environment)
        said = done.stderr.decode(errors="replace")
        check(done.returncode == 0, f"clover fs {' '.join(map(str, words))} ended with {done.returncode}: {said}")
        return done.stdout
