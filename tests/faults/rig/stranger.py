"""Somebody who speaks Hadoop's `DatanodeProtocol` without being a data server: it says what it is told to say."""

import os
import socket
import struct

from .proxy import delimited, exactly, fields, varint

PROTOCOL = "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol"
# The layout of data directories, and a release, that metadata servers take.
LAYOUT = -57 & 0xFFFFFFFF
RELEASE = "3.5.0"
BLOCK_COMMAND, INVALIDATE, DELETED = 1, 2, 3
STORAGE = "DS-made-up"
ANSWER_S = 20


class Refused(Exception):
    """The server's words, behind the class of its exception."""


class Stranger:
    """One connection to one member, from the address `source`."""

    def __init__(self, source, member, uuid, port):
        self.connection = socket.create_connection(member, timeout=ANSWER_S, source_address=(source, 0))
        self.client_id, self.calls = os.urandom(16), 0
        self.connection.sendall(b"hrpc" + bytes((9, 0, 0)))
        context = message((2, message((1, "stranger"))), (3, PROTOCOL))
        self.send(-3, context)
        info = named(self.call("versionRequest", b""), 1)
        self.pool, belongs = named(info, 3), fields(named(info, 4))
        # Of the cluster that the server says is its own.
        storage_info = message((1, LAYOUT), (2, belongs[2]), (3, belongs[3]), (4, belongs[4]))
        identity = message((1, source), (2, uuid), (3, uuid), (4, port), (5, 0), (6, 0))
        keys = message((1, 0), (2, 0), (3, 0), (4, message((1, 0), (2, 0))))
        self.registration = message((1, identity), (2, storage_info), (3, keys), (4, RELEASE))

    def register(self):
        self.registration = named(self.call("registerDatanode", message((1, self.registration))), 1)

    def heartbeat(self):
        """How many replicas it is told to delete."""
        room = message((1, STORAGE), (3, 1 << 50), (5, 1 << 49), (7, message((1, STORAGE))))
        answer = self.call("sendHeartbeat", message((1, self.registration), (2, room)))
        count = 0
        for command in repeated(answer, 1):
            blocks = fields(command).get(3)
            if fields(command)[1] == BLOCK_COMMAND and fields(blocks)[1] == INVALIDATE:
                count += len(repeated(blocks, 3))
        return count

    def report(self, blocks):
        """Claims to have all of `blocks`, which are (id, stamp, length), and nothing else."""
        numbers = [len(blocks), 0]
        for number, stamp, length in blocks:
            numbers += [number, length, stamp]
        numbers += [(1 << 64) - 1] * 3
        report = message((1, message((1, STORAGE))), (2, b"".join(map(put_varint, numbers))))
        self.call("blockReport", message((1, self.registration), (2, self.pool), (3, report)))

    def say_deleted(self, storage, blocks):
        """Says that a storage has lost all of `blocks`."""
        rows = [(2, message((1, message((1, number), (2, stamp), (3, length))), (3, DELETED))) for number, stamp, length in blocks]
        told = message((1, storage), *rows, (3, message((1, storage))))
        self.call("blockReceivedAndDeleted", message((1, self.registration), (2, self.pool), (3, told)))

    def call(self, method, request):
        """The answer's bytes; `Refused` if it is none."""
        self.calls += 1
        header = message((1, method), (2, PROTOCOL), (3, 1))
        self.send(self.calls, header, request)
        while True:
            frame = exactly(self.connection, struct.unpack(">I", exactly(self.connection, 4))[0])
            head, at = delimited(frame, 0)
            known = fields(head)
            if known[1] == self.calls:
                break
        if known.get(2, 0):
            raise Refused(f"{known.get(4, b'').decode()}: {known.get(5, b'').decode()}")
        return delimited(frame, at)[0]

    def send(self, call, *parts):
        sint = (call << 1) ^ (call >> 31)
        header = message((1, 2), (2, 0), (3, sint & 0xFFFFFFFF), (4, self.client_id), (5, 0))
        frame = b"".join(put_varint(len(part)) + part for part in (header, *parts))
        self.connection.sendall(struct.pack(">I", len(frame)) + frame)


def message(*pairs):
    """A message of (number of the field, value): a number, text or bytes."""
    out = b""
    for number, value in pairs:
        if isinstance(value, int):
            out += put_varint(number << 3) + put_varint(value)
        else:
            value = value.encode() if isinstance(value, str) else bytes(value)
            out += put_varint(number << 3 | 2) + put_varint(len(value)) + value
    return out


def put_varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def named(bytes_, number):
    return fields(bytes_)[number]


def repeated(bytes_, number):
    """All values of a field that has a length."""
    found, at = [], 0
    while at < len(bytes_):
        tag, at = varint(bytes_, at)
        if tag & 7 == 2:
            value, at = delimited(bytes_, at)
            if tag >> 3 == number:
                found.append(value)
        elif tag & 7 == 0:
            _, at = varint(bytes_, at)
        else:
            at += 8 if tag & 7 == 1 else 4
    return found
