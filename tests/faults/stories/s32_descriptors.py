"""Clients take all file descriptors of every member that they can get: the journal, images and the others always find some."""

import contextlib
import resource
import select
import socket
import threading
import time
import urllib.request

from harness.report import check

ITEM = "32"
IN_SLICE = False
NEEDS_CABLES = False
# Few enough to be used up, and hard: a member cannot raise its limit.
DESCRIPTORS = 300
CONNECTIONS = 400
# Files are begun and ended all the time.
KEYS = {"edits_per_image": 2000, "journal_segment_bytes": 256 << 10}
FLOOD_S = 12


def run(scene_of):
    raise_own_limit()
    scene = scene_of(members=3, meta_keys=KEYS)
    for member in scene.cluster.members.values():
        member.within = ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}"]
    with scene, contextlib.ExitStack() as floods:
        cluster = scene.cluster
        scene.start_load()
        scene.rest(2, 3)
        members = cluster.members.values()
        ports = [(member.address, port) for member in members for port in (member.rpc_port, member.http_port, member.peer_port)]
        flood = floods.enter_context(Flood(ports))
        scene.fault(f"{CONNECTIONS} silent connections are held to each port of each member", flood.wait_full)
        scene.rest(FLOOD_S)
        scene.wait_progress()
        number = scene.kill_active("kill -9 of the active meanwhile")
        cluster.wait_active(other_than=number)
        scene.wait_progress()
        scene.say(f"{flood.closed} connections of strangers were closed by the members")
        check(flood.closed >= CONNECTIONS, "nobody was short of descriptors: this story tells nothing")
        floods.close()
        scene.note_end()
        scene.restart(number)
        cluster.wait_settled()
        for member in members:
            text = member.log.read_text(errors="replace")
            limited = f"limit={DESCRIPTORS}" in text
            check(limited, f"{member.name} had more descriptors than it was to have")
            for line in text.splitlines():
                # Only those who accept connections may meet it, and they go on.
                check("Too many open files" not in line or "cannot accept" in line, f"{member.name}: {line}")
        survivors = [member for member in members if member.number != number]
        check(all(refused(member) for member in survivors), "a member has closed no connection for want of descriptors")
        scene.keep_takeovers()
        return scene.verdict()


def raise_own_limit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def refused(member):
    with urllib.request.urlopen(f"http://{member.address}:{member.http_port}/metrics", timeout=30) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith("clover_connections_refused_total "):
                return float(line.split()[1])
    raise AssertionError("no such metric: clover_connections_refused_total")


class Flood:
    """Holds connections on which nothing is said, and makes those anew that are closed, a little later."""

    def __init__(self, ports):
        self.ports = ports
        self.closed = 0
        self.ending = threading.Event()
        self.full = threading.Event()
        self.thread = threading.Thread(target=self.hold, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.ending.set()
        self.thread.join()

    def wait_full(self):
        check(self.full.wait(60), "the connections could not be made within a minute")

    def hold(self):
        held = {}
        while not self.ending.is_set():
            for port in self.ports:
                count = sum(1 for where in held.values() if where == port)
                for _ in range(CONNECTIONS - count):
                    stream = socket.socket()
                    stream.setblocking(False)
                    stream.connect_ex(port)
                    held[stream] = port
            self.full.set()
            time.sleep(0.5)
            for stream in self.ended(held):
                self.closed += 1
                del held[stream]
                stream.close()
        for stream in held:
            stream.close()

    @staticmethod
    def ended(held):
        """Those that the other side has closed."""
        poll = select.poll()
        by_number = {stream.fileno(): stream for stream in held}
        for number in by_number:
            poll.register(number, select.POLLIN | select.POLLRDHUP)
        return [by_number[number] for number, _ in poll.poll(0)]
