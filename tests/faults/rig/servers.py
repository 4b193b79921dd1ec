"""Data servers as the metadata server knows them: which process is at which address, who lives, and what is said of each."""

import json
import re
import time

from harness.report import Failure

LIVE_S = 60
# Lines of a data server's log that accuse a replica.
ACCUSED = re.compile(r"(?:found a damaged replica|block file is missing; it is forgotten) block=(?:BP\S*:)?blk_(\d+)_")


def uuid_of(directory):
    lines = (directory / "current/VERSION").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("datanodeUuid="))


def report(cluster):
    """What `clover admin report` says of each data server, by its name in the story."""
    names = {uuid_of(directory): name for name, directory in cluster.data_directories.items() if (directory / "current/VERSION").exists()}
    said = json.loads(cluster.admin("report", "--json"))
    return {names[server["uuid"]]: server for server in said["data_servers"] if server["uuid"] in names}


def by_port(cluster):
    """The names, by the transfer ports of their present lives."""
    return {int(server["address"].rpartition(":")[2]): name for name, server in report(cluster).items() if server["alive"]}


def start(cluster, names):
    """Starts servers that were killed, and returns when the metadata server has heard them in their new lives. One that is still silent is not told of where
    another one has taken its address."""
    before = {name: server["address"] for name, server in report(cluster).items()}
    for name in names:
        cluster.data[name].wait_gone()
        cluster.start_data(name)
    wait(cluster, lambda said: all(name in said and is_new(said[name], before.get(name)) for name in names), f"{names} are not back")


def write_directories(cluster, name, directories):
    """Into the file of a data server, which takes them over when it starts or is told to."""
    file = cluster.directory / f"{name}.toml"
    names = ", ".join(f'"{directory}"' for directory in directories)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(f"data_dirs = [{names}]\n" if line.startswith("data_dirs") else line for line in lines))


def is_new(server, address):
    return server["alive"] and server["address"] != address


def wait_dead(cluster, names):
    """Until the metadata server counts on them no more."""
    wait(cluster, lambda said: not any(said[name]["alive"] for name in names if name in said), f"{names} are not known to be dead")


def wait(cluster, holds, sentence):
    deadline = time.monotonic() + LIVE_S
    while not holds(said := report(cluster)):
        if time.monotonic() > deadline:
            raise Failure(f"{sentence} after {LIVE_S} s: {({name: server['state'] for name, server in said.items()})}")
        time.sleep(0.1)


def working_volumes(cluster):
    """How many disks of each server are in use. One that has failed is not told of any more, or is said to have failed."""
    return {name: sum(not volume["failed"] for volume in server["volumes"] or ()) for name, server in report(cluster).items() if server["alive"]}


def accusations(cluster, name):
    """The blocks of which the scanners of a data server have found a replica damaged or gone."""
    return {int(number) for number in ACCUSED.findall(log_of(cluster, name))}


def log_of(cluster, name):
    text = (cluster.directory / f"{name}.log").read_text(errors="replace")
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
