"""The tests of colinmarc/hdfs, which its Go module brings along."""

import collections
import json
import os
import shutil
import subprocess

from harness.clients import call, environment
from harness.cluster import CloverCluster, xml
from rig.hadoop import HadoopCluster
from rig.judge import Judge

TIMEOUT_S = 600
RESULTS = {"pass": "passed", "fail": "failed", "skip": "skipped"}


def on_clover(stock, work):
    work.mkdir()
    cluster = CloverCluster(stock.clover, work / "cluster", stock)
    try:
        cluster.start()
        return run(stock, cluster.uri, work)
    finally:
        cluster.stop()


def on_hadoop(stock, work):
    work.mkdir()
    with HadoopCluster(Judge(stock.clients, stock.hadoop, work), work / "cluster") as cluster:
        return run(stock, cluster.uri, work)


def run(stock, uri, work):
    """Test -> (result, what it said)."""
    module = stock.python_driver.parents[1] / "go"
    where = call(["go", "list", "-m", "-f", "{{.Dir}}", "github.com/colinmarc/hdfs/v2"], cwd=module).decode().strip()
    # The cache of modules is read-only, and the tests write beside their sources.
    source = work / "module"
    shutil.copytree(where, source, copy_function=shutil.copyfile)
    for directory, _, _ in os.walk(source):
        os.chmod(directory, 0o755)
    xml(work / "conf", {"fs.defaultFS": uri})
    for words in fixtures(source):
        call(stock.shell(uri, *words))
    command = ["go", "test", "-json", "-count=1", "-p=1", f"-timeout={TIMEOUT_S}s", "./..."]
    there = {**environment(), "HADOOP_CONF_DIR": str(work / "conf")}
    with open(work / "go-test.json", "wb") as out, open(work / "go-test.log", "wb") as log:
        # It ends with 1 where a test fails, which is what the events tell.
        subprocess.run(command, cwd=source, env=there, stdin=subprocess.DEVNULL, stdout=out, stderr=log, timeout=2 * TIMEOUT_S)
    return read((work / "go-test.json").read_text())


def fixtures(source):
    """What the module's own `.github/scripts/fixtures.sh` stores before the tests."""
    return [
        ("-mkdir", "-p", "/_test"),
        ("-chmod", "777", "/_test"),
        ("-put", source / "testdata/foo.txt", "/_test/foo.txt"),
        ("-D", "dfs.blocksize=1048576", "-put", source / "testdata/mobydick.txt", "/_test/mobydick.txt"),
    ]


def read(events):
    said, found = collections.defaultdict(str), {}
    for event in map(json.loads, events.splitlines()):
        test = event.get("Test")
        if not test:
            continue
        package = event["Package"].removeprefix("github.com/colinmarc/hdfs/v2").lstrip("/")
        name = f"{package}/{test}" if package else test
        if event["Action"] == "output":
            said[name] += event["Output"]
        elif event["Action"] in RESULTS:
            found[name] = (RESULTS[event["Action"]], said[name])
    return found
