"""`clover demo`: ready with one line, kept over a restart, ended by ^C."""

import queue
import re
import signal
import subprocess
import threading
import time
import urllib.request

from . import shell
from .clients import call
from .cluster import free_port
from .report import Failure, check

READY_S = 60
STOP_S = 30


def run(report, stock, clover, directory):
    directory.parent.mkdir(parents=True, exist_ok=True)
    with report.case("hadoop fs", "works on clover demo"):
        with Demo(clover, directory) as demo:
            shell.tell(stock, demo.uri)
            keep(stock, demo.uri)
            for page in ("health", "metrics"):
                with urllib.request.urlopen(f"{demo.http}/{page}", timeout=10) as answer:
                    check(answer.status == 200 and answer.read(), f"/{page} is empty")
    with report.case("hadoop fs", "finds its file after clover demo was restarted"):
        with Demo(clover, directory) as demo:
            kept = call(stock.shell(demo.uri, "-cat", "/kept")).decode()
            check(kept == shell.POEM, "the file reads otherwise")


def keep(stock, uri):
    command = stock.shell(uri, "-put", "-", "/kept")
    subprocess.run(command, input=shell.POEM.encode(), check=True, timeout=120, capture_output=True)


class Demo:
    """A running `clover demo`; leaving the `with` block is ^C, and must end it cleanly."""

    def __init__(self, clover, directory):
        http_port = free_port()
        self.http = f"http://127.0.0.1:{http_port}"
        self.command = [clover, "demo", "--dir", directory, "--rpc-port", "0", "--http-port", str(http_port)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = queue.Queue()
        threading.Thread(target=lambda: [lines.put(line) for line in self.process.stdout], daemon=True).start()
        said, deadline = "", time.monotonic() + READY_S
        while time.monotonic() < deadline:
            try:
                said += lines.get(timeout=0.2)
            except queue.Empty:
                if self.process.poll() is not None:
                    break
            if ready := re.search(r"^ready (hdfs://\S+)$", said, re.MULTILINE):
                self.uri = ready[1]
                return self
        self.process.kill()
        raise Failure(f"clover demo did not say that it is ready:\n{said}")

    def __exit__(self, *error):
        self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failure(f"clover demo still ran {STOP_S} s after ^C") from None
        check(code == 0, f"clover demo ended with {code} after ^C")
