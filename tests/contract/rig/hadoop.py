"""Hadoop's HDFS in one JVM, for as long as the `with` block runs."""

import subprocess
import threading
import time

# A JVM with four servers in it, on a machine that may be busy.
READY_S = 300

KEYS = {
    "dfs.namenode.fs-limits.min-block-size": 0,
    # Clover has no erasure coding, so it is no news that it does not enable a policy by itself.
    "dfs.namenode.ec.system.default.policy": "",
}


class HadoopCluster:
    def __init__(self, judge, directory, data_servers=3, **settings):
        self.directory = directory
        self.log = directory.with_suffix(".server.log")
        keys = {**KEYS, **settings}
        pairs = [f"{key}={value}" for key, value in keys.items()]
        self.command = judge.java(["hadoop"], "Hadoop", directory, data_servers, *pairs, heap_mib=768)

    def __enter__(self):
        self.directory.mkdir(parents=True)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                self.command, cwd=self.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        said = []
        reader = threading.Thread(target=lambda: said.append(self.ready()), daemon=True)
        reader.start()
        reader.join(READY_S)
        if not said or said[0] is None:
            self.process.kill()
            raise SystemExit(f"Hadoop's HDFS did not start; see {self.log}")
        self.uri = said[0]
        return self

    def ready(self):
        for line in self.process.stdout:
            if line.startswith("ready "):
                return line.split()[1]
        return None

    def restart_metadata(self):
        print("restart", file=self.process.stdin, flush=True)
        for line in self.process.stdout:
            if line.strip() == "restarted":
                return

    def __exit__(self, *error):
        # Its standard input's end is its word to stop.
        self.process.stdin.close()
        deadline = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        self.process.kill()
        self.process.wait()
