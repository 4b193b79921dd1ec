"""A demo cluster, for as long as the `with` block runs, and the commands that ask it."""

import subprocess
import time

from cluster import free_ports
from driver import PATIENCE_S


def check(holds, what):
    if not holds:
        raise SystemExit(f"FAILED: {what}")


class Demo:
    def __init__(self, clover, directory, members, *settings):
        self.clover, self.log = clover, directory / "demo.log"
        rpc, http = free_ports(2) if members == 1 else (0, 0)
        command = [clover, "demo", "--dir", directory / "cluster", "--members", str(members)]
        command += ["--rpc-port", str(rpc), "--http-port", str(http)]
        command += [word for setting in settings for word in ("--set", setting)]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def __enter__(self):
        until = time.monotonic() + PATIENCE_S
        while "^C stops it" not in self.log.read_text():
            check(self.process.poll() is None and time.monotonic() < until, f"the demo starts: {self.log.read_text()}")
            time.sleep(0.1)
        lines = [line.strip() for line in self.log.read_text().splitlines()]
        self.login = next(line for line in lines if "/login?key=" in line)
        self.uri = next(line for line in lines if line.startswith("ready ")).split()[1]
        self.base = self.login.split("/login")[0]
        self.user = self.fs("-stat", "%u", "/").strip()
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)

    def fs(self, *words):
        command = [self.clover, "fs", "--fs", self.uri, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def admin(self, *words):
        command = [self.clover, "admin", words[0], "--fs", self.uri, *words[1:]]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def secret(self, directory):
        """The options that prove an order."""
        of_group = directory / "cluster" / "secret"
        if of_group.exists():
            return ["--secret-file", str(of_group)]
        config = directory / "meta.toml"
        config.write_text(f'name_dir = "{directory}/cluster/meta"\n')
        return ["--config", str(config)]
