"""Files that are written on, and pipelines that lose a data server at each of their stages.

The stock client says which server is to be frozen, killed and started again, and when; see WritingOn.java.
"""

import signal
import subprocess

from .clients import environment
from .cluster import CloverCluster
from .report import Failure

# One more than a pipeline has, so that a server can be replaced.
DATA_SERVERS = 4


def run(report, stock, clover, rounds, work):
    cluster = CloverCluster(clover, work / "pipelines", stock, data_servers=DATA_SERVERS)
    try:
        with report.case("cluster", "starts with four data servers"):
            cluster.start()
        if not report.failed:
            play(report, stock, cluster, rounds, work / "logs" / "writing-on.log")
    finally:
        cluster.thaw()
        cluster.stop()


def play(report, stock, cluster, rounds, log_path):
    with open(log_path, "wb") as log:
        client = subprocess.Popen(
            stock.java("Driver", "writing-on", cluster.uri, rounds),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment(),
            text=True,
        )
    try:
        while line := client.stdout.readline():
            with report.case("hadoop api", line.strip().removeprefix("begin ")):
                follow(client, cluster)
    finally:
        client.stdin.close()
        if client.wait(60) != 0:
            with report.case("hadoop api", "writes on to the end"):
                raise Failure(f"the client failed; see {log_path.name}")


def follow(client, cluster):
    """Does what the client orders until the case has ended."""
    while line := client.stdout.readline():
        order, rest = line.strip().split(" ", 1)
        if order == "end":
            if rest != "ok":
                raise Failure(rest)
            return
        number = cluster.transfer_ports.index(int(rest))
        if order == "freeze":
            cluster.signal(number, signal.SIGSTOP)
        elif order == "kill":
            cluster.signal(number, signal.SIGKILL)
            cluster.processes.pop(f"data-{number}").wait()
        elif f"data-{number}" not in cluster.processes:
            cluster.start_data_server(number)
        else:
            # The case failed before it had killed it.
            cluster.signal(number, signal.SIGCONT)
        client.stdin.write("done\n")
        client.stdin.flush()
    raise Failure("the client ended in the middle of it; see its log")
