"""Calls of Python clients whose packages bring no tests along: our own, which both HDFS and Clover must answer."""

import json
import random
import subprocess
from pathlib import Path

from harness.clients import call, environment
from harness.cluster import CloverCluster
from rig.hadoop import HadoopCluster
from rig.judge import Judge

PROGRAMS = Path(__file__).resolve().parents[1] / "python"
TIMEOUT_S = 1800
# Enough for several blocks of the smallest size.
LARGE_BYTES = (3 << 20) + 12345


class Calls:
    """A program of `tests/suites/python`, and what is stored before it runs."""

    def __init__(self, program, arguments, prepare):
        self.program, self.arguments, self.prepare = program, arguments, prepare

    def on_clover(self, stock, work):
        work.mkdir()
        cluster = CloverCluster(stock.clover, work / "cluster", stock)
        try:
            cluster.start()
            return self.run(stock, cluster.uri, work)
        finally:
            cluster.stop()

    def on_hadoop(self, stock, work):
        work.mkdir()
        with HadoopCluster(Judge(stock.clients, stock.hadoop, work), work / "cluster") as cluster:
            return self.run(stock, cluster.uri, work)

    def run(self, stock, uri, work):
        """Test -> (result, what it said)."""
        python = stock.clients / "suites-venv/bin/python"
        if not python.exists():
            raise SystemExit(f"{python} is missing: run scripts/setup-suites")
        local = work / "local"
        local.mkdir()
        self.prepare(stock, uri, local)
        log = work / "log"
        with open(log, "wb") as errors:
            command = [python, "-B", PROGRAMS / self.program, *self.arguments(uri), local]
            there = {**environment(), "PYSPARK_PYTHON": str(python)}
            done = subprocess.run(command, env=there, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, timeout=TIMEOUT_S)
        if done.returncode != 0:
            raise RuntimeError(f"{self.program} ended with {done.returncode}:\n{log.read_text(errors='replace')[-2000:]}")
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
        return {line["test"]: (line["result"], line["said"]) for line in lines}


def store_files(stock, uri, local):
    """Three files in /stored, and a root in which anybody may write."""
    random.seed(1)
    (local / "small").write_text("a line\nanother\n")
    (local / "empty").write_bytes(b"")
    (local / "large").write_bytes(random.randbytes(LARGE_BYTES))
    call(stock.shell(uri, "-mkdir", "-p", "/stored"))
    names = [local / name for name in ("small", "empty", "large")]
    call(stock.shell(uri, "-D", "dfs.blocksize=1048576", "-put", *names, "/stored"))


def make_directories(stock, uri, local):
    """Spark makes no directory for its event log."""
    call(stock.shell(uri, "-mkdir", "-p", "/spark-events", "/spark/warehouse"))


snakebite = Calls("snakebite_calls.py", lambda uri: uri.removeprefix("hdfs://").split(":"), store_files)
pyspark = Calls("spark_calls.py", lambda uri: [uri], make_directories)
