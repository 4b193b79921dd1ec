"""One metadata server and two data servers, as processes."""

import json
import socket
import subprocess
import sys
import time
import urllib.request

# Longer than anything takes that is waited for.
PATIENCE_S = 90


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait(what, is_so):
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            if is_so():
                return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit(f"after {PATIENCE_S} s not yet: {what}")


class Cluster:
    def __init__(self, clover, directory, redirects):
        self.clover, self.directory, self.redirects = clover, directory, redirects
        self.processes = {}
        rpc, http, *ports = free_ports(8)
        self.http_port, self.data_http_ports = http, [ports[2], ports[5]]
        self.url = f"http://127.0.0.1:{http}"
        (directory / "meta.toml").write_text(f"""
name_dir = "{directory}/meta"
rpc_address = "127.0.0.1:{rpc}"
http_address = "127.0.0.1:{http}"
webhdfs_redirects = {"true" if redirects else "false"}
cors_origins = ["https://console.example"]
http_hosts = ["meta.example"]
audit_log = "{directory}/audit.log"
default_replication = 2
min_block_size = 512
safe_mode_extension_ms = 0
heartbeat_interval_ms = 500
proxy_users = {{ "knox.hosts" = "127.0.0.1", "knox.users" = "ann" }}
""")
        for number in range(2):
            transfer, ipc, data_http = ports[3 * number : 3 * number + 3]
            (directory / f"data-{number}.toml").write_text(f"""
data_dirs = ["{directory}/data-{number}"]
metadata_servers = ["127.0.0.1:{rpc}"]
transfer_address = "127.0.0.1:{transfer}"
ipc_address = "127.0.0.1:{ipc}"
data_http_address = "127.0.0.1:{data_http}"
cors_origins = ["https://console.example", "http://127.0.0.1:{http}"]
http_hosts = ["*.data.example"]
heartbeat_interval_ms = 500
proxy_users = {{ "knox.hosts" = "127.0.0.1", "knox.users" = "ann" }}
""")

    def __enter__(self):
        subprocess.run([self.clover, "meta", "format", "--config", self.directory / "meta.toml"], check=True, stdout=subprocess.DEVNULL)
        for name in ("meta", "data-0", "data-1"):
            with open(self.directory / f"{name}.log", "ab") as log:
                command = [self.clover, name.split("-")[0], "--config", self.directory / f"{name}.toml"]
                self.processes[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait("a file can be written", self.is_ready)
        return self

    def is_ready(self):
        metrics = urllib.request.urlopen(f"{self.url}/metrics").read().decode()
        ready = json.load(urllib.request.urlopen(f"{self.url}/ready"))
        return ready["ready"] and "clover_data_servers_live 2" in metrics.splitlines()

    def __exit__(self, kind, *rest):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(60)
        if kind:
            for name in self.processes:
                print(f"--- {name}\n{(self.directory / f'{name}.log').read_text()[-3000:]}", file=sys.stderr)

    def resident_mib(self, name):
        """The most that a process has had in memory."""
        status = open(f"/proc/{self.processes[name].pid}/status").read()
        return int(status.split("VmHWM:")[1].split()[0]) // 1024
