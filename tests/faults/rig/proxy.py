"""A proxy between clients and a member that swallows the first reply of every call and closes the connection: the call
was carried out, and its client cannot know. When the client repeats the call, the reply goes through.
"""

import socket
import struct
import threading
from collections import Counter

GREETING = 7  # "hrpc", version, service class, authentication


class Dropper:
    """What was swallowed so far, over all members: a retry may come by another one."""

    def __init__(self):
        self.lock = threading.Lock()
        self.swallowed = set()
        self.methods = Counter()

    def swallows(self, call, method):
        with self.lock:
            if call in self.swallowed:
                return False
            self.swallowed.add(call)
            self.methods[method] += 1
            return True


class Proxy:
    def __init__(self, dropper, address, target):
        self.dropper = dropper
        self.target = target
        self.listener = socket.create_server((address, 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        try:
            server = socket.create_connection(self.target, timeout=5)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        calls = {}
        threading.Thread(target=self.back, args=(server, client, calls), daemon=True).start()
        try:
            server.sendall(exactly(client, GREETING))
            while True:
                frame = read_frame(client)
                call, method = request(frame)
                if call is not None:
                    calls[call[1]] = (call, method)
                server.sendall(struct.pack(">I", len(frame)) + frame)
        except (OSError, EOFError):
            pass
        finally:
            close(client, server)

    def back(self, server, client, calls):
        try:
            while True:
                frame = read_frame(server)
                header, _ = delimited(frame, 0)
                known = calls.get(fields(header).get(1))
                if known and self.dropper.swallows(*known):
                    return
                client.sendall(struct.pack(">I", len(frame)) + frame)
        except (OSError, EOFError):
            pass
        finally:
            close(client, server)

    def close(self):
        self.listener.close()


def close(*connections):
    for connection in connections:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        connection.close()


def exactly(connection, count):
    read = b""
    while len(read) < count:
        piece = connection.recv(count - len(read))
        if not piece:
            raise EOFError
        read += piece
    return read


def read_frame(connection):
    return exactly(connection, struct.unpack(">I", exactly(connection, 4))[0])


def request(frame):
    """((client id, call id), method) of a call; (None, None) of what is no call."""
    header, at = delimited(frame, 0)
    known = fields(header)
    call_id = zigzag(known.get(3, 0))
    if call_id < 0:
        return None, None
    named, _ = delimited(frame, at)
    return (bytes(known.get(4, b"")), call_id), fields(named).get(1, b"?").decode()


def delimited(bytes_, at):
    size, at = varint(bytes_, at)
    return bytes_[at : at + size], at + size


def fields(message):
    """The last value of each field: numbers, and bytes of what has a length."""
    found, at = {}, 0
    while at < len(message):
        tag, at = varint(message, at)
        if tag & 7 == 0:
            found[tag >> 3], at = varint(message, at)
        elif tag & 7 == 2:
            found[tag >> 3], at = delimited(message, at)
        elif tag & 7 == 1:
            at += 8
        else:
            at += 4
    return found


def varint(bytes_, at):
    value = shift = 0
    while True:
        byte = bytes_[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def zigzag(value):
    return (value >> 1) ^ -(value & 1)
