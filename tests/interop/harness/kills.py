"""The kill rounds: what was acknowledged is there after every process was killed in the middle of writing."""

import random
import subprocess
import time

from .clients import call, environment
from .report import Failure, check


def run(report, stock, cluster, rounds, seed, work):
    chance = random.Random(seed)
    histories = []
    for number in range(1, rounds + 1):
        # Long enough for the writers to be in full swing, and never the same moment twice.
        seconds = chance.uniform(2.0, 6.0)
        remote, history = f"/kills/round {number}", work / "logs" / f"history-{number}.tsv"
        with report.case("all killed", f"round {number}: acknowledged operations are there") as note:
            write_and_kill(stock, cluster, remote, history, seed * 1000 + number, seconds)
            histories.append((remote, history))
            cluster.start()
            note.text = verify(stock, cluster, remote, history)
    with report.case("all killed", "files of all rounds still read back whole") as note:
        check(len(histories) == rounds, "a round did not get as far as its history")
        for remote, history in histories:
            note.text = verify(stock, cluster, remote, history)


def write_and_kill(stock, cluster, remote, history, seed, seconds):
    call(stock.shell(cluster.uri, "-mkdir", "-p", remote))
    log = open(history.with_suffix(".log"), "wb")
    command = stock.java("Driver", "history", cluster.uri, remote, history, seed)
    writer = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment())
    log.close()
    try:
        begun = time.monotonic()
        # The JVM takes a second or two to come up; the clock starts with the first acknowledged operation.
        while not (history.exists() and b"\nok\t" in history.read_bytes()):
            if writer.poll() is not None or time.monotonic() - begun > 60:
                raise Failure("the writer did not begin:\n" + history.with_suffix(".log").read_text()[-2000:])
            time.sleep(0.05)
        time.sleep(seconds)
        if writer.poll() is not None:
            raise Failure("the writer ended before the kill:\n" + history.with_suffix(".log").read_text()[-2000:])
        cluster.kill()
    finally:
        writer.kill()
        writer.wait()


def verify(stock, cluster, remote, history):
    return call(stock.java("Driver", "verify", cluster.uri, remote, history)).decode().strip()
