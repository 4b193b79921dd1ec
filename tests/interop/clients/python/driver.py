"""Drives a cluster through hdfs-native.

put URI LOCAL REMOTE BLOCK-SIZE   stores a local tree
sums URI REMOTE                   reads a tree: one JSON line for each file and directory
append URI LOCAL REMOTE…          appends each file of a local directory, by name, to each remote file; opened anew each time
flush URI LOCAL REMOTE            appends a local file, makes it visible, says so, and closes when told to
rename URI FROM TO
"""

import hashlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from hdfs_native import Client
from hdfs_native import WriteOptions

STREAMS = 8
PIECE = 1 << 20


def put(client, local, remote, block_size):
    files = []
    for directory, directories, names in os.walk(local):
        directories.sort()
        relative = os.path.relpath(directory, local)
        target = remote if relative == "." else f"{remote}/{relative}"
        client.mkdirs(target)
        files += [(os.path.join(directory, name), f"{target}/{name}") for name in sorted(names)]

    def put_file(pair):
        source, target = pair
        with open(source, "rb") as reader, client.create(target, WriteOptions(block_size=block_size)) as writer:
            while piece := reader.read(PIECE):
                writer.write(piece)

    with ThreadPoolExecutor(STREAMS) as pool:
        list(pool.map(put_file, files))


def sums(client, remote):
    entries = sorted(client.list_status(remote, recursive=True), key=lambda status: status.path)

    def line(status):
        # A path may come back with its scheme and authority.
        path = status.path
        if "://" in path:
            path = "/" + path.split("://", 1)[1].split("/", 1)[1]
        path = path.removeprefix(remote).lstrip("/")
        if status.isdir:
            return {"path": path + "/", "size": 0, "sha256": ""}
        digest, size = hashlib.sha256(), 0
        with client.read(status.path) as reader:
            while piece := reader.read(PIECE):
                digest.update(piece)
                size += len(piece)
        if size != status.length:
            raise RuntimeError(f"{path}: read {size} bytes of {status.length}")
        return {"path": path, "size": size, "sha256": digest.hexdigest()}

    with ThreadPoolExecutor(STREAMS) as pool:
        for found in pool.map(line, entries):
            print(json.dumps(found))


def append(client, local, remotes):
    for remote in remotes:
        for name in sorted(os.listdir(local)):
            with open(os.path.join(local, name), "rb") as reader, client.append(remote) as writer:
                writer.write(reader.read())


def flush(client, local, remote):
    with open(local, "rb") as reader, client.append(remote) as writer:
        writer.write(reader.read())
        # This client has no other way to make bytes visible.
        writer.hsync()
        print("visible", flush=True)
        sys.stdin.readline()


def main():
    command, uri, *rest = sys.argv[1:]
    client = Client(uri)
    if command == "put":
        put(client, rest[0], rest[1], int(rest[2]))
    elif command == "sums":
        sums(client, rest[0])
    elif command == "append":
        append(client, rest[0], rest[1:])
    elif command == "flush":
        flush(client, *rest)
    elif command == "rename":
        client.rename(*rest)
    else:
        sys.exit(f"unknown command {command}")


if __name__ == "__main__":
    main()
