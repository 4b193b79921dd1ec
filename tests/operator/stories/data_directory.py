"""A data directory that is missing is not made anew; a server that one member has refused is taken later without a restart."""

import shutil
import time

from harness.report import check
from stand import admin, until

IN_SLICE = True
AN_HOUR_MS = 3_600_000
CREATED = "cTime="


def run(make):
    cluster = make.start(members=1, data=2)
    directory = cluster.data_directories["data-1"]
    cluster.data["data-1"].end()
    shutil.rmtree(directory)

    # The cluster is older now: in its file, which data servers are told.
    member = cluster.members[1]
    member.process.end()
    grow_old(member.directory / "CLUSTER")
    member.start()
    until("it serves", lambda: member.said_role() is not None)
    for _ in range(2):
        cluster.start_data("data-1")
        server = cluster.data["data-1"]
        check(server.wait_gone(30) != 0, "a server whose directory is missing goes on")
        check("is its disk mounted?" in server.tail(), server.tail())
        check(not (directory / "current").exists(), f"{directory} was made anew")

    # It is meant to be new.
    shutil.rmtree(directory)
    directory.mkdir()
    cluster.start_data("data-1")
    until("it has joined", lambda: admin(cluster, "report").works().out.count(" live ") == 2)


def grow_old(file):
    old = int(time.time() * 1000) - 2 * AN_HOUR_MS
    lines = [f"{CREATED}{old}" if line.startswith(CREATED) else line for line in file.read_text().splitlines()]
    file.write_text("\n".join(lines) + "\n")
