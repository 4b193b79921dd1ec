"""Hadoop's HDFS in one JVM, for as long as the `with` block runs."""

import shutil
import subprocess
import threading
import time
from dataclasses import replace

from harness.cluster import free_port

from .layout import Layout

# A JVM with four servers in it, on a machine that may be busy.
READY_S = 300

KEYS = {
    "dfs.namenode.fs-limits.min-block-size": 0,
    # Clover has no erasure coding, so it is no news that it does not enable a policy by itself.
    "dfs.namenode.ec.system.default.policy": "",
}


class HadoopCluster:
    def __init__(self, judge, directory, **settings):
        self.directory = directory
        self.log = directory.with_suffix(".server.log")
        self.keys = {**KEYS, **settings}
        self.judge = judge
        self.layout = Layout()
        self.stopped = set()
        self.has_metadata = True
        self.port, self.http_port = free_port(), free_port()
        self.uri, self.http = f"hdfs://localhost:{self.port}", f"localhost:{self.http_port}"

    def __enter__(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        ports = [str(port) for port in (self.port, self.http_port, self.judge.groups_port)]
        command = self.judge.java(["hadoop"], "Hadoop", self.directory, *ports, heap_mib=768)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.lay_out_anew(self.layout)
        return self

    def order(self, *words):
        """Its answer; a JVM that has ended or does not answer is an error."""
        print(*words, sep="\t", file=self.process.stdin, flush=True)
        said = []
        reader = threading.Thread(target=lambda: said.append(self.answer()), daemon=True)
        reader.start()
        reader.join(READY_S)
        if not said or said[0] is None:
            self.process.kill()
            raise RuntimeError(f"Hadoop's HDFS did not answer to {words[0]}; see {self.log}")
        if not said[0].startswith("done"):
            raise RuntimeError(said[0])
        return said[0].split("\t")[1:]

    def answer(self):
        for line in self.process.stdout:
            if line.startswith(("done", "failed")):
                return line.rstrip("\n")
        return None

    def all_keys(self, keys):
        return [f"{key}={value}" for key, value in {**self.keys, **keys}.items()]

    def lay_out_anew(self, layout):
        storages = ";".join(",".join(layout.media(number)) for number in range(layout.data_servers))
        self.layout, self.stopped, self.has_metadata = layout, set(), True
        self.order("lay-out", layout.data_servers, ",".join(layout.racks), storages, *self.all_keys(layout.keys))

    def lay_out(self, layout):
        """Whether everything is new; where the same was there already, it is left as it is."""
        if self.process.poll() is not None:
            self.layout = layout
            self.renew()
            return True
        if not self.stopped and self.has_metadata and layout == self.layout and layout.can_be_emptied():
            return False
        self.lay_out_anew(layout)
        return True

    def renew(self):
        """Whatever a test that was broken off has left behind is gone, and the JVM with it."""
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)
        self.__enter__()

    def restart_metadata(self, keys=None):
        if keys is not None:
            self.layout = replace(self.layout, keys=keys)
        self.has_metadata = True
        self.order("restart", *self.all_keys(self.layout.keys))

    def stop_metadata(self):
        self.has_metadata = False
        self.order("stop-metadata")

    def stop_data(self, number):
        self.stopped.add(number)
        self.order("stop-data", number)

    def start_data(self, number):
        self.order("start-data", number)
        self.stopped.discard(number)

    def add_data(self, rack, media):
        self.layout = self.layout.with_server(rack, media)
        self.order("add-data", rack, ",".join(media))

    def refresh_nodes(self):
        self.order("refresh-nodes")

    def data(self):
        servers = [part.split(":") for part in self.order("data")]
        return [(port, places) for port, *places in servers]

    def __exit__(self, *error):
        # Its standard input's end is its word to stop.
        self.process.stdin.close()
        deadline = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        self.process.kill()
        self.process.wait()
