"""Somebody who presses on a data server's transfer port with as many connections as asked, until standard input ends. A program of its own:

    python3 -m rig.presser KIND HOST PORT COUNT POOL

Kinds: `silent` says nothing; `half_open` begins a block and sends no packet; `slow` begins a block and then sends one byte of its packet a second; `reader`
asks for a block that is there (POOL/ID/STAMP/LENGTH) again and again, and takes nothing. Connections that the server closes are made again. A line a second
tells how many are open, and how many the server has closed so far."""

import asyncio
import itertools
import os
import socket
import struct
import sys
import threading

from .stranger import message, put_varint

VERSION = struct.pack(">H", 28)
WRITE_BLOCK, READ_BLOCK = 80, 81
# The stage in which a writer makes a new block, and the type of CRC32C.
CREATE_STAGE, CRC32C = 6, 2
CHUNK = 512
PACKET_BYTES = 64 << 10
# Blocks that no metadata server knows: their numbers are below the first that one gives out.
FIRST_BLOCK = 100_000_000
# Connections that are being made at a time, and the pause of one that was closed at once.
OPENING, AGAIN_S = 50, 0.2
READERS_BYTES = 4 << 10

numbers = itertools.count(FIRST_BLOCK + (os.getpid() % 900) * 1_000_000)
opened, closed = 0, 0


def header(pool, number, stamp, length):
    block = message((1, pool), (2, number), (3, stamp), (4, length))
    token = message((1, b""), (2, b""), (3, ""), (4, ""))
    return message((1, message((1, block), (2, token))), (2, "a presser"))


def write_block(pool):
    checksum = message((1, CRC32C), (2, CHUNK))
    words = ((4, CREATE_STAGE), (5, 1), (6, 0), (7, 0), (8, 1001), (9, checksum))
    operation = message((1, header(pool, next(numbers), 1001, 0)), *words)
    return VERSION + bytes((WRITE_BLOCK,)) + put_varint(len(operation)) + operation


def read_block(place):
    pool, number, stamp, length = place.split("/")
    operation = message((1, header(pool, int(number), int(stamp), int(length))), (2, 0), (3, int(length)))
    return VERSION + bytes((READ_BLOCK,)) + put_varint(len(operation)) + operation


def packet():
    """The beginning of a packet that promises 64 KiB and their sums; the rest is zeros."""
    sums = PACKET_BYTES // CHUNK * 4
    head = b"\x09" + struct.pack("<q", 0) + b"\x11" + struct.pack("<q", 0) + b"\x18\x00" + b"\x25" + struct.pack("<i", PACKET_BYTES)
    return struct.pack(">iH", 4 + sums + PACKET_BYTES, len(head)) + head


async def press(kind, host, port, pool, opening):
    global opened, closed
    while True:
        try:
            async with opening:
                link = socket.socket()
                link.setblocking(False)
                # The system takes next to nothing for a reader that takes nothing.
                link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, READERS_BYTES)
                await asyncio.get_running_loop().sock_connect(link, (host, port))
                incoming, out = await asyncio.open_connection(sock=link, limit=READERS_BYTES)
                opened += 1
                if kind in ("half_open", "slow"):
                    out.write(write_block(pool))
                    await incoming.read(1)
                elif kind == "reader":
                    out.write(read_block(pool))
            try:
                if kind == "slow":
                    for byte in itertools.chain(packet(), itertools.repeat(0)):
                        out.write(bytes((byte,)))
                        await out.drain()
                        await asyncio.sleep(1)
                elif kind == "reader":
                    # Nothing is taken from the socket while the stream's buffer is full.
                    await asyncio.Event().wait()
                while await incoming.read(1024):
                    pass
            finally:
                opened -= 1
                out.close()
        except OSError:
            pass
        closed += 1
        await asyncio.sleep(AGAIN_S)


async def main():
    kind, host, port, count, pool = sys.argv[1:]
    opening = asyncio.Semaphore(OPENING)
    tasks = [asyncio.create_task(press(kind, host, int(port), pool, opening)) for _ in range(int(count))]
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    threading.Thread(target=lambda: (sys.stdin.read(), loop.call_soon_threadsafe(ended.set)), daemon=True).start()
    while not ended.is_set():
        print(opened, closed, flush=True)
        try:
            await asyncio.wait_for(ended.wait(), 1)
        except TimeoutError:
            pass
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(main())
