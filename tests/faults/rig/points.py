"""Points in a server's work at which it kills itself, freezes or waits: crates/metad/src/points.rs names them, and says what may be asked for.

Only a program that was built for it looks.
"""

import time

from harness.report import Failure

VARIABLE = "CLOVER_FAILPOINTS"
# Until load has brought a server to any of them.
REACHED_S = 45


def environment(member):
    return {VARIABLE: str(file_of(member))}


def file_of(member):
    return member.directory.with_suffix(".failpoints")


def arm(member, *lines):
    """The member looks from now on. Returns where its log ends."""
    end = member.log.stat().st_size
    file = file_of(member)
    new = file.with_suffix(".new")
    new.write_text("".join(f"{line}\n" for line in lines))
    new.replace(file)
    return end


def disarm(member):
    file_of(member).unlink(missing_ok=True)


def wait_reached(member, line, since, seconds=REACHED_S):
    """Until the member has come to the point, as its log says behind `since`."""
    said = f"failpoint reached: {line}".encode()
    deadline = time.monotonic() + seconds
    while True:
        with open(member.log, "rb") as log:
            log.seek(since)
            if said in log.read():
                return
        if not member.process.is_running:
            raise Failure(f"{member.name} ended before it came to {line}:\n{member.process.tail()}")
        if time.monotonic() > deadline:
            raise Failure(f"{member.name} did not come to {line} within {seconds} s")
        time.sleep(0.002)
