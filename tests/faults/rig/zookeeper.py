"""A ZooKeeper server whose nodes a story reads and changes."""

import socket
import struct

from harness import zookeeper

from .proxy import exactly

# Kinds of requests.
GET_DATA, SET_DATA, CLOSE = 4, 5, -11
BAD_VERSION = -103


class BadVersion(Exception):
    """Somebody else changed the node first."""


class ZooKeeper(zookeeper.ZooKeeper):
    def __init__(self, jars, network, directory):
        super().__init__(jars, network.zookeeper, network.port(network.zookeeper, 2181), directory)

    def get(self, path):
        """The value of a node, and its version."""
        answer = self.ask(GET_DATA, text(path) + b"\0")
        size = struct.unpack_from(">i", answer)[0]
        # The node's zxids and times come before its version.
        return answer[4 : 4 + size], struct.unpack_from(">i", answer, 4 + size + 32)[0]

    def set(self, path, value, version):
        """Changes a node that still has this version."""
        self.ask(SET_DATA, text(path) + struct.pack(">i", len(value)) + value + struct.pack(">i", version))

    def ask(self, kind, body):
        """One request in a session of its own; the protocol is small."""
        with socket.create_connection((self.address, self.port), timeout=2) as connection:
            hello = struct.pack(">iqiq", 0, 0, 4000, 0) + struct.pack(">i", 16) + bytes(16) + b"\0"
            send(connection, hello)
            receive(connection)
            send(connection, struct.pack(">ii", 1, kind) + body)
            answer = receive(connection)
            send(connection, struct.pack(">ii", 2, CLOSE))
        error = struct.unpack_from(">i", answer, 12)[0]
        if error == BAD_VERSION:
            raise BadVersion
        if error:
            raise OSError(f"ZooKeeper answers with error {error}")
        return answer[16:]


def text(value):
    return struct.pack(">i", len(value)) + value.encode()


def send(connection, frame):
    connection.sendall(struct.pack(">i", len(frame)) + frame)


def receive(connection):
    size = struct.unpack(">i", exactly(connection, 4))[0]
    return exactly(connection, size)
